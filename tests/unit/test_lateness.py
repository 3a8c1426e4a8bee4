"""What the lateness profile recognizes: links, deliveries, clocks, keys on another link."""

from typing import Any

import numpy as np
import polars as pl
from unit.small_logs import SECOND, staged, stream

from transforms.lateness.arrival_log import read_log
from transforms.lateness.profile import (
    BUCKETS,
    PROFILE_SCHEMA,
    bucket_ends_us,
    lateness_profile,
)
from transforms.spec import StreamSpec

Rows = list[dict[str, Any]]
SEED = 11


def sensor(key: str, event_s: Any, late_s: Any, **columns: Any) -> Rows:
    """Rows of one key; ``event_s`` are the stamps, arrivals are that later."""
    event, late = np.broadcast_arrays(np.asarray(event_s, float), np.asarray(late_s, float))
    return [
        {"at": (float(t), float(t + d)), "key": key, **columns}
        for t, d in zip(event, late, strict=True)
    ]


def profiled(*sensors: Rows, spec: StreamSpec | None = None) -> pl.DataFrame:
    spec = spec or stream()
    rows = [{**row, "level": float(i)} for i, row in enumerate(r for s in sensors for r in s)]
    log = read_log(spec, staged(spec, *rows))
    return lateness_profile(log, tuple(spec.profiles.named))


def of_key(table: pl.DataFrame, key: str = "a") -> dict[str, Any]:
    return table.filter(level="key", name=key).row(0, named=True)


def minutes(count: int) -> np.ndarray:
    return np.arange(count) * 60.0


def jitter(count: int, most: float = 2.0) -> np.ndarray:
    return np.random.default_rng(SEED).uniform(0.5, most, count)


def test_there_is_a_row_for_the_stream_each_profile_and_each_key() -> None:
    table = profiled(sensor("a", minutes(3), 1), sensor("b", minutes(3), 1))
    levels = table.select("level", "name", "keys", "rows").rows()
    assert levels == [
        ("stream", "", 2, 6),
        ("profile", "default", 2, 6),
        ("key", "a", 1, 3),
        ("key", "b", 1, 3),
    ]
    assert table.schema == PROFILE_SCHEMA


def test_delay_is_what_the_link_did_and_behind_is_what_a_grace_is_for() -> None:
    row = of_key(profiled(sensor("a", minutes(5), 3600)))
    assert (row["delay_p50_us"], row["behind_max_us"]) == (3600 * SECOND, 0)


def test_redeliveries_and_future_rows_are_counted_apart() -> None:
    spec = stream()
    rows = [{"at": (0, 1)}, {"at": (0, 2)}, {"at": (9999, 3)}]
    table = lateness_profile(read_log(spec, staged(spec, *rows)), ("default",))
    row = of_key(table)
    assert (row["rows"], row["duplicates"], row["future_rows"]) == (1, 1, 1)


def test_the_histogram_counts_by_powers_of_two_of_a_millisecond() -> None:
    rows = sensor("a", minutes(4), [0, 0.001, 0.0015, 4])
    counts = of_key(profiled(rows))["delay_histogram"]
    ends = bucket_ends_us()
    assert len(counts) == len(ends) == BUCKETS
    assert {ends[i]: count for i, count in enumerate(counts) if count} == {
        0: 1,
        1_000: 1,
        2_000: 1,
        4_096_000: 1,
    }


def test_a_trend_is_told_by_day() -> None:
    late = np.linspace(0, 100, 800)
    row = of_key(profiled(sensor("a", minutes(800), late)))
    day = 100 * SECOND / (800 * 60) * 86400
    assert abs(row["trend_us_per_day"] - day) < 0.05 * day


def test_an_outage_that_a_flush_follows_is_recovered() -> None:
    event = minutes(100)
    late = np.full(100, 1.0)
    gap = (event >= 1800) & (event < 3000)
    late[gap] = 3001 - event[gap] + 0.02 * np.arange(gap.sum())
    row = of_key(profiled(sensor("a", event, late)))
    assert (row["outages"], row["outages_recovered"], row["flushes"]) == (1, 1, 1)
    assert row["largest_flush_rows"] >= gap.sum()
    assert row["gaps"] == 0


def test_what_never_came_is_a_gap() -> None:
    event = np.delete(minutes(100), range(30, 50))
    row = of_key(profiled(sensor("a", event, 1.0)))
    assert (row["gaps"], row["gap_readings"]) == (1, 20)
    assert (row["outages"], row["outages_recovered"]) == (1, 0)


def test_a_clock_seven_hours_off_looks_like_a_zone() -> None:
    sensors = [sensor(key, minutes(50), jitter(50)) for key in "bcd"]
    table = profiled(sensor("a", minutes(50), 7 * 3600 + jitter(50)), *sensors)
    assert of_key(table)["clock_zone_minutes"] == -7 * 60
    assert of_key(table, "b")["clock_zone_minutes"] is None


def test_a_drifting_clock_is_told_in_millionths() -> None:
    true = minutes(2000)
    fast = true * (1 + 100e-6)
    row = of_key(profiled(sensor("a", fast, true + 20 + jitter(2000) - fast)))
    assert abs(row["clock_drift_ppm"] - 100) < 3


def test_a_clock_that_was_set_back_and_runs_on_has_jumped() -> None:
    true = minutes(100)
    stamp = np.where(true >= 3000, true - 86400, true)
    row = of_key(profiled(sensor("a", stamp, true + 1 - stamp)))
    assert row["clock_jumps"] == 1


def test_a_flush_is_no_jump_of_the_clock() -> None:
    event = minutes(100)
    late = np.full(100, 1.0)
    newest_first = (event >= 1800) & (event < 3000)
    late[newest_first] = 3001 - event[newest_first] + 0.02 * np.arange(newest_first.sum())[::-1]
    assert of_key(profiled(sensor("a", event, late)))["clock_jumps"] == 0


def test_rows_late_by_two_to_the_32_microseconds_are_wrapped_counters() -> None:
    late = jitter(100)
    late[[20, 60]] += 4294.967296
    assert of_key(profiled(sensor("a", minutes(100), late)))["wrapped_rows"] == 2


def two_links() -> StreamSpec:
    numbers = {"grace": "45m", "idle_timeout": "off", "capacity": 99, "future_skew": "1m"}
    return stream(profiles={"by": "link", "satellite": numbers})


def by_satellite(key: str, profile: str) -> Rows:
    event = minutes(200)
    return sensor(key, event, 1500 - event % 1500 + jitter(200), profile=profile)


def test_a_key_with_the_lateness_of_another_profile_is_named() -> None:
    honest = [sensor(key, minutes(200), jitter(200), profile="default") for key in "bcd"]
    table = profiled(
        by_satellite("a", "default"),
        *honest,
        *(by_satellite(key, "satellite") for key in "xyz"),
        spec=two_links(),
    )
    named = table.filter(pl.col("looks_like").is_not_null())
    assert named.select("name", "looks_like").rows() == [("a", "satellite")]


def test_a_wrong_clock_is_no_other_link() -> None:
    honest = [sensor(key, minutes(200), jitter(200), profile="default") for key in "bcd"]
    table = profiled(
        sensor("a", minutes(200), 7200 + jitter(200), profile="default"),
        *honest,
        *(by_satellite(key, "satellite") for key in "xyz"),
        spec=two_links(),
    )
    assert table["looks_like"].null_count() == table.height


def test_a_stream_without_rows_has_an_empty_profile() -> None:
    assert profiled([]).height == 0
