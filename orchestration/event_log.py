"""The event log of the embedded instance: one SQLite file, many events in one statement.

A run over a year of days makes thousands of materialization events. Dagster's own SQLite storage
commits each of them apart, through a connection opened anew, at some hundredths of a second each;
its PostgreSQL storage writes batches, and this one does as that does. Here belongs only how events
are written down; what they say is Dagster's, whose version is pinned.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dagster import DagsterEventType
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable

if TYPE_CHECKING:
    from dagster import EventLogEntry

_IN_BULK: Final = {
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
}


class BatchedEventLog(ConsolidatedSqliteEventLogStorage):
    """Stores the events that Dagster hands over together in one transaction."""

    def store_event_batch(self, events: Sequence["EventLogEntry"]) -> None:
        """Store events about assets, all or none."""
        if not {event.dagster_event_type for event in events} <= _IN_BULK:
            super().store_event_batch(events)
            return
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
