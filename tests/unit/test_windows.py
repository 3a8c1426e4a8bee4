"""Which rows count in which windows, and when a window is published."""

from typing import Any

import polars as pl
import pytest
from plain_windows import MINUTE_US, Row, frame, instant, stream

from transforms.schemas import window_schema
from transforms.windowing import groups
from transforms.windows import (
    assign,
    counted_rows,
    event_range,
    first_publications,
    missed_and_total,
    row_range,
)

SECOND = 1_000_000
MINUTE = {"name": "minute", "every": "1m"}
TEN = {"name": "ten", "every": "10m"}
HOP = {"name": "hop", "every": "30s", "length": "1m"}


def state(**watermarks: int | None) -> pl.DataFrame:
    """Watermarks in seconds."""
    reached = [None if at is None else at * SECOND for at in watermarks.values()]
    columns = {"key": list(watermarks), "watermark_us": reached}
    return pl.DataFrame(columns, schema={"key": pl.String, "watermark_us": pl.Int64})


def row(seconds: float, seq: int = 0, **facts: Any) -> Row:
    return Row(facts.pop("key", "A"), int(seconds * SECOND), seq, 7, {"level": 1.0}, **facts)


def refused(seconds: float, met: int | None, seq: int = 0) -> Row:
    at = None if met is None else met * SECOND
    return row(seconds, seq, is_dead_letter=True, refused_at_us=at)


def brief(found: pl.DataFrame) -> list[tuple[str, str, int, int]]:
    """Window, key, start in seconds, rows counted."""
    start = pl.col("window_start_us") // SECOND
    return found.select("window", "key", start, "event_count").rows()


def test_a_window_is_due_when_the_watermark_reaches_its_end() -> None:
    spec = stream(MINUTE)
    rows = frame(spec, [row(5), row(60, 1)])
    just_before = state(A=60).with_columns(pl.col("watermark_us") - 1)
    assert first_publications(spec, rows, None, just_before).is_empty()
    assert brief(first_publications(spec, rows, None, state(A=60))) == [("minute", "A", 0, 1)]
    assert brief(first_publications(spec, rows, just_before, state(A=60))) == [
        ("minute", "A", 0, 1)
    ]
    assert first_publications(spec, rows, state(A=60), state(A=119)).is_empty()


def test_each_key_has_its_own_watermark() -> None:
    spec = stream(MINUTE)
    rows = frame(spec, [row(5, 0), row(5, 1, key="B"), row(5, 2, key="C"), row(5, 3, key="D")])
    found = first_publications(spec, rows, state(A=60, B=10), state(A=70, B=60, C=None))
    assert brief(found) == [("minute", "B", 0, 1)]


def test_a_row_counts_in_the_windows_that_it_finds_open() -> None:
    spec = stream(HOP)
    rows = frame(spec, [row(12, 0), row(80, 1), refused(45, 70, 2)])
    found = first_publications(spec, rows, None, state(A=200))
    assert brief(found) == [
        ("hop", "A", -30, 1),
        ("hop", "A", 0, 1),
        ("hop", "A", 30, 2),
        ("hop", "A", 60, 1),
    ]
    assert found.get_column("dead_letter_count").to_list() == [0, 0, 1, 0]
    assert found.get_column("dead_letter_fraction").to_list() == [0.0, 0.0, 0.5, 0.0]


def test_a_window_closes_when_the_watermark_is_at_its_end() -> None:
    spec = stream(MINUTE)
    at_the_end, before = frame(spec, [refused(5, 60)]), frame(spec, [refused(5, 59)])
    assert first_publications(spec, at_the_end, None, state(A=99)).is_empty()
    assert first_publications(spec, before, None, state(A=99)).height == 1


def test_a_dead_letter_that_met_no_watermark_found_all_open() -> None:
    spec = stream(MINUTE)
    assert first_publications(spec, frame(spec, [refused(5, None)]), None, state(A=60)).height == 1


def test_a_window_that_only_late_rows_reach_is_left_to_reconciliation() -> None:
    spec = stream(MINUTE)
    rows = frame(spec, [refused(70, 120), row(130, 1)])
    assert first_publications(spec, rows, None, state(A=120)).is_empty()


def test_windows_come_in_the_order_of_the_spec_by_key_and_start() -> None:
    spec = stream({"name": "z", "every": "1m"}, {"name": "a", "every": "20s", "length": "40s"})
    rows = frame(spec, [row(65, 0, key="B"), row(5, 1, key="B"), row(65, 2, key="A")])
    found = first_publications(spec, rows, None, state(A=999, B=999))
    assert [brief_row[:3] for brief_row in brief(found)] == [
        ("z", "A", 60),
        ("z", "B", 0),
        ("z", "B", 60),
        ("a", "A", 40),
        ("a", "A", 60),
        ("a", "B", -20),
        ("a", "B", 0),
        ("a", "B", 40),
        ("a", "B", 60),
    ]


