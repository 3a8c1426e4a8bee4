"""Checks in Dagster: a verdict for each partition, also in a run over a range; what blocks."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from gauges import DAYS, SPEC, land, spec_of

from assets.partitions import Axis
from expectations.evidence import questions
from expectations.evidence.tables import EVIDENCE
from expectations.invariants import CATALOGUE
from orchestration.definitions import build_defs
from orchestration.ranges import FIRST, LAST
from orchestration.settings import Settings

BOOKS = "every_row_is_accounted_for"
NEWS = "dead_letters_stay_below_the_alert"
Statuses = dict[str | None, str]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    land(tmp_path)
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "river.yaml").write_text(SPEC.replace("SHARDS", ""))
    return Settings.under(tmp_path)


def wrong_on_the_second_day(_store: object) -> pl.DataFrame:
    rows = [(day, "mill", 10, int(day == DAYS[1]), "as planted") for day in DAYS]
    return pl.DataFrame(rows, schema=EVIDENCE, orient="row")


def run(
    settings: Settings, instance: dg.DagsterInstance, first: str = DAYS[0], last: str = DAYS[-1]
) -> dg.ExecuteInProcessResult:
    definitions = build_defs(settings, specs={"river": spec_of()})
    return definitions.resolve_job_def("river_arrivals").execute_in_process(
        instance=instance, tags={FIRST: first, LAST: last}, raise_on_error=False
    )


def statuses(instance: dg.DagsterInstance, table: str, check: str) -> Statuses:
    """The status of a check for each partition, as its tab in the UI shows it.

    Shown is only what is about the newest materialization of its partition.
    """
    key = dg.AssetCheckKey(dg.AssetKey(["river", table]), check)
    days = Axis.of_arrivals(spec_of()).definition
    state = instance.event_log_storage.get_asset_check_state([(key, days)])[key]
    shown = {
        day: status.value
        for status, subset in state.subsets.items()
        for day in subset.subset_value.get_partition_keys()  # type: ignore[union-attr]
    }
    return {day: shown.get(day, "absent") for day in DAYS}


def evaluation(result: dg.ExecuteInProcessResult, check: str) -> dg.AssetCheckEvaluation:
    return next(e for e in result.get_asset_check_evaluations() if e.check_name == check)


def steps_that_ran(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.step_key for event in result.all_events if event.is_step_success}


def test_a_run_over_a_range_gives_every_partition_its_own_verdict(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(questions.QUESTIONS, NEWS, wrong_on_the_second_day)  # type: ignore[misc]
    result = run(settings, instance)
    assert result.success, "news holds nothing back"
    assert statuses(instance, "dead_letters", NEWS) == {
        day: "FAILED" if day == DAYS[1] else "SUCCEEDED" for day in DAYS
    }
    whole = evaluation(result, NEWS)
    assert (whole.passed, whole.severity) == (False, dg.AssetCheckSeverity.WARN)
    said = whole.description or ""
    assert f"{DAYS[1]}: 1 violation of 10 looked at, worst: mill: as planted." in said
    assert "`lowwater grace river`" in said
    checked = {e.check_name for e in result.get_asset_check_evaluations()}
    assert checked >= {i.name for i in CATALOGUE if i.axis == "arrival"}


def test_a_blocking_check_holds_back_what_builds_on_its_asset(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(questions.QUESTIONS, BOOKS, wrong_on_the_second_day)  # type: ignore[misc]
    result = run(settings, instance)
    assert not result.success
    assert "river__reorder" in steps_that_ran(result)
    assert "river__windows" not in steps_that_ran(result)


def test_what_failed_is_named_in_a_table_with_a_link_to_the_report(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(questions.QUESTIONS, NEWS, wrong_on_the_second_day)  # type: ignore[misc]
    shown = evaluation(run(settings, instance), NEWS).metadata
    table = shown["worst"]
    assert isinstance(table, dg.TableMetadataValue)
    (row,) = table.records
    assert row.data == {
        "partition": DAYS[1],
        "subject": "mill",
        "violations": 1,
        "detail": "as planted",
    }
    assert str(shown["report"].value).endswith("/river/quality.html")


def test_a_run_of_one_partition_gives_that_partition_a_verdict(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    assert run(settings, instance, DAYS[0], DAYS[0]).success
    assert statuses(instance, "ordered_events", BOOKS) == {
        day: "SUCCEEDED" if day == DAYS[0] else "absent" for day in DAYS
    }
