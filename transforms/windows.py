"""Windows: which rows count in which of them, when they are due, and their first publication.

Here belongs what the contract says of rows and windows: a row counts in each window that is open
when it arrives, a window is published once when the watermark of its key reaches its end. Where
windows lie is in ``grids``, what is computed of their rows in ``aggregate``; what changes a window
after its publication is the business of reconciliation.
"""

from typing import Final

import numpy as np
import polars as pl

from transforms.aggregate import windows_of
from transforms.schemas import (
    CLOSED,
    COUNTED_DEAD_LETTER_REASONS,
    EVENT_US,
    FLUSH,
    IS_DEAD_LETTER,
    KEY,
    REASON,
    REFUSED_AT_US,
    REVISION,
    WATERMARK_US,
    WINDOW,
    WINDOW_END_US,
    WINDOW_START_US,
    WINDOWS_MISSED,
    WINDOWS_TOTAL,
    window_schema,
)
from transforms.spec import StreamSpec, WindowSpec
from transforms.windowing.calendars import INT64
from transforms.windowing.grids import Bounds, grid_of
from transforms.windowing.groups import Groups, in_order, merged

NEVER: Final = int(INT64.min)
FOREVER: Final = int(INT64.max)

# Columns of row ranges and of limits, which no other module names.
FROM_US: Final = "from_us"
UNTIL_US: Final = "until_us"
CLOSED_US: Final = "closed_us"
DUE_US: Final = "due_us"


def missed_and_total(
    spec: StreamSpec, event_us: pl.Series, watermark_us: pl.Series
) -> pl.DataFrame:
    """Return ``windows_missed`` and ``windows_total`` of rows, one row for each event time.

    Total are the windows that hold the event time, missed those of them that are closed: their end
    is at or before the watermark the row met. A watermark of null (minus infinity) closes none.
    """
    event = event_us.to_numpy()
    watermark = watermark_us.fill_null(NEVER).to_numpy()
    missed, total = np.zeros_like(event), np.zeros_like(event)
    for window in spec.windows:
        closed, all_of_them = grid_of(window).count(event, watermark)
        missed += closed
        total += all_of_them
    return pl.DataFrame({WINDOWS_MISSED: missed, WINDOWS_TOTAL: total})


