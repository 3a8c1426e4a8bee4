"""The lake keeps what it is given, replaces it at once, and shows nothing half-written."""

from pathlib import Path

import polars as pl
import pytest

from assets.stores.lake import APPENDED_FILES, COMMITS_PER_CHECKPOINT, Lake, Slot
from assets.stores.lake_files import Span
from assets.stores.unit_of_work import UnitOfWork
from transforms.errors import LakeError
from transforms.schemas import MARK

ROWS, STATE = "ordered_events", "watermarks"
SCHEMA = pl.Schema({"key": pl.String(), "event_us": pl.Int64(), "value": pl.Decimal(6, 2)})
STATE_SCHEMA = pl.Schema({"key": pl.String(), "watermark_us": pl.Int64(), MARK: pl.String()})


def schemas(table: str) -> pl.Schema:
    return STATE_SCHEMA if table == STATE else SCHEMA


def rows(*times: int) -> pl.DataFrame:
    columns = {"key": ["a"] * len(times), "event_us": times, "value": [None] * len(times)}
    return pl.DataFrame(columns, schema=SCHEMA)


def state(watermark: int) -> pl.DataFrame:
    return pl.DataFrame({"key": ["a"], "watermark_us": [watermark]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path))


def unit_of(lake: Lake, shards: int = 1) -> UnitOfWork:
    return UnitOfWork(lake, "river", STATE, schemas, shards)


def put(lake: Lake, partition: str, *times: int, watermark: int = 0, shards: int = 1) -> None:
    with unit_of(lake, shards) as unit:
        for shard in range(shards):
            unit.replace(ROWS, Slot(partition, shard), rows(*times[shard::shards]))
            unit.replace(STATE, Slot(partition, shard), state(watermark), mark="made")


def versions(lake: Lake) -> list[int | None]:
    return [lake.version("river", table) for table in (ROWS, STATE)]


def test_rows_come_back_as_they_were_sorted(lake: Lake) -> None:
    frame = pl.DataFrame(
        {"key": ["b", "a", None], "event_us": [3, -7, None], "value": [None, "1.25", "-3.50"]},
        schema_overrides={"value": pl.String()},
    ).with_columns(pl.col("value").cast(pl.Decimal(6, 2)))
    lake.replace("river", ROWS, {Slot("2024-01-01"): frame})
    assert lake.scan("river", ROWS).collect().equals(frame)


def test_times_are_timestamps_for_any_other_reader(lake: Lake, tmp_path: Path) -> None:
    lake.replace("river", ROWS, {Slot("2024-01-01"): rows(1, 2)})
    foreign = pl.scan_delta(str(tmp_path / "river" / ROWS)).collect()
    assert foreign["event"].dtype == pl.Datetime("us", "UTC")
    assert foreign["arrival_partition"].to_list() == ["2024-01-01"] * 2
    assert foreign["shard"].to_list() == [0, 0]


def test_a_partition_name_may_hold_colons_and_offsets(lake: Lake, tmp_path: Path) -> None:
    name = "2024-10-27-02:15+0100"
    for time in (1, 2, 3):
        lake.replace("river", ROWS, {Slot(name): rows(time)})
    assert lake.partitions("river", ROWS) == {name}
    assert lake.scan("river", ROWS).collect()["event_us"].to_list() == [3]
    foreign = pl.scan_delta(str(tmp_path / "river" / ROWS)).collect()
    assert foreign["arrival_partition"].to_list() == [name]


def test_many_partitions_are_replaced_in_one_commit(lake: Lake) -> None:
    lake.replace("river", ROWS, {Slot(f"p{n}"): rows(n) for n in range(9)})
    before = lake.version("river", ROWS)
    lake.replace("river", ROWS, {Slot(f"p{n}"): rows(n, 100) for n in range(5)})
    assert lake.version("river", ROWS) == (before or 0) + 1
    times = lake.scan("river", ROWS, partitions={"p0", "p8"}).collect()["event_us"].to_list()
    assert times == [0, 100, 8]


def test_an_empty_partition_is_there(lake: Lake) -> None:
    lake.replace("river", ROWS, {Slot("p0"): rows()})
    assert lake.partitions("river", ROWS) == {"p0"}
    assert lake.scan("river", ROWS).collect().equals(rows())


def test_a_partition_that_is_deleted_is_not_read(lake: Lake) -> None:
    lake.replace("river", ROWS, {Slot("p0"): rows(1), Slot("p1"): rows(2)})
    lake.delete_partitions("river", ROWS, {"p0"})
    assert lake.scan("river", ROWS).collect()["event_us"].to_list() == [2]


def test_files_outside_a_span_are_not_read(lake: Lake) -> None:
    lake.replace("river", ROWS, {Slot(f"p{n}"): rows(10 * n, 10 * n + 5) for n in range(4)})
    span = Span("event_us", 15, 20)
    kept = [file.partition for file in lake.files("river", ROWS) if file.may_hold([span])]
    assert kept == ["p1", "p2"]
    assert lake.scan("river", ROWS, spans=[span]).collect()["event_us"].to_list() == [15, 20]


