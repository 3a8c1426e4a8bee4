"""Kill a run at random points, run again, and compare with a run that nothing disturbed.

    .venv/bin/python tests/end_to_end/kill_anywhere.py --kills 60 --seed 1

Every kill is a real SIGKILL of a process, at one of four kinds of places: before or after a step
that leaves something behind (`kill_points`), amid a data file, at a random time, or any of these in
`lowwater run` itself. They are drawn so that every stage has its share, in a first run and in one
that replaces partitions which are done; one in four of the runs after it is killed too.

In between, readers must see whole partitions alone: each marked one is as in the run before or as
in the undisturbed run, all its tables and shards alike. In the end all tables, row by row per slot,
the target, its revisions, and the figures of the books must be those of the undisturbed run
(`published_at` and `run_id` aside).
"""

import argparse
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

ROOT = Path(__file__).parents[2]
PLACES = [str(ROOT), str(ROOT / "tests")]
sys.path[:0] = [path for path in PLACES if path not in sys.path]

from end_to_end import killed_stream  # noqa: E402 (found by the path above)
from end_to_end.kill_points import arm  # noqa: E402
from end_to_end.killed_stream import MARKED, NAME, Content, copied, deliver  # noqa: E402

FORKS = multiprocessing.get_context("forkserver")
# Imported once, in a process that does nothing else; a child is forked from it in milliseconds.
# It is told by the environment alone where to find them.
os.environ["PYTHONPATH"] = os.pathsep.join([*PLACES, *filter(None, [os.environ.get("PYTHONPATH")])])
FORKS.set_forkserver_preload(["end_to_end.kill_points", "end_to_end.killed_stream"])
# How many slots are committed at once: as ever, or so few that a stage takes many commits.
CHUNKS = (None, 5)
PATIENCE_S = 120


@dataclass(frozen=True)
class Plan:
    """One trial: the scenario, how it is run, where it is killed (a point, or a time)."""

    scenario: "Scenario"
    by_command: bool
    point: int | None
    seconds: float
    again: bool

    def __str__(self) -> str:
        how = "lowwater run" if self.by_command else "stages"
        where = f"after {self.seconds:.2f} s"
        if self.point is not None:
            where = f"{self.scenario.points[self.point]} (point {self.point})"
        return f"{self.scenario.name}, {how}, {where}{', and again' if self.again else ''}"


@dataclass(frozen=True)
class Scenario:
    """A home before a run, what an undisturbed run made of it, and the points that it passed."""

    name: str
    before: Path
    slots: int | None
    was: Content
    expected: Content
    points: Sequence[str]
    seconds: float


def child(home: str, burns_at: int | None, slots: int | None, *, by_command: bool) -> None:
    """Run the stream of a home in this process, which may not live to see the end."""
    arm(burns_at, slots=slots, noted=Path(home, "points.txt"))
    if not by_command:
        killed_stream.run_stages(Path(home))
        return
    from orchestration.cli import main  # noqa: PLC0415

    os.environ |= environment(Path(home))
    with Path(home, "out.txt").open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    sys.exit(main(["run", NAME]))


def environment(home: Path) -> dict[str, str]:
    return {"LOWWATER_HOME": str(home), "LOWWATER_STREAMS": str(home / "streams")}


def started(
    home: Path, burns_at: int | None, slots: int | None, *, by_command: bool = False
) -> BaseProcess:
    arguments = (str(home), burns_at, slots)
    process = FORKS.Process(target=child, args=arguments, kwargs={"by_command": by_command})
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    process.join(PATIENCE_S)
    assert process.exitcode is not None, "the child hangs"
    return process.exitcode


def undisturbed(before: Path, folder: Path, name: str, slots: int | None) -> tuple[Scenario, Path]:
    """Run a copy of a home to its end, and note the points on the way."""
    home = copied(before, folder / f"undisturbed {name}")
    was, began = Content(home), time.monotonic()
    assert ended(started(home, None, slots)) == 0
    seconds = time.monotonic() - began
    points = (home / "points.txt").read_text().splitlines()
    (home / "points.txt").unlink()
    return Scenario(name, before, slots, was, Content(home), points, seconds), home


def scenarios(folder: Path, seed: int, chunks: Sequence[int | None]) -> Iterator[Scenario]:
    """A first run and a second one, for each size of chunks."""
    fresh = folder / "fresh"
    deliver(fresh, seed)
    for slots in chunks:
        size = "" if slots is None else f" in chunks of {slots} slots"
        first, after = undisturbed(fresh, folder, f"first run{size}", slots)
        yield first
        second = copied(after, folder / f"second{size}")
        deliver(second, seed, second=True)
        yield undisturbed(second, folder, f"second run{size}", slots)[0]


def plans(known: Sequence[Scenario], random: Random, *, commands: int) -> Iterator[Plan]:
    """Draw trials without end: each third trial a command, as far as asked, each fifth by time."""
    stages = itertools.cycle(dict.fromkeys(map(stage_of, known[0].points)))
    for number in itertools.count():
        scenario = known[number % len(known)]
        by_command = number % 3 == 2 and number // 3 < commands
        by_time = number % 5 == 4 and not by_command
        point = None if by_time else drawn(scenario, next(stages), random)
        seconds = random.uniform(0, scenario.seconds)
        yield Plan(scenario, by_command, point, seconds, again=random.random() < 0.25)


