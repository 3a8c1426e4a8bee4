"""The windows of a stream as declared, and the grids they mean: the section ``windows``.

Here belongs the reading of ``every``, ``length``, ``origin`` and ``zone`` into a grid, with the
rules of what may go together. Which window a time falls into is in ``windows.py``.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from transforms.durations import DAY_US, HOUR_US, Length, parse_length
from transforms.spec.fields import InstantText, Name, Section, Zone, parse_instant, refuse
from transforms.spec.words import ALLOWED, ENTRY_ALLOWED, Mistake
from transforms.spec.written import text

Unit = Literal["day", "week", "month", "quarter", "year", "local"]

_LONGEST_DAYS: Final[Mapping[str, int]] = {
    "day": 1,
    "week": 7,
    "month": 31,
    "quarter": 92,
    "year": 366,
}
# How many windows a row may be in: each of them is a row of the result.
MOST_WINDOWS: Final = 100_000
# A year is twelve months from January 1970, a quarter three: one grid, so they may mix.
_MONTHS: Final[Mapping[str, int]] = {"month": 1, "quarter": 3, "year": 12}


class WindowSpec(Section):
    """A grid of windows.

    Fixed: ``length_us`` long, one every ``every_us`` from ``origin_us``. Calendar: ``count`` units
    of ``unit`` long, one every ``every_count`` units, in ``zone``; multiples count from 1970-01-01,
    weeks from 1970-01-05. Unit ``local`` is a window under a day on the local clock, whose width is
    ``length_us`` and ``every_us``. What does not apply is 0 (``unit``: None).
    """

    name: str
    kind: Literal["fixed", "calendar"]
    length_us: int = 0
    every_us: int = 0
    origin_us: int = 0
    unit: Unit | None = None
    count: int = 0
    every_count: int = 0
    zone: str = "UTC"

    @property
    def max_length_us(self) -> int:
        """A bound that no window of the grid exceeds."""
        if self.kind == "fixed":
            return self.length_us
        if self.unit is None or self.unit == "local":
            # A cell of the local clock that a change of the clock cuts or stretches.
            return 2 * self.length_us
        # A change of the clock adds a day at most (a zone that moved across the date line).
        return (self.count * _LONGEST_DAYS[self.unit] + 1) * DAY_US


def _read_length(value: Any) -> Any:
    if not isinstance(value, str):
        return refuse(Mistake((), value, ALLOWED["every"]))
    try:
        return parse_length(value)
    except ValueError as error:
        return refuse(Mistake((), value, str(error)))


_Length = Annotated[Length, BeforeValidator(_read_length)]


class _Declared(Section):
    """A window as it stands in the file."""

    name: Name
    every: _Length
    length: _Length | None = None
    origin: InstantText | None = None
    zone: Zone | None = None


def _read_window(value: Any) -> Any:
    if not isinstance(value, dict):
        return refuse(Mistake((), value, ENTRY_ALLOWED["windows",]))
    if "session_gap" in value:
        hint = "session windows are not supported yet"
        refuse(Mistake(("session_gap",), value["session_gap"], "every, and length to hop", hint))
    declared = _Declared.model_validate(value)
    refuse(*grid_mistakes(value))
    return _grid(declared)


Window = Annotated[WindowSpec, BeforeValidator(_read_window)]


def window_fields() -> tuple[str, ...]:
    """Return the fields that a window may have in the file."""
    return tuple(_Declared.model_fields)


def grid_mistakes(window: Any) -> Iterator[Mistake]:
    """Yield what does not go together in a window as written, with paths relative to it."""
    every, zone, origin = (text(window, name) for name in ("every", "zone", "origin"))
    length = text(window, "length") or every
    if every is None or length is None:
        return
    try:
        parsed = parse_length(every), parse_length(length)
    except ValueError:
        # A field of its own tells it; there is no grid to judge.
        return
    follows = [_follows_calendar(part, zone) for part in parsed]
    if origin is not None and (zone is not None or any(follows)):
        hint = "a window in a zone, or of weeks or months, follows the calendar"
        yield Mistake(("origin",), origin, "an origin only for fixed windows", hint)
    if not any(follows) and zone is not None:
        yield from _local_mistakes(*parsed, every, length)
    elif not _comparable(*parsed, zone):
        where = f" in {zone}" if zone else ""
        yield Mistake(("every",), every, f"a step of the same kind as the length {length}{where}")
    elif _size(parsed[0], zone) > _size(parsed[1], zone):
        hint = "with a greater step, some times would be in no window"
        yield Mistake(("every",), every, f"at most the length {length}", hint)
    elif _size(parsed[1], zone) > MOST_WINDOWS * _size(parsed[0], zone):
        hint = f"each row would be in more than {MOST_WINDOWS:,} windows"
        yield Mistake(("every",), every, f"a longer step, or a length shorter than {length}", hint)


def _local_mistakes(every: Length, length: Length, *written: str) -> Iterator[Mistake]:
    if HOUR_US % (every.us or 1):
        hint = "in a zone, a window under a day divides one hour; whole days are written 1d"
        yield Mistake(("every",), written[0], "1h, 30m, 20m, 15m, 10m, 5m, 1m, ...", hint)
    if length != every:
        hint = "in a zone, a window under a day does not hop"
        yield Mistake(("length",), written[1], f"no length, or that of every: {written[0]}", hint)


def _follows_calendar(length: Length, zone: str | None) -> bool:
    """``1d`` without a zone is 24 hours; all other calendar units follow the calendar."""
    return length.unit is not None and (zone is not None or length.unit != "day")


def _comparable(every: Length, length: Length, zone: str | None) -> bool:
    """Whether both are fixed, or both are of one unit or of months."""
    if _follows_calendar(every, zone) != _follows_calendar(length, zone):
        return False
    both_months = every.unit in _MONTHS and length.unit in _MONTHS
    return not _follows_calendar(every, zone) or every.unit == length.unit or both_months


def _size(length: Length, zone: str | None) -> int:
    """Microseconds, months, or units: what comparable lengths are compared by."""
    if not _follows_calendar(length, zone):
        return length.us or 0
    return length.count * _MONTHS.get(str(length.unit), 1)


def _grid(declared: _Declared) -> WindowSpec:
    """Return the grid of a window without mistakes."""
    every, length = declared.every, declared.length or declared.every
    base: dict[str, Any] = {"name": declared.name, "zone": declared.zone or "UTC"}
    if _follows_calendar(every, declared.zone):
        return WindowSpec(**base, kind="calendar", **_calendar_steps(every, length))
    fixed = {"length_us": length.us, "every_us": every.us}
    if declared.zone is not None:
        return WindowSpec(**base, **fixed, kind="calendar", unit="local", count=1, every_count=1)
    origin_us = 0 if declared.origin is None else parse_instant(declared.origin)
    return WindowSpec(**base, **fixed, kind="fixed", origin_us=origin_us)


def _calendar_steps(every: Length, length: Length) -> dict[str, Any]:
    if every.unit == length.unit:
        return {"unit": length.unit, "count": length.count, "every_count": every.count}
    return {"unit": "month", "count": _size(length, None), "every_count": _size(every, None)}
