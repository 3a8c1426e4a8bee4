"""How: pure functions on frames and relations.

No Dagster, no environment, no wall clock, no file system, and nothing of ours but transforms.
Stages stand here; what only one of them is made of has a room of its own.
"""
