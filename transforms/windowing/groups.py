"""Rows cut into groups, one for each key and window, ready to be aggregated.

Here belong the order in which rows enter an aggregation (key, event time, seq), and the cut of rows
in that order into consecutive groups by a layer of a grid, a bounded piece of rows at a time. What
is computed of a group is in ``aggregate``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.schemas import EVENT_US, KEY, SEQ
from transforms.windowing.calendars import IntArray
from transforms.windowing.grids import BoolArray, Grid

ORDER: Final = (KEY, EVENT_US, SEQ)
Item = TypeVar("Item", bound=np.generic)
PIECE_ROWS: Final = 1 << 19  # rows taken at a time: bounds the memory, does not change a bit


@dataclass(frozen=True)
class Groups:
    """Rows in order, and the group that each stretch of them forms.

    ``first`` is the position of the first row of each group, ascending from 0; every row is in a
    group. ``start_us`` and ``end_us`` are the bounds of each group's window.
    """

    rows: pl.DataFrame
    first: IntArray
    start_us: IntArray
    end_us: IntArray

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.first)

    @cached_property
    def size(self) -> IntArray:
        """The number of rows of each group."""
        return np.diff(self.first, append=self.rows.height)

    @cached_property
    def keys(self) -> pl.Series:
        """The key of each group."""
        return self.rows.get_column(KEY).gather(self.first)

    def of_rows(self, values: npt.NDArray[Item]) -> npt.NDArray[Item]:
        """Return for each row the value of its group."""
        return np.repeat(values, self.size)

    def keep(self, groups: BoolArray) -> "Groups":
        """Return the groups of the mask, with their rows."""
        if groups.all():
            return self
        rows = self.rows.filter(pl.Series(self.of_rows(groups)))
        first = np.cumsum(self.size[groups]) - self.size[groups]
        return Groups(rows, first, self.start_us[groups], self.end_us[groups])

    def keep_rows(self, rows: BoolArray) -> "Groups":
        """Return what remains when only the rows of the mask count; a group left empty is none."""
        if rows.all():
            return self
        size = np.add.reduceat(rows, self.first, dtype=np.int64)
        some = size > 0
        first = (np.cumsum(size) - size)[some]
        kept = self.rows.filter(pl.Series(rows))
        return Groups(kept, first, self.start_us[some], self.end_us[some])


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows sorted by key, event time and seq; the same frame where they are already."""
    return rows if _is_in_order(rows) else rows.sort(ORDER)


def _is_in_order(rows: pl.DataFrame) -> bool:
    pieces = rows.select(ORDER).iter_slices(PIECE_ROWS)
    last: pl.DataFrame | None = None
    for piece in pieces:
        joined = piece if last is None else pl.concat([last, piece])
        if not _rises(joined):
            return False
        last = piece.tail(1)
    return True


def _rises(rows: pl.DataFrame) -> bool:
    """Whether no row of a few comes before the one above it."""
    key, event, seq = (rows.get_column(name) for name in ORDER)
    above, below = slice(None, -1), slice(1, None)
    same_key, same_event = key[below] == key[above], event[below] == event[above]
    later = (event[below] > event[above]) | (same_event & (seq[below] >= seq[above]))
    return bool(((key[below] > key[above]) | (same_key & later)).all())


