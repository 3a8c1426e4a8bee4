"""The asset `order_audit` and its check, over a stream of three days run through Dagster."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from small_stream import MINUTES, SPEC_TEXT

from assets.catalogue import asset_key
from assets.order_audit import audit_orders
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.tables import LANDED
from orchestration.definitions import build_defs
from orchestration.jobs import arrivals_job
from orchestration.ranges import FIRST, LAST
from orchestration.resources import resources_of
from orchestration.run import Jobs
from orchestration.settings import Settings
from transforms import schemas
from transforms.errors import CheckError, LakeError
from transforms.spec import StreamSpec, load_spec

CHECK = "no_same_key_pair_is_inverted"
DAYS = ("1970-01-01", "1970-01-02", "1970-01-03")
DAY_S = 86_400
# Key, event and arrival in seconds of each day, in the order of arrival; grace is ten seconds.
LOG = [("a", 0, 1), ("b", 5, 6), ("a", 30, 31), ("a", 25, 32), ("b", 50, 51), ("a", 100, 101)]


class Gauges:
    """An installation with one stream, and an instance that records its runs."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.settings = Settings.under(folder)
        text = SPEC_TEXT.replace("WINDOWS", MINUTES).replace("unit: iso8601", "unit: s")
        self.spec: StreamSpec = load_spec(text, file="gauges.yaml")
        self.resources = resources_of(self.settings)
        self.definitions = build_defs(
            self.settings, specs={"gauges": self.spec}, resources=self.resources
        )
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "station": key,
                "sampled_at": day * DAY_S + event,
                "received_at": day * DAY_S + arrival,
            }
            for day in range(len(DAYS))
            for key, event, arrival in LOG
        ]
        lines = (json.dumps({**row, "level": 1.0}) + "\n" for row in rows)
        (folder / "log.ndjson").write_text("".join(lines))

    @property
    def lake(self) -> Lake:
        lake: Lake = self.resources["lake"]  # type: ignore[assignment]
        return lake

    def run(self, tags: dict[str, str], only: Sequence[dg.AssetKey] | None = None) -> bool:
        """Run the job over arrivals, or some of its assets with their checks."""
        job = self.definitions.resolve_job_def(arrivals_job("gauges"))
        result = job.execute_in_process(
            instance=self.instance, tags=tags, raise_on_error=False, asset_selection=only
        )
        return result.success

    def audit(self, first: str = DAYS[0], last: str = DAYS[-1]) -> bool:
        return self.run({FIRST: first, LAST: last}, [self.key])

    @property
    def key(self) -> dg.AssetKey:
        return asset_key(self.spec, schemas.ORDER_AUDIT)

    def verdicts(self) -> dict[str | None, str]:
        """The newest evaluation of each partition; None stands for a whole run."""
        log = self.instance.event_log_storage
        found = log.get_asset_check_execution_history(dg.AssetCheckKey(self.key, CHECK), 1000)
        return {record.partition: record.status.value for record in reversed(found)}

    def figures(self, partition: str) -> dict[str, Any]:
        records = dg.AssetRecordsFilter(asset_key=self.key, asset_partitions=[partition])
        [record] = self.instance.fetch_materializations(records, limit=1).records
        assert record.asset_materialization is not None
        metadata = record.asset_materialization.metadata
        return {name: value.value for name, value in metadata.items()}

    def table(self, name: str, partition: str) -> pl.DataFrame:
        return self.lake.scan("gauges", name, partitions=[partition]).collect()

    def plant(self, name: str, partition: str, frame: pl.DataFrame) -> None:
        """Put a fault in a table, behind the back of its stage."""
        self.lake.replace("gauges", name, {Slot(partition): frame})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gauges]:
    """The stream after one run over all three days; to be left as it is."""
    with dg.DagsterInstance.ephemeral() as instance:
        gauges = Gauges(tmp_path_factory.mktemp("whole"), instance)
        assert gauges.run({FIRST: DAYS[0], LAST: DAYS[-1]})
        yield gauges


@pytest.fixture
def gauges(whole: Gauges, tmp_path: Path) -> Iterator[Gauges]:
    """A copy of it, with an instance that knows of no run yet."""
    shutil.copytree(whole.settings.home, tmp_path, dirs_exist_ok=True)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Gauges(tmp_path, instance)


def test_a_run_over_a_range_has_a_verdict_for_each_partition_and_one_over_all(
    whole: Gauges,
) -> None:
    assert whole.verdicts() == dict.fromkeys((*DAYS, None), "SUCCEEDED")


def test_a_run_over_one_partition_has_the_verdict_of_that_partition_alone(gauges: Gauges) -> None:
    assert gauges.run({"dagster/partition": DAYS[1]}, [gauges.key])
    assert gauges.verdicts() == {DAYS[1]: "SUCCEEDED"}


def test_a_range_of_one_partition_is_judged_as_that_partition(gauges: Gauges) -> None:
    released = gauges.table(schemas.ORDERED_EVENTS, DAYS[1])
    gauges.plant(schemas.ORDERED_EVENTS, DAYS[1], released.reverse())
    assert not gauges.audit(DAYS[1], DAYS[1])
    assert gauges.verdicts()[DAYS[1]] == "FAILED"
    assert gauges.verdicts().keys() <= {DAYS[1], None}


