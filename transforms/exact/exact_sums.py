"""Exact sums of whole numbers and decimals, for many groups at once.

Here belongs the arithmetic on halves and quarters of numbers that makes a sum exact whatever its
size, and says where it leaves its type: int64, or 38 digits. Sums of floats are in ``compensated``.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.exact.column_words import decimal_halves

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DIGITS: Final = 38

_BITS: Final = 32
_QUARTER: Final = (1 << _BITS) - 1
_HALF_BITS: Final = 64
_HALF_MASK: Final = (1 << _HALF_BITS) - 1


class WholeSum(NamedTuple):
    """Exact sums as ``high * 2**32 + low`` with 0 <= low < 2**32."""

    high: Ints
    low: Ints

    def series(self) -> pl.Series:
        """Return the sums as Int64, null where one leaves it."""
        fits = (self.high >> (_BITS - 1) == 0) | (self.high >> (_BITS - 1) == -1)
        return pl.Series((self.high << _BITS) + self.low).set(pl.Series(~fits), None)

    def floats(self) -> Floats:
        """Return the sums as the nearest floats."""
        return self.high.astype(np.float64) * float(1 << _BITS) + self.low.astype(np.float64)


def whole_sums(values: Ints, first: Ints) -> WholeSum:
    """Return the sum of each group of consecutive whole numbers; ``first`` are their positions."""
    high = np.add.reduceat(values >> _BITS, first)
    low = np.add.reduceat(values & _QUARTER, first)
    return WholeSum(high + (low >> _BITS), low & _QUARTER)


def decimal_sums(values: pl.Series, first: Ints, scale: int) -> pl.Series:
    """Return the sum of each group of consecutive decimals, null where it needs over 38 digits.

    The values are without nulls; the sums are Decimal(38, scale).
    """
    low, high = decimal_halves(values)
    parts = (low & _QUARTER, low >> np.uint64(_BITS), high & _QUARTER)
    quarters = [np.add.reduceat(part.astype(np.int64), first) for part in parts]
    quarters.append(np.add.reduceat(high.view(np.int64) >> _BITS, first))
    for place in range(3):
        quarters[place + 1] += quarters[place] >> _BITS
        quarters[place] &= _QUARTER
    return _decimals(quarters, scale)


def _decimals(quarters: list[Ints], scale: int) -> pl.Series:
    """Return decimals from the quarters of their unscaled 128 bits, the highest signed."""
    halves = np.empty((len(quarters[0]), 2), dtype="<i8")
    halves[:, 0] = (quarters[1] << _BITS) | quarters[0]
    halves[:, 1] = (quarters[3] << _BITS) | quarters[2]
    fits = _has_38_digits(halves[:, 1], halves[:, 0].view(np.uint64), quarters[3])
    halves[~fits] = 0
    layout = [None, pa.py_buffer(halves)]
    array = pa.Array.from_buffers(pa.decimal128(DIGITS, scale), len(halves), layout)
    return pl.Series(array, dtype=pl.Decimal(DIGITS, scale)).set(pl.Series(~fits), None)


def _has_38_digits(high: Ints, low: npt.NDArray[np.uint64], top: Ints) -> npt.NDArray[np.bool_]:
    """Whether a 128-bit number is strictly between -10**38 and 10**38."""
    most, least = 10**DIGITS - 1, -(10**DIGITS) + 1
    below = (high < most >> _HALF_BITS) | (
        (high == most >> _HALF_BITS) & (low <= np.uint64(most & _HALF_MASK))
    )
    above = (high > least >> _HALF_BITS) | (
        (high == least >> _HALF_BITS) & (low >= np.uint64(least & _HALF_MASK))
    )
    in_128_bits = (top >> (_BITS - 1) == 0) | (top >> (_BITS - 1) == -1)
    return np.asarray(below & above & in_128_bits, dtype=np.bool_)
