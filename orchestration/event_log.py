"""The event log of the embedded instance: one SQLite file, many events in one transaction.

A run over a year of days makes thousands of materialization events. Dagster's own SQLite storage
commits each of them apart, through a connection opened anew, at some hundredths of a second each.
Here belongs only how events are written down; what they say is Dagster's.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage

if TYPE_CHECKING:
    from dagster._core.events.log import EventLogEntry


class BatchedEventLog(ConsolidatedSqliteEventLogStorage):
    """Stores the events that Dagster hands over together in one transaction."""

    _open = threading.local()

    def store_event_batch(self, events: Sequence["EventLogEntry"]) -> None:
        """Store events, all or none."""
        with super()._connect() as connection:
            self._open.connection = connection
            try:
                super().store_event_batch(events)
            finally:
                self._open.connection = None

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        """Give the connection of the batch under way, else a new one."""
        connection = getattr(self._open, "connection", None)
        if connection is not None:
            yield connection
        else:
            with super()._connect() as new:
                yield new
