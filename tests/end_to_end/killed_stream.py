"""A small stream that meets every fate, in two deliveries, and what a run of it leaves behind.

The second delivery brings new days, late rows for old ones, and a corrected file that takes rows
out of partitions that are done. Here belong the files, a run without Dagster's overhead, and the
content that is compared; who kills what is in `kill_points` and `kill_anywhere`.
"""

import gzip
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from assets import publication, reconcile, reorder, staging, windows
from assets.history import History
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.tables import stored_schema
from assets.stores.targets.duckdb_target import DuckDBTarget
from orchestration.run import Runner
from orchestration.settings import Settings
from orchestration.specs import load_specs
from orchestration.summary import summary
from transforms.schemas import (
    AMENDED_WINDOWS,
    DEAD_LETTERS,
    DUPLICATES,
    HELD_EVENTS,
    ORDERED_EVENTS,
    PUBLISHED_AT_US,
    PUBLISHED_WINDOWS,
    REJECTED_ROWS,
    RUN_ID,
    SOURCE_FILES,
    STAGED_EVENTS,
    STAGED_SOURCES,
    WATERMARKS,
    WINDOW_AGGREGATES,
    WINDOW_HISTORY,
)
from transforms.spec import StreamSpec

NAME = "gauges"
SPEC = """
name: gauges
source: {kind: files, path: 'landing/*', format: ndjson}
columns:
  key: station
  event_time: {column: at, unit: s}
  arrival_time: {column: came, unit: s}
  values: {level: float, hits: int}
  carry: [firmware]
arrival: {grain: day, start: 2024-01-01, zone: UTC}
events: {grain: day}
profiles:
  by: link
  default: {grace: 30m, idle_timeout: 8h, capacity: 4, future_skew: 1h}
  satellite: {grace: 6h, idle_timeout: 2d, capacity: 50, future_skew: 1h}
windows:
  - {name: four_hours, every: 4h}
  - {name: rolling_day, length: 24h, every: 12h}
aggregates:
  level: [sum, mean, p95]
  hits: [sum, max]
shards: 2
"""
START_S = 1_704_067_200
DAY_S = 86_400
FIRST_DAYS, ALL_DAYS = 5, 8
ROWS_PER_DAY = 60
KEYS = 6
# What a mark vouches for: the tables whose partition it completes.
MARKED = {
    STAGED_SOURCES: (STAGED_EVENTS, REJECTED_ROWS, STAGED_SOURCES),
    WATERMARKS: (ORDERED_EVENTS, DEAD_LETTERS, DUPLICATES, HELD_EVENTS, WATERMARKS),
    WINDOW_AGGREGATES: (WINDOW_AGGREGATES,),
    PUBLISHED_WINDOWS: (PUBLISHED_WINDOWS,),
    AMENDED_WINDOWS: (AMENDED_WINDOWS,),
}
TABLES = (*(table for tables in MARKED.values() for table in tables), WINDOW_HISTORY)
UNCOMPARED = (PUBLISHED_AT_US, RUN_ID)

Slots = dict[Slot, pl.DataFrame]


def arrivals(seed: int) -> list[dict[str, Any]]:
    """All rows, by arrival: soon, late, very late, ahead of time, twice, twice and differing."""
    random = Random(seed)  # noqa: S311 (no secret)
    rows: list[dict[str, Any]] = []
    for number in range(ROWS_PER_DAY * ALL_DAYS):
        came = START_S + number * DAY_S // ROWS_PER_DAY + random.randrange(1200)
        delay = random.choice([random.randrange(3_600), random.randrange(30_000), 170_000, -9_000])
        behind = random.choices([random.randrange(600), delay], [4, 1])[0]
        station = random.randrange(KEYS)
        fresh = {
            "station": f"s{station}",
            "at": came - behind,
            "came": came,
            "link": "satellite" if station == 0 else "cellular",
            "level": random.choice([0.1, 2.5, 1e16, None, "n/a"]),
            "hits": random.randrange(9),
            "firmware": "f",
        }
        again = {**random.choice(rows or [fresh]), "came": came}
        other = {**again, "level": 7.25}
        rows.append(random.choices([fresh, again, other], [8, 1, 1])[0])
    return sorted(rows, key=lambda row: int(row["came"]))


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = [json.dumps(row) for row in rows]
    lines[1:1] = ["{broken", json.dumps({"station": None, "at": 1, "came": rows[0]["came"]})]
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def deliver(home: Path, seed: int, *, second: bool = False) -> None:
    """Write the spec and the files of the first delivery, or of the second one too."""
    streams, landing = home / "streams", home / "landing"
    for folder in (streams, landing):
        folder.mkdir(parents=True, exist_ok=True)
    (streams / f"{NAME}.yaml").write_text(SPEC)
    random = Random(seed)  # noqa: S311 (no secret)
    files: dict[str, list[dict[str, Any]]] = {}
    for row in arrivals(seed):
        is_first = row["came"] < START_S + FIRST_DAYS * DAY_S
        names = ["a.ndjson", "b.ndjson.gz", "c.ndjson"] if is_first else ["d.ndjson", "e.ndjson.gz"]
        files.setdefault(random.choice(names), []).append(row)
    if second:
        files["c.ndjson"] = [row for row in files["c.ndjson"] if random.random() < 0.9]
    for name, rows in files.items():
        if second or name < "d":
            write_lines(landing / name, rows)


