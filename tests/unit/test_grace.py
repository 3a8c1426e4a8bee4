"""What a sweep over graces says, one idea a test. Times are in seconds."""

from typing import Any

import polars as pl
import pytest
from unit.small_logs import SECOND, staged, stream

from transforms.grace.sweep import (
    AMENDED,
    BEHIND_FRACTION,
    CURVE,
    DELAY_MEDIAN_US,
    FIRST_BY_LATE,
    GRACE_US,
    PEAK_ROWS,
    Sweep,
    candidates,
    knee,
    sweep_of,
)
from transforms.lateness.arrival_log import read_log
from transforms.schemas import (
    BEHIND_WATERMARK,
    BUFFER_OVERFLOW,
    FUTURE_TIMESTAMP,
    LATE_CLOSED_WINDOW,
)
from transforms.spec import StreamSpec

Row = tuple[float, float] | dict[str, Any]


def swept(*rows: Row, spec: StreamSpec | None = None, profile: str = "default") -> Sweep:
    spec = spec or stream()
    return sweep_of(spec, read_log(spec, staged(spec, *rows)), profile)


def seconds(us: int) -> float:
    return us / SECOND


def test_a_row_needs_as_much_grace_as_it_comes_behind_the_newest_of_its_key() -> None:
    sweep = swept((100, 101), (70, 102), (95, 103))
    assert [seconds(us) for us in sweep.needed] == [5, 30]
    assert [sweep.behind(grace * SECOND) for grace in (0, 5, 29, 30)] == [2, 1, 1, 0]


def test_rows_that_are_all_late_but_in_order_need_no_grace() -> None:
    assert swept((0, 3600), (60, 3660), (120, 3720)).needed.size == 0


def test_the_lateness_of_one_key_is_nothing_to_another() -> None:
    sweep = swept({"at": (100, 101)}, {"at": (10, 102), "key": "b"})
    assert sweep.needed.size == 0


def test_a_silence_makes_rows_late_that_no_newer_row_came_before() -> None:
    spec = stream(idle_timeout="60s")
    sweep = swept((0, 0), (100, 200), spec=spec)
    assert [seconds(us) for us in sweep.needed] == [40]


def test_the_reason_says_whether_a_window_was_closed() -> None:
    rows = [(30, 30), (59, 31), (45, 32), (70, 71), (50, 72)]
    point = swept(*rows).point(0)
    assert (point[BEHIND_WATERMARK], point[LATE_CLOSED_WINDOW]) == (1, 1)


def test_a_window_that_had_rows_in_time_is_amended_one_that_had_none_is_first_published() -> None:
    amended = swept((10, 10), (70, 71), (50, 72)).point(0)
    assert (amended[AMENDED], amended[FIRST_BY_LATE]) == (1, 0)
    first = swept((70, 71), (50, 72)).point(0)
    assert (first[AMENDED], first[FIRST_BY_LATE]) == (0, 1)


def test_what_does_not_depend_on_grace_is_the_same_for_every_candidate() -> None:
    sweep = swept((0, 0), (0, 1), (9999, 2))
    curve = sweep.curve([0, 10 * SECOND])
    assert curve[FUTURE_TIMESTAMP].to_list() == [1, 1]
    assert curve["dead_letters"].to_list() == [1, 1]


def test_a_window_waits_for_its_end_the_grace_and_the_row_that_brings_the_watermark_there() -> None:
    sweep = swept((10, 10), (61, 62), (75, 76), (90, 91))
    assert [seconds(sweep.point(g * SECOND)[DELAY_MEDIAN_US]) for g in (0, 10, 20)] == [2, 16, 31]


def test_a_silence_publishes_a_window_the_moment_it_is_long_enough() -> None:
    spec = stream(idle_timeout="5m")
    sweep = sweep_of(spec, read_log(spec, staged(spec, (10, 10))), "default", 3600 * SECOND)
    assert seconds(sweep.point(10 * SECOND)[DELAY_MEDIAN_US]) == 310


def test_an_open_window_has_no_delay() -> None:
    assert swept((10, 10)).point(0)[DELAY_MEDIAN_US] is None


