"""Where local days, weeks, months and hours begin, also where clocks change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_windows import DAY_US, instant, local

from transforms.spec import WindowSpec
from transforms.windowing.calendars import day_start_us, day_starts, local_days, unit_starts
from transforms.windowing.grids import (
    CalendarGrid,
    FixedGrid,
    Grid,
    LocalClockGrid,
    grid_of,
    lateness_us,
)

HOUR_US = 3_600_000_000
INT64 = np.iinfo(np.int64)


def text(instant_us: int) -> str:
    return datetime.fromtimestamp(instant_us / 1e6, UTC).isoformat().replace("+00:00", "Z")


def day_of(iso: str) -> int:
    return instant(f"{iso}T00:00:00Z") // DAY_US


def window(grid: Grid, iso: str) -> tuple[str, str]:
    start, end, _ = grid.bounds(np.array([instant(iso)]), 0)
    return text(int(start[0])), text(int(end[0]))


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("UTC", "2026-03-29", "2026-03-29T00:00:00Z"),
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z"),
        ("Europe/Berlin", "2026-03-30", "2026-03-29T22:00:00Z"),
        ("Asia/Kolkata", "2026-05-05", "2026-05-04T18:30:00Z"),
        # Midnight is skipped: the day starts with the change, at 01:00.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"),
        ("Asia/Beirut", "2024-03-31", "2024-03-30T22:00:00Z"),
        # Midnight comes twice: the day starts with the first.
        ("America/Havana", "2024-11-03", "2024-11-03T04:00:00Z"),
        # At midnight the clock goes back to 23:00: the day starts at the only midnight.
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T03:00:00Z"),
        # At 00:01 the clock goes back to 23:01: the day has begun, and is not interrupted.
        ("America/St_Johns", "2006-10-29", "2006-10-29T02:30:00Z"),
        # The skip begins before midnight, at 23:30, and ends after it.
        ("America/Toronto", "1919-03-31", "1919-03-31T04:30:00Z"),
        # The whole date is skipped: it starts, and ends, with the next one.
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"),
    ],
)
def test_a_local_day_starts_at_the_first_instant_of_its_date(
    zone: str, day: str, start: str
) -> None:
    assert text(day_start_us(zone, day_of(day))) == start


zones = st.sampled_from(
    [
        *("Europe/Berlin", "America/St_Johns", "America/Sao_Paulo", "America/Havana"),
        *("Pacific/Apia", "Pacific/Kwajalein", "Asia/Amman", "Africa/Cairo", "Asia/Tehran"),
        *("Australia/Lord_Howe", "Asia/Kathmandu", "Antarctica/Troll", "America/Asuncion"),
        *("Africa/Casablanca", "Atlantic/Azores", "Europe/Amsterdam", "Africa/Monrovia"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(zones, st.integers(-25_000, 30_000))
def test_before_the_start_of_a_day_no_clock_has_shown_its_date(zone: str, day: int) -> None:
    start, date = day_start_us(zone, day), datetime.fromtimestamp(day * 86_400, UTC).date()
    assert local(zone, start).date() >= date
    assert all(local(zone, start - 1 - n * HOUR_US // 4).date() < date for n in range(110))


@settings(max_examples=200, deadline=None)
@given(zones, st.integers(-(2**51), 2**52))
def test_the_local_day_of_an_instant_holds_it(zone: str, event_us: int) -> None:
    day = local_days(zone, np.array([event_us]))
    assert day_starts(zone, day)[0] <= event_us < day_starts(zone, day + 1)[0]


def test_rules_go_on_beyond_the_years_of_datetime() -> None:
    cycle = 146_097
    july, january = day_of("2026-07-01"), day_of("2026-01-01")
    for day, hours in ((july, 2), (january, 1)):
        for cycles in (25, 600):
            far = day + cycles * cycle
            assert day_start_us("Europe/Berlin", far) == far * DAY_US - hours * HOUR_US
    long_ago = july - 600 * cycle
    first_offset = ZoneInfo("Europe/Berlin").utcoffset(datetime(1800, 1, 1))  # noqa: DTZ001
    assert first_offset is not None
    seconds = int(first_offset.total_seconds())
    assert day_start_us("Europe/Berlin", long_ago) == long_ago * DAY_US - seconds * 1_000_000


@pytest.mark.parametrize(
    ("grid", "at", "start", "end"),
    [
        (CalendarGrid("week", 1, 1, "UTC"), "1970-01-04T23:59:59Z", "1969-12-29", "1970-01-05"),
        (CalendarGrid("week", 1, 1, "UTC"), "1970-01-05T00:00:00Z", "1970-01-05", "1970-01-12"),
        (CalendarGrid("week", 2, 2, "UTC"), "1970-01-18T00:00:00Z", "1970-01-05", "1970-01-19"),
        (CalendarGrid("day", 2, 2, "UTC"), "1969-12-31T00:00:00Z", "1969-12-30", "1970-01-01"),
        (CalendarGrid("month", 1, 1, "UTC"), "2024-02-29T23:59:59Z", "2024-02-01", "2024-03-01"),
        (CalendarGrid("month", 5, 5, "UTC"), "1970-05-31T23:59:59Z", "1970-01-01", "1970-06-01"),
        (CalendarGrid("quarter", 1, 1, "UTC"), "1969-12-31T23:59:59Z", "1969-10-01", "1970-01-01"),
        (CalendarGrid("year", 10, 10, "UTC"), "1969-12-31T23:59:59Z", "1960-01-01", "1970-01-01"),
    ],
)
def test_calendar_windows_count_from_1970(grid: Grid, at: str, start: str, end: str) -> None:
    assert window(grid, at) == (f"{start}T00:00:00Z", f"{end}T00:00:00Z")


def test_a_local_day_may_have_23_hours() -> None:
    grid = CalendarGrid("day", 1, 1, "Europe/Berlin")
    bounds = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
    assert window(grid, "2026-03-29T12:00:00Z") == bounds


def test_a_month_in_a_zone_starts_with_its_first_local_day() -> None:
    starts = unit_starts("month", "Europe/Berlin", np.array([12 * 56 + 2, 12 * 56 + 3]))
    assert [text(int(at)) for at in starts] == ["2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"]


@pytest.mark.parametrize(
    ("zone", "length_us", "at", "start", "end"),
    [
        ("Europe/Berlin", HOUR_US, "00:30", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"),
        ("Europe/Berlin", HOUR_US, "01:30", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
        ("Asia/Kathmandu", HOUR_US, "00:14", "2026-10-24T23:15:00Z", "2026-10-25T00:15:00Z"),
    ],
)
def test_the_hours_of_a_local_clock(
    zone: str, length_us: int, at: str, start: str, end: str
) -> None:
    grid = LocalClockGrid(length_us, zone)
    assert window(grid, f"2026-10-25T{at}:00Z") == (start, end)


def test_a_clock_change_within_an_hour_ends_its_window() -> None:
    # At 02:00 on Lord Howe the clock goes back to 01:30, at 15:00 UTC.
    grid = LocalClockGrid(HOUR_US, "Australia/Lord_Howe")
    bounds = [window(grid, f"2026-04-04T{at}:00Z") for at in ("14:59", "15:00", "15:29", "15:30")]
    assert bounds == [
        ("2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"),
        ("2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"),
        ("2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"),
        ("2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"),
    ]


GRIDS: list[Grid] = [
    FixedGrid(60_000_000, 60_000_000, 0),
    FixedGrid(1_600_000, 700_000, 1_767_225_600_123_456),
    CalendarGrid("day", 3, 1, "America/St_Johns"),
    CalendarGrid("month", 3, 2, "Africa/Cairo"),
    CalendarGrid("week", 1, 1, "UTC"),
    LocalClockGrid(900_000_000, "Australia/Lord_Howe"),
]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_windows_of_a_layer_do_not_overlap_and_rise_with_time(grid: Grid) -> None:
    event = np.sort(
        np.random.default_rng(1).integers(1_774_000_000_000_000, 1_777_000_000_000_000, 999)
    )
    for layer in range(grid.layers):
        start, end, inside = grid.bounds(event, layer)
        held = np.ones(len(event), dtype=np.bool_) if inside is None else inside
        assert (start <= event).all()
        assert ((event < end) == held).all()
        assert ((start[1:] == start[:-1]) | (start[1:] >= end[:-1])).all()


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_the_ends_of_int64_have_windows_too(grid: Grid) -> None:
    event = np.array([INT64.min, INT64.min + 1, INT64.max - 1, INT64.max], dtype=np.int64)
    for layer in range(grid.layers):
        start, end, _ = grid.bounds(event, layer)
        assert (start < end).all()
    never, always = np.full(4, INT64.min), np.full(4, INT64.max)
    for watermark, all_closed in ((never, False), (always, True)):
        closed, total = grid.count(event, watermark)
        assert (total >= 1).all()
        assert (closed[:2] == total[:2]).all() if all_closed else (closed == 0).all()


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(-30, 30),
    st.integers(-99, 99),
    st.integers(-99, 99),
)
def test_windows_are_counted_in_closed_form_as_one_by_one(
    length: int, every: int, origin: int, event_us: int, watermark_us: int
) -> None:
    grid = FixedGrid(max(length, every), min(length, every), origin)
    event, watermark = np.array([event_us]), np.array([watermark_us])
    one_by_one = Grid.count(grid, event, watermark)
    assert [n.tolist() for n in grid.count(event, watermark)] == [n.tolist() for n in one_by_one]


@given(st.integers(int(INT64.min), int(INT64.max)), st.integers(int(INT64.min), int(INT64.max)))
def test_a_distance_beyond_int64_does_not_wrap(watermark_us: int, event_us: int) -> None:
    far = 2**62
    expected = min(max(watermark_us - event_us, -far), far)
    assert lateness_us(np.array([watermark_us]), np.array([event_us])).tolist() == [expected]


def test_each_kind_of_declaration_has_its_grid() -> None:
    fixed = WindowSpec(name="w", kind="fixed", length_us=3, every_us=2, origin_us=1)
    month = WindowSpec(name="w", kind="calendar", unit="month", count=3, every_count=1)
    hour = WindowSpec(name="w", kind="calendar", unit="local", length_us=HOUR_US, zone="Asia/Tokyo")
    assert grid_of(fixed) == FixedGrid(3, 2, 1)
    assert grid_of(month) == CalendarGrid("month", 3, 1, "UTC")
    assert grid_of(hour) == LocalClockGrid(HOUR_US, "Asia/Tokyo")
