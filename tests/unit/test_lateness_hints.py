"""Which keys of a lateness profile are told of, and in which words."""

from typing import Any

import polars as pl
import pytest

from transforms.durations import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from transforms.lateness.hints import hints
from transforms.lateness.profile import PROFILE_SCHEMA

HEALTHY = {
    "level": "key",
    "profile": "cellular",
    "keys": 1,
    "rows": 100,
    "duplicates": 0,
    "future_rows": 0,
    "delay_min_us": SECOND_US,
    "delay_p90_us": 3 * SECOND_US,
    "clock_offset_us": 0,
    "clock_jumps": 0,
    "wrapped_rows": 0,
}


def words(**row: Any) -> list[str]:
    rows = [{**HEALTHY, "name": "a"}, {**HEALTHY, "name": "b", **row}]
    table = pl.DataFrame(rows, schema_overrides=PROFILE_SCHEMA)
    missing = [pl.lit(None, kind).alias(n) for n, kind in PROFILE_SCHEMA.items() if n not in table]
    return [hint.words for hint in hints(table.with_columns(missing))]


def test_of_healthy_keys_nothing_is_told() -> None:
    assert words() == []


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        ({"looks_like": "satellite"}, " looks like a key of profile satellite"),
        (
            {"clock_zone_minutes": -420, "clock_offset_us": -7 * HOUR_US},
            ": its clock is 7h behind those of profile cellular: another time zone?",
        ),
        (
            {"clock_offset_us": 9 * MINUTE_US},
            ": its clock is 9m ahead of those of profile cellular",
        ),
        (
            {"clock_offset_us": -2 * DAY_US},
            ": it comes 2d later than profile cellular: a clock that is behind, or a slower link",
        ),
        ({"clock_drift_ppm": 120.0}, ": its clock gains 10.4s a day"),
        ({"clock_drift_ppm": -60.0}, ": its clock loses 5.18s a day"),
        ({"clock_jumps": 1}, ": its clock was set once"),
        ({"clock_jumps": 2}, ": its clock was set 2 times"),
        (
            {"wrapped_rows": 8},
            ": 8 rows are late by 2^32 us or ms more than usual, a counter of 32 bits that wrapped",
        ),
        ({"future_rows": 1}, ": 1 row is from the future, beyond the skew allowed"),
    ],
)
def test_each_fault_has_its_words(figures: dict[str, Any], told: str) -> None:
    (found,) = words(**figures)
    assert found.startswith(f"key b{told}")


@pytest.mark.parametrize(
    "figures",
    [
        # Less than the delays of the key vary by: nobody could tell.
        {"clock_offset_us": -10 * MINUTE_US, "delay_p90_us": 20 * MINUTE_US},
        {"clock_offset_us": 4 * MINUTE_US},
        {"clock_offset_us": 9 * MINUTE_US, "rows": 29},
        # Quartz does as much; no clock does so much.
        {"clock_drift_ppm": 30.0},
        {"clock_drift_ppm": 5000.0},
    ],
)
def test_what_is_usual_is_not_told(figures: dict[str, Any]) -> None:
    assert words(**figures) == []


def test_a_slow_link_is_not_told_as_a_wrong_clock_too() -> None:
    assert len(words(looks_like="satellite", clock_offset_us=-HOUR_US)) == 1
