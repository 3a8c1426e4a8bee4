"""Reconciliation: windows of an event partition whose rows changed get another revision.

Here belongs which rows, revisions and watermarks are read for which event partitions, and where the
revisions go. Which of them are needed is found by ``transforms.reconcile``; which event partitions
have something to find is in ``touched``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
import polars as pl

from assets.alerts import alerts_of
from assets.catalogue import asset_spec, dep
from assets.history import History, Targets
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.reorder import refuse_gaps
from assets.steps import Done, Stores, step
from assets.stores.lake import Slot
from assets.stores.lake_files import Span
from assets.stores.marks import Mark, digest_of
from assets.stores.publishing.figures import Figures
from assets.stores.tables import WINDOWS, by_shard, unit_of
from assets.stores.targets.writers import publish
from assets.stores.unit_of_work import CHUNK_ROWS, UnitOfWork
from assets.touched import touched
from transforms.errors import LakeError
from transforms.judging.keyed import NEVER
from transforms.publication import current, readable
from transforms.reconcile import Starts, reconcile
from transforms.schemas import (
    AMENDED_WINDOWS,
    DEAD_LETTERS,
    EVENT_US,
    ORDERED_EVENTS,
    PUBLISHED_WINDOWS,
    REASON,
    REVISION,
    WATERMARKS,
    WINDOW,
)
from transforms.spec import StreamSpec
from transforms.windows import counted_rows, event_range

DESCRIPTION: Final = "Windows of this day of events that have another revision than their first."


@dataclass(frozen=True)
class Amendment:
    """What reconciliation did to an event partition: revisions made now, windows amended ever."""

    partition: str
    revisions: pl.DataFrame
    amended: pl.DataFrame
    given: Figures = field(default_factory=Figures)  # of all partitions written together

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        reasons = self.revisions.group_by(REASON).len().sort(REASON).iter_rows()
        made = {f"new_revisions_{reason}": count for reason, count in reasons}
        amended = int(self.amended[WINDOWS].sum())
        new = {ROWS: amended, "new_revisions": self.revisions.height}
        return {**new, **made, **self.given.metadata()}


def amend(
    history: History, targets: Targets, axis: Axis, partitions: Sequence[str], run_id: str
) -> Iterator[Amendment]:
    """Reconcile event partitions; yields each of them when the target has its revisions."""
    lake, spec = history.lake, history.spec
    sink = targets.sink_of(spec)
    seen = touched(history)
    with unit_of(lake, spec, AMENDED_WINDOWS) as unit:
        complete = _complete(unit, spec, axis)
        for chunk in _chunks(history, unit, partitions):
            stored = history.read(chunk)
            revisions = _revisions(history, unit, stored, chunk, complete)
            # A mark of before would vouch for them, should its reasons come back after a kill.
            unit.withdraw(history.by_partition(revisions).keys())
            said = history.append(revisions, run_id)
            everything = pl.concat([stored, said])
            given = publish(sink, spec, history.with_partition(everything)).figures
            of_partition = history.by_partition(said)
            kept = history.by_partition(everything)
            for key in chunk:
                amended = _amended(kept.get(key, said.clear()))
                mark = Mark.of(spec, seen.get(key, digest_of()))
                unit.replace(AMENDED_WINDOWS, Slot(key), amended, str(mark))
                yield Amendment(key, of_partition.get(key, said.clear()), amended, given)
            unit.flush()


def _complete(unit: UnitOfWork, spec: StreamSpec, axis: Axis) -> list[str]:
    """Return all arrival partitions; LakeError if there is none, or one among them is missing."""
    complete = axis.in_order(unit.partitions(WATERMARKS))
    if not complete:
        raise LakeError(f"{spec.name}: nothing has arrived yet; run: lowwater run {spec.staged_as}")
    refuse_gaps(unit, spec, axis, complete[-1])
    return complete


def _revisions(
    history: History,
    unit: UnitOfWork,
    stored: pl.DataFrame,
    chunk: Sequence[str],
    complete: Sequence[str],
) -> pl.DataFrame:
    """Return the revisions that event partitions next to each other need."""
    spec, starts = history.spec, starts_of(history.events, chunk)
    spans = [rows_for(spec, starts)]
    arrived = frozenset(complete)
    made = []
    for shard, revisions in enumerate(by_shard(spec, stored)):
        counted = counted_rows(
            unit.read(ORDERED_EVENTS, partitions=arrived, shard=shard, spans=spans),
            unit.read(DEAD_LETTERS, partitions=arrived, shard=shard, spans=spans),
        )
        watermarks = unit.read(WATERMARKS, partitions=complete[-1:], shard=shard)
        made.append(reconcile(spec, counted, revisions, watermarks, starts=starts))
    return pl.concat(made)


def starts_of(events: Axis, chunk: Sequence[str]) -> Starts:
    """Return the windows of event partitions next to each other, by their start."""
    first = events.bounds(chunk[0]).start_us if events.previous(chunk[0]) else None
    return Starts(first, events.bounds(chunk[-1]).end_us)


def rows_for(spec: StreamSpec, starts: Starts) -> Span:
    """Return the event times of the rows that windows with such starts may hold."""
    end_us = starts.end_us or 0
    first_us, until_us = event_range(spec, starts.first_us or end_us, end_us)
    return Span(EVENT_US, int(NEVER) if starts.first_us is None else first_us, until_us - 1)


def _amended(history: pl.DataFrame) -> pl.DataFrame:
    """Count the windows whose current revision is not their first, by name."""
    amended = readable(current(history)).filter(pl.col(REVISION) > 0)
    return amended.group_by(WINDOW).agg(pl.len().cast(pl.Int64).alias(WINDOWS)).sort(WINDOW)


def _chunks(history: History, unit: UnitOfWork, partitions: Sequence[str]) -> Iterator[list[str]]:
    """Cut event partitions into chunks of neighbours with a bounded number of rows."""
    events = history.events
    chunk: list[str] = []
    for partition in events.in_order(partitions):
        longer = [*chunk, partition]
        is_next = not chunk or events.previous(partition) == chunk[-1]
        span = rows_for(history.spec, starts_of(events, longer))
        if chunk and not (is_next and unit.reach(ORDERED_EVENTS, span) <= CHUNK_ROWS):
            yield chunk
            longer = [partition]
        chunk = longer
    yield chunk


def reconcile_assets(spec: StreamSpec, axis: Axis, events: Axis) -> dg.AssetsDefinition:
    """Return the asset ``amended_windows`` of a stream, by event partition."""
    everything = dg.AllPartitionMapping()
    deps = [
        dep(spec, table, everything)
        for table in (ORDERED_EVENTS, DEAD_LETTERS, WATERMARKS, PUBLISHED_WINDOWS)
    ]

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        history = History(stores.lake, spec, events)
        for amended in amend(history, stores.targets, axis, partitions, stores.run_id):
            yield amended.partition, {AMENDED_WINDOWS: amended.figures()}

    specs = [asset_spec(spec, AMENDED_WINDOWS, DESCRIPTION, deps, ("deltalake", "duckdb"))]
    return step(spec, "reconcile", events, specs, work, watch=alerts_of(spec, AMENDED_WINDOWS))