def test_the_peak_is_the_room_that_the_fullest_buffer_takes() -> None:
    rows = [(second, second) for second in range(100)]
    sweep = swept(*rows)
    # The row that comes meets those of the last ten seconds, both ends among them.
    assert sweep.point(10 * SECOND)[PEAK_ROWS] == 12
    assert sweep.point(10 * SECOND, capacity=12)[BUFFER_OVERFLOW] == 0
    assert sweep.point(10 * SECOND, capacity=11)[BUFFER_OVERFLOW] > 0


def test_a_key_with_two_profiles_keeps_the_watermark_of_the_other() -> None:
    numbers = {"idle_timeout": "off", "capacity": 9, "future_skew": "1m"}
    profiles = {"by": "link", "slow": {"grace": "50s", **numbers}}
    spec = stream(grace="0s", profiles=profiles)
    rows: list[Row] = [
        {"at": (100, 101), "profile": "default"},
        {"at": (90, 102), "profile": "slow"},
    ]
    sweep = swept(*rows, spec=spec, profile="slow")
    assert sweep.behind(10**12) == 1
    assert sweep.needed_quantile(0.9) > 10**12


def test_a_buffer_is_as_full_as_the_grace_of_another_profile_of_its_key_makes_it() -> None:
    numbers = {"idle_timeout": "off", "capacity": 2, "future_skew": "1m"}
    profiles = {"by": "link", "slow": {"grace": "1h", **numbers}}
    spec = stream(grace="0s", profiles=profiles)
    rows: list[Row] = [{"at": (second, second), "profile": "default"} for second in range(9)]
    rows += [
        {"key": "b", "at": (100 - ten, 100 + ten), "profile": "slow"} for ten in range(0, 50, 10)
    ]
    rows.append({"key": "b", "at": (50, 150), "profile": "default"})
    point = swept(*rows, spec=spec).point(0, capacity=100)
    assert point[PEAK_ROWS] == 6
    # Rows of the other profile have its capacity: three of five find no room.
    assert point[BUFFER_OVERFLOW] == 3


def test_a_profile_that_no_row_uses_has_an_empty_sweep() -> None:
    numbers = {"grace": "1s", "idle_timeout": "off", "capacity": 9, "future_skew": "1m"}
    spec = stream(profiles={"key_map": {"z": "slow"}, "slow": numbers})
    sweep = swept((0, 0), spec=spec, profile="slow")
    assert sweep.rows == 0
    assert sweep.point(0)[PEAK_ROWS] == 0


def test_candidates_are_round_and_hold_none_and_the_one_in_force() -> None:
    sweep = swept((100, 100), (97, 101), (60, 102), (40, 103))
    listed = [seconds(us) for us in candidates(sweep)]
    assert listed == [0, 3, 5, 7, 10, 15, 20, 30, 45, 60]


def test_thinned_candidates_keep_the_one_in_force() -> None:
    sweep = swept((100_000, 100_000), (99_999, 100_001), (0, 100_002))
    few = candidates(sweep, most=6)
    assert len(few) == 6
    assert {0, 10 * SECOND} <= set(few)


def curve(*points: tuple[int, float]) -> pl.DataFrame:
    blank = dict.fromkeys(CURVE)
    rows = [{**blank, GRACE_US: g * SECOND, BEHIND_FRACTION: share} for g, share in points]
    return pl.DataFrame(rows, schema=CURVE)


def test_the_knee_is_where_patience_stops_to_pay() -> None:
    bent = curve((0, 0.4), (1, 0.38), (10, 0.02), (100, 0.01), (1000, 0.0))
    assert knee(bent) == 10 * SECOND


@pytest.mark.parametrize(
    "shares", [(0.1, 0.1, 0.1), (0.3, 0.29, 0.0), (0.0,)], ids=["flat", "bulging", "one point"]
)
def test_a_curve_that_does_not_bend_down_has_no_knee(shares: tuple[float, ...]) -> None:
    assert knee(curve(*((10**i, share) for i, share in enumerate(shares)))) is None
