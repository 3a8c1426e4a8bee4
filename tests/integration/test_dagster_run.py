"""Through Dagster: every partition is told of, ranges run in one run, a broken spec bars no one."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from polars.testing import assert_frame_equal
from river import River, arrivals, by_rank, content

from assets.stores.lock import LockHeld, StreamLock
from orchestration.definitions import build_defs
from orchestration.jobs import arrivals_job
from transforms import schemas

LOG = arrivals()


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral(str(tmp_path_factory.mktemp("instance"))) as instance:
        yield instance


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory, instance: dg.DagsterInstance) -> River:
    """The log, run through Dagster: all arrivals in one run, then the amendments."""
    river = River(tmp_path_factory.mktemp("river"))
    river.land(LOG, 2)
    river.run_through_dagster(instance)
    return river


def told(instance: dg.DagsterInstance, table: str) -> dict[str, dict[str, Any]]:
    """What the UI shows of a table: its figures, by partition."""
    records = instance.fetch_materializations(dg.AssetKey(["river", table]), limit=100).records
    return {
        str(record.partition_key): {
            name: value.value
            for name, value in record.asset_materialization.metadata.items()  # type: ignore[union-attr]
        }
        for record in reversed(records)
    }


@pytest.mark.parametrize(
    "table",
    [
        *(schemas.STAGED_EVENTS, schemas.REJECTED_ROWS, schemas.ORDERED_EVENTS),
        *(schemas.DEAD_LETTERS, schemas.DUPLICATES, schemas.HELD_EVENTS, schemas.WATERMARKS),
        *(schemas.WINDOW_AGGREGATES, schemas.PUBLISHED_WINDOWS),
    ],
)
def test_every_partition_is_told_of_with_its_rows(
    river: River, instance: dg.DagsterInstance, table: str
) -> None:
    counts = {key: figures["dagster/row_count"] for key, figures in told(instance, table).items()}
    assert list(counts) == list(river.keys)
    if table != schemas.PUBLISHED_WINDOWS:
        by_partition = {
            key: river.lake.scan("river", table, partitions={key}).collect() for key in river.keys
        }
        kept = {
            key: rows.height - (schemas.MARK in rows.columns) for key, rows in by_partition.items()
        }
        assert counts == kept


@pytest.mark.usefixtures("river")
def test_the_books_of_a_partition_are_told_and_balanced(instance: dg.DagsterInstance) -> None:
    books = [figures["books"] for figures in told(instance, schemas.ORDERED_EVENTS).values()]
    assert all(book["balanced"] for book in books)
    assert sum(book["counts"]["staged"] for book in books) == len(LOG)


def test_lateness_is_plotted_for_partitions_with_rows(
    river: River, instance: dg.DagsterInstance
) -> None:
    staged = told(instance, schemas.STAGED_EVENTS)
    assert {"lateness_p50_minutes", "lateness_p99_minutes", "lateness_max_minutes"} <= set(
        staged[river.keys[0]]
    )
    assert set(staged[river.keys[-1]]) == {"dagster/row_count"}


def test_how_arrivals_are_cut_changes_nothing(river: River, tmp_path: Path) -> None:
    other = River(tmp_path, grain="hour", events_grain="hour", shards=2)
    other.land(LOG, 5)
    with dg.DagsterInstance.ephemeral(str(tmp_path / "instance")) as instance:
        other.run_through_dagster(instance)
    names = (schemas.ORDERED_EVENTS, schemas.DEAD_LETTERS, schemas.DUPLICATES)
    for one, two in zip(
        by_rank(*(river.table(name) for name in names)),
        by_rank(*(other.table(name) for name in names)),
        strict=True,
    ):
        assert_frame_equal(one, two, check_exact=True)
    assert_frame_equal(content(river.current()), content(other.current()), check_exact=True)
    assert_frame_equal(content(river.published()), content(other.published()), check_exact=True)


def test_running_again_commits_nothing(river: River, instance: dg.DagsterInstance) -> None:
    versions = river.versions()
    river.run_through_dagster(instance)
    jobs = river.jobs(instance)
    jobs.run(arrivals_job("river"), river.keys[1:2])
    assert river.versions() == versions


def test_a_stream_that_is_being_written_is_left_alone(
    river: River, instance: dg.DagsterInstance
) -> None:
    import threading  # noqa: PLC0415

    object.__setattr__(river.resources["locks"], "patience_s", 0.1)
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with StreamLock(river.settings.locks, "river")():
            holding.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    holding.wait(30)
    try:
        with pytest.raises(LockHeld, match="river is being written by process"):
            river.jobs(instance).run(arrivals_job("river"), river.keys[:1])
    finally:
        done.set()
        other.join()


def test_a_broken_spec_bars_no_other_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    river = River(tmp_path)
    good = river.spec
    (river.settings.streams / "broken.yaml").write_text("name: broken\nsource: {kind: kafka}\n")
    with caplog.at_level(logging.ERROR, logger="lowwater"):
        defs = build_defs(river.settings)
    assert "broken.yaml is left out, its spec is broken" in caplog.text
    assert {job.name for job in defs.resolve_all_job_defs()} >= {
        f"{good.name}_arrivals",
        f"{good.name}_events",
    }


def test_assets_say_what_they_are(river: River) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec})
    specs = list(defs.resolve_all_asset_specs())
    assert specs
    for spec in specs:
        assert spec.key.path[0] == spec.group_name == "river"
        assert spec.description
        assert list(spec.owners) == ["team:telemetry"]
        assert spec.kinds
        assert "html" in spec.kinds or "dagster/column_schema" in spec.metadata
