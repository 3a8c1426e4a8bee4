"""The windows of a stream as declared, and the grids they mean: the section ``windows``.

Here belongs the reading of ``every``, ``length``, ``origin`` and ``zone`` into a grid, with the
rules of what may go together. Which window a time falls into is in ``windows.py``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from transforms.durations import DAY_US, HOUR_US, Length, parse_length
from transforms.spec_fields import InstantText, Name, Section, Zone, parse_instant, refuse
from transforms.spec_words import ALLOWED, ENTRY_ALLOWED, Mistake

Unit = Literal["day", "week", "month", "quarter", "year", "local"]

_LONGEST_DAYS: Final[Mapping[str, int]] = {
    "day": 1,
    "week": 7,
    "month": 31,
    "quarter": 92,
    "year": 366,
}
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
            # A grid cell that a change of the clock cuts or stretches.
            return 2 * self.length_us
        # A change of the clock adds at most a day (a zone that moved across the date line).
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
        return refuse(Mistake((), value, ENTRY_ALLOWED["windows"]))
    if "session_gap" in value:
        hint = "session windows are not supported yet"
        refuse(Mistake(("session_gap",), value["session_gap"], "every, and length to hop", hint))
    return _grid(_Declared.model_validate(value), value)


Window = Annotated[WindowSpec, BeforeValidator(_read_window)]


def window_fields() -> tuple[str, ...]:
    """Return the fields that a window may have in the file."""
    return tuple(_Declared.model_fields)


def _grid(declared: _Declared, written: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a ``WindowSpec``; refuses what does not go together."""
    every, length = declared.every, declared.length or declared.every
    zoned = declared.zone is not None
    follows = [_follows_calendar(part, zoned=zoned) for part in (every, length)]
    if follows[0] != follows[1]:
        refuse(Mistake(("every",), written["every"], _same_kind(written["length"], declared.zone)))
    if all(follows):
        grid = _calendar_grid(every, length, written)
    elif zoned:
        grid = _local_grid(every, length, written)
    else:
        grid = _fixed_grid(every, length, declared.origin, written)
    if grid["kind"] == "calendar" and declared.origin is not None:
        hint = "a window in a zone, or of weeks or months, follows the calendar"
        refuse(Mistake(("origin",), declared.origin, "an origin only for fixed windows", hint))
    return {"name": declared.name, "zone": declared.zone or "UTC", **grid}


def _follows_calendar(length: Length, *, zoned: bool) -> bool:
    """``1d`` without a zone is 24 hours; all other calendar units follow the calendar."""
    return length.unit is not None and (zoned or length.unit != "day")


def _same_kind(length: str, zone: str | None) -> str:
    where = f" in {zone}" if zone else ""
    return f"a step of the same kind as the length {length}{where}"


def _calendar_grid(every: Length, length: Length, written: Mapping[str, str]) -> dict[str, Any]:
    unit, count, step = length.unit, length.count, every.count
    if every.unit != length.unit:
        # A year is twelve months from January 1970, a quarter three: one grid, so they may mix.
        if every.unit not in _MONTHS or length.unit not in _MONTHS:
            refuse(Mistake(("every",), written["every"], _same_kind(written["length"], None)))
        count, step = count * _MONTHS[str(length.unit)], step * _MONTHS[str(every.unit)]
        unit = "month"
    _refuse_gaps(step, count, written)
    return {"kind": "calendar", "unit": unit, "count": count, "every_count": step}


def _local_grid(every: Length, length: Length, written: Mapping[str, str]) -> dict[str, Any]:
    width = every.us or 0
    if HOUR_US % width:
        hint = "in a zone, a window under a day divides one hour; whole days are written 1d"
        refuse(Mistake(("every",), written["every"], "1h, 30m, 20m, 15m, 10m, 5m, 1m, ...", hint))
    if length != every:
        hint = "in a zone, a window under a day does not hop"
        refuse(Mistake(("length",), written["length"], "no length but that of every", hint))
    one = {"count": 1, "every_count": 1}
    return {"kind": "calendar", "unit": "local", "length_us": width, "every_us": width, **one}


def _fixed_grid(
    every: Length, length: Length, origin: str | None, written: Mapping[str, str]
) -> dict[str, Any]:
    every_us, length_us = every.us or 0, length.us or 0
    _refuse_gaps(every_us, length_us, written)
    origin_us = 0 if origin is None else parse_instant(origin)
    return {
        "kind": "fixed",
        "length_us": length_us,
        "every_us": every_us,
        "origin_us": origin_us,
    }


def _refuse_gaps(every: int, length: int, written: Mapping[str, str]) -> None:
    if every > length:
        hint = "with a greater step, some times would be in no window"
        allowed = f"at most the length {written['length']}"
        refuse(Mistake(("every",), written["every"], allowed, hint))