def merged(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    """Merge two frames in order into one; the right one has few rows for those of the left."""
    if not right.height:
        return left
    place = _places(left, right) + np.arange(right.height)
    index = np.empty(left.height + right.height, dtype=np.uint32)
    index[place] = np.arange(left.height, len(index))
    of_left = np.ones(len(index), dtype=np.bool_)
    of_left[place] = False
    index[of_left] = np.arange(left.height)
    return pl.concat([left, right])[pl.Series(index)]


def _places(left: pl.DataFrame, right: pl.DataFrame) -> IntArray:
    """Return how many rows of the left frame come before each row of the right one, by bisection.

    Rows of one key, event time and seq do not occur in both.
    """
    low, high = _stretches(left.get_column(KEY), right.get_column(KEY))
    event, seq = (left.get_column(name).to_numpy() for name in (EVENT_US, SEQ))
    own_event, own_seq = (right.get_column(name).to_numpy() for name in (EVENT_US, SEQ))
    while (low < high).any():
        middle = np.minimum((low + high) // 2, left.height - 1)
        same = event[middle] == own_event
        before = (event[middle] < own_event) | (same & (seq[middle] < own_seq))
        low, high = (
            np.where((low < high) & before, middle + 1, low),
            np.where((low < high) & ~before, middle, high),
        )
    return low


def _stretches(keys: pl.Series, sought: pl.Series) -> tuple[IntArray, IntArray]:
    """Return for each sought key where its stretch in sorted keys begins and ends, if there is one.

    A key that is not among them has an empty stretch where it would be.
    """
    first = np.flatnonzero(_begins(keys))
    fence = np.append(first, len(keys))
    distinct_keys = keys.gather(first)
    place = distinct_keys.search_sorted(sought, side="left").to_numpy().astype(np.int64)
    after = distinct_keys.search_sorted(sought, side="right").to_numpy().astype(np.int64)
    return fence[place], fence[after]


def whole_keys(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Cut rows in order into pieces of whole keys, each as small as it can be from some size on."""
    begin = 0
    while begin < rows.height:
        end = _next_change(rows, begin + PIECE_ROWS, None)
        yield rows.slice(begin, end - begin)
        begin = end


def in_groups(grid: Grid, rows: pl.DataFrame) -> Iterator[Groups]:
    """Cut rows in order into the groups of a grid, some layers or some of the rows at a time."""
    at_once = max(1, PIECE_ROWS // max(1, rows.height))
    for layer in range(0, grid.layers, at_once):
        layers = range(layer, min(layer + at_once, grid.layers))
        if len(layers) > 1:
            yield _cut_layers(grid, layers, rows)
        else:
            yield from _in_groups_of_layer(grid, layer, rows)


def _cut_layers(grid: Grid, layers: range, rows: pl.DataFrame) -> Groups:
    """Form the groups of several layers, each row once for each of its windows."""
    event = rows.get_column(EVENT_US).to_numpy()
    bounds = [grid.bounds(event, layer) for layer in layers]
    held = [each.positions() for each in bounds]
    index = np.concatenate(held)
    start = np.concatenate([each.start_us[at] for each, at in zip(bounds, held, strict=True)])
    end = np.concatenate([each.end_us[at] for each, at in zip(bounds, held, strict=True)])
    # The sort is stable, and a window is of one layer: its rows stay in order.
    order = np.lexsort((start, np.cumsum(_begins(rows.get_column(KEY)))[index]))
    return grouped(rows[pl.Series(index[order])], start[order], end[order])


def _in_groups_of_layer(grid: Grid, layer: int, rows: pl.DataFrame) -> Iterator[Groups]:
    begin = 0
    while begin < rows.height:
        end = _end_of_piece(grid, layer, rows, begin + 2 * PIECE_ROWS)
        groups = _cut(grid, layer, rows.slice(begin, end - begin))
        if groups.count:
            yield groups
        begin = end


def _end_of_piece(grid: Grid, layer: int, rows: pl.DataFrame, near: int) -> int:
    """Return the first position from ``near`` on that does not part a group."""
    if near >= rows.height:
        return rows.height
    last = rows.get_column(EVENT_US).slice(near - 1, 1).to_numpy()
    return _next_change(rows, near, int(grid.bounds(last, layer).end_us[0]))


def _next_change(rows: pl.DataFrame, near: int, end_us: int | None) -> int:
    """Return the first position from ``near`` on with another key than the row before ``near``.

    Or, if that is before, the first with an event time at or after ``end_us``.
    """
    if near >= rows.height:
        return rows.height
    key, event = rows.get_column(KEY), rows.get_column(EVENT_US)
    for begin in range(near, rows.height, PIECE_ROWS):
        here = slice(begin, begin + PIECE_ROWS)
        beyond = key[here] != key[near - 1]
        if end_us is not None:
            beyond |= event[here] >= end_us
        if beyond.any():
            return begin + int(beyond.arg_max() or 0)
    return rows.height


def _cut(grid: Grid, layer: int, rows: pl.DataFrame) -> Groups:
    bounds = grid.bounds(rows.get_column(EVENT_US).to_numpy(), layer)
    start, end = bounds.start_us, bounds.end_us
    if bounds.inside is not None and not bounds.inside.all():
        rows = rows.filter(pl.Series(bounds.inside))
        start, end = start[bounds.inside], end[bounds.inside]
    return grouped(rows, start, end)


def grouped(rows: pl.DataFrame, start_us: IntArray, end_us: IntArray) -> Groups:
    """Form groups of consecutive rows that share their key and their window's start."""
    begins = _begins(rows.get_column(KEY))
    begins[1:] |= start_us[1:] != start_us[:-1]
    first = np.flatnonzero(begins)
    return Groups(rows, first, start_us[first], end_us[first])


def _begins(keys: pl.Series) -> BoolArray:
    """Where another key begins than that of the row above."""
    return keys.ne_missing(keys.shift(1)).to_numpy(writable=True)
