"""How the advice is chosen and worded."""

import pytest
from unit.small_logs import SECOND, staged, stream

from transforms.grace.advice import Advice, advise, cost, percent, plain
from transforms.grace.report import cells, report, shown, with_graces
from transforms.grace.sweep import GRACE_US, sweep_of
from transforms.lateness.arrival_log import read_log


def steady(*late: tuple[int, float], grace: str = "10s", capacity: int = 1000) -> Advice:
    """Advice on 1,000 rows, one a second; some, given by their place, come late by seconds."""
    behind = dict(late)
    spec = stream(grace=grace, capacity=capacity)
    rows = [(float(s), s + behind.get(s, 0.0)) for s in range(1000)]
    advice = advise(sweep_of(spec, read_log(spec, staged(spec, *rows)), "default"))
    assert advice is not None
    return advice


def late_by(seconds: float, places: range) -> list[tuple[int, float]]:
    return [(place, seconds + 0.5) for place in places]


def test_a_stream_in_order_needs_none_and_keeps_what_it_has_if_that_is_cheap() -> None:
    advice = steady(grace="5s")
    assert "no grace is needed" in advice.words[0]
    assert advice.advised[GRACE_US] == 5 * SECOND
    assert "nothing to change" in advice.words[-1]


def test_the_smallest_grace_that_leaves_few_enough_behind_is_advised() -> None:
    advice = steady(*late_by(60, range(0, 900, 20)), *late_by(200, range(5, 900, 200)))
    assert advice.advised[GRACE_US] == 60 * SECOND
    assert "at most 1 %" in advice.words[0] or "knee" in advice.words[0]


def test_going_there_is_priced() -> None:
    advice = steady(*late_by(60, range(0, 900, 20)))
    assert "fewer dead letters a day" in advice.words[-1]
    assert "later (median)" in advice.words[-1]


def test_the_capacity_is_checked_against_the_measured_peak() -> None:
    advice = steady(*late_by(60, range(0, 900, 20)))
    room = advice.capacity
    assert room.rows >= room.measured
    assert f"capacity {room.rows:,}" in advice.words[1]


def test_nearing_the_grace_in_force_is_a_warning() -> None:
    calm, near, beyond = (
        steady(*late_by(late, range(0, 900, 100))).warnings for late in (2, 9, 60)
    )
    assert calm == []
    assert "nears the grace in force" in near[0]
    assert "beyond the grace in force" in beyond[0]


def test_a_buffer_that_is_too_small_is_a_warning() -> None:
    assert any("want of room" in text for text in steady(grace="10s", capacity=5).warnings)


def test_a_what_if_stands_beside_what_is_in_force() -> None:
    spec = stream()
    log = read_log(spec, staged(spec, *((float(s), float(s)) for s in range(200))))
    found = report(spec, log, tried={"default": 45 * SECOND})
    advice = found.advices[0]
    assert advice.tried is not None
    assert advice.tried[GRACE_US] == 45 * SECOND
    assert advice.words[-1].startswith("tried: from 10s to 45s")
    assert any(cells(advice, point)[-1] == "tried" for point in shown(advice))


def test_a_tried_grace_changes_nothing_else_of_the_spec() -> None:
    spec = stream()
    other = with_graces(spec, {"default": 7})
    assert other.profiles.default.grace_us == 7
    assert with_graces(other, {"default": spec.profiles.default.grace_us}) == spec


def test_the_table_of_a_report_marks_what_each_point_is() -> None:
    spec = stream()
    log = read_log(spec, staged(spec, (100.0, 100.0), (70.0, 101.0)))
    table = report(spec, log).as_table()
    assert table.filter("is_in_force")[GRACE_US].to_list() == [10 * SECOND]
    assert table["is_advised"].sum() == 1


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0s"),
        (90 * SECOND, "90s"),
        (97_600_000, "97.6s"),
        (5400 * SECOND, "90m"),
        (-SECOND, "-1s"),
        (9_123_456_789, "2.53h"),
        (1_234, "1.23ms"),
        (500 * 86400 * SECOND, "500d"),
    ],
)
def test_durations_are_said_plainly(us: int, text: str) -> None:
    assert plain(us) == text


def test_shares_keep_the_digits_that_mean_something() -> None:
    assert [percent(share) for share in (0, 0.0051, 0.5, 1)] == ["0 %", "0.51 %", "50 %", "100 %"]


def test_a_cost_names_both_ends() -> None:
    point = steady().in_force
    assert cost(point, point, 1.0).startswith("from 10s to 10s: 0 more dead letters a day")
