"""What is kept for how long: runs and their events, versions of the lake, logs and reports.

Here belongs what is deleted, and what never is: the figures that the UI shows of a partition stay
until something newer replaces them, whatever the age of their run. Ticks are pruned by Dagster
itself (``retention`` in dagster.yaml).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import dagster as dg
import sqlalchemy as sql
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from assets.stores.lake import Lake
from assets.stores.lock import StreamLock
from assets.stores.tables import STORED_TABLES
from transforms.spec import StreamSpec

_EVENTS: Final = SqlEventLogStorageTable.c
_DAY_S: Final = 86_400


@dataclass(frozen=True)
class Pruned:
    """What was deleted."""

    runs: int = 0
    events: int = 0
    files: int = 0


def prune_runs(instance: dg.DagsterInstance, days: int, now: float | None = None) -> Pruned:
    """Delete finished runs older than so many days that the UI needs no more.

    A run that said the newest of any partition stays, without the events that are about no asset.
    """
    before = datetime.fromtimestamp(now or time.time(), UTC) - timedelta(days=days)
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return Pruned()
    needed = runs_needed(storage)
    runs = events = 0
    for run_id in _finished(instance, before):
        if run_id in needed:
            events += _strip(storage, run_id)
        else:
            instance.delete_run(run_id)
            runs += 1
    return Pruned(runs, events)


def runs_needed(storage: SqlEventLogStorage) -> set[str]:
    """Return the runs that made the newest materialization of any partition of any asset."""
    newest = (
        sql.select(sql.func.max(_EVENTS.id))
        .where(_EVENTS.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value)
        .group_by(_EVENTS.asset_key, _EVENTS.partition)
    )
    with storage.index_connection() as connection:
        rows = connection.execute(
            sql.select(_EVENTS.run_id).where(_EVENTS.id.in_(newest)).distinct()
        )
        return {str(row[0]) for row in rows}


def _finished(instance: dg.DagsterInstance, before: datetime) -> Sequence[str]:
    """Finished runs that were last touched before a time."""
    wanted = dg.RunsFilter(statuses=list(FINISHED_STATUSES), updated_before=before)
    return instance.get_run_ids(wanted)


def _strip(storage: SqlEventLogStorage, run_id: str) -> int:
    """Delete the events of a run that are about no asset; returns how many there were."""
    with storage.index_connection() as connection:
        gone = connection.execute(
            SqlEventLogStorageTable.delete().where(
                _EVENTS.run_id == run_id,
                _EVENTS.asset_key.is_(None),
                _EVENTS.dagster_event_type.not_in(_KEPT),
            )
        )
        return int(gone.rowcount)


# How a run began and ended is short, and the UI shows it.
_KEPT: Final = tuple(
    kind.value
    for kind in (
        dg.DagsterEventType.RUN_START,
        dg.DagsterEventType.RUN_SUCCESS,
        dg.DagsterEventType.RUN_FAILURE,
        dg.DagsterEventType.RUN_CANCELED,
    )
)


def prune_lake(spec: StreamSpec, lake: Lake, lock: StreamLock, days: int) -> Pruned:
    """Delete files that no table of a stream has referred to for so many days. Raises LockHeld."""
    names = dict.fromkeys((spec.name, *(part.name for part in spec.computed)))
    with lock():
        gone = [lake.prune(name, table, days) for name in names for table in STORED_TABLES]
    return Pruned(files=sum(gone))


def prune_files(folders: Sequence[Path], days: int, now: float | None = None) -> Pruned:
    """Delete files older than so many days; links are not followed."""
    before = (now or time.time()) - days * _DAY_S
    files = 0
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime < before:
                path.unlink()
                files += 1
    return Pruned(files=files)
