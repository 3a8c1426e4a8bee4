"""Track difference: every revision of a track against what the authoritative one says now."""

from typing import Any

import polars as pl
from small_stream import MINUTE, SECOND, small_spec

from transforms.schemas import window_history_schema
from transforms.tracks import convergence, largest_differences, track_difference

SPEC = small_spec()


def history(*revisions: dict[str, Any]) -> pl.DataFrame:
    """Revisions of windows of key `a`; the start is given in minutes, `known` in seconds."""
    schema = window_history_schema(SPEC)
    rows = []
    for given in revisions:
        start, count, total = given["start"] * MINUTE, given["count"], given.get("sum")
        rows.append(
            {
                **dict.fromkeys(schema),
                "stream": "gauges",
                "window": "minute",
                "key": "a",
                "window_start_us": start,
                "window_end_us": start + MINUTE,
                "event_count": count,
                "level_count": count,
                "level_sum": total,
                "revision": given.get("revision", 0),
                "reason": given.get("reason", "closed"),
                "known_at_us": given["known"] * SECOND if count else None,
            }
        )
    return pl.DataFrame(rows, schema=schema)


def told(track: pl.DataFrame, authoritative: pl.DataFrame) -> list[tuple[Any, ...]]:
    found = track_difference(SPEC, "fast", track, authoritative)
    assert found["track"].unique().to_list() == ["fast"]
    names = ("event_count", "level_sum")
    seen = found.select(
        pl.col("window_start_us") // MINUTE,
        "revision",
        "authoritative_revision",
        *(f"{name}_difference" for name in names),
        "is_equal",
        pl.col("equal_after_us") / SECOND,
    )
    return seen.rows()


def test_each_revision_is_measured_by_the_newest_authoritative_one() -> None:
    fast = history(
        {"start": 0, "count": 2, "sum": 3.0, "known": 50},
        {"start": 0, "revision": 1, "count": 3, "sum": 11.0, "known": 70},
    )
    authoritative = history(
        {"start": 0, "count": 1, "sum": 1.0, "known": 20},
        {"start": 0, "revision": 1, "count": 3, "sum": 11.0, "known": 70},
    )
    assert told(fast, authoritative) == [
        (0, 0, 1, -1, -8.0, False, 20.0),
        (0, 1, 1, 0, 0.0, True, 20.0),
    ]


def test_a_revision_that_is_right_by_chance_and_then_wrong_does_not_count() -> None:
    fast = history(
        {"start": 0, "count": 2, "sum": 3.0, "known": 50},
        {"start": 0, "revision": 1, "count": 1, "sum": 1.0, "known": 55},
        {"start": 0, "revision": 2, "count": 2, "sum": 3.0, "known": 90},
    )
    authoritative = history({"start": 0, "count": 2, "sum": 3.0, "known": 50})
    assert [row[-2:] for row in told(fast, authoritative)] == [
        (True, 40.0),
        (False, 40.0),
        (True, 40.0),
    ]
    still_off = told(fast[:2], authoritative)
    assert [row[-2:] for row in still_off] == [(True, None), (False, None)]


def test_what_only_one_track_has_said_is_told() -> None:
    fast = history({"start": 5, "count": 2, "sum": 3.0, "known": 350})
    authoritative = history({"start": 0, "count": 4, "sum": 9.0, "known": 50})
    assert told(fast, authoritative) == [
        (0, None, 0, None, None, False, None),
        (5, 0, None, None, None, None, None),
    ]


def test_a_withdrawn_window_is_one_without_rows() -> None:
    gone = {"start": 0, "revision": 1, "count": 0, "reason": "withdrawn"}
    said = {"start": 0, "count": 2, "sum": 3.0, "known": 50}
    assert told(history(said, gone), history(said, gone)) == [
        (0, 0, 1, 2, None, False, None),
        (0, 1, 1, 0, None, True, None),
    ]
    assert told(history({**said, "start": 1}), history(said, gone)) == [
        (1, 0, None, None, None, None, None)
    ]


def test_no_readings_in_either_are_equal() -> None:
    none = history({"start": 0, "count": 2, "sum": None, "known": 50})
    assert told(none, none) == [(0, 0, 0, 0, None, True, 0.0)]


def test_nothing_said_differs_in_nothing() -> None:
    found = track_difference(SPEC, "fast", history(), history())
    assert found.is_empty()
    assert convergence(found).is_empty()
    assert largest_differences(found).is_empty()


def test_a_track_is_summed_up_by_its_windows() -> None:
    fast = history(
        {"start": 0, "count": 2, "sum": 3.0, "known": 50},
        {"start": 0, "revision": 1, "count": 3, "sum": 11.0, "known": 70},
        {"start": 1, "count": 1, "sum": 1.0, "known": 110},
        {"start": 2, "count": 1, "sum": 1.0, "known": 170},
        {"start": 3, "count": 1, "sum": 1.0, "known": 230},
    )
    authoritative = history(
        {"start": 0, "count": 3, "sum": 11.0, "known": 70},
        {"start": 1, "count": 1, "sum": 1.0, "known": 110},
        {"start": 2, "count": 2, "sum": 5.0, "known": 199},
    )
    found = track_difference(SPEC, "fast", fast, authoritative)
    assert convergence(found).to_dicts() == [
        {
            "track": "fast",
            "windows": 3,
            "windows_off_at_first": 2,
            "windows_off_now": 1,
            "equal_after_us": 20 * SECOND,
        }
    ]
    assert largest_differences(found).rows() == [
        ("fast", "event_count", 1.0, 1.0),
        ("fast", "level_count", 1.0, 1.0),
        ("fast", "level_sum", 8.0, 4.0),
    ]
