"""A river of three gauges in a lake: late, repeated, refused and unreadable rows over four days.

Made by the stages themselves, so that what is stored is what they store. Tests plant faults in it.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from assets.catalogue import Landing
from assets.history import History, Targets
from assets.order_audit import audit_orders
from assets.parity import prove_partitions
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.reconcile import amend
from assets.reorder import reorder
from assets.staging import stage
from assets.stores.lake import Lake, Slot
from assets.stores.tables import EVENT_TABLES
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.windows import close_windows
from transforms.spec import StreamSpec, load_spec

SPEC = """
name: river
source: {kind: files, path: 'landing/*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: sampled_at, unit: iso8601}
  arrival_time: {column: received_at, unit: iso8601}
  event_id: [sampled_at, counter]
  values: {level: float, rain: 'decimal(9,2)', pulses: int}
  carry: [firmware]
arrival: {grain: day, start: 2024-03-01, zone: UTC}
events: {grain: day, start: 2024-02-29}
profiles:
  by: link
  default: {grace: 10m, idle_timeout: 2h, capacity: 1000, future_skew: 5m}
  satellite: {grace: 3h, idle_timeout: 6h, capacity: 1000, future_skew: 5m}
earliest_event_time: 2024-01-01
windows:
  - {name: hour, every: 1h}
  - {name: rolling, length: 3h, every: 1h}
  - {name: local_day, every: 1d, zone: Europe/Berlin}
aggregates:
  level: [sum, mean, min, max, std, first, last, p95, rate, time_weighted_mean]
  rain: [sum]
  pulses: [sum, max]
alerts: {dead_letter_fraction: 0.1}
target: default
SHARDS
"""
DAYS = ("2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04")
START = datetime(2024, 3, 1, tzinfo=UTC)
STATIONS = {"weir": "default", "mill": "default", "bridge": "satellite"}


def spec_of(shards: int = 1) -> StreamSpec:
    return load_spec(SPEC.replace("SHARDS", f"shards: {shards}"), file="river.yaml")


def rows() -> Iterator[dict[str, Any]]:
    """A reading every 20 minutes; a few of them late, doubled, wrong or from the future."""
    for place, (station, link) in enumerate(STATIONS.items()):
        for number in range(4 * 72 - 6):
            sampled = START + timedelta(minutes=20 * number)
            delay = timedelta(seconds=20 + 37 * (number % 5))
            if number % 23 == 7 + place:
                delay = timedelta(minutes=25)  # behind the watermark, its window still open
            if number % 71 == 11 + place:
                delay = timedelta(hours=9)  # its windows are closed
            row = {
                "station": station,
                "sampled_at": sampled.isoformat(),
                "received_at": (sampled + delay).isoformat(),
                "counter": number % 7,
                "level": round(2 + (number % 17) / 10 + place, 3),
                "rain": f"{number % 3}.25",
                "pulses": number % 4,
                "firmware": "1.2",
                "link": link,
            }
            yield from _variants(row, number, sampled + delay)


def _variants(row: dict[str, Any], number: int, received: datetime) -> Iterator[dict[str, Any]]:
    again = {"received_at": (received + timedelta(minutes=3)).isoformat()}
    if number % 97 == 40:
        yield {**row, "sampled_at": (received + timedelta(hours=3)).isoformat()}
    elif number % 89 == 30:
        yield {**row, "pulses": "many"}
    elif number % 83 == 20:
        yield {**row, "station": None}
    else:
        yield row
    if number % 31 == 5:
        yield {**row, **again}
    if number % 101 == 50:
        yield {**row, **again, "level": 99.0}


@dataclass(frozen=True)
class River:
    """The stream, its lake, its target, and where its files are."""

    folder: Path
    spec: StreamSpec
    lake: Lake
    target: DuckDBTarget

    @property
    def arrivals(self) -> Axis:
        return Axis.of_arrivals(self.spec)

    @property
    def events(self) -> Axis:
        return Axis.of_events(self.spec)

    def read(self, table: str, partition: str, shard: int = 0) -> pl.DataFrame:
        """Rows of a slot, marks among them."""
        return self.lake.scan("river", table, partitions=[partition], shard=shard).collect()

    def write(self, table: str, partition: str, frame: pl.DataFrame, shard: int = 0) -> None:
        self.lake.replace("river", table, {Slot(partition, shard): frame})

    def copied_to(self, folder: Path) -> "River":
        """The same in a folder of its own, to be spoilt."""
        shutil.copytree(self.folder, folder)
        lake = replace(self.lake, root=str(folder / "lake"), _open={})
        return River(folder, self.spec, lake, type(self.target)(folder / "target.duckdb"))

    def current(self) -> pl.DataFrame:
        with self.target as target:
            return target.current("river")


def land(folder: Path) -> None:
    """Write one file for each arrival day, in arrival order."""
    (folder / "landing").mkdir(parents=True, exist_ok=True)
    by_day: dict[str, list[dict[str, Any]]] = {day: [] for day in DAYS}
    for row in sorted(rows(), key=lambda row: row["received_at"]):
        by_day.setdefault(row["received_at"][:10], []).append(row)
    for day, listed in by_day.items():
        lines = [json.dumps(row) for row in listed] + ["{broken"]
        (folder / "landing" / f"{day}.ndjson").write_text("\n".join(lines) + "\n")


def flow(folder: Path, shards: int = 1) -> River:
    """Land the files and take them through all stages."""
    land(folder)
    return flow_of(folder, spec_of(shards), DAYS)


def flow_of(folder: Path, spec: StreamSpec, days: Sequence[str]) -> River:
    """Take the files that landed through all stages."""
    lake = Lake(str(folder / "lake"), event_tables=EVENT_TABLES)
    river = River(folder, spec, lake, DuckDBTarget(folder / "target.duckdb"))
    compute(river, days)
    return river


def compute(river: River, days: Sequence[str]) -> None:
    """Take arrival days through all stages, and the event days that there are then."""
    folder, spec, lake = river.folder, river.spec, river.lake
    targets = Targets({"default": river.target})
    axis, history = river.arrivals, History(lake, spec, river.events)
    list(stage(spec, lake, Landing(lake, folder).of(spec), axis, days))
    list(reorder(spec, lake, axis, days))
    list(close_windows(spec, lake, axis, days))
    list(publish_windows(history, targets, days, "run-1"))
    list(amend(history, targets, axis, event_days(river), "run-2"))
    list(audit_orders(spec, lake, axis, days))
    list(prove_partitions(history, targets, event_days(river)))


def event_days(river: River) -> list[str]:
    return sorted({file.partition for file in river.lake.files("river", "window_history")})
