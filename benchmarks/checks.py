"""What the checks of a day cost, against what computing it cost, in processor time of one process.

``python -m benchmarks.checks`` writes docs/benchmarks/quality.md. It stages a day of made rows,
then computes it and judges it in turn, each time in a process of its own, so that a noisy minute
meets both sides. What is computed from staged rows by arrival (reorder, windows) stands against the
checks of these stages and of staging; what is computed by event (publishing, reconciliation)
against the checks of windows as they are now. Loading Great Expectations, once in a process, is
told apart.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

from assets.history import History, Targets
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.quality import held_by_target
from assets.reconcile import amend
from assets.reorder import reorder
from assets.stored import stored_of
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.windows import close_windows
from benchmarks.headline import PARTITION, clear_results, lake_in, spec_of, stage
from benchmarks.machine import facts
from benchmarks.measure import Measured, run_apart
from expectations.evidence.questions import QUESTIONS
from expectations.run import check
from expectations.stored import Stored, opened
from expectations.suites.stages import STAGES

MILLION: Final = 1_000_000
RUNS: Final = 3
TEMPLATE: Final = Path(__file__).with_name("quality.md.in")
OUT: Final = Path(__file__).parents[1] / "docs" / "benchmarks" / "quality.md"
LOADING: Final = "load Great Expectations"
BY_ARRIVAL: Final = ("staging", "reorder", "windows")
COMPUTED: Final = {"arrival": ("reorder", "windows"), "event": ("publish", "reconcile")}
CHECKED: Final = {
    "arrival": tuple(f"check {name}" for name in BY_ARRIVAL),
    "event": ("check reconcile",),
}


def work(home: Path, axis: str) -> dict[str, float]:
    """Compute and judge one axis of a day that is staged; processor seconds by part."""
    if axis == "arrival":
        clear_results(home)
    computed = {name: cpu_seconds_of(part) for name, part in _stages(home, axis).items()}
    loading = cpu_seconds_of(lambda: __import__("great_expectations"))
    return {**computed, LOADING: loading, **judge(home, axis)}


def _stages(home: Path, axis: str) -> dict[str, Callable[[], Any]]:
    spec, lake = spec_of(1), lake_in(home)
    arrivals, history = Axis.of_arrivals(spec), History(lake, spec, Axis.of_events(spec))
    targets, day = Targets({"default": DuckDBTarget(home / "target.duckdb")}), [PARTITION]
    works: dict[str, Callable[[], Any]] = {
        "reorder": lambda: list(reorder(spec, lake, arrivals, day)),
        "windows": lambda: list(close_windows(spec, lake, arrivals, day)),
        "publish": lambda: list(publish_windows(history, targets, day, "run")),
        "reconcile": lambda: list(amend(history, targets, arrivals, day, "run")),
    }
    return {name: works[name] for name in COMPUTED[axis]}


def judge(home: Path, axis: str) -> dict[str, float]:
    """Judge the stages of one axis of the day; processor seconds by stage.

    Raises:
        RuntimeError: a check failed.
    """
    seconds = {}
    for name in BY_ARRIVAL if axis == "arrival" else ("reconcile",):
        verdicts = []
        seconds[f"check {name}"] = cpu_seconds_of(
            lambda name=name, verdicts=verdicts: verdicts.extend(
                check(_stored(home, axis), name, [home / "reports"], datetime.now(UTC))
            )
        )
        red = [verdict.invariant for verdict in verdicts if not verdict.passed]
        if red:
            raise RuntimeError(f"these checks failed: {red}")
    return seconds


def _stored(home: Path, axis: str) -> Stored:
    spec, lake = spec_of(1), lake_in(home)
    if axis == "arrival":
        return stored_of(lake, spec, Axis.of_arrivals(spec), [PARTITION])
    targets, events = (
        Targets({"default": DuckDBTarget(home / "target.duckdb")}),
        Axis.of_events(spec),
    )
    held = held_by_target(targets, spec, events, [PARTITION])
    return stored_of(lake, spec, events, [PARTITION], held)


def cpu_seconds_of(part: Callable[[], Any]) -> float:
    """Processor seconds of this process, all its threads, while a piece of work runs."""
    begun = time.process_time()
    part()
    return time.process_time() - begun


def by_question(home: Path) -> dict[str, float]:
    """Processor seconds of each question of the arrival axis; what some share, the first pays."""
    seconds = {}
    for name in BY_ARRIVAL:
        with opened(_stored(home, "arrival")) as store:
            for invariant in STAGES[name]:
                question = QUESTIONS[invariant.name]
                seconds[invariant.name] = cpu_seconds_of(lambda ask=question: ask(store))
    return seconds


def ratio(run: Measured, axis: str) -> float:
    """What the checks of an axis cost, as a share of what computing it cost."""
    return _sum(run, CHECKED[axis]) / _sum(run, COMPUTED[axis])


def _sum(run: Measured, parts: Iterable[str]) -> float:
    return sum(run.parts[part] for part in parts)


def measured(rows: int, axis: str) -> list[Measured]:
    """Stage a day, and compute and judge it ``RUNS`` times; event stages follow arrival stages."""
    runs = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            stage(home, rows, 1)
            run = run_apart("benchmarks.checks", "work", folder, "arrival")
            if axis == "event":
                run = run_apart("benchmarks.checks", "work", folder, "event")
            runs.append(run)
            print(f"{axis}: {ratio(run, axis):.2f} {run.parts}", file=sys.stderr)
    return runs


def lines(rows: int, axis: str, runs: list[Measured]) -> list[str]:
    """Rows of the table: the run with the median ratio, part by part."""
    ratios = sorted(ratio(run, axis) for run in runs)
    middle = next(run for run in runs if ratio(run, axis) == statistics.median_low(ratios))
    computed, checked = _sum(middle, COMPUTED[axis]), _sum(middle, CHECKED[axis])
    parts = ", ".join(
        f"{part} {seconds:.2f}" for part, seconds in middle.parts.items() if part != LOADING
    )
    cells = (
        f"{rows // MILLION} million rows, by {axis}",
        *(f"{seconds:.2f}" for seconds in (computed, checked)),
        f"**{checked / computed:.2f}**",
        f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
        f"{middle.parts[LOADING]:.2f}",
        parts,
    )
    return [f"| {' | '.join(cells)} |"]


def report(by_arrival: int, by_event: int) -> str:
    """Measure, and return the page."""
    load = ", ".join(f"{number:.1f}" for number in psutil.getloadavg())
    table = lines(by_arrival, "arrival", measured(by_arrival, "arrival"))
    table += lines(by_event, "event", measured(by_event, "event"))
    with tempfile.TemporaryDirectory() as folder:
        stage(Path(folder), by_arrival, 1)
        run_apart("benchmarks.checks", "work", folder, "arrival")
        questions = by_question(Path(folder))
    values = {
        "table": "\n".join(table),
        "questions": "\n".join(f"| {name} | {cpu:.2f} |" for name, cpu in questions.items()),
        "load": load,
        "machine": "\n".join(f"| {name} | {value} |" for name, value in facts().items()),
    }
    page = TEMPLATE.read_text()
    for name, value in values.items():
        page = page.replace(f"@{name}@", value)
    return page


def main() -> None:
    """Measure and write docs/benchmarks/quality.md."""
    if sys.argv[1:2] == ["work"]:
        print(json.dumps(work(Path(sys.argv[2]), sys.argv[3])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, default=10, help="rows of the arrival stages")
    parser.add_argument("--of-events", type=int, default=1, help="millions, of the event stages")
    arguments = parser.parse_args()
    page = report(arguments.millions * MILLION, arguments.of_events * MILLION)
    OUT.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
