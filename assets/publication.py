"""Publication: the windows that an arrival partition closed reach the target, once.

Here belongs the order of things: what is new is kept in the history of the lake, then the target is
given it. Which publications are new is decided in ``transforms.publication``; revisions that come
after are made in ``reconcile``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
import polars as pl

from assets.alerts import alerts_of
from assets.catalogue import asset_spec, dep
from assets.history import History, Targets
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.steps import Done, Stores, step
from assets.stores.lake import Slot
from assets.stores.marks import require_mark
from assets.stores.publishing.figures import Figures
from assets.stores.tables import BATCH, LANE, REVISIONS, STAMPS, WINDOWS, frame_schema, unit_of
from assets.stores.targets.writers import publish
from assets.stores.unit_of_work import CHUNK_ROWS, UnitOfWork
from transforms.errors import LakeError
from transforms.publication import compare_first
from transforms.schemas import (
    PARTITION,
    PUBLICATION_STAMPS,
    PUBLISHED_WINDOWS,
    WATERMARKS,
    WINDOW,
    WINDOW_AGGREGATES,
    WINDOW_IDENTITY,
)
from transforms.spec import StreamSpec

DESCRIPTION: Final = "Windows of this partition that the target holds, counted by name."


@dataclass(frozen=True)
class Publication:
    """What a partition published: all its windows by name, and how many of them are news."""

    partition: str
    windows: pl.DataFrame
    new: int
    given: Figures = field(default_factory=Figures)  # of all partitions written together

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        rows = int(self.windows[WINDOWS].sum())
        return {ROWS: rows, "new_windows": self.new, **self.given.metadata()}


def publish_windows(
    history: History, targets: Targets, partitions: Sequence[str], run_id: str
) -> Iterator[Publication]:
    """Publish what partitions closed; yields each of them when the target has it."""
    lake, spec = history.lake, history.spec
    sink = targets.sink_of(spec)
    with unit_of(lake, spec, PUBLISHED_WINDOWS) as unit:
        for chunk in _chunks(unit, partitions):
            for table in (WATERMARKS, WINDOW_AGGREGATES):
                unit.marks(table, chunk)
            windows = {key: _windows(unit, spec, key) for key in chunk}
            everything = pl.concat(windows.values())
            stored = history.read(history.by_partition(everything).keys())
            first = compare_first(everything, stored)
            said = history.append(first.new, run_id)
            known = stored.join(everything, on=WINDOW_IDENTITY, how="semi")
            given = publish(sink, spec, history.with_partition(pl.concat([known, said])))
            stamps = _by_partition(given.stamps, windows)
            for key, rows in windows.items():
                counts = _marked(unit, spec, key, rows, stamps.get(key))
                new = rows.join(said, on=WINDOW_IDENTITY, how="semi").height
                yield Publication(key, counts, new, given.figures)
            unit.flush()


def _windows(unit: UnitOfWork, spec: StreamSpec, partition: str) -> pl.DataFrame:
    """Return the windows that a partition closed; LakeError if they are of older rows."""
    made = require_mark(unit, spec, WINDOW_AGGREGATES, partition)
    if made != require_mark(unit, spec, WATERMARKS, partition):
        raise LakeError(
            f"{spec.name}: the windows of partition {partition} are older than its rows; "
            f"run it again: lowwater run {spec.staged_as} --from {partition} --to {partition}"
        )
    return unit.read(WINDOW_AGGREGATES, partitions=[partition])


def _marked(
    unit: UnitOfWork,
    spec: StreamSpec,
    partition: str,
    windows: pl.DataFrame,
    stamps: pl.DataFrame | None,
) -> pl.DataFrame:
    mark = str(require_mark(unit, spec, WINDOW_AGGREGATES, partition))
    counts = windows.group_by(WINDOW).agg(pl.len().cast(pl.Int64).alias(WINDOWS)).sort(WINDOW)
    if unit.marks(PUBLISHED_WINDOWS, [partition]).get(partition) != mark:
        # Stamps tell of the run that published these windows; a run that repeats it keeps them.
        none = frame_schema(spec, PUBLICATION_STAMPS).to_frame()
        unit.replace(PUBLICATION_STAMPS, Slot(partition), none if stamps is None else stamps)
    unit.replace(PUBLISHED_WINDOWS, Slot(partition), counts, mark)
    return counts


def _by_partition(
    stamped: pl.DataFrame, windows: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """Return the batches that hold windows of a partition, and how many revisions of them."""
    named = [
        rows.select(*WINDOW_IDENTITY, pl.lit(key).alias(PARTITION)) for key, rows in windows.items()
    ]
    batches = (
        stamped.join(pl.concat(named), on=WINDOW_IDENTITY)
        .group_by(PARTITION, BATCH, LANE, *STAMPS)
        .agg(pl.len().cast(pl.Int64).alias(REVISIONS))
        .select(PARTITION, BATCH, LANE, REVISIONS, *STAMPS)
        .sort(PARTITION, BATCH)
    )
    parts = batches.partition_by(PARTITION, as_dict=True, include_key=False)
    return {str(name): rows for (name,), rows in parts.items()}


def _chunks(unit: UnitOfWork, partitions: Sequence[str]) -> Iterator[list[str]]:
    """Cut partitions into chunks of a bounded number of windows."""
    sizes = unit.rows(WINDOW_AGGREGATES)
    chunk, rows = list[str](), 0
    for partition in partitions:
        size = sizes.get(partition, 0)
        if chunk and rows + size > CHUNK_ROWS:
            yield chunk
            chunk, rows = [], 0
        chunk.append(partition)
        rows += size
    yield chunk


def publication_assets(spec: StreamSpec, axis: Axis, events: Axis) -> dg.AssetsDefinition:
    """Return the asset ``published_windows`` of a stream."""

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        history = History(stores.lake, spec, events)
        for published in publish_windows(history, stores.targets, partitions, stores.run_id):
            yield published.partition, {PUBLISHED_WINDOWS: published.figures()}

    deps, kinds = [dep(spec, WINDOW_AGGREGATES)], ("deltalake", "duckdb")
    specs = [asset_spec(spec, PUBLISHED_WINDOWS, DESCRIPTION, deps, kinds)]
    return step(spec, "publication", axis, specs, work, watch=alerts_of(spec, PUBLISHED_WINDOWS))
