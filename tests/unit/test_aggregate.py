"""The columns of a window: each statistic by example, its type, and what stops a run."""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from plain_windows import MINUTE_US, VALUES, Row, frame, money, stream

from transforms.aggregate import aggregate_schema
from transforms.errors import CalculationError
from transforms.schemas import window_schema
from transforms.windows import first_publications

MINUTE = {"name": "minute", "every": "1m"}
LATER = pl.DataFrame({"key": ["A", "B"], "watermark_us": [10 * MINUTE_US, 10 * MINUTE_US]})
SECOND = 1_000_000


def windows(value: str, statistics: Sequence[str], readings: Sequence[Any]) -> pl.DataFrame:
    """Aggregate one reading a second, in one minute of one key."""
    spec = stream(MINUTE, aggregates={value: statistics})
    rows = [Row("A", n * SECOND, n, 7, {value: read}) for n, read in enumerate(readings)]
    return first_publications(spec, frame(spec, rows), None, LATER)


def statistic(value: str, name: str, *readings: Any) -> Any:
    return windows(value, [name], readings).get_column(f"{value}_{name}").item()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", 40.0),
        ("mean", 5.0),
        ("min", 2.0),
        ("max", 9.0),
        ("std", 2.138089935299395),
        ("first", 4.0),
        ("last", 7.0),
        ("p0", 2.0),
        ("p50", 4.5),
        ("p95", 8.3),
        ("p100", 9.0),
        ("rate", 3 / 7),
    ],
)
def test_each_statistic_by_example(name: str, expected: float) -> None:
    readings = (4, 2, 4, 5, 4, 9, 5, 7)
    assert statistic("level", name, *map(float, readings)) == pytest.approx(expected, rel=1e-15)
    assert statistic("pulses", name, *readings) == pytest.approx(expected, rel=1e-15)
    decimals = statistic("cost", name, *(money(str(n)) for n in readings))
    assert float(decimals) == pytest.approx(expected, rel=1e-15)


def test_each_reading_holds_until_the_next_and_the_last_until_the_window_ends() -> None:
    # 1.0 holds for a second, 3.0 for the 59 that are left.
    expected = (1.0 * 1 + 3.0 * 59) / 60
    assert statistic("level", "time_weighted_mean", 1.0, 3.0) == pytest.approx(expected, rel=1e-15)
    assert statistic("level", "time_weighted_mean", 0.1) == 0.1
    assert statistic("on", "time_weighted_mean", True, False) == 1 / 60


@pytest.mark.parametrize("value", ["level", "pulses", "on", "cost"])
@pytest.mark.parametrize("rows", [[None], [None, None]])
def test_of_no_reading_every_statistic_is_null(value: str, rows: list[None]) -> None:
    names = ["sum", "mean", "min", "max", "std", "first", "last", "p50", "rate"]
    found = windows(value, [*names, "time_weighted_mean"], rows)
    assert found.get_column("event_count").item() == len(rows)
    assert found.get_column(f"{value}_count").item() == 0
    statistics = found.select(pl.col(f"^{value}_.*$").exclude(f"{value}_count"))
    assert statistics.row(0) == (None,) * 10


def test_null_and_nan_are_rows_without_a_reading() -> None:
    found = windows("level", ["sum", "first", "last"], [None, 1.5, math.nan, 3.5, math.nan])
    counts = found.select("event_count", "level_count", "level_sum", "level_first", "level_last")
    assert counts.row(0) == (5, 2, 5.0, 1.5, 3.5)


def test_one_reading_has_no_spread_and_no_rate() -> None:
    assert statistic("level", "std", 1.0) is None
    assert statistic("level", "rate", 1.0) is None


def test_a_rate_of_whole_numbers_is_of_their_exact_difference() -> None:
    assert statistic("pulses", "rate", 2**60 + 1, 2**60 + 2) == 1.0
    assert statistic("pulses", "rate", -(2**63), 2**63 - 1) == 2.0**64


def test_no_rate_where_no_time_passed() -> None:
    spec = stream(MINUTE, aggregates={"level": ["rate"]})
    rows = [Row("A", 5, n, 7, {"level": float(n)}) for n in range(3)]
    found = first_publications(spec, frame(spec, rows), None, LATER)
    assert found.get_column("level_rate").to_list() == [None]


def test_least_greatest_first_and_last_keep_their_type() -> None:
    spec = stream(MINUTE, aggregates={value: ["max"] for value in VALUES})
    types = [aggregate_schema(spec)[f"{v}_max"] for v in VALUES]
    assert types == [pl.Float64, pl.Int64, pl.Int64, pl.Decimal(20, 2)]
    assert statistic("pulses", "max", 2**53 + 1, 1) == 2**53 + 1
    assert statistic("cost", "min", money("1.10"), money("1.09")) == Decimal("1.09")
    assert statistic("on", "sum", True, True, False) == 2


def test_a_sum_of_whole_numbers_is_exact_up_to_the_ends_of_int64() -> None:
    most, least = 2**63 - 1, -(2**63)
    assert statistic("pulses", "sum", most, 1, -1) == most
    assert statistic("pulses", "sum", least, -1, 1) == least
    assert statistic("pulses", "sum", most, least) == -1
    assert statistic("pulses", "sum", 2**53 + 1, 1) == 2**53 + 2


