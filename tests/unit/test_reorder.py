"""Reorder by example: one rule of the contract each."""

import polars as pl
import pytest
from unit.small_logs import SECOND, fates, reorder, staged, stream, watermark

from transforms import schemas
from transforms.reorder import advance, earlier_bounds, earlier_spans, empty_state


def test_a_partition_without_rows_changes_nothing() -> None:
    spec = stream()
    before = reorder(spec, (1, 1), (20, 20)).state
    after = reorder(spec, state=before)
    assert after.state.watermarks.equals(before.watermarks)
    assert after.state.held.equals(before.held)
    assert after.ordered.is_empty()


def test_every_frame_has_the_schema_it_is_stored_with() -> None:
    spec = stream(profiles={"by": "link"}, key=["site", "station"], event_id=["n"])
    rows = [
        {"at": (9, 9), "site": "s", "station": "a", "profile": "default", "id_n": "1"},
        {"at": (99, 99), "site": "s", "station": "a", "profile": "default", "id_n": "2"},
        {"at": (9, 99), "site": "s", "station": "a", "profile": "default", "id_n": "3"},
        {"at": (99, 99), "site": "s", "station": "a", "profile": "default", "id_n": "2"},
    ]
    outcome = reorder(spec, *rows)
    assert fates(outcome) == {0: "ordered", 1: "held", 2: "late_closed_window", 3: "duplicate"}
    assert outcome.ordered.schema == schemas.ordered_schema(spec)
    assert outcome.dead_letters.schema == schemas.dead_letter_schema(spec)
    assert outcome.duplicates.schema == schemas.duplicate_schema(spec)
    assert outcome.state.held.schema == schemas.ordered_schema(spec)
    assert outcome.state.watermarks.schema == schemas.watermark_schema()


def test_rows_are_released_by_event_time_and_equal_times_by_their_place_in_the_source() -> None:
    spec = stream(event_id=["n"])
    twins = [{"at": (5, 9), "seq": 7, "id_n": "1"}, {"at": (5, 8), "seq": 9, "id_n": "2"}]
    outcome = reorder(spec, *twins, {"at": (3, 10), "seq": 8, "id_n": "3"}, (16, 20))
    assert outcome.ordered[schemas.SEQ].to_list() == [8, 7, 9]


def test_a_row_on_the_watermark_is_on_time_and_stays_until_it_is_passed() -> None:
    spec = stream(grace="0s", event_id=["n"])
    outcome = reorder(spec, {"at": (20, 21), "id_n": "1"}, {"at": (20, 22), "id_n": "2"})
    assert fates(outcome) == {0: "held", 1: "held"}


def test_a_row_never_makes_itself_late() -> None:
    assert fates(reorder(stream(grace="0s"), (1, 1), (2, 2), (3, 3))) == {
        0: "ordered",
        1: "ordered",
        2: "held",
    }


def test_a_row_behind_the_watermark_is_late_only_for_a_window_that_is_closed() -> None:
    outcome = reorder(stream(), (75, 75), (62, 76), (59, 77))
    assert fates(outcome) == {0: "held", 1: "behind_watermark", 2: "late_closed_window"}
    told = outcome.dead_letters.sort(schemas.SEQ)
    assert told[schemas.WATERMARK_US].to_list() == [65 * SECOND, 65 * SECOND]
    assert told[schemas.LATENESS_US].to_list() == [3 * SECOND, 6 * SECOND]
    assert told[schemas.WINDOWS_MISSED].to_list() == [0, 1]
    assert told[schemas.WINDOWS_TOTAL].to_list() == [1, 1]


def test_a_refused_first_row_has_no_watermark_and_no_lateness() -> None:
    letter = reorder(stream(), (1000, 1)).dead_letters.row(0, named=True)
    assert letter[schemas.REASON] == schemas.FUTURE_TIMESTAMP
    assert letter[schemas.WATERMARK_US] is None
    assert letter[schemas.LATENESS_US] is None
    assert letter[schemas.WINDOWS_MISSED] == 0


def test_the_future_skew_itself_is_accepted_and_a_microsecond_more_is_not() -> None:
    spec = stream(future_skew="5s")
    assert fates(reorder(spec, (6, 1), (6.000001, 1))) == {0: "held", 1: "future_timestamp"}


def test_a_row_from_the_future_moves_neither_the_watermark_nor_the_state() -> None:
    outcome = reorder(stream(), (1000, 1))
    assert outcome.state.watermarks.is_empty()


