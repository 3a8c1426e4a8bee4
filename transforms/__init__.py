"""How: pure functions on frames and relations. No Dagster, no environment, no clock, no file system."""
