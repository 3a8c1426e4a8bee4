"""What the quality page says: of a river that is well, of faults in it, of hardly anything."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from gauges import DAYS, River, event_days, flow

from assets.history import Targets
from assets.quality import held_by_target
from assets.stored import stored_of
from expectations.evidence import questions
from expectations.evidence.tables import EVIDENCE
from expectations.report.docs import KEPT, prune
from expectations.report.report import build_report
from expectations.report.state import state_of
from expectations.results import Verdict
from expectations.run import check
from expectations.suites.judge import VALIDATIONS
from expectations.suites.stages import STAGES

NOW = datetime(2024, 3, 5, 0, 10, tzinfo=UTC)
Change = Callable[[pl.DataFrame], pl.DataFrame]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> River:
    return flow(tmp_path_factory.mktemp("river"))


@pytest.fixture
def river(source: River, tmp_path: Path) -> River:
    return source.copied_to(tmp_path / "river")


def report(river: River, *stages: str) -> str:
    """Judge some stages and write the page; returns its text, without marks, in one line."""
    events = event_days(river)
    of_arrivals = stored_of(river.lake, river.spec, river.arrivals, DAYS)
    held = held_by_target(Targets({"default": river.target}), river.spec, river.events, events)
    of_events = stored_of(river.lake, river.spec, river.events, events, held)
    folder = river.folder / "reports"
    for stage in stages:
        stored = of_events if STAGES[stage][0].axis == "event" else of_arrivals
        check(stored, stage, [folder], NOW)
    build_report(of_arrivals, of_events, folder, folder / "quality.html")
    page = (folder / "quality.html").read_text()
    body = page[page.index("<body") :]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def change(river: River, table: str, how: Change, partition: str = DAYS[1]) -> None:
    stored = river.read(table, partition)
    rows = how(stored.filter(pl.col("mark").is_null()))
    river.write(table, partition, pl.concat([stored.filter(pl.col("mark").is_not_null()), rows]))


def test_a_river_that_is_well_is_said_to_be_well_proved_and_in_order(river: River) -> None:
    said = report(river, *STAGES)
    windows = river.lake.scan("river", "window_history").collect()
    names = windows.select("window", "key", "window_start_us").unique().height
    assert "All is well: every promise holds." in said
    assert f"Proved bit for bit: {names:,} windows, all equal." in said
    assert re.search(r"Kept: of [\d,]+ released pairs of one key none is inverted", said)
    assert "Newest row arrived 2024-03-04 21:40, 2.5 h before" in said
    assert "Left out: published_at and run_id" in said
    assert "in the lake in the target what differs" in said


def test_a_proof_that_found_a_difference_is_shown_with_its_cause_and_the_command(
    river: River,
) -> None:
    finding = '{"findings": [{"verdict": "CHANGED", "column": "level_mean",'
    finding += ' "cause": "float-last-bits", "count": 3}]}'
    changed = {"verdict": pl.lit("CHANGED"), "summary": pl.lit(finding)}
    change(river, "target_parity", lambda rows: rows.with_columns(**changed))
    said = report(river, "target_parity")
    assert "The target is not proved to hold what was published." in said
    assert f"In {DAYS[1]} only; later partitions are well" in said
    assert "lowwater parity river --repair" in said
    assert "CHANGED level_mean float-last-bits" in said
    assert f"1 of 5 event partitions are not proved equal: {DAYS[1]}." in said


def test_a_partition_published_to_since_its_proof_is_not_proved(river: River) -> None:
    change(river, "target_parity", lambda rows: rows.with_columns(pl.col("source_rows") - 1))
    assert "NOT PROVED" in report(river, "target_parity")


def test_an_order_that_was_broken_is_shown_where_it_was(river: River) -> None:
    change(
        river,
        "order_audit",
        lambda rows: rows.with_columns(
            same_key_inverted=pl.when(pl.col("order_of") == "released")
            .then(7)
            .otherwise(0)
            .cast(pl.Int64)
        ),
    )
    said = report(river, "order_audit")
    assert f"Broken in {DAYS[1]}: pairs of one key came the wrong way round." in said
    assert "Rows of a key, or batches of a lane, came the wrong way round." in said
    assert f"lowwater run river --from {DAYS[1]}" in said


def test_a_partition_without_an_audit_is_named(river: River) -> None:
    change(river, "order_audit", lambda rows: rows.clear(), DAYS[2])
    assert f"Not audited: {DAYS[2]}." in report(river, "order_audit")


def test_a_check_that_looked_at_nothing_is_a_failure(
    river: River, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = EVIDENCE.to_frame()
    monkeypatch.setitem(questions.QUESTIONS, "no_event_counts_twice", lambda _: nothing)  # type: ignore[misc]
    said = report(river, "reorder")
    assert "There are rows, but the check found nothing to look at." in said
    assert f"Since {DAYS[0]} (4 partitions so far) Events count more than once." in said


@pytest.mark.parametrize(
    ("failing", "told"),
    [
        (DAYS, f"Since {DAYS[0]} (4 partitions so far)"),
        (DAYS[3:], f"Since {DAYS[3]} (the newest)"),
        (DAYS[2:], f"Since {DAYS[2]} (2 partitions so far)"),
        ([DAYS[0], DAYS[3]], f"Since {DAYS[3]} (the newest), and in 1 before"),
        ([DAYS[0], *DAYS[2:]], f"Since {DAYS[2]} (2 partitions so far), and in 1 before"),
        (DAYS[1:2], f"In {DAYS[1]} only; later partitions are well"),
        (DAYS[:2], f"In 2 partitions, last in {DAYS[1]}; later ones are well"),
    ],
)
def test_since_when_is_said_of_the_failures_in_a_row(failing: list[str], told: str) -> None:
    verdicts = [
        Verdict("clocks_are_right", day, passed=day not in failing, examined=9, violations=0)
        for day in DAYS
    ]
    [problem] = state_of(verdicts).warnings
    assert problem.when == told


def test_old_validations_are_pruned_and_the_newest_stay(tmp_path: Path) -> None:
    runs = [f"20240305T{number:06}" for number in range(KEPT + 5)]
    for run in runs:
        (tmp_path / VALIDATIONS / "reorder" / "reorder" / run).mkdir(parents=True)
    prune(tmp_path)
    left = sorted(path.name for path in (tmp_path / VALIDATIONS / "reorder" / "reorder").iterdir())
    assert left == runs[5:]


def test_nothing_stored_is_no_error(tmp_path: Path, source: River) -> None:
    lake = replace(source.lake, root=str(tmp_path / "lake"), _open={})
    empty = River(tmp_path, source.spec, lake, type(source.target)(tmp_path / "target.duckdb"))
    said = report_of_nothing(empty)
    assert "Nothing has been checked yet. What to do Run the stream: lowwater run river" in said


def report_of_nothing(river: River) -> str:
    stored = stored_of(river.lake, river.spec, river.arrivals, ())
    build_report(stored, stored, river.folder, river.folder / "quality.html")
    page = (river.folder / "quality.html").read_text()
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