def counted_rows(ordered: pl.DataFrame, dead_letters: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that windows count, sorted by key, event time and seq.

    They are the ordered rows and the dead letters that were refused for their time or for want of
    room; ``refused_at_us`` is the watermark that such a row met, null where none had come yet.
    """
    accepted = ordered.with_columns(
        pl.lit(False).alias(IS_DEAD_LETTER), pl.lit(None, pl.Int64).alias(REFUSED_AT_US)
    )
    refused = dead_letters.filter(pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS)).with_columns(
        pl.lit(True).alias(IS_DEAD_LETTER), pl.col(WATERMARK_US).alias(REFUSED_AT_US)
    )
    refused = refused.select(accepted.columns)
    return merged(in_order(accepted), in_order(refused))


def assign(window: WindowSpec, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows once for each window that holds them.

    ``window``, ``window_start_us`` and ``window_end_us`` are added. Rows with the same window are
    in the order in which they came.
    """
    grid = grid_of(window)
    event = rows.get_column(EVENT_US).to_numpy()
    layers = (_with_bounds(rows, grid.bounds(event, layer)) for layer in range(grid.layers))
    return pl.concat(layers).with_columns(pl.lit(window.name).alias(WINDOW))


def _with_bounds(rows: pl.DataFrame, bounds: Bounds) -> pl.DataFrame:
    start = pl.Series(WINDOW_START_US, bounds.start_us)
    held = rows.with_columns(start, pl.Series(WINDOW_END_US, bounds.end_us))
    return held if bounds.inside is None else held.filter(pl.Series(bounds.inside))


def event_range(spec: StreamSpec, start_us: int, end_us: int) -> tuple[int, int]:
    """Return the event times [from, to) that the windows of an event partition may hold.

    They are the windows that start in [start, end), of any kind.
    """
    return start_us, end_us + max(window.max_length_us for window in spec.windows)


def row_range(
    spec: StreamSpec, before: pl.DataFrame | None, after: pl.DataFrame, *, flush: bool = False
) -> pl.DataFrame:
    """Return the event times that the windows due between two states may hold, key by key.

    The columns are ``key``, ``from_us`` and ``until_us`` (exclusive); a key whose watermark stood
    still is left out. No row outside of these ranges is needed by ``first_publications``.
    """
    longest = max(window.max_length_us for window in spec.windows)
    moved = _limits(before, after, flush=flush).filter(pl.col(CLOSED_US) < pl.col(DUE_US))
    # The first end that is due is closed_us + 1; an end at int64's lowest is no end.
    low = pl.max_horizontal(pl.col(CLOSED_US) + 1, pl.lit(NEVER + longest)) - longest
    return moved.select(KEY, low.alias(FROM_US), pl.col(DUE_US).alias(UNTIL_US))


def _limits(before: pl.DataFrame | None, after: pl.DataFrame, *, flush: bool) -> pl.DataFrame:
    """Return for each key up to where its windows were closed, are closed now, and are due."""
    known = after.clear() if before is None else before
    earlier = known.select(KEY, pl.col(WATERMARK_US).alias(CLOSED_US))
    limits = after.select(KEY, WATERMARK_US).join(earlier, on=KEY, how="left")
    limits = limits.with_columns(pl.col(CLOSED_US, WATERMARK_US).fill_null(NEVER))
    return limits.with_columns((pl.lit(FOREVER) if flush else pl.col(WATERMARK_US)).alias(DUE_US))


def first_publications(
    spec: StreamSpec,
    counted: pl.DataFrame,
    before: pl.DataFrame | None,
    after: pl.DataFrame,
    *,
    flush: bool = False,
) -> pl.DataFrame:
    """Return the first publications (revision 0) of the windows that became due between two states.

    Due are, for each key, the windows whose end the watermark reached since ``before`` (None: since
    the start of the stream). A window counts the rows that found it open. With ``flush`` the
    windows still open are due as well, with that reason. The columns are those of the contract; the
    windows are in the order of the spec, each sorted by key and start.
    """
    limits = _limits(before, after, flush=flush)
    ranges = row_range(spec, before, after, flush=flush)

    def needed(rows: pl.DataFrame) -> pl.DataFrame:
        return _within(rows, ranges)

    def due(groups: Groups) -> Groups:
        return _keep_due(groups, limits)

    windows = windows_of(spec, in_order(counted), needed, due)
    reached = windows.select(KEY).join(limits, on=KEY, how="left", maintain_order="left")
    by_time = windows.get_column(WINDOW_END_US) <= reached.get_column(WATERMARK_US)
    reason = pl.when(by_time).then(pl.lit(CLOSED)).otherwise(pl.lit(FLUSH)).alias(REASON)
    columns = window_schema(spec).names()
    return windows.with_columns(pl.lit(0, pl.Int64).alias(REVISION), reason).select(columns)


def _keep_due(groups: Groups, limits: pl.DataFrame) -> Groups:
    """Keep the windows due within the limits of their key, and of their rows those in time."""
    of_key = groups.keys.to_frame().join(limits, on=KEY, how="left", maintain_order="left")
    closed, due = (of_key[name].fill_null(NEVER).to_numpy() for name in (CLOSED_US, DUE_US))
    is_due = (closed < groups.end_us) & (groups.end_us <= due)
    refused = groups.rows.get_column(REFUSED_AT_US)
    if refused.null_count() == len(refused):
        return groups.keep(is_due)
    found_open = refused.fill_null(NEVER).to_numpy() < groups.of_rows(groups.end_us)
    return groups.keep_rows(found_open & groups.of_rows(is_due))


def _within(rows: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows, which are in order, whose event time is in the range of their key."""
    if not rows.height:
        return rows
    key, event = rows.get_column(KEY), rows.get_column(EVENT_US).to_numpy()
    first = np.flatnonzero(key.ne_missing(key.shift(1)).to_numpy())
    runs = key.gather(first).to_frame().join(ranges, on=KEY, how="left", maintain_order="left")
    size = np.diff(first, append=len(key))
    low, high = (np.repeat(runs[n].fill_null(NEVER).to_numpy(), size) for n in (FROM_US, UNTIL_US))
    inside = (event >= low) & (event < high)
    return rows if inside.all() else rows.filter(pl.Series(inside))
