"""The embedded event log keeps all events of a batch, and what Dagster looks up by asset."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluation
from dagster._core.events import DagsterEvent
from dagster_postgres import PostgresEventLogStorage

from assets.verdicts import ANY_BATCH
from orchestration.embedded import instance_of
from orchestration.settings import DAGSTER_HOME, Settings

DAYS = dg.DailyPartitionsDefinition("2024-01-01", end_date="2024-03-01")
ONE = dg.AssetKey(["river", "one"])
TWO = dg.AssetKey(["river", "two"])


@dg.multi_asset(specs=[dg.AssetSpec(ONE), dg.AssetSpec(TWO)], partitions_def=DAYS)
def both(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
    for number, name in enumerate(context.partition_keys):
        context.add_asset_metadata({"number": number}, asset_key=TWO, partition_key=name)
    for key in (ONE, TWO):
        yield dg.MaterializeResult(asset_key=key)


def test_a_range_of_partitions_is_recorded_whole_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DAGSTER_HOME, str(tmp_path / "dagster"))
    keys = DAYS.get_partition_keys()
    tags = {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
    }
    with instance_of(Settings.under(tmp_path)) as instance:
        for _ in range(2):
            assert dg.materialize([both], instance=instance, tags=tags).success
        assert (tmp_path / "dagster" / "event_log.db").exists()
        records = instance.fetch_materializations(TWO, limit=len(keys)).records
        numbers = {
            record.partition_key: record.asset_materialization.metadata["number"].value  # type: ignore[union-attr]
            for record in records
        }
        assert numbers == {key: number for number, key in enumerate(keys)}
        assert instance.get_materialized_partitions(ONE) == set(keys)
        newest = instance.get_latest_materialization_event(TWO)
        assert newest is not None
        assert newest.run_id == records[0].run_id
        assert {key.to_user_string() for key in instance.all_asset_keys()} == {
            "river/one",
            "river/two",
        }


def evaluations(run_id: str, partitions: list[str]) -> list[dg.EventLogEntry]:
    """What a run over a range says of one check on each of its partitions."""
    check = dg.AssetCheckKey(ONE, "is_whole")
    return [
        dg.EventLogEntry(
            error_info=None,
            level="debug",
            user_message="",
            run_id=run_id,
            timestamp=1.0,
            dagster_event=DagsterEvent(
                event_type_value=dg.DagsterEventType.ASSET_CHECK_EVALUATION.value,
                job_name="job",
                event_specific_data=AssetCheckEvaluation(
                    asset_key=check.asset_key,
                    check_name=check.name,
                    passed=True,
                    metadata={},
                    partition=partition,
                ),
            ),
        )
        for partition in partitions
    ]


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv(DAGSTER_HOME, str(tmp_path / "dagster"))
    with instance_of(Settings.under(tmp_path)) as instance:
        yield instance


def test_the_verdicts_of_a_batch_are_all_there(instance: dg.DagsterInstance) -> None:
    days = DAYS.get_partition_keys()
    instance.event_log_storage.store_event_batch(evaluations("run", days))
    records = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(ONE, "is_whole"), limit=100
    )
    assert [record.partition for record in reversed(records)] == days


def test_a_batch_that_fails_half_way_leaves_nothing(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = instance.event_log_storage
    store, seen = type(log).store_event, []

    def failing(event: dg.EventLogEntry) -> None:
        seen.append(event)
        if len(seen) == 3:
            raise OSError("the disk is full")
        store(log, event)

    events = evaluations("run", DAYS.get_partition_keys())
    with monkeypatch.context() as patch:
        patch.setattr(log, "store_event", failing)
        with pytest.raises(OSError, match="disk is full"):
            log.store_event_batch(events)
    check = dg.AssetCheckKey(ONE, "is_whole")
    assert log.get_asset_check_execution_history(check, limit=100) == []
    log.store_event_batch(events)
    assert len(log.get_asset_check_execution_history(check, limit=100)) == len(events)


def test_verdicts_come_in_batches_where_the_log_takes_them_so(
    instance: dg.DagsterInstance,
) -> None:
    """That of PostgreSQL takes materializations alone, and says so on stderr for every batch."""
    assert getattr(instance.event_log_storage, ANY_BATCH)
    assert not hasattr(PostgresEventLogStorage, ANY_BATCH)
