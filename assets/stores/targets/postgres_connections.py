"""Connections to a PostgreSQL target: opened when they are needed, closed with the target.

Here belong how long a connection waits for anything, what becomes of one that failed (it is closed:
nothing of it is trusted), and that no message holds the password. What is asked over them is the
target.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Final

import adbc_driver_manager
import pyarrow as pa
from adbc_driver_postgresql import dbapi

from assets.stores.parity.dsn import explained, redacted, with_timeout
from assets.stores.targets.faults import fault
from transforms.errors import TargetError

STATEMENT_TIMEOUT_S: Final = 60.0
LOCK_TIMEOUT_S: Final = 10.0
_SILENT: Final = frozenset({adbc_driver_manager.AdbcStatusCode.IO})


class Connections:
    """A few connections to one server, each used by one thread at a time."""

    def __init__(self, dsn: str, *, statement_timeout_s: float = STATEMENT_TIMEOUT_S) -> None:
        self.label = redacted(dsn)
        self.dsn = dsn
        self._timeout_ms = int(statement_timeout_s * 1_000)
        self._idle: SimpleQueue[dbapi.Connection] = SimpleQueue()
        self._is_open = False

    def open(self) -> None:
        """Reach the server once, so that a wrong address is known early."""
        self._is_open = True
        try:
            with self.transaction():
                pass
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what is idle now; what is in use is closed when it comes back."""
        self._is_open = False
        while True:
            try:
                connection = self._idle.get_nowait()
            except Empty:
                return
            connection.close()

    @contextmanager
    def transaction(self) -> Iterator[dbapi.Cursor]:
        """A cursor whose work is committed at the end of the block, or undone."""
        if not self._is_open:
            raise TargetError(f"{self.label}: not open; use the target in a `with` block")
        with self._explained():
            connection = self._borrowed()
            try:
                with connection.cursor() as cursor:
                    yield cursor
                connection.commit()
            except BaseException:
                with suppress(adbc_driver_manager.Error):
                    connection.close()
                raise
            self._returned(connection)

    def _borrowed(self) -> dbapi.Connection:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._connected()

    def _returned(self, connection: dbapi.Connection) -> None:
        if self._is_open:
            self._idle.put(connection)
        else:
            connection.close()

    def _connected(self) -> dbapi.Connection:
        connection = dbapi.connect(with_timeout(self.dsn))
        settings = {
            "statement_timeout": f"{self._timeout_ms}ms",
            "lock_timeout": f"{int(LOCK_TIMEOUT_S * 1_000)}ms",
            "idle_in_transaction_session_timeout": f"{2 * self._timeout_ms}ms",
            "timezone": "UTC",
            "application_name": "lowwater",
        }
        calls = ", ".join(
            f"set_config('{name}', '{text}', false)" for name, text in settings.items()
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"select {calls}")
                cursor.fetchall()
            connection.commit()
        except BaseException:
            with suppress(adbc_driver_manager.Error):
                connection.close()
            raise
        return connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (adbc_driver_manager.Error, pa.ArrowException) as error:
            message = f"{self.label}: {explained(error, self.dsn)}"
            # The driver's own words may quote the address: they do not travel further.
            raise fault(message, _state(error)) from None


def _state(error: Exception) -> str | None:
    """The SQLSTATE; None where the server gave no answer, empty where it is a mistake of ours."""
    state: str | None = getattr(error, "sqlstate", None)
    if state:
        return state
    return None if getattr(error, "status_code", None) in _SILENT else ""
