"""Windows: what the watermarks of an arrival partition closed, as it was known then.

Here belongs which rows are read for the windows that a partition closes, and where their first
publications are kept. How windows are made of rows is in ``transforms.windows``.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import dagster as dg
import polars as pl

from assets.catalogue import (
    asset_spec,
    dep,
)
from assets.metadata import ROWS, Metadata
from assets.partitions import Axis
from assets.reorder import refuse_gaps, state_before
from assets.steps import Done, Stores, step
from assets.stores.lake import Lake, Slot
from assets.stores.lake_files import Span
from assets.stores.marks import require_mark
from assets.stores.tables import unit_of
from assets.stores.unit_of_work import UnitOfWork
from transforms.schemas import (
    DEAD_LETTERS,
    EVENT_COUNT,
    EVENT_US,
    KEY,
    ORDERED_EVENTS,
    WATERMARKS,
    WINDOW,
    WINDOW_AGGREGATES,
)
from transforms.spec import StreamSpec
from transforms.windows import FROM_US, UNTIL_US, counted_rows, first_publications, row_range

DESCRIPTION: Final = "Windows that the watermarks of this partition closed, with the rows in time."
# Keys that lag behind all others are looked for by name, so that no other key is read as far back.
_LAGGING: Final = 0.05


class Closed(NamedTuple):
    """The windows that a partition closed."""

    partition: str
    windows: pl.DataFrame

    def figures(self) -> Metadata:
        """Return what the UI shows of the partition."""
        by_name = self.windows.group_by(WINDOW).len().sort(WINDOW).iter_rows()
        counts = {f"windows_{name}": count for name, count in by_name}
        return {ROWS: self.windows.height, "events": int(self.windows[EVENT_COUNT].sum()), **counts}


def close_windows(
    spec: StreamSpec, lake: Lake, axis: Axis, partitions: Sequence[str]
) -> Iterator[Closed]:
    """Compute what partitions closed; yields each of them when it is written."""
    with unit_of(lake, spec, WINDOW_AGGREGATES) as unit:
        refuse_gaps(unit, spec, axis, partitions[-1])
        unit.marks(WATERMARKS, partitions)
        for partition in partitions:
            mark = require_mark(unit, spec, WATERMARKS, partition)
            shards = [Slot(partition, shard) for shard in range(spec.shards)]
            windows = [_closed(spec, unit, axis, slot) for slot in shards]
            for slot, rows in zip(shards, windows, strict=True):
                unit.replace(WINDOW_AGGREGATES, slot, rows, str(mark))
            yield Closed(partition, pl.concat(windows))
            unit.finish()


def _closed(spec: StreamSpec, unit: UnitOfWork, axis: Axis, slot: Slot) -> pl.DataFrame:
    before = state_before(spec, unit, axis, slot).watermarks
    after = unit.read(WATERMARKS, partitions=[slot.partition], shard=slot.shard)
    ranges = row_range(spec, before, after)
    # A key that is new in this partition has no rows in an earlier one.
    known = ranges.join(before, on=KEY, how="semi")
    earlier = frozenset(axis.up_to(slot.partition)[:-1])
    tables = [
        pl.concat(
            [
                _read(unit, table, slot.shard, earlier, known),
                _read(unit, table, slot.shard, [slot.partition], ranges),
            ]
        )
        for table in (ORDERED_EVENTS, DEAD_LETTERS)
    ]
    return first_publications(spec, counted_rows(*tables), before, after)


def _read(
    unit: UnitOfWork, table: str, shard: int, partitions: Collection[str], ranges: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of a shard within the ranges of their keys, and few others."""
    if not ranges.height:
        return unit.read(table, partitions=())
    first, until = ranges[FROM_US], ranges[UNTIL_US]
    first_us, until_us = first.to_numpy().min(), until.to_numpy().max()
    span = Span(EVENT_US, int(first_us), int(until_us) - 1)
    most = first.sort()[int(_LAGGING * first.len())]
    lagging = ranges.filter(pl.col(FROM_US) < most)[KEY]
    where = (pl.col(EVENT_US) >= most) | pl.col(KEY).is_in(lagging.implode())
    return unit.read(table, partitions=partitions, shard=shard, spans=[span], where=where)


def window_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the asset ``window_aggregates`` of a stream."""
    deps = [dep(spec, table) for table in (ORDERED_EVENTS, DEAD_LETTERS, WATERMARKS)]

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        for closed in close_windows(spec, stores.lake, axis, partitions):
            yield closed.partition, {WINDOW_AGGREGATES: closed.figures()}

    specs = [asset_spec(spec, WINDOW_AGGREGATES, DESCRIPTION, deps)]
    return step(spec, "windows", axis, specs, work)
