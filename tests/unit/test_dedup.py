"""Identity and content by example."""

from typing import Any

import polars as pl
import pytest
from unit.small_logs import SECOND, fates, reorder, stream

from transforms import schemas

READ, UNREAD = None, '{"level":"n/a"}'


def test_the_same_reading_sent_twice_counts_once_whenever_the_copy_comes() -> None:
    outcome = reorder(stream(), (6, 7), (6, 20), (80, 81), (6, 95))
    assert fates(outcome) == {0: "ordered", 1: "duplicate", 2: "held", 3: "duplicate"}
    assert outcome.duplicates[schemas.DUPLICATE_OF_SEQ].to_list() == [0, 0]


def test_another_content_under_the_same_identity_is_a_conflict_and_the_first_row_stays() -> None:
    outcome = reorder(stream(), (6, 7), {"at": (6, 8), "level": 9.0})
    assert fates(outcome) == {0: "held", 1: "conflicting_duplicate"}


def test_a_carried_column_is_content() -> None:
    rows = [{"at": (6, came), "firmware": firmware} for came, firmware in ((7, "x"), (8, "y"))]
    assert fates(reorder(stream(), *rows)) == {0: "held", 1: "conflicting_duplicate"}


def test_no_reading_is_no_reading_be_it_null_or_nan() -> None:
    rows = [{"at": (6, 7), "level": None}, {"at": (6, 8), "level": float("nan")}]
    assert fates(reorder(stream(), *rows)) == {0: "held", 1: "duplicate"}


def test_a_value_that_cannot_be_read_is_like_no_other_not_even_like_null() -> None:
    rows = [
        {"at": (6, 7), "level": None},
        {"at": (6, 8), "level": None, "unreadable": UNREAD},
    ]
    assert fates(reorder(stream(), *rows)) == {0: "held", 1: "conflicting_duplicate"}


def test_a_refused_row_counts_nowhere_and_so_blocks_nobody() -> None:
    rows: list[Any] = [
        {"at": (6, 7), "level": None, "unreadable": UNREAD},
        (6, 8),
        {"at": (6, 9), "level": 2.0},
        (6, 10),
    ]
    assert fates(reorder(stream(), *rows)) == {
        0: "invalid_value",
        1: "held",
        2: "conflicting_duplicate",
        3: "duplicate",
    }


def test_a_row_from_the_future_blocks_nobody() -> None:
    assert fates(reorder(stream(future_skew="5s"), (20, 1), (20, 20))) == {
        0: "future_timestamp",
        1: "held",
    }


@pytest.mark.parametrize("late", [62, 30])
def test_a_late_row_that_counts_is_a_first_for_its_copies(late: float) -> None:
    outcome = reorder(stream(), (75, 75), (late, 76), (late, 77))
    assert fates(outcome)[2] == "duplicate"
    assert outcome.duplicates[schemas.DUPLICATE_OF_SEQ].to_list() == [1]


def test_a_row_without_room_is_a_first_for_its_copies() -> None:
    told = fates(reorder(stream(capacity=1), (30, 31), (25, 32), (25, 33)))
    assert told == {0: "held", 1: "buffer_overflow", 2: "duplicate"}


def test_a_duplicate_is_found_in_the_lake_and_among_the_held_rows() -> None:
    spec = stream()
    before = reorder(spec, (6, 7), (30, 31))
    lake = before.ordered.select(schemas.row_columns(spec))
    copies = [{"at": (6, 40), "seq": 5}, {"at": (30, 41), "seq": 6}]
    after = reorder(spec, *copies, state=before.state, earlier=lake)
    assert after.duplicates[schemas.DUPLICATE_OF_SEQ].to_list() == [0, 1]


def test_a_copy_is_no_sign_of_life_and_moves_nothing() -> None:
    spec = stream(idle_timeout="1m")
    outcome = reorder(spec, (5, 6), (5, 50), until=66)
    assert outcome.state.watermarks[schemas.LAST_ARRIVAL_US].to_list() == [6 * SECOND]


def test_a_declared_counter_is_the_identity_within_its_key() -> None:
    rows = [
        {"at": (6, 7), "id_n": "41"},
        {"at": (6, 8), "id_n": "42"},
        {"at": (6, 9), "id_n": "41"},
        {"at": (6, 10), "id_n": "41", "key": "b"},
        {"at": (7, 11), "id_n": "42"},
    ]
    assert fates(reorder(stream(event_id=["n"]), *rows)) == {
        0: "held",
        1: "held",
        2: "duplicate",
        3: "held",
        4: "conflicting_duplicate",
    }


def test_where_a_part_of_the_identity_is_null_it_is_key_and_event_time() -> None:
    rows = [{"at": at, "id_n": n} for at, n in (((6, 7), None), ((7, 8), None), ((6, 9), None))]
    with_counter = {"at": (6, 10), "id_n": "1"}
    told = fates(reorder(stream(event_id=["n"]), *rows, with_counter))
    assert told == {0: "held", 1: "held", 2: "duplicate", 3: "held"}


def test_a_counter_that_starts_again_is_compared_only_within_the_horizon() -> None:
    spec = stream(event_id=["n"], dedup_horizon="10s", grace="1h")
    rows = [{"at": at, "id_n": "1"} for at in ((0, 1), (10, 11), (10.000001, 12), (0, 13))]
    outcome = reorder(spec, *rows)
    assert fates(outcome) == {0: "held", 1: "conflicting_duplicate", 2: "held", 3: "duplicate"}


def test_within_the_horizon_the_first_row_that_counts_is_the_one_compared_with() -> None:
    spec = stream(event_id=["n"], dedup_horizon="10s", grace="1h")
    rows = [{"at": at, "id_n": "1"} for at in ((0, 21), (15, 22), (8, 23), (24, 24))]
    told = fates(reorder(spec, *rows))
    assert told == {
        0: "held",
        1: "held",
        2: "conflicting_duplicate",
        3: "conflicting_duplicate",
    }


def test_a_carried_column_can_be_part_of_the_identity() -> None:
    rows = [{"at": (6, came), "firmware": name} for came, name in ((7, "x"), (8, "y"), (9, "x"))]
    told = fates(reorder(stream(event_id=["at", "firmware"]), *rows))
    assert told == {0: "held", 1: "held", 2: "duplicate"}


def test_a_key_the_partition_does_not_know_is_passed_over_in_the_lake() -> None:
    spec = stream()
    lake = reorder(spec, {"at": (6, 7), "key": "z"}).state.held.select(schemas.row_columns(spec))
    assert fates(reorder(spec, (6, 8), earlier=pl.concat([lake, lake]))) == {0: "held"}