@pytest.mark.parametrize("far", [-(2**62), 2**62], ids=["past", "future"])
def test_a_time_no_log_can_spell_prunes_nothing_wrongly(lake: Lake, far: int) -> None:
    lake.replace("river", ROWS, {Slot("p0"): rows(0, far)})
    for time in (0, far):
        found = lake.scan("river", ROWS, spans=[Span("event_us", time, time)]).collect()
        assert found["event_us"].to_list() == [time]


def test_ranges_are_exact_to_the_microsecond_after_a_checkpoint_too(lake: Lake) -> None:
    for n in range(COMMITS_PER_CHECKPOINT + 2):
        lake.replace("river", ROWS, {Slot("p0"): rows(n, 1_700_000_000_123_457 + n)})
    checkpoints = Path(lake.root, "river", ROWS, "_delta_log").glob("*.checkpoint.parquet")
    assert len(list(checkpoints)) == 1
    (file,) = Lake(lake.root).files("river", ROWS)
    last = COMMITS_PER_CHECKPOINT + 1
    assert file.ranges["event_us"] == (last, 1_700_000_000_123_457 + last)


def test_a_table_that_is_not_there_is_named(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"no table ordered_events of river: run it first"):
        lake.scan("river", ROWS)


def test_appended_rows_join_those_before_and_small_files_become_one(lake: Lake) -> None:
    for n in range(APPENDED_FILES + 1):
        lake.append("river", ROWS, {Slot("p0"): rows(n)})
    assert len(lake.files("river", ROWS)) == 1
    times = lake.scan("river", ROWS).collect()["event_us"].to_list()
    assert sorted(times) == list(range(APPENDED_FILES + 1))


def test_a_lake_may_be_at_an_address(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}")
    (tmp_path / "river" / ROWS / "arrival_partition=p0" / "shard=0").mkdir(parents=True)
    lake.replace("river", ROWS, {Slot("p0"): rows(1, 2)})
    assert lake.scan("river", ROWS).collect()["event_us"].to_list() == [1, 2]
    assert lake.files("river", ROWS)[0].size > 0


def test_a_unit_sees_what_it_has_not_committed_and_nobody_else_does(lake: Lake) -> None:
    put(lake, "p0", 1)
    unit = unit_of(lake)
    unit.replace(ROWS, Slot("p1"), rows(2))
    unit.replace(ROWS, Slot("p0"), rows(3))
    assert unit.read(ROWS)["event_us"].to_list() == [3, 2]
    assert lake.scan("river", ROWS).collect()["event_us"].to_list() == [1]
    unit.flush()
    assert sorted(lake.scan("river", ROWS).collect()["event_us"]) == [2, 3]


def test_the_same_rows_again_are_no_commit(lake: Lake) -> None:
    put(lake, "p0", 1, 2, watermark=7)
    before = versions(lake)
    put(lake, "p0", 1, 2, watermark=7)
    assert versions(lake) == before


def test_the_mark_is_no_row_and_names_its_partition(lake: Lake) -> None:
    put(lake, "p0", 1, watermark=7)
    unit = unit_of(lake)
    assert unit.read(STATE).equals(state(7))
    assert unit.marks(STATE) == {"p0": "made"}


def test_a_mark_is_withdrawn_first_and_set_last(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lake, "p0", 1)
    put(lake, "p1", 2)
    seen: list[tuple[str, set[str]]] = []
    commit = Lake.commit

    def watched(self: Lake, stream: str, table: str, change: object, schema: object) -> None:
        commit(self, stream, table, change, schema)  # type: ignore[arg-type]
        seen.append((table, self.partitions("river", STATE)))

    monkeypatch.setattr(Lake, "commit", watched)
    put(lake, "p1", 2, 3)
    assert seen == [(STATE, {"p0"}), (ROWS, {"p0"}), (STATE, {"p0", "p1"})]


def fail_after_a_write(lake: Lake) -> None:
    with unit_of(lake) as unit:
        unit.replace(ROWS, Slot("p0"), rows(5))
        raise ZeroDivisionError


def test_a_unit_that_fails_changes_nothing(lake: Lake) -> None:
    put(lake, "p0", 1)
    before = versions(lake)
    with pytest.raises(ZeroDivisionError):
        fail_after_a_write(lake)
    assert versions(lake) == before


def test_rows_of_shards_that_are_no_more_leave_with_their_partition(lake: Lake) -> None:
    put(lake, "p0", 1, 2, 3, shards=3)
    put(lake, "p0", 1)
    assert lake.scan("river", ROWS).collect()["event_us"].to_list() == [1]
    assert {file.shard for file in lake.files("river", STATE)} == {0}


def test_a_full_chunk_is_committed_between_partitions(lake: Lake) -> None:
    unit = UnitOfWork(lake, "river", STATE, schemas, chunk_rows=4)
    for n in range(3):
        unit.replace(ROWS, Slot(f"p{n}"), rows(n))
        unit.replace(STATE, Slot(f"p{n}"), state(n), mark="made")
        unit.finish()
    assert lake.partitions("river", STATE) == {"p0", "p1"}


def test_a_lake_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file where the lake should be")
    with pytest.raises(LakeError, match=r"a file of the lake cannot be written \(Not a directory"):
        Lake(str(tmp_path / "lake")).write("river", "rows", Slot("p"), pl.DataFrame({"a": [1]}))
