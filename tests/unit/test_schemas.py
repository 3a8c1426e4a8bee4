"""The shared words: what the schemas of a spec are, and that renaming loses nothing."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from transforms import schemas
from transforms.spec import StreamSpec, load_spec

SPEC = """
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: [site, sensor]
  event_time: {column: sampled_at, unit: iso8601}
  arrival_time: {column: received_at, unit: iso8601}
  event_id: [boot, counter, sensor, sampled_at, firmware]
  values: {level: float, pulses: int, price: 'decimal(10,2)', open: bool}
  carry: [firmware]
arrival: {grain: day, start: 2024-01-01}
profiles:
  by: link
  default: {grace: 90s, idle_timeout: off, capacity: 256, future_skew: 5m}
resolution: 1s
windows: [{name: minute, every: 1m}]
aggregates:
  level: [p99.9, mean]
  pulses: [count, sum, min]
  price: [sum, max, mean]
  open: [sum, last]
"""


@pytest.fixture(scope="module")
def spec() -> StreamSpec:
    return load_spec(SPEC, file="gauges.yaml")


@pytest.fixture(scope="module")
def plain() -> StreamSpec:
    text = SPEC.replace("[site, sensor]", "site").replace("  by: link\n", "")
    return load_spec(text.replace("resolution: 1s\n", ""), file="gauges.yaml")


def test_a_staged_row_has_its_key_times_profile_values_carried_and_id_columns(
    spec: StreamSpec,
) -> None:
    assert schemas.staged_schema(spec) == pl.Schema(
        {
            "seq": pl.Int64,
            "key": pl.String,
            "site": pl.String,
            "sensor": pl.String,
            "event_us": pl.Int64,
            "original_event_us": pl.Int64,
            "arrival_us": pl.Int64,
            "profile": pl.String,
            "level": pl.Float64,
            "pulses": pl.Int64,
            "price": pl.Decimal(10, 2),
            "open": pl.Boolean,
            "firmware": pl.String,
            "id_boot": pl.String,
            "id_counter": pl.String,
            "unreadable": pl.String,
        }
    )


def test_what_is_not_declared_has_no_column(plain: StreamSpec) -> None:
    assert schemas.row_columns(plain) == (
        *("seq", "key", "event_us", "arrival_us", "level", "pulses", "price", "open"),
        *("firmware", "id_boot", "id_counter", "id_sensor"),
    )
    assert "profile" not in schemas.staged_schema(plain)
    assert "profile" not in schemas.dead_letter_schema(plain)


def test_row_columns_are_the_staged_ones_without_profile_and_unreadable(spec: StreamSpec) -> None:
    staged = [name for name in schemas.staged_schema(spec) if name not in {"profile", "unreadable"}]
    assert list(schemas.row_columns(spec)) == staged


def test_every_table_of_rows_begins_with_the_row(spec: StreamSpec) -> None:
    row = schemas.row_columns(spec)
    tables = [
        schemas.ordered_schema(spec),
        schemas.counted_schema(spec),
        schemas.dead_letter_schema(spec),
        schemas.duplicate_schema(spec),
    ]
    assert all(tuple(table)[: len(row)] == row for table in tables)


def test_the_window_contract_stands_in_the_order_of_the_spec(spec: StreamSpec) -> None:
    schema = schemas.window_history_schema(spec)
    assert list(schema) == [
        *("stream", "window", "key", "site", "sensor"),
        *("window_start_us", "window_end_us", "event_count"),
        *("level_count", "level_p99.9", "level_mean"),
        *("pulses_count", "pulses_sum", "pulses_min"),
        *("price_count", "price_sum", "price_max", "price_mean"),
        *("open_count", "open_sum", "open_last"),
        *("late_arrival_count", "dead_letter_count", "dead_letter_fraction"),
        *("first_event_us", "last_event_us", "revision", "reason", "input_digest", "known_at_us"),
        *("published_at_us", "run_id"),
    ]


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        ("level_p99.9", pl.Float64()),
        ("pulses_sum", pl.Int64()),
        ("pulses_min", pl.Int64()),
        ("price_sum", pl.Decimal(38, 2)),
        ("price_max", pl.Decimal(10, 2)),
        ("price_mean", pl.Float64()),
        ("open_sum", pl.Int64()),
        ("open_last", pl.Int64()),
        ("dead_letter_fraction", pl.Float64()),
    ],
)
def test_sums_are_exact_where_their_values_are(
    spec: StreamSpec, column: str, dtype: pl.DataType
) -> None:
    assert schemas.window_schema(spec)[column] == dtype


def test_a_value_without_aggregates_still_has_its_count(spec: StreamSpec) -> None:
    bare = spec.model_copy(update={"aggregates": {}})
    counts = ["level_count", "pulses_count", "price_count", "open_count"]
    assert list(schemas.statistic_schema(bare)) == counts


def test_every_column_of_ours_beside_a_users_is_reserved(plain: StreamSpec) -> None:
    users = {"level", "pulses", "price", "open", "firmware", "id_boot", "id_counter", "id_sensor"}
    tables = [
        schemas.staged_schema(plain),
        schemas.counted_schema(plain),
        schemas.dead_letter_schema(plain),
        schemas.duplicate_schema(plain),
        schemas.watermark_schema(),
    ]
    ours = {name for table in tables for name in table} - users
    stored = set(schemas.to_stored(pl.DataFrame(schema=dict.fromkeys(ours, pl.Int64))).columns)
    assert ours | stored <= schemas.RESERVED_NAMES
    assert all(name == name.lower() for name in schemas.RESERVED_NAMES)


def test_fixed_window_columns_are_all_but_keys_and_statistics(plain: StreamSpec) -> None:
    contract = set(schemas.window_history_schema(plain)) - set(schemas.statistic_schema(plain))
    stored = set(schemas.to_stored(pl.DataFrame(schema=dict.fromkeys(contract, pl.Int64))).columns)
    assert set(schemas.fixed_window_columns()) == contract | stored


FRAME = pl.DataFrame(
    {
        "key": ["a", "b"],
        "event_us": [1_704_067_200_123_456, -1],
        "watermark_us": [None, 0],
        "lateness_us": [5, None],
        "delay_us": [1, 2],
    },
    schema_overrides={"watermark_us": pl.Int64},
)


def test_a_store_gets_instants_as_timestamps_and_durations_as_numbers() -> None:
    stored = schemas.to_stored(FRAME)
    assert stored.columns == ["key", "event", "watermark", "lateness_us", "delay_us"]
    assert stored.schema["event"] == pl.Datetime("us", "UTC")
    assert stored["event"].to_list()[0] == datetime(2024, 1, 1, 0, 0, 0, 123_456, UTC)


def test_what_comes_back_from_a_store_is_what_went_in() -> None:
    assert schemas.from_stored(schemas.to_stored(FRAME)).equals(FRAME)
    lazy = schemas.from_stored(schemas.to_stored(FRAME.lazy()))
    assert lazy.collect().equals(FRAME)


def test_the_unit_and_display_zone_of_a_store_do_not_move_an_instant() -> None:
    moment = datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Asia/Kolkata"))
    for unit in ("ms", "us", "ns"):
        stored = pl.DataFrame({"event": [moment]}, {"event": pl.Datetime(unit, "Asia/Kolkata")})
        assert schemas.from_stored(stored)["event_us"].to_list() == [1_719_815_400_000_000]


def test_reasons_and_states_are_each_named_once() -> None:
    for names in (schemas.DEAD_LETTER_REASONS, schemas.REJECTION_REASONS, schemas.STATES):
        assert len(set(names)) == len(names)
    assert set(schemas.COUNTED_DEAD_LETTER_REASONS) < set(schemas.DEAD_LETTER_REASONS)
