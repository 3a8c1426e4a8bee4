"""The watermark by example: grace, idle steps, the frontier, what is carried."""

import pytest
from unit.small_logs import SECOND, fates, reorder, stream, watermark

from transforms import schemas

PATIENT = {"grace": "30s", "idle_timeout": "5m", "capacity": 10, "future_skew": "5m"}


def test_the_watermark_is_the_newest_event_time_less_the_grace() -> None:
    assert watermark(reorder(stream(), (30, 30), (50, 50), (45, 51))) == 40


def test_a_fast_key_does_not_hurry_a_slow_one() -> None:
    outcome = reorder(stream(), (5, 6), {"at": (500, 500), "key": "b"})
    assert watermark(outcome, "a") == -5
    assert watermark(outcome, "b") == 490


def test_a_silence_that_reaches_the_timeout_moves_the_watermark() -> None:
    spec = stream(grace="15s", idle_timeout="2m")
    assert watermark(reorder(spec, (20, 22), until=142)) == 7
    assert watermark(reorder(spec, (20, 22), until=141.999999)) == 5


def test_a_frontier_in_the_past_moves_nothing() -> None:
    spec = stream(grace="15s", idle_timeout="2m")
    assert watermark(reorder(spec, (315, 316), until=200)) == 300


def test_a_silent_key_is_judged_after_its_silence() -> None:
    outcome = reorder(stream(idle_timeout="1m"), (7, 8), (25, 260))
    assert fates(outcome) == {0: "ordered", 1: "late_closed_window"}
    assert watermark(outcome) == 190


def test_the_idle_step_comes_before_a_row_whatever_becomes_of_it() -> None:
    spec = stream(idle_timeout="1m")
    assert watermark(reorder(spec, (5, 6), (5, 100))) == 30
    assert watermark(reorder(spec, (5, 6), (9000, 100))) == 30


def test_rows_from_the_future_are_no_sign_of_life() -> None:
    outcome = reorder(stream(idle_timeout="1m"), (5, 6), (9000, 50), (9001, 110), until=200)
    assert watermark(outcome) == 130


def test_a_key_silent_for_a_whole_partition_still_takes_the_step_and_releases() -> None:
    spec = stream(idle_timeout="1m")
    before = reorder(spec, (5, 6))
    assert before.state.held.height == 1
    after = reorder(spec, state=before.state, until=100)
    assert watermark(after) == 30
    assert after.ordered[schemas.SEQ].to_list() == [0]


def test_a_backlog_is_judged_by_its_arrivals_not_by_when_it_is_read() -> None:
    spec = stream(idle_timeout="1m")
    assert watermark(reorder(spec, (95, 96), (96, 97), (97, 98))) == 87


def test_the_watermark_does_not_fall_when_grace_grows() -> None:
    before = reorder(stream(grace="10s"), (60, 60))
    after = reorder(stream(grace="1h"), (61, 61), state=before.state)
    assert watermark(after) == 50


def test_a_smaller_grace_acts_from_the_next_row_on() -> None:
    before = reorder(stream(grace="1h"), (60, 60))
    assert watermark(before) == 60 - 3600
    idle = reorder(stream(grace="1s"), state=before.state)
    assert watermark(idle) == 60 - 3600
    after = reorder(stream(grace="1s"), (50, 61), state=before.state)
    assert watermark(after) == 49


def test_the_silence_of_a_key_is_measured_by_the_profile_of_its_newest_moving_row() -> None:
    spec = stream(idle_timeout="1m", profiles={"by": "link", "slow": PATIENT})
    rows = [{"at": (5, 6), "profile": "slow"}, {"at": (66, 67), "profile": "default"}]
    assert watermark(reorder(spec, *rows)) == 56
    assert watermark(reorder(spec, rows[0], until=300)) == -25
    assert watermark(reorder(spec, *rows, until=127)) == 57


def test_a_profile_that_is_declared_no_more_is_served_by_default() -> None:
    spec = stream(profiles={"by": "link", "slow": PATIENT})
    before = reorder(spec, {"at": (5, 6), "profile": "slow"})
    assert before.state.watermarks[schemas.PROFILE].to_list() == ["slow"]
    now = stream(idle_timeout="1m", profiles={"by": "link"})
    assert watermark(reorder(now, state=before.state, until=100)) == 30


@pytest.mark.parametrize("rows", [[(5, 6), (3, 7)], [(5, 6), (5, 7)]])
def test_the_state_knows_the_newest_event_of_a_key(rows: list[tuple[float, float]]) -> None:
    state = reorder(stream(), *rows).state
    assert state.watermarks[schemas.MAX_EVENT_US].to_list() == [5 * SECOND]


def test_a_key_is_in_the_state_once_it_has_had_a_moving_row() -> None:
    rows = [{"at": (9000, 1), "key": "a"}, {"at": (1, 2), "key": "b", "unreadable": "{}"}]
    assert reorder(stream(), *rows).state.watermarks[schemas.KEY].to_list() == ["b"]