@pytest.mark.parametrize("readings", [(2**63 - 1, 1), (-(2**63), -1), (2**62, 2**62)])
def test_a_sum_beyond_int64_stops_the_run_and_names_the_window(readings: tuple[int, ...]) -> None:
    named = "sum of pulses leaves int64 in window minute of stream plain, key 'A', start 1970-01-01"
    with pytest.raises(CalculationError, match=named):
        statistic("pulses", "sum", *readings)


def test_a_mean_of_whole_numbers_needs_no_sum_in_int64() -> None:
    assert statistic("pulses", "mean", 2**63 - 1, 2**63 - 1) == 2.0**63


def big(unscaled: int) -> Decimal:
    return Decimal(unscaled).scaleb(-2)


def test_a_sum_of_decimals_is_exact() -> None:
    largest = 10**20 - 1
    found = statistic("cost", "sum", *[big(largest)] * 9, big(-1))
    assert found == Decimal(9 * largest - 1).scaleb(-2)
    assert statistic("cost", "sum", big(-largest), big(largest)) == 0


@pytest.mark.parametrize("name", ["sum", "mean", "std"])
def test_a_decimal_sum_beyond_38_digits_stops_the_run(name: str) -> None:
    spec = stream(MINUTE, values={"huge": "decimal(38,0)"}, aggregates={"huge": [name]})
    rows = [Row("A", n, n, 7, {"huge": Decimal(10**38 - 1)}) for n in range(2)]
    assert first_publications(spec, frame(spec, rows[:1]), None, LATER).height == 1
    with pytest.raises(CalculationError, match="sum of huge leaves 38 digits in window minute"):
        first_publications(spec, frame(spec, rows), None, LATER)


def test_a_sum_is_refused_in_its_own_window_only() -> None:
    spec = stream(MINUTE, aggregates={"pulses": ["sum"]})
    rows = [
        Row("A", 1, 0, 7, {"pulses": None}),
        Row("A", 2 * MINUTE_US, 1, 7, {"pulses": 1}),
        *(Row("B", MINUTE_US + n, 2 + n, 7, {"pulses": 2**62}) for n in range(2)),
    ]
    with pytest.raises(CalculationError, match="key 'B', start 1970-01-01T00:01:00"):
        first_publications(spec, frame(spec, rows), None, LATER)
    only_a = LATER.filter(pl.col("key") == "A")
    assert first_publications(spec, frame(spec, rows), None, only_a).height == 2


@pytest.mark.parametrize("name", ["sum", "mean", "std", "rate", "p50", "time_weighted_mean"])
def test_statistics_of_huge_floats_are_never_nan(name: str) -> None:
    huge = 1.7e308
    for readings in ((huge, huge, -huge), (-huge, huge), (huge, -huge, -huge, huge), (huge,)):
        found = statistic("level", name, *readings)
        assert found is None or not math.isnan(found)
    assert statistic("level", "p50", -huge, huge) == 0.0
    assert statistic("level", "time_weighted_mean", huge, huge) == pytest.approx(huge)


def test_percentiles_stand_at_exact_positions() -> None:
    readings = [float(n) for n in range(1001)]
    spec = stream(MINUTE, aggregates={"level": ["p99.9", "p12.3"]})
    rows = [Row("A", n, n, 7, {"level": read}) for n, read in enumerate(readings)]
    found = first_publications(spec, frame(spec, rows), None, LATER)
    assert found.select("level_p99.9", "level_p12.3").row(0) == (999.0, 123.0)


def test_the_columns_are_those_of_the_contract() -> None:
    spec = stream(MINUTE, key=["site", "station"], carry=["firmware"])
    rows = [Row("a|b", 5, 0, 7, {"site": "a", "station": "b", "firmware": "1"})]
    reached = LATER.with_columns(key=pl.lit("a|b"))[:1]
    found = first_publications(spec, frame(spec, rows), None, reached)
    assert found.schema == window_schema(spec)
    assert found.select("stream", "window", "key", "site", "station").row(0) == (
        *("plain", "minute", "a|b", "a", "b"),
    )


def test_the_digest_rests_on_what_a_row_is_and_not_on_its_place() -> None:
    spec = stream(MINUTE, carry=["firmware"])

    def digest(**changes: Any) -> str:
        row = {"event_us": 5, "seq": 0, "arrival_us": 7, "values": {"level": 1.0, "firmware": "x"}}
        rows = frame(spec, [Row(**({"key": "A"} | row | changes))])
        text: str = first_publications(spec, rows, None, LATER).get_column("input_digest").item()
        return text

    assert digest(seq=9) == digest()
    others = [
        digest(event_us=6),
        digest(arrival_us=8),
        digest(values={"level": 2.0, "firmware": "x"}),
        digest(values={"level": 1.0, "firmware": "y"}),
        digest(is_late=True),
        digest(is_dead_letter=True, refused_at_us=0),
        digest(),
    ]
    assert len(set(others)) == len(others)
    assert digest(is_dead_letter=True, refused_at_us=0) == digest(is_dead_letter=True)