def test_a_row_that_cannot_be_read_moves_the_watermark_but_is_never_ordered() -> None:
    outcome = reorder(stream(), {"at": (30, 30), "unreadable": '{"level":"n/a"}'}, (15, 31))
    assert fates(outcome) == {0: "invalid_value", 1: "behind_watermark"}
    assert watermark(outcome) == 20


def test_a_row_is_late_when_a_newer_one_of_its_key_came_before_also_in_an_earlier_partition() -> (
    None
):
    spec = stream()
    first = reorder(spec, (30, 30), (25, 31), {"at": (20, 32), "key": "b"})
    late = dict(first.state.held.select(schemas.SEQ, schemas.IS_LATE).iter_rows())
    assert late == {0: False, 1: True, 2: False}
    second = reorder(spec, {"at": (26, 33), "seq": 3}, (90, 90), state=first.state)
    late = dict(second.ordered.select(schemas.SEQ, schemas.IS_LATE).iter_rows())
    assert late == {0: False, 1: True, 3: True}


def test_each_link_has_its_own_grace() -> None:
    patient = {"grace": "10m", "idle_timeout": "off", "capacity": 10, "future_skew": "5m"}
    spec = stream(grace="5s", profiles={"key_map": {"s": "satellite"}, "satellite": patient})
    rows = [{"at": at, "key": key} for at in ((2, 3), (68, 69), (31, 70)) for key in "as"]
    told = fates(reorder(spec, *rows))
    assert [told[seq] for seq in (0, 2, 4)] == ["ordered", "held", "late_closed_window"]
    assert [told[seq] for seq in (1, 3, 5)] == ["held", "held", "held"]


def test_rows_out_of_arrival_order_are_refused_as_a_whole() -> None:
    spec = stream()
    backwards = staged(spec, (1, 1), (2, 2)).reverse()
    with pytest.raises(ValueError, match="arrival order"):
        advance(spec, backwards, empty_state(spec), schemas.row_schema(spec).to_frame(), None)


def test_earlier_rows_matter_in_the_range_of_plausible_event_times() -> None:
    spec = stream(future_skew="5s")
    assert earlier_bounds(spec, staged(spec, (3, 9), (7, 9), (99, 9))) == (3 * SECOND, 7 * SECOND)
    assert earlier_bounds(stream(event_id=["n"]), staged(spec, (3, 9))) is None


def test_earlier_rows_matter_as_far_as_the_dedup_horizon_reaches() -> None:
    spec = stream(event_id=["n"], dedup_horizon="2s")
    assert earlier_bounds(spec, staged(spec, (3, 9), (7, 9))) == (SECOND, 9 * SECOND)


def test_a_few_rows_that_lie_by_years_do_not_call_for_the_years_between() -> None:
    spec = stream()
    year = 365 * 86_400
    log = staged(spec, (1, year), (2, year), (year - 9, year), (year - 3, year))
    whole = (SECOND, (year - 3) * SECOND)
    assert earlier_bounds(spec, log) == whole
    assert earlier_spans(spec, log) == ((SECOND, 2 * SECOND), ((year - 9) * SECOND, whole[1]))


def test_no_earlier_row_matters_where_no_row_can_be_compared() -> None:
    spec = stream(future_skew="5s")
    low, high = earlier_bounds(spec, staged(spec, (99, 9))) or (0, 0)
    assert low > high


def test_the_ends_of_int64_are_times_like_others() -> None:
    spec = stream(future_skew="0s")
    lowest, highest = -(2**63), 2**63 - 1
    schema = schemas.staged_schema(spec)
    times = [(0, lowest, 0), (1, 5, 6), (2, highest, highest), (3, lowest, highest)]
    rows = [
        {"seq": seq, "key": "a", "event_us": event, "arrival_us": arrival, "level": 1.0}
        for seq, event, arrival in times
    ]
    frame = pl.DataFrame(rows, schema={n: t for n, t in schema.items() if n in rows[0]})
    nulls = [pl.lit(None, schema[name]).alias(name) for name in schema if name not in rows[0]]
    log = frame.with_columns(nulls).select(list(schema))
    nothing = schemas.row_schema(spec).to_frame()
    outcome = advance(spec, log, empty_state(spec), nothing, None)
    assert {seq: fate for seq, fate in fates(outcome).items() if seq < 3} == {
        0: "ordered",
        1: "ordered",
        2: "held",
    }
    assert fates(outcome)[3] == "duplicate"
