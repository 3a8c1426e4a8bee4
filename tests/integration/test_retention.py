"""Retention: what is old goes, and what the UI shows and the lake refers to stays."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from postgres_server import fresh_database
from river import River, arrivals

from orchestration.definitions import build_defs
from orchestration.embedded import EMBEDDED, prepare
from orchestration.jobs import arrivals_job
from orchestration.retention import prune_files, prune_lake, prune_runs
from orchestration.settings import Settings
from transforms import schemas
from transforms.errors import UsageError

DAY_S = 86_400
SERVER = EMBEDDED.parent / "dagster.yaml"
LATER = 100 * DAY_S


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> River:
    river = River(tmp_path_factory.mktemp("river"))
    river.land(arrivals(rows=60))
    return river


@pytest.fixture(scope="module")
def instance(river: River) -> Iterator[dg.DagsterInstance]:
    """The embedded instance, with a partition run twice and one that failed."""
    before = dict(os.environ)
    with dg.DagsterInstance.from_config(str(prepare(river.settings))) as instance:
        jobs = river.jobs(instance)
        jobs.run(arrivals_job("river"), river.keys[:1])
        jobs.run(arrivals_job("river"), river.keys[:2])
        with pytest.raises(Exception, match="is not there"):
            jobs.run(arrivals_job("river"), river.axis.keys[9:10])
        yield instance
    os.environ.clear()
    os.environ.update(before)


def partitions(instance: dg.DagsterInstance) -> set[str]:
    return instance.get_materialized_partitions(dg.AssetKey(["river", schemas.ORDERED_EVENTS]))


def test_young_runs_stay(instance: dg.DagsterInstance) -> None:
    assert prune_runs(instance, 90).runs == 0
    assert len(instance.get_runs()) == 3


def test_old_runs_go_and_what_the_ui_shows_of_partitions_stays(
    river: River, instance: dg.DagsterInstance
) -> None:
    needed = [run.run_id for run in instance.get_runs()][:2]  # the failed one staged something
    shown = partitions(instance)
    pruned = prune_runs(instance, 90, time.time() + LATER)
    assert pruned.runs == 1
    assert pruned.events > 0
    assert [run.run_id for run in instance.get_runs()] == needed
    assert partitions(instance) == shown == set(river.keys[:2])
    assert prune_runs(instance, 90, time.time() + LATER) == type(pruned)()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_runs_go_from_an_instance_on_postgresql_too(
    tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    river = River(tmp_path)
    river.land(arrivals(rows=20))
    dsn = fresh_database(postgres).replace("postgresql:", "postgresql+psycopg2:", 1)
    monkeypatch.setenv("LOWWATER_INSTANCE_DSN", dsn)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    shutil.copy(SERVER, tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        jobs = river.jobs(instance)
        for _ in range(2):
            jobs.run(arrivals_job("river"), river.keys[:1])
        newest = instance.get_runs()[0].run_id
        pruned = prune_runs(instance, 90, time.time() + LATER)
        assert pruned.runs == 1
        assert pruned.events > 0
        assert [run.run_id for run in instance.get_runs()] == [newest]
        assert partitions(instance) == {river.keys[0]}


def test_versions_of_the_lake_go_and_its_content_stays(river: River) -> None:
    changed = arrivals(rows=60)
    for row in changed:
        row["stage"] = 3.0
    river.land(changed)
    river.take_in(river.keys[:2])
    before = river.tables()
    files = list((river.folder / "lake").rglob("*.parquet"))
    for file in files:
        os.utime(file, (time.time() - LATER,) * 2)
    lock = river.resources["locks"].of("river")
    assert prune_lake(river.spec, river.lake, lock, 1).files >= 0
    for name, rows in river.tables().items():
        assert rows.equals(before[name])
    river.take_in(river.keys[:3])


def test_old_files_go_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.log"
    outside.write_text("kept")
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("old.log", "new.log"):
        (folder / name).write_text(name)
    (folder / "link.log").symlink_to(outside)
    for path in (folder / "old.log", outside):
        os.utime(path, (time.time() - LATER,) * 2)
    assert prune_files([folder, tmp_path / "absent"], 90).files == 1
    assert sorted(path.name for path in folder.iterdir()) == ["link.log", "new.log"]
    assert outside.exists()


def test_the_jobs_run(river: River, instance: dg.DagsterInstance) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec}, resources=river.resources)
    for name in ("maintenance", "river_maintenance"):
        assert defs.resolve_job_def(name).execute_in_process(instance=instance).success


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5"])
def test_an_age_is_a_whole_number_of_days(text: str) -> None:
    with pytest.raises(UsageError, match="LOWWATER_KEEP_RUNS_DAYS"):
        Settings.from_environment({"LOWWATER_KEEP_RUNS_DAYS": text})
