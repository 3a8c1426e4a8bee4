"""Windows on random rows: they equal the plain oracle, for every grid and statistic, to the bit."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import plain_windows
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_windows import DAY_US, MINUTE_US, Row, frame, instant, stream

from transforms.spec import StreamSpec
from transforms.windowing import groups
from transforms.windows import counted_rows, first_publications, missed_and_total, row_range

NASTY = settings(max_examples=30, deadline=None)
KEYS = ("a", "b", "ü")

FIXED = (
    {"name": "w", "every": "1m"},
    {"name": "w", "every": "20s", "length": "1m"},
    {"name": "w", "every": "700ms", "length": "1600ms"},
    {"name": "w", "every": "7s", "origin": "2026-03-29T00:00:02.5Z"},
    {"name": "w", "every": "1d"},
)
CALENDAR = (
    {"name": "w", "every": "1d", "zone": "Europe/Berlin"},
    {"name": "w", "every": "1d", "zone": "America/St_Johns"},
    {"name": "w", "every": "1d", "zone": "America/Sao_Paulo"},
    {"name": "w", "every": "1d", "length": "3d", "zone": "America/Havana"},
    {"name": "w", "every": "2d", "length": "3d", "zone": "Pacific/Apia"},
    {"name": "w", "every": "1w"},
    {"name": "w", "every": "2w", "zone": "Asia/Kolkata"},
    {"name": "w", "every": "1w", "length": "4w"},
    {"name": "w", "every": "1mo", "zone": "Africa/Cairo"},
    {"name": "w", "every": "1mo", "length": "3mo"},
    {"name": "w", "every": "1q", "zone": "Asia/Beirut"},
    {"name": "w", "every": "1y"},
)
CLOCK = (
    {"name": "w", "every": "1h", "zone": "Europe/Berlin"},
    {"name": "w", "every": "1h", "zone": "Asia/Kathmandu"},
    {"name": "w", "every": "1h", "zone": "Australia/Lord_Howe"},
    {"name": "w", "every": "15m", "zone": "America/St_Johns"},
    {"name": "w", "every": "20m", "zone": "America/Sao_Paulo"},
)
GRIDS = (*FIXED, *CALENDAR, *CLOCK)

# Instants at which clocks change, days are skipped, and years and eras begin.
EDGES = tuple(
    instant(text)
    for text in (
        *("1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "2026-01-01T00:00:00Z"),
        *("2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "2024-02-29T12:00:00Z"),
        *("2007-03-11T03:31:00Z", "2006-10-29T02:31:00Z"),  # 00:01 in St. John's
        *("2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z"),  # midnight in Sao Paulo
        *("2024-11-03T05:00:00Z", "2024-03-10T05:00:00Z"),  # Havana
        *("2011-12-30T10:00:00Z", "2025-10-04T15:30:00Z", "2026-04-04T15:00:00Z"),
    )
)
ALL = (*plain_windows.STATISTICS, "p0", "p50", "p99.9", "p100")
AGGREGATES = dict.fromkeys(plain_windows.VALUES, ALL)


def event_times() -> st.SearchStrategy[int]:
    near = st.sampled_from([0, -1, 1, MINUTE_US, -MINUTE_US, 30 * MINUTE_US])
    far = st.integers(-2 * DAY_US, 2 * DAY_US) | st.integers(-3_000_000, 3_000_000)
    return st.builds(int.__add__, st.sampled_from(EDGES), near | far)


def readings() -> st.SearchStrategy[dict[str, Any]]:
    finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200)
    nasty = st.sampled_from([1e16, 1.0, -1e16, 0.1, 1e-320, None, math.nan])
    return st.fixed_dictionaries(
        {
            "level": finite.map(lambda x: x + 0.0) | nasty,
            "pulses": st.none() | st.integers(-(2**56), 2**56),
            "on": st.none() | st.booleans(),
            "cost": st.none() | st.integers(-(10**19), 10**19).map(_cents),
        }
    )


def _cents(number: int) -> Any:
    return plain_windows.money(f"{number // 100}.{number % 100:02d}")


@st.composite
def rows(draw: st.DrawFn, most: int = 25) -> list[Row]:
    """Draw counted rows in any order; some are dead letters that met a watermark."""
    base = draw(event_times())
    times = st.integers(base - 90_000_000, base + 90_000_000) | event_times() | st.just(base)
    size = draw(st.integers(0, most))
    seqs = draw(st.permutations(range(size)))
    return [_draw_row(draw, seq, draw(times)) for seq in seqs]


def _draw_row(draw: st.DrawFn, seq: int, event_us: int) -> Row:
    row = Row(
        key=draw(st.sampled_from(KEYS)),
        event_us=event_us,
        seq=seq,
        arrival_us=draw(st.integers(0, 9)),
        values=draw(readings()),
        is_late=draw(st.booleans()),
    )
    if draw(st.integers(0, 3)):
        return row
    ahead = draw(st.none() | st.integers(-MINUTE_US, 2 * DAY_US))
    met = None if ahead is None else event_us + ahead
    return replace(row, is_dead_letter=True, refused_at_us=met)


def watermarks(reached: Mapping[str, int | None]) -> pl.DataFrame:
    """Return the state; a key may be in it though it has not reached anything."""
    return pl.DataFrame(
        {"key": list(reached), "watermark_us": list(reached.values())},
        schema={"key": pl.String, "watermark_us": pl.Int64},
    )


def reached_by(draw: st.DrawFn, drawn: list[Row]) -> dict[str, int | None]:
    """Draw where the watermark of each key stands: around its rows, nowhere, or far ahead."""
    ahead = st.none() | st.sampled_from([0, MINUTE_US, 3 * DAY_US, 500 * DAY_US])
    stands: dict[str, int | None] = {}
    for key in sorted({row.key for row in drawn}):
        distance = draw(ahead)
        event = draw(st.sampled_from([row.event_us for row in drawn if row.key == key]))
        stands[key] = None if distance is None else event + distance
    return stands


def assert_same(found: pl.DataFrame, expected: list[dict[str, Any]]) -> None:
    """Compare to the bit: a float equals only itself."""
    names = list(expected[0]) if expected else []
    assert found.height == len(expected)
    records = found.select(names).to_dicts()
    for record, wanted in zip(records, expected, strict=True):
        assert {k: _bits(v) for k, v in record.items()} == {k: _bits(v) for k, v in wanted.items()}


def _bits(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


@pytest.mark.parametrize("window", GRIDS, ids=lambda w: "-".join(w.values()))
def test_first_publications_are_those_of_the_oracle(window: dict[str, str]) -> None:
    spec = stream(window, aggregates={"level": ["sum"]})

    @settings(max_examples=10, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        drawn = data.draw(rows())
        before, after = (reached_by(data.draw, drawn) for _ in range(2))
        found = first_publications(spec, frame(spec, drawn), watermarks(before), watermarks(after))
        assert_same(found, plain_windows.published(spec, drawn, before, after))

    check()


@NASTY
@given(st.data())
def test_every_statistic_of_every_type_is_that_of_the_oracle(data: st.DataObject) -> None:
    spec = stream(*FIXED[:1], aggregates=AGGREGATES)
    drawn = data.draw(rows())
    after = {row.key: row.event_us + DAY_US * 9999 for row in drawn}
    found = first_publications(spec, frame(spec, drawn), None, watermarks(after))
    assert_same(found, plain_windows.published(spec, drawn, {}, after))


@NASTY
@given(st.data())
def test_neither_the_order_of_rows_nor_the_cut_into_pieces_changes_a_bit(
    data: st.DataObject,
) -> None:
    spec = stream(*(w | {"name": f"w{i}"} for i, w in enumerate(GRIDS[:7])), aggregates=AGGREGATES)
    drawn = data.draw(rows())
    after = watermarks(reached_by(data.draw, drawn))
    expected = first_publications(spec, frame(spec, drawn), None, after)
    shuffled = data.draw(st.permutations(drawn))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "PIECE_ROWS", data.draw(st.integers(1, 5)))
        found = first_publications(spec, frame(spec, shuffled), None, after)
    assert found.equals(expected)


@NASTY
@given(st.data(), st.sampled_from(GRIDS))
def test_windows_are_published_once_however_the_watermark_gets_there(
    data: st.DataObject, window: dict[str, str]
) -> None:
    spec = stream(window, aggregates={"level": ["mean"]})
    drawn = data.draw(rows())
    stops = [reached_by(data.draw, drawn) for _ in range(3)]
    steps = _never_falling(stops)
    counted = frame(spec, drawn)
    whole = first_publications(spec, counted, None, watermarks(steps[-1]))
    parts = [
        first_publications(spec, _pruned(spec, counted, before, after), before, after)
        for before, after in pairwise([None, *map(watermarks, steps)])
    ]
    assert pl.concat(parts).sort("key", "window_start_us").equals(whole)


def _never_falling(stops: list[dict[str, int | None]]) -> list[dict[str, int | None]]:
    steps: list[dict[str, int | None]] = []
    for stop in stops:
        last = steps[-1] if steps else {}
        known = {key: [at for at in (last.get(key), stop[key]) if at is not None] for key in stop}
        steps.append({key: max(ats) if ats else None for key, ats in known.items()})
    return steps


def _pruned(
    spec: StreamSpec, counted: pl.DataFrame, before: pl.DataFrame | None, after: pl.DataFrame
) -> pl.DataFrame:
    """Leave out all rows that ``row_range`` says are not needed."""
    ranges = row_range(spec, before, after)
    needed = counted.join(ranges, on="key").filter(
        pl.col("event_us") >= pl.col("from_us"), pl.col("event_us") < pl.col("until_us")
    )
    return needed.select(counted.columns)


@NASTY
@given(st.data())
def test_a_flush_publishes_all_that_is_open(data: st.DataObject) -> None:
    spec = stream(FIXED[1], CALENDAR[0] | {"name": "day"}, aggregates={"level": ["mean"]})
    drawn = data.draw(rows())
    after = reached_by(data.draw, drawn)
    counted = frame(spec, drawn)
    found = first_publications(spec, counted, None, watermarks(after), flush=True)
    everything = {row.key: 2**62 for row in drawn}
    assert_same(found, plain_windows.published(spec, drawn, {}, everything))
    closed = found.filter(pl.col("reason") == "closed")
    assert closed.equals(first_publications(spec, counted, None, watermarks(after)))


@NASTY
@given(st.data())
def test_windows_missed_and_in_all_are_those_of_the_oracle(data: st.DataObject) -> None:
    spec = stream(*(window | {"name": f"w{n}"} for n, window in enumerate(GRIDS)))
    event = data.draw(event_times())
    watermark = data.draw(st.none() | st.integers(-3 * DAY_US, 3 * DAY_US).map(event.__add__))
    found = missed_and_total(
        spec, pl.Series([event], dtype=pl.Int64), pl.Series([watermark], dtype=pl.Int64)
    )
    ends = [end for window in spec.windows for _, end in plain_windows.windows_of(window, event)]
    missed = sum(watermark is not None and end <= watermark for end in ends)
    assert found.row(0) == (missed, len(ends))


@NASTY
@given(rows(40), st.data())
def test_counted_rows_are_ordered_rows_and_dead_letters_in_order(
    drawn: list[Row], data: st.DataObject
) -> None:
    spec = stream(*FIXED[:1])
    counted = frame(spec, drawn)
    dead = pl.col("is_dead_letter")
    ordered = counted.filter(~dead).drop("is_dead_letter", "refused_at_us")
    reasons = data.draw(st.sampled_from(["behind_watermark", "late_closed_window"]))
    letters = counted.filter(dead).drop("is_dead_letter").rename({"refused_at_us": "watermark_us"})
    letters = letters.with_columns(reason=pl.lit(reasons))
    found = counted_rows(ordered, letters)
    assert found.equals(counted.sort("key", "event_us", "seq"))
