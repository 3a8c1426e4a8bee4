"""What a grace means for windows: which ones late rows reach, and when each can be published.

Here belongs the greatest grace under which each window misses a row, and the time from the end of
a window to the moment when its watermark reaches it. The one is found once for every grace at once,
the other by one search per grace. Rows alone are in ``grace``, buffers in ``grace.room``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from transforms.grace.reach import Knots, Reach, knots_of
from transforms.judging.keyed import FOREVER, Ints, Mask, Positions, fit_packing, minus, take
from transforms.spec import StreamSpec
from transforms.spec.windows import WindowSpec
from transforms.watermark import ProfileTable
from transforms.windowing.grids import grid_of

_CODE = "code"
_START = "start"
_END = "end"
_CLOSED = "closed"
_WINDOW = "window"


@dataclass(frozen=True)
class Missed:
    """The greatest graces under which rows find windows closed; each array is ascending.

    ``rows`` has an entry for each row that finds a window of it closed under some grace: under that
    grace or a smaller one it does. ``windows`` has one for each such window, by the row that came
    last; ``wholly``, as long, by the row that came first: under that grace no row of the window
    is in time, and only an amendment publishes it.
    """

    rows: Ints
    windows: Ints
    wholly: Ints


def missed_windows(spec: StreamSpec, reach: Reach) -> Missed:
    """Find the rows that a window was closed to, under the least grace of all: none."""
    behind = _disordered(reach)
    closed = np.full(behind.size, -1, np.int64)
    found = [
        _missed_of(reach, behind, number, window) for number, window in enumerate(spec.windows)
    ]
    for part in found:
        for at, under in part.rows:
            closed[at] = np.maximum(closed[at], under)
    touched = [part.windows for part in found if part.windows.height]
    if not touched:
        return Missed(*(np.empty(0, np.int64) for _ in range(3)))
    last = pl.concat([frame[_CLOSED] for frame in touched]).to_numpy()
    first = np.concatenate([_closed_to_first(reach, frame) for frame in touched])
    return Missed(np.sort(closed[closed >= 0]), np.sort(last), np.sort(first))


def _disordered(reach: Reach) -> Positions:
    """Return the rows that are behind the reach of their key: the others miss nothing."""
    event = reach.log.rows.event
    behind = reach.before > event
    if reach.floor is not None:
        behind |= reach.floor > event
    return np.flatnonzero(behind & reach.log.undecided)


@dataclass(frozen=True)
class _Found:
    """Rows by place among the disordered, with the grace that closes; and the windows they miss."""

    rows: list[tuple[Positions, Ints]]
    windows: pl.DataFrame


def _missed_of(reach: Reach, behind: Positions, number: int, window: WindowSpec) -> _Found:
    grid = grid_of(window)
    event = reach.log.rows.event[behind]
    codes = reach.log.rows.groups.codes[behind]
    rows, frames = list[tuple[Positions, Ints]](), list[pl.DataFrame]()
    for layer in range(grid.layers):
        start, end, inside = grid.bounds(event, layer)
        closed = reach.closing(behind, end)
        at = np.flatnonzero(closed >= 0 if inside is None else (closed >= 0) & inside)
        rows.append((at, closed[at]))
        columns = {_CODE: codes[at], _START: start[at], _END: end[at], _CLOSED: closed[at]}
        frames.append(pl.DataFrame(columns))
    every = pl.concat(frames)
    windows = every.group_by(_CODE, _START, _END).agg(pl.col(_CLOSED).max())
    return _Found(rows, windows.with_columns(pl.lit(number).alias(_WINDOW)))


def _closed_to_first(reach: Reach, windows: pl.DataFrame) -> Ints:
    """Return the greatest grace that closes each window to its first row, of all that it counts."""
    rows, order = reach.log.rows, _counted_by_time(reach)
    codes, start, end = (windows[name].to_numpy() for name in (_CODE, _START, _END))
    event = take(rows.event, order)
    packing = fit_packing(rows.groups.counts.size, event, start, end)
    words = packing.pack(take(rows.groups.codes, order), event)
    low, high = (np.searchsorted(words, packing.pack(codes, edge)) for edge in (start, end))
    reached = _least_between(take(reach.before, order), low, high)
    closed = minus(reached, end)
    if reach.floor is None:
        return closed
    return np.where(_least_between(take(reach.floor, order), low, high) >= end, FOREVER, closed)


def _counted_by_time(reach: Reach) -> Positions:
    order = reach.log.by_time.astype(np.int64)
    counted: Positions = order[take(reach.log.undecided, order)]
    return counted


def _least_between(values: Ints, low: Positions, high: Positions) -> Ints:
    """Return the least of the values from each low to each high (exclusive); none is empty."""
    # From the last to the first: then nothing is computed between a high and the low after it.
    order = np.argsort(low)[::-1]
    edges = np.stack([low[order], high[order]], axis=1).reshape(-1)
    least = np.empty_like(low)
    least[order] = np.minimum.reduceat(np.append(values, FOREVER), edges)[::2]
    return least


@dataclass(frozen=True)
class Publication:
    """When windows of one kind can be published: their ends, and how the reach rose."""

    codes: Ints
    end_us: Ints
    own: Knots
    others: Ints | None

    def delays(self, grace_us: int) -> Ints:
        """Return the time from the end of each window until W reached it; without those open."""
        at = self.own.first_at(self.codes, minus(self.end_us, -grace_us))
        if self.others is not None:
            at = np.minimum(at, self.others)
        closed = at != FOREVER
        return minus(at[closed], self.end_us[closed])


def publication(spec: StreamSpec, reach: Reach, until_us: int) -> Publication:
    """Find the windows of the shortest kind, and when arrivals let each of them close.

    Silences count up to ``until_us``, as soon as they are long enough.
    """
    window = shortest_window(spec)
    codes, ends = _windows_of(reach, window)
    own = knots_of(reach.log, reach.table, reach.profile, until_us)
    others = None
    if reach.by_others:
        others = np.full(ends.size, FOREVER, np.int64)
        for at in _reached_by_others(reach, reach.table, codes, ends, until_us):
            others = np.minimum(others, at)
    return Publication(codes, ends, own, others)


def shortest_window(spec: StreamSpec) -> WindowSpec:
    """Return the window of the spec that lasts the shortest time, the first of several."""
    return min(spec.windows, key=lambda window: window.max_length_us)


def _reached_by_others(
    reach: Reach, table: ProfileTable, codes: Ints, ends: Ints, until_us: int
) -> Iterator[Ints]:
    for other in reach.by_others:
        knots = knots_of(reach.log, table, other, until_us)
        yield knots.first_at(codes, minus(ends, -int(table.grace[other])))


def _windows_of(reach: Reach, window: WindowSpec) -> tuple[Ints, Ints]:
    """Return key code and end of every window of a kind that holds counted rows."""
    order = _counted_by_time(reach)
    event = take(reach.log.rows.event, order)
    codes = take(reach.log.rows.groups.codes, order).astype(np.int64)
    grid = grid_of(window)
    parts = [_distinct(codes, *grid.bounds(event, layer)[1:]) for layer in range(grid.layers)]
    code, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    return code, end


def _distinct(codes: Ints, end: Ints, inside: Mask | None) -> tuple[Ints, Ints]:
    if inside is not None:
        codes, end = codes[inside], end[inside]
    new = np.ones(codes.size, np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (end[1:] != end[:-1])
    return codes[new], end[new]