def drawn(scenario: Scenario, stage: str, random: Random) -> int:
    """Draw a point: of a stage, the kinds of steps have equal shares."""
    label = random.choice(sorted({text for text in scenario.points if stage_of(text) == stage}))
    return random.choice([place for place, text in enumerate(scenario.points) if text == label])


def stage_of(label: str) -> str:
    return label.partition(":")[0]


def killed(plan: Plan, home: Path, random: Random) -> bool:
    """Run until the kill; False if the process had ended before."""
    process = started(home, plan.point, plan.scenario.slots, by_command=plan.by_command)
    if plan.point is None:
        process.join(plan.seconds)
        process.kill()
    codes = [ended(process)]
    if plan.again:
        at = random.randrange(len(plan.scenario.points))
        codes.append(ended(started(home, at, plan.scenario.slots)))
    assert {0, -signal.SIGKILL}.issuperset(codes), f"{plan}: exit codes {codes}"
    return codes[0] != 0


def tried(plan: Plan, folder: Path, random: Random) -> bool:
    """Kill, look at what readers see, run to the end, compare. Returns whether it was killed."""
    home = copied(plan.scenario.before, folder / "trial")
    is_killed = killed(plan, home, random)
    require_whole_partitions(plan, Content(home))
    if plan.by_command:
        program = Path(sys.executable).with_name("lowwater")
        told = {**os.environ, **environment(home)}
        subprocess.run([program, "run", NAME], env=told, check=True, capture_output=True)
    else:
        assert ended(started(home, None, plan.scenario.slots)) == 0
    require_equal(plan, Content(home), plan.scenario.expected)
    return is_killed


def require_whole_partitions(plan: Plan, seen: Content) -> None:
    """Marked partitions and revisions are those of before or of the undisturbed run, not mixed."""
    versions = (plan.scenario.was, plan.scenario.expected)
    for marked in MARKED:
        for name in seen.complete(marked):
            found = seen.partition(marked, name)
            wanted = [version.partition(marked, name) for version in versions]
            assert any(equal(found, each) for each in wanted), f"{plan}: {marked} {name} is mixed"
    for slot, rows in seen.tables["window_history"].items():
        known = plan.scenario.expected.tables["window_history"][slot]
        assert rows.join(known, on=rows.columns, nulls_equal=True, how="anti").is_empty(), plan
    # Where staging is ahead of the rest in a second run, the two are of different sources.
    assert seen.figures["balanced"] or plan.scenario.was.sources.height, f"{plan}: the books"
    require_newest(plan, seen)


def require_newest(plan: Plan, seen: Content) -> None:
    """The target says of each window its newest revision, and says nothing the lake does not."""
    if not seen.target:
        return
    names = ["window", "key", "window_start_us"]
    revisions, current = seen.target["revisions"], seen.target["current"]
    newest = revisions.sort(*names, "revision").unique(names, keep="last", maintain_order=True)
    assert newest.equals(current), f"{plan}: current"
    said = pl.concat(seen.tables["window_history"].values())
    assert revisions.join(said, on=[*names, "revision"], how="anti").is_empty(), f"{plan}: target"


def equal(one: dict[Any, pl.DataFrame], other: dict[Any, pl.DataFrame]) -> bool:
    return one.keys() == other.keys() and all(one[key].equals(other[key]) for key in one)


def require_equal(plan: Plan, found: Content, wanted: Content) -> None:
    for table, slots in wanted.tables.items():
        assert found.tables[table].keys() == slots.keys(), f"{plan}: slots of {table}"
        for slot, rows in slots.items():
            assert found.tables[table][slot].equals(rows), f"{plan}: {table} {slot}"
    for name, rows in wanted.target.items():
        kept = killed_stream.UNCOMPARED
        assert found.target[name].drop(kept).equals(rows.drop(kept)), f"{plan}: target {name}"
    assert found.sources.equals(wanted.sources), f"{plan}: register of files"
    assert found.figures == wanted.figures, f"{plan}: figures"


def kill_and_compare(
    folder: Path,
    kills: int,
    seed: int,
    *,
    commands: int = 0,
    chunks: Sequence[int | None] = CHUNKS,
    tell: Callable[[str], None] = lambda _: None,
) -> Counter[str]:
    """Try until so many processes were killed; returns how often in which stage."""
    random = Random(seed)  # noqa: S311 (no secret)
    known = list(scenarios(folder, seed, chunks))
    struck: Counter[str] = Counter()
    for plan in plans(known, random, commands=commands):
        if struck.total() >= kills:
            break
        if tried(plan, folder, random):
            at = "by time" if plan.point is None else stage_of(plan.scenario.points[plan.point])
            struck[at] += 1
            tell(f"{struck.total():>4} {plan}")
    return struck


def main(tell: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--commands", type=int, default=5, help="at most so many of `lowwater run` itself"
    )
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        struck = kill_and_compare(
            Path(folder), given.kills, given.seed, commands=given.commands, tell=tell
        )
    told = ", ".join(f"{count} {stage}" for stage, count in sorted(struck.items()))
    tell(f"{struck.total()} kills ({told}), {time.monotonic() - began:.0f} s:")
    tell("every run after them gave what the undisturbed one gave")


if __name__ == "__main__":
    main()
