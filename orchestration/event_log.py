"""The event log of the embedded instance: one SQLite file, many events in one transaction.

A run over a year of days makes thousands of materializations and check evaluations. Dagster's own
SQLite storage commits each of them apart, through an engine made anew which compiles every
statement again, at some hundredths of a second each; its PostgreSQL storage writes batches through
one engine, and this one does as that does. Here belongs only how events are written down; what they
say is Dagster's, whose version is pinned.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import local
from typing import TYPE_CHECKING, Final

import sqlalchemy as db
from dagster import DagsterEventType
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy.pool import NullPool

if TYPE_CHECKING:
    from dagster import EventLogEntry

_IN_BULK: Final = {
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
}


class BatchedEventLog(ConsolidatedSqliteEventLogStorage):
    """Stores the events that Dagster hands over together in one transaction.

    ``takes_any_batch`` is what ``assets.verdicts`` asks for.
    """

    takes_any_batch: Final = True

    @cached_property
    def _engine(self) -> db.Engine:
        """The one engine, which remembers the statements it compiled; connections are not kept."""
        wait = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
        return db.create_engine(self._conn_string, poolclass=NullPool, connect_args=wait)

    @cached_property
    def _open(self) -> local:
        """The connection of this thread's batch, while there is one."""
        return local()

    @cached_property
    def _tables(self) -> set[str]:
        """The tables that were seen; none of them goes away."""
        return set()

    @contextmanager
    def _connect(self) -> Iterator[db.Connection]:
        """A connection in a transaction: that of the batch being stored, or a new one."""
        held = getattr(self._open, "connection", None)
        if held is not None:
            yield held
            return
        with self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _one_transaction(self) -> Iterator[None]:
        with self._connect() as connection:
            self._open.connection = connection
            try:
                yield
            finally:
                del self._open.connection

    def has_table(self, table_name: str) -> bool:
        """Whether the file has a table."""
        if table_name not in self._tables:
            with self._connect() as connection:
                if not self._engine.dialect.has_table(connection, table_name):
                    return False
            self._tables.add(table_name)
        return True

    def store_event_batch(self, events: Sequence["EventLogEntry"]) -> None:
        """Store events about assets and their checks, all or none."""
        with self._one_transaction():
            if {event.dagster_event_type for event in events} <= _IN_BULK:
                self._store_in_bulk(events)
            else:
                super().store_event_batch(events)

    def _store_in_bulk(self, events: Sequence["EventLogEntry"]) -> None:
        with self._connect() as connection:
            insert = self.prepare_insert_event_batch(events)
            rows = connection.execute(insert.returning(SqlEventLogStorageTable.c.id))
            # SQLite counts the rows of a statement up, in whatever order it returns them.
            ids = sorted(int(row[0]) for row in rows.fetchall())
            self._store_asset_event_tags(connection, events, ids)
            newest = {
                event.get_dagster_event().asset_key: (event, event_id)
                for event, event_id in zip(events, ids, strict=True)
            }
            for event, event_id in newest.values():
                self._store_asset_event(connection, event, event_id)
