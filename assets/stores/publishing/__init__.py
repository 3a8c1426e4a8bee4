"""Publishing through failures: batches, retries, the breaker, dead letters, figures, traces."""
