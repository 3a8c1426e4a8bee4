"""How arrivals and events are cut into partitions: the sections ``arrival`` and ``events``.

Here belong the grain and the start of both axes. The assets' partition definitions are made from
this elsewhere.
"""

import zoneinfo
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from transforms.durations import DAY_US, HOUR_US, MINUTE_US
from transforms.spec_fields import (
    EPOCH,
    DurationUs,
    InstantText,
    Section,
    Zone,
    format_instant,
    parse_instant,
    refuse,
)
from transforms.spec_words import Mistake

Grain = Literal["15m", "hour", "day"]
GRAIN_US: Final[Mapping[str, int]] = {"15m": 15 * MINUTE_US, "hour": HOUR_US, "day": DAY_US}
_GRAIN_STARTS: Final = {"15m": "a quarter of an hour", "hour": "a full hour", "day": "midnight"}


class Arrival(Section):
    """Arrival partitions: grain and start in ``zone``; one is complete ``settle_us`` after its end.

    ``start`` is the text as declared.
    """

    grain: Grain
    start: InstantText
    zone: Zone = "UTC"
    settle_us: DurationUs = Field(default=0, validation_alias="settle")

    @property
    def start_us(self) -> int:
        """The start of the first partition."""
        return parse_instant(self.start, self.zone)

    @property
    def start_time(self) -> datetime:
        """The start of the first partition on the clock of ``zone``."""
        return local_time(self.start_us, self.zone)

    @model_validator(mode="after")
    def _start_is_a_boundary(self) -> Self:
        refuse(*boundary_mistakes(self.grain, self.start, self.zone))
        return self


class Events(Section):
    """Event partitions, in UTC; without a start of their own they start with the arrivals."""

    grain: Grain = "day"
    start: InstantText

    @property
    def start_us(self) -> int:
        """The start of the first partition."""
        return parse_instant(self.start)

    @model_validator(mode="after")
    def _start_is_a_boundary(self) -> Self:
        refuse(*boundary_mistakes(self.grain, self.start, "UTC"))
        return self


def local_time(us: int, zone: str) -> datetime:
    """Return an instant on the clock of a zone."""
    return (EPOCH + timedelta(microseconds=us)).astimezone(zoneinfo.ZoneInfo(zone))


def boundary_mistakes(grain: Grain, start: str, zone: str) -> tuple[Mistake, ...]:
    """Return a mistake if the start does not lie on a boundary of its grain."""
    start_us = parse_instant(start, zone)
    local = local_time(start_us, zone)
    if grain == "day":
        # Compared as an instant: where midnight is skipped, a day starts at another hour.
        fits = start_us == parse_instant(local.date().isoformat(), zone)
    else:
        minutes = GRAIN_US[grain] // MINUTE_US
        fits = local.minute % minutes == 0 and local.second == 0 and local.microsecond == 0
    allowed = f"{_GRAIN_STARTS[grain]} in {zone}, for the grain is {grain}"
    return () if fits else (Mistake(("start",), start, allowed),)


def events_with_start(arrival: Any, events: Any) -> Any:
    """Return the section ``events`` as written, with the start of the arrivals where it has none.

    Floored to its own grain in UTC, for a local midnight is no boundary there.
    """
    declared = {} if events is None else events
    if not isinstance(declared, dict) or declared.get("start") is not None:
        return declared
    return {
        **declared,
        "start": _floored_start(arrival, GRAIN_US.get(str(declared.get("grain")), DAY_US)),
    }


def _floored_start(arrival: Any, grain_us: int) -> str:
    try:
        start_us = parse_instant(arrival["start"], arrival.get("zone") or "UTC")
    except (LookupError, TypeError, ValueError, AttributeError):
        # The section `arrival` reports it; here any start will do.
        start_us = 0
    return format_instant(start_us // grain_us * grain_us)
