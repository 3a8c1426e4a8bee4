"""Dates, clock fields and zones as arithmetic on NumPy arrays of integers.

Belongs here: the proleptic Gregorian calendar of the years 1 to 9999 and the one rule for local
times (SEMANTICS 10): a local time that happens twice is the first of the two, one that never
happens is read with the offset before the change. Reading text is `times`.
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US
FIRST_YEAR, LAST_YEAR = 1, 9999
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@cache
def _month_starts() -> Ints:
    """Day numbers (0 is 1970-01-01) of the first of every month, with one month more at the end."""
    months = np.arange("0001-01", "10000-02", dtype="datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64)


def day_numbers(year: Ints, month: Ints, day: Ints) -> tuple[Ints, Flags]:
    """Days since 1970-01-01, which mean nothing where the second array says: no such date."""
    in_table = (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month >= 1) & (month <= 12)  # noqa: PLR2004
    index = np.where(in_table, (year - FIRST_YEAR) * 12 + month - 1, 0)
    starts = _month_starts()
    first = starts[index]
    exists = in_table & (day >= 1) & (day <= starts[index + 1] - first)
    return first + day - 1, exists


def clock_us(hour: Ints, minute: Ints, second: Ints) -> tuple[Ints, Flags]:
    """Microseconds since midnight and whether a clock shows that; second 60 it does not."""
    exists = (hour < 24) & (minute < 60) & (second < 60)  # noqa: PLR2004
    return ((hour * 60 + minute) * 60 + second) * SECOND_US, exists


def nullable(times: Ints, known: Flags) -> pl.Series:
    """A column of times, null where they are not known."""
    column = pl.Series(times, dtype=pl.Int64)
    if known.all():
        return column
    return pl.select(pl.when(pl.lit(pl.Series(known))).then(pl.lit(column))).to_series()


def local_to_utc(local_us: Ints, zone: str) -> Ints:
    """Turn wall-clock times of an IANA zone (microseconds as if UTC) into microseconds UTC.

    The offset is looked up once for each hour in which it does not change, else for each second.
    """
    if zone == "UTC" or not local_us.size:
        return local_us
    hours, place = _distinct(local_us // HOUR_US)
    first = _offsets_us(hours * 3600, zone)
    last = _offsets_us(hours * 3600 + 3599, zone)
    offsets = first[place]
    unsteady = (first != last)[place]
    if unsteady.any():
        seconds, at = _distinct(local_us[unsteady] // SECOND_US)
        offsets[unsteady] = _offsets_us(seconds, zone)[at]
    return local_us - offsets


def _distinct(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values, ascending, and where among them each value is."""
    known = pl.Series(values).unique().sort().to_numpy()
    return known, np.searchsorted(known, values)


def _offsets_us(local_seconds: Ints, zone: str) -> Ints:
    """UTC offsets of local times, given in whole seconds; `fold=0` is the rule of this module."""
    info = ZoneInfo(zone)
    naive = EPOCH.replace(tzinfo=None)
    offsets = (
        info.utcoffset(naive + timedelta(seconds=second)) or timedelta(0)
        for second in local_seconds.tolist()
    )
    return np.array([offset // timedelta(microseconds=1) for offset in offsets], dtype=np.int64)
