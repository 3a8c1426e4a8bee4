"""What a publication goes by: batch sizes, the breaker, the ledger, values that fit.

Belongs here: decisions and sums, without a connection. Which revisions are published is
`transforms.publication`.
"""
