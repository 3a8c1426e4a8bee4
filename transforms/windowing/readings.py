"""The readings of one value in many windows, and every statistic of them.

Here belongs the definition of each statistic of SEMANTICS 5, over groups of consecutive readings in
(event time, seq) order. Which rows form a group is in ``groups``, the columns of a published window
in ``aggregate``. A statistic of a group depends on its readings alone, to the bit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.exact.compensated import group_sums
from transforms.exact.exact_sums import WholeSum, decimal_sums, whole_sums
from transforms.windowing.calendars import IntArray, distinct

Floats = npt.NDArray[np.float64]
Result = pl.Series | Floats | IntArray

SECOND_US: Final = 1e6


@dataclass(frozen=True)
class Readings:
    """Readings without gaps: neither null nor NaN, and at least one in each group.

    ``values`` are Float64, Int64 or Decimal. ``first`` and ``size`` give each group's place in
    them, ``end_us`` the end of its window.
    """

    values: pl.Series
    event_us: IntArray
    first: IntArray
    size: IntArray
    end_us: IntArray

    @property
    def last(self) -> IntArray:
        """The position of the last reading of each group."""
        return self.first + self.size - 1

    @cached_property
    def floats(self) -> Floats:
        """The readings as floats."""
        return self.values.cast(pl.Float64).to_numpy()

    @cached_property
    def whole_total(self) -> WholeSum:
        """The exact sums of whole numbers."""
        return whole_sums(self.values.to_numpy(), self.first)

    @cached_property
    def total(self) -> pl.Series:
        """The sum of each group in its own type, null where it leaves it."""
        if self.values.dtype == pl.Float64:
            return pl.Series(group_sums(self.floats, self.first, self.size))
        if isinstance(self.values.dtype, pl.Decimal):
            return decimal_sums(self.values, self.first, self.values.dtype.scale)
        return self.whole_total.series()

    @cached_property
    def mean(self) -> Floats:
        """The sum of each group by its number of readings."""
        if self.values.dtype == pl.Int64:
            return self.whole_total.floats() / self.size
        return self.total.cast(pl.Float64).to_numpy() / self.size

    @cached_property
    def sorted_floats(self) -> Floats:
        """The readings of each group in ascending order."""
        groups = np.repeat(np.arange(len(self.size), dtype=np.uint32), self.size)
        frame = pl.DataFrame({"group": groups, "value": self.floats})
        return frame.sort("group", "value").get_column("value").to_numpy()


def _extreme(readings: Readings, ufunc: np.ufunc) -> Result:
    if not isinstance(readings.values.dtype, pl.Decimal):
        extreme: Floats | IntArray = ufunc.reduceat(readings.values.to_numpy(), readings.first)
        return extreme
    value = pl.col("value").max() if ufunc is np.maximum else pl.col("value").min()
    groups = np.repeat(np.arange(len(readings.size)), readings.size)
    frame = pl.DataFrame({"group": groups, "value": readings.values})
    return frame.group_by("group", maintain_order=True).agg(value).get_column("value")


def minimum(readings: Readings) -> Result:
    """The least reading."""
    return _extreme(readings, np.minimum)


def maximum(readings: Readings) -> Result:
    """The greatest reading."""
    return _extreme(readings, np.maximum)


def first(readings: Readings) -> Result:
    """The first reading."""
    return readings.values.gather(readings.first)


def last(readings: Readings) -> Result:
    """The last reading."""
    return readings.values.gather(readings.last)


def std(readings: Readings) -> Result:
    """The sample standard deviation, null of one reading: a second pass around the mean."""
    with np.errstate(over="ignore"):
        off = readings.floats - np.repeat(readings.mean, readings.size)
        squares = group_sums(off * off, readings.first, readings.size)
    several = readings.size > 1
    spread = np.sqrt(squares / np.where(several, readings.size - 1, 1))
    return pl.Series(spread).set(pl.Series(~several), None)


def rate(readings: Readings) -> Result:
    """Last less first reading, by the seconds between them; null where no time passed."""
    elapsed = readings.event_us[readings.last] - readings.event_us[readings.first]
    seconds = np.where(elapsed > 0, elapsed, 1) / SECOND_US
    with np.errstate(over="ignore"):
        return pl.Series(_rise(readings) / seconds).set(pl.Series(elapsed == 0), None)


def _rise(readings: Readings) -> Floats:
    """Last less first reading, exact for whole numbers whose difference is in int64."""
    rise = readings.floats[readings.last] - readings.floats[readings.first]
    if readings.values.dtype != pl.Int64:
        return rise
    values = readings.values.to_numpy()
    before, after = values[readings.first], values[readings.last]
    exact = after - before
    wrapped = ((before ^ after) & (after ^ exact)) < 0
    return np.where(wrapped, rise, exact)


def time_weighted_mean(readings: Readings) -> Result:
    """The mean over time: each reading holds until the next, the last until the window ends."""
    until = np.empty_like(readings.event_us)
    until[:-1] = readings.event_us[1:]
    until[readings.last] = readings.end_us
    held = (until - readings.event_us).astype(np.float64)
    whole = (readings.end_us - readings.event_us[readings.first]).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        total = group_sums(readings.floats * held, readings.first, readings.size)
    if np.isfinite(total).all():
        return total / whole
    # Products beyond float64: weights of at most 1 instead.
    shares = readings.floats * (held / np.repeat(whole, readings.size))
    small = group_sums(shares, readings.first, readings.size)
    return np.where(np.isfinite(total), total / whole, small)


def percentile(readings: Readings, per_cent: Fraction) -> Floats:
    """The value at position (n - 1) q of the sorted readings, linear between two of them."""
    sizes = distinct(readings.size)
    positions = [(size - 1) * per_cent / 100 for size in sizes.tolist()]
    whole = np.array([int(position) for position in positions], dtype=np.int64)
    part = np.array([float(position % 1) for position in positions])
    which = np.searchsorted(sizes, readings.size)
    below = readings.first + whole[which]
    low = readings.sorted_floats[below]
    high = readings.sorted_floats[np.minimum(below + 1, readings.last)]
    return _between(low, high, part[which])


def _between(low: Floats, high: Floats, part: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        apart = high - low
        value = low + part * apart
    # The distance of two readings can leave float64 though what is between them does not.
    return np.where(np.isfinite(apart), value, low * (1 - part) + high * part)


STATISTICS: Final[Mapping[str, Callable[[Readings], Result]]] = {
    "sum": lambda readings: readings.total,
    "mean": lambda readings: readings.mean,
    "min": minimum,
    "max": maximum,
    "std": std,
    "first": first,
    "last": last,
    "rate": rate,
    "time_weighted_mean": time_weighted_mean,
}


def statistic(readings: Readings, name: str) -> Result:
    """Return a statistic of each group by its name in the spec, such as ``mean`` or ``p99.9``."""
    known = STATISTICS.get(name)
    return percentile(readings, Fraction(name[1:])) if known is None else known(readings)
