"""Rows of many keys as a few narrow arrays: key codes, rows by key, times packed with their key.

Here belongs what makes per-key work a single pass over an array: small key codes in the order of
the keys, the permutation that brings the rows of a key together, and the one 64-bit word per row
that sorts by key and then by time. What the rows mean (watermarks, fates) is decided elsewhere.

Times are int64 microseconds. ``NEVER``, the lowest of them, stands for minus infinity: nothing is
before it, and what is subtracted from it stays it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
RowIds = npt.NDArray[np.uint32]
Codes = npt.NDArray[np.unsignedinteger[Any]]

NEVER: Final = np.iinfo(np.int64).min
FOREVER: Final = np.iinfo(np.int64).max

# What an int64 has beside its sign.
_WORD_BITS: Final = 63
_RADIX_BYTES: Final = 2


def minus(left: Ints | int, right: Ints | int) -> Ints:
    """Return ``left - right``, held inside int64 where the exact difference is outside."""
    low, high = np.asarray(left, np.int64), np.asarray(right, np.int64)
    with np.errstate(over="ignore"):
        difference: Ints = np.subtract(low, high)
        if _difference_fits(low, high):
            return difference
        too_low = (high > 0) & (low < NEVER + high)
        too_high = (high < 0) & (low > FOREVER + high)
    return np.where(too_low, NEVER, np.where(too_high, FOREVER, difference))


def _difference_fits(left: Ints, right: Ints) -> bool:
    if not left.size or not right.size:
        return True
    lowest = int(left.min()) - int(right.max())
    highest = int(left.max()) - int(right.min())
    return lowest >= NEVER and highest <= FOREVER


def key_codes(keys: pl.Series, known: pl.Series) -> Codes:
    """Return the place of every key in ``known``, which is sorted and holds them all."""
    codes: Codes = keys.cast(pl.Enum(known)).to_physical().to_numpy()
    return codes


@dataclass(frozen=True)
class Grouped:
    """Rows brought together by key, in their own order inside a key.

    ``order`` gives the row at each position, ``codes`` its key. ``counts`` has an entry for each
    known key, ``present`` names the keys with rows, ``starts`` the position of their first row.
    """

    order: RowIds
    codes: Codes
    counts: Ints
    present: Positions
    starts: Positions

    @property
    def ends(self) -> Positions:
        """The position of the last row of each present key."""
        return self.starts + self.counts[self.present] - 1

    def spread(self, by_key: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat a value of each known key at every row of the key."""
        return np.repeat(by_key, self.counts)


def group(codes: Codes, keys: int) -> Grouped:
    """Bring the rows of each of ``keys`` known keys together."""
    order = _stable_order(codes).astype(np.uint32)
    grouped = take(codes, order)
    firsts = np.searchsorted(grouped, np.arange(keys + 1))
    counts = np.diff(firsts)
    present = np.flatnonzero(counts)
    return Grouped(order, grouped, counts, present, firsts[present])


def take(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values at some rows; where they lie scattered, Polars is faster than NumPy."""
    taken: npt.NDArray[Any] = pl.Series(values).gather(pl.Series(rows)).to_numpy()
    return taken


def _stable_order(codes: Codes) -> Positions:
    """Sort by radix, 16 bits at a time: NumPy does so for types of at most two bytes."""
    if codes.dtype.itemsize <= _RADIX_BYTES:
        return np.argsort(codes, kind="stable")
    low = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    high = (codes >> 16).astype(np.uint16)
    return low[np.argsort(high[low], kind="stable")]


@dataclass(frozen=True)
class Packing:
    """Times as small whole numbers in the same order, so that key and time fit one int64.

    A time from ``low`` to ``high`` is its distance from ``low``, counted on from the ``outliers``:
    the few distinct times too far below for that, which are their rank. 0 is kept for ``NEVER``.
    """

    bits: int
    low: int
    high: int
    outliers: Ints

    def pack(self, codes: npt.NDArray[Any], times: Ints) -> Ints:
        """Return the words that sort by key, then by time."""
        words: Ints = np.left_shift(codes, self.bits, dtype=np.int64)
        small = np.maximum(times, self.low)
        small -= self.low - self.outliers.size - 1
        below = np.flatnonzero(times < self.low)
        small[below] = self._ranks(times[below])
        words |= small
        return words

    def _ranks(self, times: Ints) -> Ints:
        ranks: Ints = np.searchsorted(self.outliers, times) + 1
        ranks[times == NEVER] = 0
        return ranks

    def times(self, words: Ints) -> Ints:
        """Return the times in ``words``."""
        small: Ints = words & ((1 << self.bits) - 1)
        below = np.flatnonzero(small <= self.outliers.size)
        outliers = np.append(NEVER, self.outliers)[small[below]]
        small += self.low - self.outliers.size - 1
        small[below] = outliers
        return small

    def holds(self, times: Ints) -> Mask:
        """Tell which times can be packed: those between the first and the last it was made for."""
        lowest = int(self.outliers[0]) if self.outliers.size else self.low
        held: Mask = (times >= lowest) & (times <= self.high)
        return held


def fit_packing(keys: int, *times: Ints) -> Packing:
    """Choose the packing for ``keys`` known keys and all of ``times``."""
    parts = [part for part in times if part.size]
    lowest = min((_lowest(part) for part in parts), default=FOREVER)
    high = max((int(part.max()) for part in parts), default=NEVER)
    if high == NEVER:
        return Packing(1, 0, NEVER, np.empty(0, np.int64))
    room = 1 << (_WORD_BITS - keys.bit_length() - 1)
    low = max(lowest, high - room)
    outliers = _outliers(parts, low) if lowest < low else np.empty(0, np.int64)
    return Packing((high - low + outliers.size + 1).bit_length(), low, high, outliers)


def _lowest(times: Ints) -> int:
    """Return the lowest time above ``NEVER``."""
    lowest = int(times.min())
    if lowest != NEVER:
        return lowest
    return int(np.min(times, where=times != NEVER, initial=FOREVER))


def _outliers(parts: list[Ints], low: int) -> Ints:
    """Return the distinct times below ``low``, sorted."""
    return np.unique(np.concatenate([part[(part < low) & (part != NEVER)] for part in parts]))


def running_max(groups: Grouped, values: Ints) -> Ints:
    """Return the greatest of the values up to and with each row, key by key."""
    packing = fit_packing(groups.counts.size, values)
    words = packing.pack(groups.codes, values)
    np.maximum.accumulate(words, out=words)
    return packing.times(words)


def before_each(groups: Grouped, values: npt.NDArray[Any], at_start: npt.NDArray[Any]) -> Any:
    """Return the value of the row before each row of its key; ``at_start`` of the key at first."""
    before = np.empty_like(values)
    before[1:] = values[:-1]
    before[groups.starts] = at_start[groups.present]
    return before
