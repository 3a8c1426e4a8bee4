"""What the checks of a day cost, against what computing it cost.

``python -m benchmarks.checks HOME ROWS`` computes a day from staged rows to the target and judges
it; it prints seconds by part as JSON, and seconds by invariant before that. The library that judges
evidence takes six seconds to import, once in a process; that is told apart.
"""

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assets.history import History, Targets
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.reconcile import amend
from assets.reorder import reorder
from assets.stored import stored_of
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.windows import close_windows
from benchmarks.headline import PARTITION, lake_in, spec_of, stage
from expectations.evidence.questions import QUESTIONS
from expectations.run import check
from expectations.suites.stages import STAGES


def compute(home: Path) -> dict[str, float]:
    """Take the staged rows to the target; seconds by part."""
    spec, lake = spec_of(1), lake_in(home)
    axis, history = Axis.of_arrivals(spec), History(lake, spec, Axis.of_events(spec))
    targets = Targets({"default": DuckDBTarget(home / "target.duckdb")})
    works: dict[str, Callable[[], Any]] = {
        "reorder": lambda: list(reorder(spec, lake, axis, [PARTITION])),
        "windows": lambda: list(close_windows(spec, lake, axis, [PARTITION])),
        "publish": lambda: list(publish_windows(history, targets, [PARTITION], "run")),
        "reconcile": lambda: list(amend(history, targets, axis, [PARTITION], "run")),
    }
    return {name: seconds_of(work) for name, work in works.items()}


def judge(home: Path) -> dict[str, float]:
    """Judge every stage of the day; seconds by stage."""
    spec, lake = spec_of(1), lake_in(home)
    events = Axis.of_events(spec)
    with DuckDBTarget(home / "target.duckdb") as target:
        current = target.current(spec.name)
    of_arrivals = stored_of(lake, spec, Axis.of_arrivals(spec), [PARTITION])
    of_events = stored_of(lake, spec, events, [PARTITION], current)
    import_judge = seconds_of(lambda: __import__("great_expectations"))
    seconds = {"import": import_judge}
    for stage_name, invariants in STAGES.items():
        stored = of_events if invariants[0].axis == "event" else of_arrivals
        begun = time.perf_counter()
        verdicts = check(stored, stage_name, [home / "reports"], datetime.now(UTC))
        seconds[f"check {stage_name}"] = time.perf_counter() - begun
        red = [v.invariant for v in verdicts if not v.passed]
        if red:
            raise RuntimeError(f"these checks failed: {red}")
    return seconds


def seconds_of(work: Callable[[], Any]) -> float:
    """How long it took."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def tell_each() -> None:
    """Print what each question takes, as it is asked."""
    questions: Any = QUESTIONS
    for name, question in dict(QUESTIONS).items():

        def timed(store: Any, name: str = name, question: Any = question) -> Any:
            begun = time.perf_counter()
            answer = question(store)
            print(f"{name}: {time.perf_counter() - begun:.2f} s", file=sys.stderr)
            return answer

        questions[name] = timed


def main() -> None:
    """Compute and judge a day of so many rows."""
    home, rows = Path(sys.argv[1]), int(sys.argv[2])
    if not (home / "target.duckdb").exists():
        stage(home, rows, 1)
        print(json.dumps(compute(home)))
    tell_each()
    print(json.dumps(judge(home)))


if __name__ == "__main__":
    main()
