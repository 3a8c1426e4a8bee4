"""Windows of a stream spec: which grid a declaration means, and what does not go together."""

from typing import Any

import pytest

from transforms.durations import DAY_US, HOUR_US, MINUTE_US
from transforms.spec import SpecError, SpecProblem, WindowSpec, load_spec

BASE = """\
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: t, unit: iso8601}
  arrival_time: {column: a, unit: iso8601}
arrival: {grain: day, start: 2024-01-01}
profiles:
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
"""


def window(declared: str) -> WindowSpec:
    text = f"{BASE}windows: [{{name: w, {declared}}}]\n"
    return load_spec(text, file="spec.yaml").windows[0]


def problems(declared: str) -> tuple[SpecProblem, ...]:
    with pytest.raises(SpecError) as caught:
        window(declared)
    return caught.value.problems


NOT_FIXED = {"length_us": 0, "every_us": 0, "origin_us": 0}
NOT_CALENDAR = {"unit": None, "count": 0, "every_count": 0, "zone": "UTC"}


def fixed(length: int, every: int, origin: int = 0) -> dict[str, Any]:
    grid = {"kind": "fixed", "length_us": length, "every_us": every, "origin_us": origin}
    return {**NOT_CALENDAR, **grid}


def calendar(unit: str, count: int, every: int, zone: str = "UTC", **us: int) -> dict[str, Any]:
    grid = {"kind": "calendar", "unit": unit, "count": count, "every_count": every, "zone": zone}
    return {**NOT_FIXED, **grid, **us}


def local(width: int, zone: str) -> dict[str, Any]:
    return calendar("local", 1, 1, zone, length_us=width, every_us=width)


@pytest.mark.parametrize(
    ("declared", "grid"),
    [
        ("every: 10m", fixed(10 * MINUTE_US, 10 * MINUTE_US)),
        ("every: 10m, length: 1h", fixed(HOUR_US, 10 * MINUTE_US)),
        ("every: 700ms, length: 1600ms", fixed(1_600_000, 700_000)),
        ("every: 1d", fixed(DAY_US, DAY_US)),
        ("every: 1h, length: 1d", fixed(DAY_US, HOUR_US)),
        ("every: 1d, origin: 2024-01-01T06:00Z", fixed(DAY_US, DAY_US, 1_704_088_800_000_000)),
        ("every: 20s, origin: 1970-01-01T00:00:15Z", fixed(20_000_000, 20_000_000, 15_000_000)),
        ("every: 1m, origin: 1969-12-31T23:59:59", fixed(MINUTE_US, MINUTE_US, -1_000_000)),
    ],
)
def test_a_window_without_zone_is_fixed(declared: str, grid: dict[str, Any]) -> None:
    assert window(declared).model_dump(exclude={"name"}) == grid


@pytest.mark.parametrize(
    ("declared", "grid"),
    [
        ("every: 1d, zone: Europe/Berlin", calendar("day", 1, 1, "Europe/Berlin")),
        ("every: 1d, length: 7d, zone: UTC", calendar("day", 7, 1)),
        ("every: 1w", calendar("week", 1, 1)),
        ("every: 2w, length: 4w, zone: Asia/Tokyo", calendar("week", 4, 2, "Asia/Tokyo")),
        ("every: 1mo", calendar("month", 1, 1)),
        ("every: 2mo, length: 3mo", calendar("month", 3, 2)),
        ("every: 1q", calendar("quarter", 1, 1)),
        ("every: 1y, zone: Asia/Kolkata", calendar("year", 1, 1, "Asia/Kolkata")),
        ("every: 1mo, length: 1y", calendar("month", 12, 1)),
        ("every: 1q, length: 1y", calendar("month", 12, 3)),
        ("every: 1h, zone: Europe/Berlin", local(HOUR_US, "Europe/Berlin")),
        ("every: 15m, length: 15m, zone: UTC", local(15 * MINUTE_US, "UTC")),
    ],
)
def test_a_zone_and_weeks_and_months_follow_the_calendar(
    declared: str, grid: dict[str, Any]
) -> None:
    assert window(declared).model_dump(exclude={"name"}) == grid


@pytest.mark.parametrize(
    ("declared", "path"),
    [
        ("every: 1h, length: 10m", "every"),
        ("every: 2d, length: 1d", "every"),
        ("every: 2mo, length: 1mo", "every"),
        ("every: 1y, length: 1q", "every"),
        ("every: 1d, length: 1w", "every"),
        ("every: 1w, length: 1mo", "every"),
        ("every: 1h, length: 1d, zone: UTC", "every"),
        ("every: 7d, length: 1w, zone: UTC", "every"),
        ("every: 2h, zone: UTC", "every"),
        ("every: 24h, zone: UTC", "every"),
        ("every: 7m, zone: UTC", "every"),
        ("every: 10m, length: 1h, zone: UTC", "length"),
        ("every: 1d, zone: UTC, origin: 2024-01-01", "origin"),
        ("every: 1h, zone: UTC, origin: 2024-01-01", "origin"),
        ("every: 1w, origin: 2024-01-01", "origin"),
        ("every: 1mo, origin: 2024-01-01", "origin"),
        ("every: 1h, origin: noon", "origin"),
        ("every: 0s", "every"),
        ("every: 1h30m", "every"),
        ("every: []", "every"),
        ("length: 1h", "every"),
        ("every: 1h, zone: Europe/Berln", "zone"),
    ],
)
def test_what_does_not_go_together_is_told_once(declared: str, path: str) -> None:
    assert [problem.path for problem in problems(declared)] == [f"windows[0].{path}"]


def test_a_window_that_is_wrong_twice_is_told_twice() -> None:
    declared = "every: 90m, length: 3h, zone: UTC, origin: 2024-01-01"
    paths = {problem.path for problem in problems(declared)}
    assert paths == {"windows[0].every", "windows[0].length", "windows[0].origin"}


@pytest.mark.parametrize(
    ("declared", "longest_us"),
    [
        ("every: 10m, length: 1h", HOUR_US),
        ("every: 1d, zone: Europe/Berlin", 25 * HOUR_US),
        ("every: 1d, length: 7d, zone: Europe/Berlin", 7 * DAY_US + HOUR_US),
        ("every: 1w, zone: Europe/Berlin", 7 * DAY_US + HOUR_US),
        ("every: 1mo, zone: Europe/Berlin", 31 * DAY_US + HOUR_US),
        ("every: 1q", 92 * DAY_US),
        ("every: 1y", 366 * DAY_US),
        ("every: 1mo, length: 1y", 366 * DAY_US),
        ("every: 1h, zone: Australia/Lord_Howe", 90 * MINUTE_US),
    ],
)
def test_no_window_is_longer_than_its_bound(declared: str, longest_us: int) -> None:
    assert longest_us <= window(declared).max_length_us <= longest_us + DAY_US * 8


def test_windows_are_in_the_order_of_the_file_and_have_names_of_their_own() -> None:
    text = f"{BASE}windows: [{{name: b, every: 1h}}, {{name: a, every: 1m}}]\n"
    assert [w.name for w in load_spec(text, file="spec.yaml").windows] == ["b", "a"]
    with pytest.raises(SpecError, match="a name that no other window has"):
        load_spec(text.replace("name: b", "name: a"), file="spec.yaml")


@pytest.mark.parametrize("windows", ["[]", "{}", "x", "[x]", "", "[[]]"])
def test_a_stream_has_at_least_one_window(windows: str) -> None:
    with pytest.raises(SpecError, match="windows"):
        load_spec(f"{BASE}windows: {windows}\n", file="spec.yaml")