def copied(home: Path, to: Path) -> Path:
    """A home of its own with the same content; what was there is gone."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home, to)
    return to


def spec_of(home: Path) -> StreamSpec:
    return load_specs(home / "streams").stream(NAME)


def run_stages(home: Path) -> None:
    """Do what `lowwater run` does, without Dagster: the same partitions, stages and order."""
    spec = spec_of(home)
    runner = Runner.of(Settings.under(home), spec)
    lake, axis, events = runner.lake, Axis.of_arrivals(spec), Axis.of_events(spec)
    history, targets = History(lake, spec, events), runner.resources["targets"]
    with runner.resources["locks"].of(NAME)():
        partitions = runner._arrivals(None, None)
        if partitions:
            intake = runner.resources["landing"].of(spec)
            exhaust(staging.stage(spec, lake, intake, axis, partitions))
            exhaust(reorder.reorder(spec, lake, axis, partitions))
            exhaust(windows.close_windows(spec, lake, axis, partitions))
            exhaust(publication.publish_windows(history, targets, partitions, "run"))
        for stretch in runner._events():
            exhaust(reconcile.amend(history, targets, axis, stretch, "run"))


def exhaust(steps: Any) -> None:
    for _ in steps:
        pass


class Content:
    """All that a home holds, as it is compared: tables by slot, the target, the figures."""

    def __init__(self, home: Path) -> None:
        settings, self.spec = Settings.under(home), spec_of(home)
        self.lake: Lake = Runner.of(settings, self.spec).lake
        self.tables = {table: self._slots(table) for table in TABLES}
        self.target = self._target(settings)
        history = History(self.lake, self.spec, Axis.of_events(self.spec))
        self.figures = summary(settings, history, Axis.of_arrivals(self.spec))
        # The stages alone prove no parity, the command does; what the target holds is compared.
        del self.figures["places"], self.figures["parity"]
        is_known = self.lake.version(NAME, SOURCE_FILES) is not None
        sources = self.lake.scan(NAME, SOURCE_FILES).collect() if is_known else pl.DataFrame()
        self.sources = sources.drop("stamp", strict=False)

    def _slots(self, table: str) -> Slots:
        """The rows of each slot, in the order of its files, and in these as they stand."""
        schema = stored_schema(self.spec, table)
        found: dict[Slot, list[pl.DataFrame]] = {}
        for file in self.lake.files(NAME, table):
            rows = self.lake.read(NAME, table, [file], schema).collect()
            found.setdefault(Slot(file.partition, file.shard), []).append(rows)
        assert table == WINDOW_HISTORY or all(len(rows) == 1 for rows in found.values())
        return {slot: compared(pl.concat(rows)) for slot, rows in found.items()}

    def _target(self, settings: Settings) -> dict[str, pl.DataFrame]:
        if not settings.target.exists():
            return {}
        with DuckDBTarget(settings.target) as target:
            if not target._present(target._open(), NAME, "windows_revisions"):
                return {}
            return {"current": target.current(NAME), "revisions": target.revisions(NAME)}

    def partition(self, marked: str, name: str) -> dict[tuple[str, int], pl.DataFrame]:
        """All that the mark of a partition vouches for."""
        return {
            (table, slot.shard): rows
            for table in MARKED[marked]
            for slot, rows in self.tables[table].items()
            if slot.partition == name
        }

    def complete(self, marked: str) -> set[str]:
        """The partitions that readers see."""
        return {slot.partition for slot in self.tables[marked]}


def compared(rows: pl.DataFrame) -> pl.DataFrame:
    """History has files of several runs: their rows are compared in one order."""
    if RUN_ID not in rows.columns:
        return rows
    return rows.drop(UNCOMPARED).sort(pl.all())
