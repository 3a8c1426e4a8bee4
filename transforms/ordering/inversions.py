"""Counts of inverted pairs (a later row holds a smaller value), in a few vectorized passes.

A pair of rows is inverted when the earlier one holds the greater value; equal values are not.

The count cuts a permutation of n into sqrt(n) blocks of positions and sqrt(n) buckets of values. A
pair is then one of three: in different blocks and different buckets, which a table of counts per
(block, bucket) tells in two cumulative sums; in one bucket; or in one block but not in one bucket.
The last two are sqrt(n) sequences of sqrt(n) each, so one more cut reaches rows short enough to
compare every pair, many rows at a time, in bytes. Each cut doubles the work and takes the root of
the length, so all of them together are O(n log n).

Belongs here: arrays of numbers. Does not belong here: frames, names of keys, reports, which are
`order_audit`.
"""

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_DIRECT = 40
"""Rows up to this length are compared pair by pair; above it a cut is cheaper."""

_CHUNK = 1 << 14
"""How many short rows are compared at once, so that they stay in the processor's cache."""

_CLASS_GROWTH = 1.25
"""Groups are padded to the next size of a geometric series, so that few shapes cover them all."""


def stable_order(values: NDArray[Any]) -> Ints:
    """Give the positions of `values` (numbers, no NaN) in ascending order, ties by position.

    If value and position fit into one integer, one plain sort of those does it, which is several
    times faster than a stable argsort.
    """
    count = len(values)
    bits = max(1, (count - 1).bit_length())
    if count and np.issubdtype(values.dtype, np.integer):
        low, high = int(values.min()), int(values.max())
        if high - low < 1 << (63 - bits):
            packed = (values.astype(np.int64) - low) << bits
            packed |= np.arange(count)
            packed.sort()
            packed &= (1 << bits) - 1
            return packed
    return np.argsort(values, kind="stable").astype(np.int64)


def inverted_pairs(order: NDArray[Any]) -> int:
    """Count the inverted pairs of a sequence, given as its `stable_order` (0..n-1, each once)."""
    return int(_row_inversions(order.reshape(1, -1))[0]) if len(order) > 1 else 0


def grouped_inverted_pairs(orders: NDArray[Any], sizes: Ints) -> Ints:
    """Count the inverted pairs within each group.

    `orders` holds the groups one after another, each as the `stable_order` of its own values,
    counted from 0; `sizes` are their lengths. Gives one count for each group.
    """
    starts = np.cumsum(sizes) - sizes
    counts = np.zeros(len(sizes), dtype=np.int64)
    for width, members in _size_classes(sizes):
        rows = _padded_rows(orders, starts[members], sizes[members], width)
        counts[members] = _row_inversions(rows)
    return counts


def _size_classes(sizes: Ints) -> list[tuple[int, Ints]]:
    """Gather the groups of two or more by size: the width of each class and its members."""
    classes = []
    smallest, largest = 2, int(sizes.max(initial=0))
    while smallest <= largest:
        width = max(smallest, int(smallest * _CLASS_GROWTH))
        members = np.flatnonzero((sizes >= smallest) & (sizes <= width))
        if len(members):
            classes.append((int(sizes[members].max()), members))
        smallest = width + 1
    return classes


def _padded_rows(orders: NDArray[Any], starts: Ints, sizes: Ints, width: int) -> NDArray[Any]:
    """Lay groups out as rows of one width; the padding ascends, so that it inverts nothing."""
    columns = np.arange(width)
    rows = np.tile(columns.astype(np.int32), (len(sizes), 1))
    is_real = columns < sizes[:, None]
    rows[is_real] = orders[(starts[:, None] + columns)[is_real]]
    return rows


def _row_inversions(rows: NDArray[Any]) -> Ints:
    """Count the inverted pairs of each row; a row of width s holds 0..s-1, each once."""
    if rows.shape[1] <= _DIRECT:
        return _compare_pairs(rows)
    rows, side = _padded_to_square(rows)
    buckets = rows // side
    counts = _across(buckets, side)
    counts += _within(buckets.reshape(-1, side), len(rows))
    counts += _within(_inverse(rows).reshape(-1, side), len(rows))
    return counts


def _padded_to_square(rows: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Widen rows to the next square; the padding ascends, so that it inverts nothing."""
    count, width = rows.shape
    side = isqrt(width - 1) + 1
    padded = np.empty((count, side * side), dtype=np.int32)
    padded[:, :width] = rows
    padded[:, width:] = np.arange(width, side * side)
    return padded, side


def _across(buckets: NDArray[Any], side: int) -> Ints:
    """Count, for each row, the inverted pairs of different blocks and different buckets."""
    count = len(buckets)
    cells = buckets.reshape(count * side, side) + (np.arange(count * side) * side)[:, None]
    table = np.bincount(cells.ravel(), minlength=count * side * side).reshape(count, side, side)
    greater = np.cumsum(table, axis=2)
    np.subtract(side, greater, out=greater)  # a block holds `side` values
    earlier = np.cumsum(greater[:, :-1], axis=1)
    across: Ints = np.einsum("ijk,ijk->i", table[:, 1:], earlier)
    return across


def _within(sequences: NDArray[Any], rows: int) -> Ints:
    """Count the inverted pairs of short sequences (ties allowed), summed for each of `rows`."""
    if sequences.shape[1] <= _DIRECT:
        counts = _compare_pairs(sequences)
    else:
        # numpy sorts 16-bit numbers by radix, ten times faster than wider ones.
        small = np.uint16 if sequences.max() <= np.iinfo(np.uint16).max else np.uint32
        counts = _row_inversions(np.argsort(sequences.astype(small), axis=1, kind="stable"))
    total: Ints = counts.reshape(rows, -1).sum(axis=1)
    return total


def _inverse(rows: NDArray[Any]) -> NDArray[Any]:
    """Give, for each row and each value, its position."""
    count, width = rows.shape
    positions = np.empty(count * width, dtype=np.int32)
    offsets = np.arange(count)[:, None] * width
    positions[(rows + offsets).ravel()] = np.tile(np.arange(width, dtype=np.int32), count)
    return positions.reshape(count, width)


def _compare_pairs(rows: NDArray[Any]) -> Ints:
    """Count the inverted pairs of each short row by comparing all of them."""
    counts = np.zeros(len(rows), dtype=np.int64)
    small = np.uint8 if rows.size and rows.max() <= np.iinfo(np.uint8).max else np.uint32
    for start in range(0, len(rows), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        columns = np.ascontiguousarray(rows[chunk].T.astype(small))
        for first in range(len(columns) - 1):
            is_inverted = columns[first] > columns[first + 1 :]
            # A row is at most _DIRECT wide, so that a byte holds the sum.
            counts[chunk] += np.add.reduce(is_inverted.view(np.uint8), axis=0, dtype=np.uint8)
    return counts
