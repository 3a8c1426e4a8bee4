"""Windows and statistics in plain Python, one row and one window at a time: the oracle of tests.

It reads like the contract and shares no code with the transforms but the reading of a spec.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import yaml

from transforms.schemas import counted_schema
from transforms.spec import StreamSpec, WindowSpec, load_spec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE_US = 60_000_000
DAY_US = 1440 * MINUTE_US
VALUES = {"level": "float", "pulses": "int", "on": "bool", "cost": "decimal(20,2)"}
STATISTICS = ("sum", "mean", "min", "max", "std", "first", "last", "rate", "time_weighted_mean")


def stream(
    *windows: dict[str, str],
    aggregates: Mapping[str, Sequence[str]] | None = None,
    key: str | list[str] = "station",
    carry: Sequence[str] = (),
    values: Mapping[str, str] = VALUES,
) -> StreamSpec:
    """Return a stream with these windows and, unless told, one value of each type."""
    declared = {
        "name": "plain",
        "source": {"kind": "files", "path": "*.ndjson", "format": "ndjson"},
        "columns": {
            "key": key,
            "event_time": {"column": "at", "unit": "us"},
            "arrival_time": {"column": "came", "unit": "us"},
            "values": dict(values),
            "carry": list(carry),
        },
        "arrival": {"grain": "day", "start": "1970-01-01", "zone": "UTC"},
        "events": {"grain": "day"},
        "profiles": {
            "default": {
                "grace": "1s",
                "idle_timeout": "off",
                "capacity": "9",
                "future_skew": "5m",
            }
        },
        "windows": list(windows),
        "aggregates": {name: list(listed) for name, listed in (aggregates or {}).items()},
        "target": "default",
    }
    return load_spec(yaml.safe_dump(declared), file="plain.yaml")


def instant(text: str) -> int:
    """Return microseconds since the epoch of an ISO 8601 text."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def local(zone: str, instant_us: int) -> datetime:
    """Return what the clock of a zone shows."""
    return (EPOCH + timedelta(microseconds=instant_us)).astimezone(ZoneInfo(zone))


@cache
def day_start(zone: str, day: date) -> int:
    """Walk minute by minute to the first instant whose local date is the day or later."""
    noon_before = (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // timedelta(
        microseconds=1
    ) - DAY_US
    return next(
        at
        for at in range(noon_before, noon_before + 3 * DAY_US, MINUTE_US)
        if local(zone, at).date() >= day
    )


