"""Calendar grids in a time zone: local days, weeks, months, and the hours of a local clock.

Here belongs everything that knows a zone or the length of a month. A grid of a fixed length knows
neither and is in ``grids``; which rows a window counts is in ``windows``.

A local day starts at the first instant of its date: where a clock change skips midnight that is
the instant of the change, where one repeats midnight the first of the two. Zone rules come from
``zoneinfo``; beyond the years of ``datetime`` they repeat with the Gregorian cycle of 400 years.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import polars as pl

IntArray = npt.NDArray[np.int64]
Unit = Literal["day", "week", "month", "quarter", "year"]

DAY_US = 86_400_000_000
SECOND_US = 1_000_000
UTC_ZONES = frozenset({"UTC", "Etc/UTC"})
FIRST_MONDAY = 4  # 1970-01-05, counted in days from 1970-01-01
MONTHS = {"month": 1, "quarter": 3, "year": 12}
INT64 = np.iinfo(np.int64)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CYCLE_DAYS = 146_097
_FIRST_DAY = date(2, 1, 1).toordinal() - date(1970, 1, 1).toordinal()
_LAST_DAY = date(9998, 12, 31).toordinal() - date(1970, 1, 1).toordinal()


def distinct(values: IntArray) -> IntArray:
    """The distinct values, ascending; by hashing, for most rows share few of them."""
    return pl.Series(values).unique().sort().to_numpy()


def _representative(day: int) -> int:
    """A day of ``datetime``'s years whose zone rules are those of ``day``."""
    if day < _FIRST_DAY:
        return _FIRST_DAY + (day - _FIRST_DAY) % _CYCLE_DAYS
    if day > _LAST_DAY:
        return _LAST_DAY - (_LAST_DAY - day) % _CYCLE_DAYS
    return day


@lru_cache(maxsize=1 << 17)
def utc_offset_us(zone: str, instant_us: int) -> int:
    """Local time minus UTC at an instant, in microseconds."""
    day, rest = divmod(instant_us, DAY_US)
    instant = _EPOCH + timedelta(days=_representative(day), microseconds=rest)
    offset = instant.astimezone(ZoneInfo(zone)).utcoffset()
    return (offset or timedelta()) // timedelta(microseconds=1)


def _first_true(test: Callable[[int], bool], low_us: int, high_us: int) -> int:
    """The first whole second in (low, high] for which ``test`` holds, as it does for high."""
    while high_us - low_us > SECOND_US:
        middle = low_us + (high_us - low_us) // (2 * SECOND_US) * SECOND_US
        low_us, high_us = (low_us, middle) if test(middle) else (middle, high_us)
    return high_us


def _read(zone: str, local_us: int, fold: int) -> int:
    """The instant of a local time: the first of two, or the second with ``fold``."""
    day, rest = divmod(local_us, DAY_US)
    naive = _EPOCH + timedelta(days=_representative(day), microseconds=rest)
    offset = naive.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset()
    return local_us - (offset or timedelta()) // timedelta(microseconds=1)


@lru_cache(maxsize=1 << 17)
def day_start_us(zone: str, day: int) -> int:
    """The first instant of a local date, given in days from 1970-01-01.

    A date that the zone skips starts with the next one.
    """
    midnight = day * DAY_US

    def has_come(instant: int) -> bool:
        return instant + utc_offset_us(zone, instant) >= midnight

    start = _read(zone, midnight, fold=0)
    if start + utc_offset_us(zone, start) != midnight:
        start = _first_true(has_come, _read(zone, midnight, fold=1), start)
    return min(max(start, int(INT64.min)), int(INT64.max))


def day_starts(zone: str, days: IntArray) -> IntArray:
    """The first instants of local dates, microseconds UTC."""
    if zone in UTC_ZONES:
        return days * DAY_US
    known = distinct(days)
    starts = np.array([day_start_us(zone, day) for day in known.tolist()], dtype=np.int64)
    return starts[np.searchsorted(known, days)]


def local_days(zone: str, event_us: IntArray) -> IntArray:
    """The local date, in days from 1970-01-01, whose [start, next start) holds each instant."""
    utc_days = event_us // DAY_US
    if zone in UTC_ZONES:
        return utc_days
    near = distinct((distinct(utc_days)[:, None] + np.arange(-1, 2)).ravel())
    return near[np.searchsorted(day_starts(zone, near), event_us, side="right") - 1]


def unit_of_days(unit: Unit, days: IntArray) -> IntArray:
    """The number of the calendar unit that holds each day; weeks count from 1970-01-05."""
    if unit == "day":
        return days
    if unit == "week":
        return (days - FIRST_MONDAY) // 7
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months // MONTHS[unit]


def first_days(unit: Unit, index: IntArray) -> IntArray:
    """The first day of each calendar unit, in days from 1970-01-01."""
    if unit == "day":
        return index
    if unit == "week":
        return index * 7 + FIRST_MONDAY
    months = (index * MONTHS[unit]).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64)


def unit_starts(unit: Unit, zone: str, index: IntArray) -> IntArray:
    """The instants, microseconds UTC, at which calendar units start."""
    known = distinct(index)
    starts = day_starts(zone, first_days(unit, known))
    return starts[np.searchsorted(known, index)]


class Clock(NamedTuple):
    """The offsets of a zone around some days, as stretches of time in ascending order.

    Stretch ``i`` begins at ``begin_us[i]``. ``since_us`` and ``until_us`` are the clock changes
    before and after it, or the ends of int64 where none is near.
    """

    begin_us: IntArray
    offset_us: IntArray
    since_us: IntArray
    until_us: IntArray


@lru_cache(maxsize=1 << 17)
def clock_change_us(zone: str, day: int) -> int | None:
    """The instant within a UTC day from which another offset holds, if there is one."""
    start, end = day * DAY_US, (day + 1) * DAY_US
    before = utc_offset_us(zone, start)
    if utc_offset_us(zone, end) == before:
        return None
    return _first_true(lambda instant: utc_offset_us(zone, instant) != before, start, end)


def clock_around(zone: str, event_us: IntArray) -> Clock:
    """The stretches of one offset on the UTC days of the instants and their neighbours."""
    utc_days = distinct((distinct(event_us // DAY_US)[:, None] + np.arange(-1, 2)).ravel())
    found = (clock_change_us(zone, day) for day in utc_days.tolist())
    changes = np.array([change for change in found if change is not None], dtype=np.int64)
    begin = distinct(np.concatenate([utc_days * DAY_US, changes]))
    offset = np.array([utc_offset_us(zone, instant) for instant in begin.tolist()], dtype=np.int64)
    fenced = np.concatenate([[INT64.min], changes, [INT64.max]])
    passed = np.searchsorted(changes, begin, side="right")
    return Clock(begin, offset, fenced[passed], fenced[passed + 1])


def local_clock_bounds(zone: str, length_us: int, event_us: IntArray) -> tuple[IntArray, IntArray]:
    """Start and end of the window of each instant on the grid of a local clock.

    A clock change ends a window: what the clock shows twice is two windows.
    """
    clock = clock_around(zone, event_us)
    stretch = np.searchsorted(clock.begin_us, event_us, side="right") - 1
    start = event_us - (event_us + clock.offset_us[stretch]) % length_us
    return (
        np.maximum(start, clock.since_us[stretch]),
        np.minimum(start + length_us, clock.until_us[stretch]),
    )
