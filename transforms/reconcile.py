"""Reconcile: give every window whose rows changed since it was published its next revision.

A window is compared with all rows in the lake that it counts: late ones, resolved ones, those of
partitions staged anew. It is never amended by adding to what was published, but computed again from
all of its rows, by the same aggregation as a first publication. Here belong the rows x windows that
are judged and the revisions that follow; the comparison itself is in ``judgement``, and what became
of each dead letter in ``outcomes``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from transforms.aggregate import windows_of, with_lanes
from transforms.digest import DigestSum
from transforms.publication import current
from transforms.reconciling.judgement import CHANGE, PUBLISH, WINDOW_ROW_COLUMNS, WITHDRAW, judge
from transforms.schemas import (
    COUNT,
    DEAD_LETTER_COUNT,
    EVENT_COUNT,
    EVENT_US,
    INPUT_DIGEST,
    KEY,
    LATE_ARRIVAL_COUNT,
    REASON,
    REVISION,
    STREAM,
    WINDOW,
    WINDOW_END_US,
    WINDOW_IDENTITY,
    WINDOW_START_US,
    statistic_column,
    window_schema,
)
from transforms.spec import StreamSpec
from transforms.windowing.groups import Groups, in_order
from transforms.windows import assign

_WINDOW_KEY: Final = (WINDOW, KEY, WINDOW_START_US)


@dataclass(frozen=True)
class Starts:
    """The windows of an event partition: those that start in [first, end), in microseconds.

    None is without a bound: the first event partition has what is before it, too.
    """

    first_us: int | None = None
    end_us: int | None = None

    def holds(self, start_us: pl.Expr) -> pl.Expr:
        """Whether a start lies within."""
        low = pl.lit(True) if self.first_us is None else start_us >= self.first_us
        high = pl.lit(True) if self.end_us is None else start_us < self.end_us
        return low & high


ALL_WINDOWS: Final = Starts()


def reconcile(
    spec: StreamSpec,
    counted: pl.DataFrame,
    history: pl.DataFrame,
    watermarks: pl.DataFrame,
    *,
    starts: Starts = ALL_WINDOWS,
    flushed: bool = False,
) -> pl.DataFrame:
    """Return the revisions that are needed, with the columns of ``window_schema``; often none.

    ``counted`` are rows of ``counted_schema``, at least all that windows within ``starts`` hold;
    ``history`` all revisions of those windows. ``flushed`` says that open windows are published.
    Raises CalculationError where an exact sum leaves its type.
    """
    rows = in_order(counted)
    newest = current(history).filter(starts.holds(pl.col(WINDOW_START_US)))
    held = window_rows(spec, with_lanes(spec, rows), starts)
    judged = judge(held, newest, watermarks, flushed=flushed)
    published = _recomputed(spec, rows, judged.filter(pl.col(CHANGE) == PUBLISH))
    withdrawn = _tombstones(spec, newest, judged.filter(pl.col(CHANGE) == WITHDRAW))
    return pl.concat([published, withdrawn]).sort(WINDOW_IDENTITY)


def window_rows(
    spec: StreamSpec,
    rows: pl.DataFrame,
    starts: Starts = ALL_WINDOWS,
    columns: Sequence[str] = WINDOW_ROW_COLUMNS,
) -> pl.DataFrame:
    """Return rows x windows: each row, cut down to ``columns``, with the bounds of each window."""
    narrow = rows.select(KEY, EVENT_US, *columns)
    frames = (assign(window, narrow) for window in spec.windows)
    return pl.concat(frame.filter(starts.holds(pl.col(WINDOW_START_US))) for frame in frames)


def _recomputed(spec: StreamSpec, rows: pl.DataFrame, planned: pl.DataFrame) -> pl.DataFrame:
    """Compute the planned windows from all of their rows, which are in order."""
    names = planned.select(KEY, WINDOW_START_US).unique()
    keys = names.get_column(KEY).unique().implode()
    known = names.select(pl.struct(KEY, WINDOW_START_US).implode()).to_series()

    def needed(piece: pl.DataFrame) -> pl.DataFrame:
        return piece.filter(pl.col(KEY).is_in(keys))

    def chosen(groups: Groups) -> Groups:
        held = pl.DataFrame({KEY: groups.keys, WINDOW_START_US: groups.start_us})
        return groups.keep(held.to_struct().is_in(known).to_numpy())

    # Another window of the same key may start at the same time: the join leaves it out.
    windows = windows_of(spec, rows, needed, chosen)
    revisions = planned.select(*_WINDOW_KEY, REVISION, REASON)
    return windows.join(revisions, on=_WINDOW_KEY).select(window_schema(spec).names())


def _tombstones(spec: StreamSpec, newest: pl.DataFrame, planned: pl.DataFrame) -> pl.DataFrame:
    """Withdraw the planned windows: the old bounds, no rows, no statistics."""
    counts = [statistic_column(value, COUNT) for value in spec.columns.values]
    zero = (EVENT_COUNT, LATE_ARRIVAL_COUNT, DEAD_LETTER_COUNT, *counts)
    kept = (STREAM, *_WINDOW_KEY, *spec.key_parts, WINDOW_END_US)
    stones = newest.select(kept).join(
        planned.select(*_WINDOW_KEY, REVISION, REASON), on=_WINDOW_KEY
    )
    stones = stones.with_columns(
        *(pl.lit(0).alias(name) for name in zero),
        pl.lit(str(DigestSum())).alias(INPUT_DIGEST),
    )
    schema = window_schema(spec)
    return stones.select(
        (pl.col(name) if name in stones.columns else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    )
