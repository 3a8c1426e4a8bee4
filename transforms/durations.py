"""Durations as text, and as microseconds; lengths of windows, which may follow the calendar.

Here belongs the reading and writing of ``90s`` or ``1mo``. What a duration is used for, and which
ones a field allows, is decided where the field is declared (``spec_*.py``).
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

# Far beyond any use, and small enough that a time plus a duration stays inside int64.
LONGEST_US: Final = 3_652_500 * DAY_US
MOST_CALENDAR_UNITS: Final = 10_000

DURATION_WORDS: Final = "a duration such as 500ms, 90s, 10m, 6h or 1d"
LENGTH_WORDS: Final = "a length such as 30s, 10m, 1h, 1d, 1w, 1mo, 1q or 1y"

CalendarUnit = Literal["day", "week", "month", "quarter", "year"]

_UNIT_US: Final = {
    "us": 1,
    "ms": MILLISECOND_US,
    "s": SECOND_US,
    "m": MINUTE_US,
    "h": HOUR_US,
    "d": DAY_US,
}
_CALENDAR_UNITS: Final[dict[str, CalendarUnit]] = {
    "d": "day",
    "w": "week",
    "mo": "month",
    "q": "quarter",
    "y": "year",
}
_PARTS: Final = re.compile(r"([0-9]{1,18})(us|ms|mo|[smhdwqy])")


@dataclass(frozen=True)
class Length:
    """A window's length or step as declared.

    ``us`` is its length in microseconds, None where only the calendar knows it. ``unit`` and
    ``count`` name it as a multiple of a calendar unit, None and 0 where it is none (``90m``);
    ``1d`` has both readings.
    """

    us: int | None
    unit: CalendarUnit | None
    count: int


def parse_duration(text: str) -> int:
    """Return the microseconds of a text like ``90s``; raises ValueError for anything else."""
    number, unit = _split(text, DURATION_WORDS)
    if unit not in _UNIT_US:
        raise ValueError(DURATION_WORDS)
    return _bounded(number * _UNIT_US[unit])


def parse_length(text: str) -> Length:
    """Return a positive length, fixed or of the calendar; raises ValueError for anything else."""
    number, unit = _split(text, LENGTH_WORDS)
    if number == 0:
        raise ValueError("a length above zero")
    us = _bounded(number * _UNIT_US[unit]) if unit in _UNIT_US else None
    if us is None and number > MOST_CALENDAR_UNITS:
        raise ValueError(f"at most {MOST_CALENDAR_UNITS} of a calendar unit")
    calendar_unit = _CALENDAR_UNITS.get(unit)
    return Length(us, calendar_unit, number if calendar_unit else 0)


def format_duration(us: int) -> str:
    """Return the shortest text that ``parse_duration`` reads as this many microseconds."""
    sign, rest = ("-", -us) if us < 0 else ("", us)
    if rest == 0:
        return "0s"
    unit = next(unit for unit in reversed(_UNIT_US) if rest % _UNIT_US[unit] == 0)
    return f"{sign}{rest // _UNIT_US[unit]}{unit}"


def _split(text: str, allowed: str) -> tuple[int, str]:
    match = _PARTS.fullmatch(text)
    if match is None:
        raise ValueError(allowed)
    return int(match[1]), match[2]


def _bounded(us: int) -> int:
    if us > LONGEST_US:
        raise ValueError(f"at most {format_duration(LONGEST_US)}")
    return us