@pytest.mark.parametrize("piece", [1, 2, 3, 4])
def test_no_cut_into_pieces_parts_a_window(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = stream(MINUTE, HOP)
    rows = [
        row(at, n, key=key)
        for n, at in enumerate((0, 30, 60, 60, 61, 90, 120, 121))
        for key in "AB"
    ]
    expected = first_publications(spec, frame(spec, rows), None, state(A=999, B=999))
    monkeypatch.setattr(groups, "PIECE_ROWS", piece)
    assert first_publications(spec, frame(spec, rows), None, state(A=999, B=999)).equals(expected)


def test_a_flush_publishes_what_is_open_and_says_so() -> None:
    spec = stream(MINUTE)
    rows = frame(spec, [row(5), row(65, 1), row(125, 2), row(5, 3, key="B")])
    found = first_publications(spec, rows, state(A=60), state(A=120, B=None), flush=True)
    reasons = found.select("key", pl.col("window_start_us") // SECOND, "reason").rows()
    assert reasons == [("A", 60, "closed"), ("A", 120, "flush"), ("B", 0, "flush")]
    assert found.get_column("revision").to_list() == [0, 0, 0]


def test_no_rows_give_no_windows() -> None:
    spec = stream(MINUTE, HOP)
    found = first_publications(spec, frame(spec, []), None, state(A=60))
    assert found.schema == window_schema(spec)
    assert found.is_empty()


def test_windows_missed_and_in_all_are_counted_over_all_kinds() -> None:
    spec = stream(MINUTE, TEN, HOP)
    event = pl.Series([50 * SECOND] * 5, dtype=pl.Int64)
    watermark = pl.Series([59, 60, 90, 600, None], dtype=pl.Int64) * SECOND
    found = missed_and_total(spec, event, watermark)
    assert found.get_column("windows_missed").to_list() == [0, 2, 3, 4, 0]
    assert found.get_column("windows_total").to_list() == [4] * 5
    assert missed_and_total(spec, event[:0], watermark[:0]).is_empty()


def test_only_dead_letters_refused_for_time_or_room_count() -> None:
    spec = stream(MINUTE)
    rows = frame(spec, [row(n, n) for n in range(6)])
    rows = rows.drop("is_dead_letter", "refused_at_us")
    reasons = [
        *("behind_watermark", "late_closed_window", "buffer_overflow"),
        *("future_timestamp", "conflicting_duplicate", "invalid_value"),
    ]
    letters = rows.with_columns(reason=pl.Series(reasons), watermark_us=pl.lit(9, pl.Int64))
    found = counted_rows(rows.clear(), letters)
    assert found.get_column("seq").to_list() == [0, 1, 2]
    assert found.get_column("is_dead_letter").all()
    assert found.get_column("refused_at_us").to_list() == [9, 9, 9]
    nothing = counted_rows(rows, letters.clear())
    assert nothing.get_column("refused_at_us").null_count() == 6


def test_counted_rows_are_in_order_whatever_came() -> None:
    spec = stream(MINUTE)
    names = ("is_dead_letter", "refused_at_us")
    ordered = frame(spec, [row(9, 4, key="B"), row(9, 3), row(9, 1), row(8, 7)]).drop(names)
    letters = frame(spec, [row(9, 2), row(1, 0, key="C"), row(0, 9, key="A")]).drop(names)
    letters = letters.with_columns(
        reason=pl.lit("buffer_overflow"), watermark_us=pl.lit(None, pl.Int64)
    )
    found = counted_rows(ordered, letters).select("key", "seq").rows()
    assert found == [("A", 9), ("A", 7), ("A", 1), ("A", 2), ("A", 3), ("B", 4), ("C", 0)]


def test_rows_are_assigned_once_to_each_window_that_holds_them() -> None:
    spec = stream({"name": "hop", "every": "700ms", "length": "1600ms"})
    at = instant("2026-05-04T00:00:03.21Z")
    rows = frame(spec, [Row("A", at, 0, 7, {})])
    found = assign(spec.windows[0], rows).sort("window_start_us")
    ends = [instant("2026-05-04T00:00:03.5Z"), instant("2026-05-04T00:00:04.2Z")]
    assert found.select("window", "window_end_us").rows() == [("hop", end) for end in ends]


@pytest.mark.parametrize(
    ("before", "after", "flush", "expected"),
    [
        (None, {"A": 60}, False, [("A", None, 60)]),
        ({"A": 60}, {"A": 90}, False, [("A", -540, 90)]),
        ({"A": 60}, {"A": 60}, False, []),
        ({"A": None}, {"A": None}, False, []),
        ({"A": 60}, {"A": 60, "B": 5}, False, [("B", None, 5)]),
        ({"A": 60}, {"A": 60}, True, [("A", -540, None)]),
    ],
)
def test_the_rows_that_due_windows_need(
    before: dict[str, int] | None, after: dict[str, int], *, flush: bool, expected: list[Any]
) -> None:
    earlier = None if before is None else state(**before)
    found = row_range(stream(MINUTE, TEN), earlier, state(**after), flush=flush)
    bounds = [
        tuple(x if isinstance(x, str) else None if abs(x) > 2**62 else x // SECOND for x in each)
        for each in found.rows()
    ]
    assert bounds == expected


def test_the_row_that_opens_the_first_due_window_is_needed_and_no_earlier_one() -> None:
    just_before = state(A=60).with_columns(pl.col("watermark_us") - 1)
    found = row_range(stream(MINUTE), just_before, state(A=60))
    assert found.rows() == [("A", 0, 60 * SECOND)]


def test_the_windows_of_an_event_partition_hold_rows_beyond_its_end() -> None:
    assert event_range(stream(MINUTE, TEN), 0, 60 * MINUTE_US) == (0, 70 * MINUTE_US)