def _first_day(unit: str, index: int) -> date:
    if unit in {"day", "week"}:
        start, days = (date(1970, 1, 1), 1) if unit == "day" else (date(1970, 1, 5), 7)
        return start + timedelta(days=days * index)
    months = index * {"month": 1, "quarter": 3, "year": 12}[unit]
    return date(1970 + months // 12, months % 12 + 1, 1)


def _clock_window(zone: str, length_us: int, event_us: int) -> tuple[int, int]:
    """Walk from the event to both sides while the clock shows the same stretch, unchanged."""

    def mark(at: int) -> tuple[int, timedelta | None]:
        shown = local(zone, at)
        reading = (shown.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
        return reading // length_us, shown.utcoffset()

    own = mark(event_us)
    minute = event_us // MINUTE_US * MINUTE_US
    start, end = minute, minute + MINUTE_US
    while mark(start - 1) == own:
        start -= MINUTE_US
    while mark(end) == own:
        end += MINUTE_US
    return start, end


def windows_of(window: WindowSpec, event_us: int) -> list[tuple[int, int]]:
    """Return start and end of each window that holds an event time."""
    if window.kind == "fixed":
        newest = (event_us - window.origin_us) // window.every_us
        oldest = newest - window.length_us // window.every_us - 1
        starts = (window.origin_us + n * window.every_us for n in range(oldest, newest + 1))
        bounds = [(start, start + window.length_us) for start in starts]
    elif window.unit == "local":
        bounds = [_clock_window(window.zone, window.length_us, event_us)]
    else:
        bounds = _calendar_windows(window, event_us)
    return [(start, end) for start, end in bounds if start <= event_us < end]


def _unit_index(unit: str, day: date) -> int:
    if unit in {"day", "week"}:
        days = (day - (date(1970, 1, 1) if unit == "day" else date(1970, 1, 5))).days
        return days if unit == "day" else days // 7
    return ((day.year - 1970) * 12 + day.month - 1) // {"month": 1, "quarter": 3, "year": 12}[unit]


def _calendar_windows(window: WindowSpec, event_us: int) -> list[tuple[int, int]]:
    unit, step = str(window.unit), window.every_count
    index = _unit_index(unit, local(window.zone, event_us).date())
    near = range((index - window.count) // step - 1, (index + 1) // step + 2)

    def start(index: int) -> int:
        return day_start(window.zone, _first_day(unit, index))

    return [(start(n * step), start(n * step + window.count)) for n in near]


@dataclass(frozen=True)
class Row:
    """A counted row; ``refused_at_us`` is the watermark that a dead letter met."""

    key: str
    event_us: int
    seq: int
    arrival_us: int
    values: Mapping[str, Any]
    is_late: bool = False
    is_dead_letter: bool = False
    refused_at_us: int | None = None


def frame(spec: StreamSpec, rows: Iterable[Row]) -> pl.DataFrame:
    """Return rows as a frame of counted rows."""
    schema = counted_schema(spec)
    records = [{**vars(row), **row.values} for row in rows]
    columns = {name: [record.get(name) for record in records] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def neumaier(values: Iterable[float]) -> float:
    """Add one float after the other, and the rounding errors beside."""
    total = error = 0.0
    for value in values:
        after = total + value
        if math.isfinite(after):
            small, large = sorted((total, value), key=abs)
            error += (large - after) + small
        total = after
    return total + error


def _percentile(values: Sequence[float], per_cent: str) -> float:
    position = (len(values) - 1) * Fraction(per_cent) / 100
    low = int(position)
    high = min(low + 1, len(values) - 1)
    ordered = sorted(values)
    return ordered[low] + float(position - low) * (ordered[high] - ordered[low])


def _std(floats: Sequence[float], mean: float) -> float | None:
    if len(floats) == 1:
        return None
    return math.sqrt(neumaier((x - mean) * (x - mean) for x in floats) / (len(floats) - 1))


def _time_weighted(times: Sequence[int], floats: Sequence[float], end_us: int) -> float:
    held = [after - before for before, after in pairwise([*times, end_us])]
    total = neumaier(x * float(t) for x, t in zip(floats, held, strict=True))
    return total / float(end_us - times[0])


def statistic(name: str, times: Sequence[int], values: Sequence[Any], end_us: int) -> Any:
    """Return one statistic of readings in order, null of none."""
    if not values:
        return None
    floats = [float(x) for x in values]
    exact = not isinstance(values[0], float)
    total = sum(values[1:], values[0]) if exact else neumaier(floats)
    mean = float(total) / len(values)
    if name.startswith("p"):
        return _percentile(floats, name[1:])
    seconds = (times[-1] - times[0]) / 1e6
    return {
        "sum": lambda: total,
        "mean": lambda: mean,
        "min": lambda: min(values),
        "max": lambda: max(values),
        "std": lambda: _std(floats, mean),
        "first": lambda: values[0],
        "last": lambda: values[-1],
        "rate": lambda: (floats[-1] - floats[0]) / seconds if seconds else None,
        "time_weighted_mean": lambda: _time_weighted(times, floats, end_us),
    }[name]()


def _reading(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return int(value) if isinstance(value, bool) else value


def published(
    spec: StreamSpec,
    rows: Iterable[Row],
    closed: Mapping[str, int | None],
    due: Mapping[str, int | None],
) -> list[dict[str, Any]]:
    """Return the windows of each key with closed < end <= due, without revision and digest.

    A row counts in those of its windows that were open when it came.
    """
    found: dict[tuple[int, str, int, int], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.event_us, row.seq)):
        before, after = closed.get(row.key), due.get(row.key)
        for place, window in enumerate(spec.windows):
            for start, end in windows_of(window, row.event_us):
                is_open = row.refused_at_us is None or end > row.refused_at_us
                is_due = after is not None and end <= after and (before is None or before < end)
                if is_open and is_due:
                    found[place, row.key, start, end].append(row)
    return [_window(spec, *window, found[window]) for window in sorted(found)]


def _window(  # noqa: PLR0917 - what names a window, and its rows
    spec: StreamSpec, place: int, key: str, start: int, end: int, rows: Sequence[Row]
) -> dict[str, Any]:
    dead = sum(row.is_dead_letter for row in rows)
    window = {
        "stream": spec.name,
        "window": spec.windows[place].name,
        "key": key,
        "window_start_us": start,
        "window_end_us": end,
        "event_count": len(rows),
        "late_arrival_count": sum(row.is_late for row in rows),
        "dead_letter_count": dead,
        "dead_letter_fraction": dead / len(rows),
        "first_event_us": rows[0].event_us,
        "last_event_us": rows[-1].event_us,
        "known_at_us": max(row.arrival_us for row in rows),
    }
    for value in spec.columns.values:
        read = [(row.event_us, _reading(row.values.get(value))) for row in rows]
        times = [at for at, reading in read if reading is not None]
        readings = [reading for _, reading in read if reading is not None]
        window[f"{value}_count"] = len(readings)
        for name in spec.aggregates.get(value, ()):
            window[f"{value}_{name}"] = statistic(name, times, readings, end)
    return window


def money(text: str) -> Decimal:
    """Return an amount of the decimal column."""
    return Decimal(text).quantize(Decimal("0.01"))
