"""How arrivals and events are cut into partitions: the sections ``arrival`` and ``events``.

Here belong the grain and the start of both axes. The assets' partition definitions are made from
this elsewhere.
"""

import zoneinfo
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import Field

from transforms.durations import DAY_US, HOUR_US, MINUTE_US
from transforms.spec.fields import (
    EPOCH,
    DurationUs,
    InstantText,
    Section,
    Zone,
    format_instant,
    parse_instant,
    zones,
)
from transforms.spec.words import Mistake
from transforms.spec.written import text

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


class Events(Section):
    """Event partitions, in UTC; without a start of their own they start with the arrivals."""

    grain: Grain = "day"
    start: InstantText

    @property
    def start_us(self) -> int:
        """The start of the first partition."""
        return parse_instant(self.start)


def local_time(us: int, zone: str) -> datetime:
    """Return an instant on the clock of a zone."""
    return (EPOCH + timedelta(microseconds=us)).astimezone(zoneinfo.ZoneInfo(zone))


def start_mistakes(spec: Any) -> Iterator[Mistake]:
    """Yield the starts of a spec as written that do not lie on a boundary of their grain."""
    zone = text(spec, "arrival", "zone") or "UTC"
    yield from _boundary_mistakes(spec, "arrival", text(spec, "arrival", "grain"), zone)
    yield from _boundary_mistakes(spec, "events", text(spec, "events", "grain") or "day", "UTC")


def _boundary_mistakes(spec: Any, section: str, grain: str | None, zone: str) -> Iterator[Mistake]:
    start = text(spec, section, "start")
    start_us = _instant_or_none(start, zone)
    if start_us is None or grain is None or grain not in GRAIN_US:
        return
    if not _is_boundary(start_us, grain, zone):
        allowed = f"{_GRAIN_STARTS[grain]} in {zone}, for the grain is {grain}"
        yield Mistake((section, "start"), start, allowed)


def _is_boundary(start_us: int, grain: str, zone: str) -> bool:
    local = local_time(start_us, zone)
    if grain == "day":
        # Compared as an instant: where midnight is skipped, a day starts at another hour.
        return start_us == parse_instant(local.date().isoformat(), zone)
    minutes = GRAIN_US[grain] // MINUTE_US
    return local.minute % minutes == 0 and local.second == 0 and local.microsecond == 0


def _instant_or_none(start: str | None, zone: str) -> int | None:
    """None where a start or a zone cannot be read, which its own field tells."""
    if start is None or zone not in zones():
        return None
    try:
        return parse_instant(start, zone)
    except ValueError:
        return None


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
    zone = text(arrival, "zone") or "UTC"
    # Where the arrivals have no readable start, that is the mistake; here any start will do.
    start_us = _instant_or_none(text(arrival, "start"), zone) or 0
    return format_instant(start_us // grain_us * grain_us)
