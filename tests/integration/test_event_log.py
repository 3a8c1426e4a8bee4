"""The embedded event log keeps all events of a batch, and what Dagster looks up by asset."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

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
