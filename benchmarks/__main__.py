"""``make bench``: the headline figures, written as a table with the machine's facts.

Every figure is a ratio inside this run, of medians of three; each piece of work runs in a process
of its own. The order audit and the ordered map have benchmarks of their own beside this one.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.machine import facts
from benchmarks.measure import Measured, median_of, run_apart

RUNS = 3
MILLION = 1_000_000
OUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "headline.md"


def staged_files(home: Path) -> list[str]:
    """The Parquet files with the staged rows."""
    return [str(path) for path in (home / "lake/fleet/staged_events").rglob("*.parquet")]


def in_turn(works: dict[str, Callable[[], Measured]], times: int = RUNS) -> dict[str, Measured]:
    """Run the works in turn, so that a noisy minute meets all of them; the median of each."""
    runs: dict[str, list[Measured]] = {name: [] for name in works}
    for _ in range(times):
        for name, work in works.items():
            runs[name].append(work())
            print(f"{name}: {runs[name][-1].seconds:.2f} s", file=sys.stderr)
    return {name: median_of(measured) for name, measured in runs.items()}


def headline(home: Path, rows: int, shards: int = 1) -> dict[str, Measured]:
    """Ours against the two floors, on so many rows."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.headline", "stage", str(home), str(rows), str(shards)],
        check=True,
    )
    files = staged_files(home)
    return in_turn(
        {
            "ours": lambda: run_apart("benchmarks.headline", "run", str(home), str(shards)),
            "floor": lambda: run_apart("benchmarks.floor", "polars", str(home), *files),
            "by hand": lambda: run_apart("benchmarks.floor", "duckdb", str(home), *files),
        }
    )


def headline_lines(rows: int, shards: int, measured: dict[str, Measured]) -> list[str]:
    """Rows of the table of ratios."""
    floor = measured["floor"].seconds
    name = f"{rows // MILLION} million rows, {shards} shard" + "s" * (shards > 1)
    return [
        f"| {name} | {what} | {run.seconds:.2f} | {run.seconds / floor:.2f} "
        f"| {rows / run.seconds / MILLION:.2f} | {run.peak_mib:,.0f} |"
        for what, run in measured.items()
    ]


def share_lines(measured: Measured) -> list[str]:
    """Rows of the table of shares."""
    return [
        f"| {part} | {seconds:.2f} | {100 * seconds / measured.seconds:.0f} % |"
        for part, seconds in measured.parts.items()
    ]


def staging_lines(home: Path) -> list[str]:
    """Staging of NDJSON against a bare read of the same files, clean and with broken lines."""
    lines = []
    for name, broken in (("clean", "0"), ("1 % broken lines", "1")):
        folder = home / f"ndjson-{broken}"
        make = ["make", str(folder), str(3 * MILLION), broken]
        subprocess.run([sys.executable, "-m", "benchmarks.staging", *make], check=True)
        works = {
            "ours": lambda folder=folder: run_apart("benchmarks.staging", "ours", str(folder)),
            "bare": lambda: run_apart("benchmarks.staging", "bare", str(home / "ndjson-0")),
        }
        measured = in_turn(works)
        for kind, unit in (("wall", "on the clock"), ("cpu", "of the processors")):
            ours, bare = measured["ours"].parts[kind], measured["bare"].parts[kind]
            lines.append(f"| {name} | {unit} | {ours:.2f} | {bare:.2f} | {ours / bare:.2f} |")
    return lines


def dagster_line(home: Path) -> str:
    """The whole run through Dagster, start-up apart."""
    run = run_apart("benchmarks.through_dagster", str(home), str(MILLION))
    work = run.seconds - run.parts["start-up"]
    parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in run.parts.items())
    return (
        f"One million rows from NDJSON to the target: {work:.1f} s, "
        f"{MILLION / work / 1000:,.0f} thousand rows a second ({parts})."
    )


def report(home: Path, sizes: list[int], shards: int) -> str:
    """Measure, and return the page."""
    table, shares = [], []
    for rows in sizes:
        with tempfile.TemporaryDirectory(dir=home) as folder:
            measured = headline(Path(folder), rows)
        table += headline_lines(rows, 1, measured)
        shares = share_lines(measured["ours"])
    with tempfile.TemporaryDirectory(dir=home) as folder:
        table += headline_lines(sizes[-1], shards, headline(Path(folder), sizes[-1], shards))
    staged = staging_lines(home)
    machine = "\n".join(f"| {name} | {value} |" for name, value in facts().items())
    template = (Path(__file__).parent / "headline.md.in").read_text()
    values = {
        "table": "\n".join(table),
        "shares": "\n".join(shares),
        "staging": "\n".join(staged),
        "dagster": dagster_line(home),
        "machine": machine,
    }
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def main() -> None:
    """Measure and write docs/benchmarks/headline.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=int, nargs="+", default=[1, 3, 10])
    parser.add_argument("--shards", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = [number * MILLION for number in arguments.millions]
        page = report(Path(folder), sizes, arguments.shards)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