def test_the_figures_of_a_partition_are_numbers_that_the_ui_can_plot(whole: Gauges) -> None:
    figures = whole.figures(DAYS[0])
    # 0 5 30 25 50 100 in the order of arrival, of which 30 25 are of one key.
    assert figures["source_event_inverted"] == 1
    assert figures["source_event_inverted_fraction"] == 1 / 15
    assert figures["source_event_same_key_inverted"] == 1
    assert figures["source_event_same_key_inverted_fraction"] == 1 / 7
    assert figures["released_event_same_key_inverted"] == 0
    for stamp in ("handed_out", "begun", "landed"):
        assert figures[f"publishing_{stamp}_same_key_inverted"] == 0
    # a has four of six rows: it alone takes two thirds of one worker's time.
    assert figures["key_heaviest"] == "a"
    assert figures["key_heaviest_fraction"] == 4 / 6
    assert figures["keyed_speed_up_of_4_workers"] == 6 / 4
    assert all(isinstance(v, int | float) for k, v in figures.items() if k != "key_heaviest")


def test_global_disorder_is_told_and_not_judged(whole: Gauges) -> None:
    # In the lake the keys of a partition stand one after another: 25 30 100 of a, then 5 of b.
    figures = whole.figures(DAYS[0])
    assert figures["released_event_inverted"] > 0
    assert whole.verdicts()[DAYS[0]] == "SUCCEEDED"


def test_a_swap_in_one_partition_fails_that_partition_and_the_run(gauges: Gauges) -> None:
    released = gauges.table(schemas.ORDERED_EVENTS, DAYS[1])
    gauges.plant(schemas.ORDERED_EVENTS, DAYS[1], released.reverse())
    assert not gauges.audit()
    assert gauges.verdicts() == {
        DAYS[0]: "SUCCEEDED",
        DAYS[1]: "FAILED",
        DAYS[2]: "SUCCEEDED",
        None: "FAILED",
    }
    assert gauges.figures(DAYS[1])["released_event_same_key_inverted"] > 0
    assert gauges.figures(DAYS[2])["released_event_same_key_inverted"] == 0


def test_a_row_released_after_a_later_one_of_the_partition_before_is_seen(gauges: Gauges) -> None:
    released = gauges.table(schemas.ORDERED_EVENTS, DAYS[2])
    is_first = pl.int_range(pl.len()) == 0
    early = pl.when(is_first).then(1).otherwise(pl.col("event_us")).alias("event_us")
    gauges.plant(schemas.ORDERED_EVENTS, DAYS[2], released.with_columns(early))
    assert not gauges.audit()
    assert gauges.verdicts()[DAYS[1]] == "SUCCEEDED"
    assert gauges.verdicts()[DAYS[2]] == "FAILED"
    assert gauges.figures(DAYS[2])["released_event_same_key_inverted"] == 1


def test_batches_of_one_lane_that_landed_the_wrong_way_round_fail(gauges: Gauges) -> None:
    [stamp] = gauges.table(schemas.PUBLICATION_STAMPS, DAYS[1]).head(1).to_dicts()
    swapped = [{**stamp, "batch": n, "handed_out": n, "begun": n, LANDED: -n} for n in (1, 2)]
    schema = gauges.table(schemas.PUBLICATION_STAMPS, DAYS[1]).schema
    gauges.plant(schemas.PUBLICATION_STAMPS, DAYS[1], pl.DataFrame(swapped, schema=schema))
    with pytest.raises(CheckError, match=CHECK) as failed:
        Jobs(gauges.definitions, gauges.instance).run(arrivals_job("gauges"), DAYS)
    assert failed.value.exit_code == 1
    assert gauges.verdicts()[DAYS[1]] == "FAILED"
    other_lanes = [{**row, "lane": row["batch"]} for row in swapped]
    gauges.plant(schemas.PUBLICATION_STAMPS, DAYS[1], pl.DataFrame(other_lanes, schema=schema))
    assert gauges.audit()
    assert gauges.figures(DAYS[1])["publishing_landed_inverted"] == 1


def test_a_second_run_changes_neither_stamps_nor_audits(gauges: Gauges) -> None:
    tables = (schemas.PUBLICATION_STAMPS, schemas.ORDER_AUDIT, schemas.PUBLISHED_WINDOWS)
    versions = [gauges.lake.version("gauges", table) for table in tables]
    assert gauges.run({FIRST: DAYS[0], LAST: DAYS[-1]})
    assert [gauges.lake.version("gauges", table) for table in tables] == versions


def test_a_partition_whose_windows_are_not_published_is_not_audited(gauges: Gauges) -> None:
    gauges.lake.delete_partitions("gauges", schemas.PUBLISHED_WINDOWS, [DAYS[1]])
    with pytest.raises(LakeError, match=f"{DAYS[1]} of published_windows is not there"):
        list(audit_orders(gauges.spec, gauges.lake, Axis.of_arrivals(gauges.spec), DAYS))
