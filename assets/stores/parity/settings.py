"""How DuckDB is set for proofs: bounded memory, two threads, UTC. Nothing else belongs here."""

import duckdb

# A bar of DuckDB's own would stand between the lines of a result.
_SETTINGS = (
    "set TimeZone = 'UTC'",
    "set threads = 2",
    "set enable_progress_bar = false",
)


def settle(connection: duckdb.DuckDBPyConnection, memory_mib: int) -> None:
    """Bound what a proof takes; what does not fit goes to disk."""
    for setting in (*_SETTINGS, f"set memory_limit = '{memory_mib}MiB'"):
        connection.execute(setting)
