"""How DuckDB is set for proofs: bounded memory, two threads, UTC. Nothing else belongs here."""

import duckdb

_SETTINGS = ("set TimeZone = 'UTC'", "set threads = 2")


def settle(connection: duckdb.DuckDBPyConnection, memory_mib: int) -> None:
    """Bound what a proof takes; what does not fit goes to disk."""
    for setting in (*_SETTINGS, f"set memory_limit = '{memory_mib}MiB'"):
        connection.execute(setting)
