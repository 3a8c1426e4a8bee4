"""The windows of the batch oracle: its SQL finds those that plain Python finds, on every grid."""

from collections.abc import Iterable, Sequence

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_windows import DAY_US, instant, stream, windows_of

from expectations.evidence.grids import in_windows, numbered, start_of
from transforms.spec import WindowSpec

GRIDS: tuple[dict[str, str], ...] = (
    {"every": "10m"},
    {"every": "7m", "origin": "2024-01-01T00:05:00Z"},
    {"length": "1h", "every": "10m"},
    {"length": "1h", "every": "25m"},
    {"every": "1d", "zone": "Europe/Berlin"},
    {"every": "1d", "zone": "America/Sao_Paulo"},
    {"every": "1d", "zone": "America/St_Johns"},
    {"every": "1d", "zone": "Pacific/Apia"},
    {"length": "3d", "every": "1d", "zone": "America/Havana"},
    {"every": "1w"},
    {"every": "1w", "zone": "America/New_York"},
    {"length": "2w", "every": "1w", "zone": "Europe/Berlin"},
    {"every": "1mo"},
    {"every": "1mo", "zone": "Asia/Kolkata"},
    {"length": "3mo", "every": "1mo", "zone": "Europe/Berlin"},
    {"every": "1q", "zone": "Australia/Lord_Howe"},
    {"every": "1y"},
    {"every": "15m", "zone": "Asia/Kathmandu"},
    {"every": "1h", "zone": "Europe/Berlin"},
    {"every": "30m", "zone": "Australia/Lord_Howe"},
    {"every": "1h", "zone": "Australia/Lord_Howe"},
    {"every": "20m", "zone": "America/St_Johns"},
)
# Around changes of the clock (some skip a midnight, some have it twice, one skips a date), at ends
# of months and years, and before the epoch.
EDGES = (
    *("2024-03-31T00:59:59.999999Z", "2024-03-31T01:00:00Z", "2024-03-30T23:00:00Z"),
    *("2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "2024-10-26T22:00:00Z"),
    *("2018-11-04T02:59:59.999999Z", "2018-11-04T03:00:00Z", "2018-02-18T01:59:59.999999Z"),
    *("2018-02-18T02:00:00Z", "2024-11-03T04:00:00Z", "2024-11-03T05:30:00Z"),
    *("2024-04-06T14:45:00Z", "2024-04-06T15:15:00Z", "2024-10-05T15:30:00Z"),
    *("2006-10-29T02:30:00Z", "2006-10-29T02:30:30Z", "2006-10-29T02:31:00Z"),
    *("2006-10-29T03:31:00Z", "2024-04-06T14:59:59Z", "2024-04-06T15:00:00Z"),
    *("2011-12-30T09:59:59.999999Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"),
    *("2024-02-29T12:00:00Z", "2024-12-31T23:59:59.999999Z", "2025-01-01T00:00:00Z"),
    *("1969-12-31T23:59:59.999999Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"),
)
Windows = list[tuple[int, int, int]]


def grid(declared: dict[str, str]) -> WindowSpec:
    return stream({"name": "w", **declared}).windows[0]


def by_sql(window: WindowSpec, events: Sequence[int]) -> Windows:
    """Event, start and end of every window; the number of a start leads back to its window."""
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.register(
            "rows", pl.DataFrame({"event_us": events}, schema={"event_us": pl.Int64})
        )
        query = f"""
            with windows as ({in_windows("rows", window, "event_us")}),
            starts as (select *, ({start_of(window, "wid")})::bigint as start_us from windows)
            select event_us, start_us, wend_us::bigint, wid = {numbered(window, "start_us")}
            from starts
            """  # noqa: S608 (made of our own SQL)
        found = connection.sql(query).fetchall()
    assert all(is_same for *_, is_same in found)
    return sorted((event, start, end) for event, start, end, _ in found)


def by_hand(window: WindowSpec, events: Iterable[int]) -> Windows:
    return sorted((event, *bounds) for event in events for bounds in windows_of(window, event))


@pytest.mark.parametrize("declared", GRIDS, ids=lambda declared: " ".join(declared.values()))
def test_the_oracle_finds_the_windows_of_every_grid_at_its_edges(declared: dict[str, str]) -> None:
    window, events = grid(declared), sorted(instant(text) for text in EDGES)
    assert by_sql(window, events) == by_hand(window, events)


def times() -> st.SearchStrategy[int]:
    """Draw event times from 1940 on, most of them within hours of an edge.

    Before 1936 some clocks changed at odd seconds, which the oracle says it does not follow.
    """
    near = st.builds(
        lambda edge, apart: instant(edge) + apart,
        st.sampled_from(EDGES),
        st.integers(-DAY_US // 6, DAY_US // 6),
    )
    return near | near | st.integers(-30 * 365 * DAY_US, 80 * 365 * DAY_US)


@given(declared=st.sampled_from(GRIDS), events=st.lists(times(), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_the_oracle_finds_the_windows_of_any_time(
    declared: dict[str, str], events: list[int]
) -> None:
    window, different = grid(declared), sorted(set(events))
    assert by_sql(window, different) == by_hand(window, different)
