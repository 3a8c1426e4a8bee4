"""A small river of telemetry in a folder of its own, for tests of the lake and of Dagster.

``arrivals`` makes a log with all that can happen: late, very late, repeated, contradicting, future,
unreadable and keyless rows. ``River`` is an installation with that one stream, run stage by stage
or through Dagster.
"""

import json
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from assets.history import History, Targets
from assets.order_audit import audit_orders
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.reconcile import amend
from assets.reorder import reorder
from assets.staging import stage
from assets.stores.lake import Lake
from assets.stores.tables import frame_schema, unit_of
from assets.touched import waiting
from assets.windows import close_windows
from orchestration.definitions import build_defs
from orchestration.jobs import arrivals_job, events_job
from orchestration.ranges import stretches
from orchestration.resources import resources_of
from orchestration.run import Jobs
from orchestration.settings import Settings
from transforms import schemas
from transforms.publication import current
from transforms.spec import StreamSpec, load_spec

if TYPE_CHECKING:
    from assets.catalogue import Landing

START_US = 1_704_067_200_000_000  # 2024-01-01
DAY_US = 86_400_000_000
DAYS = 2

SPEC = """
name: river
source: {{kind: files, path: "landing/*.ndjson", format: ndjson}}
columns:
  key: station
  event_time: {{column: sampled, unit: us}}
  arrival_time: {{column: received, unit: us}}
  values: {{stage: float, rain: "decimal(6,2)"}}
  carry: [firmware]
arrival: {{grain: {grain}, start: 2024-01-01}}
events: {{grain: {events}, start: 2024-01-01}}
profiles:
  by: link
  default: {{grace: 40m, idle_timeout: 5h, capacity: 3, future_skew: 5m}}
  slow: {{grace: 3h, idle_timeout: off, capacity: 50, future_skew: 5m}}
windows:
  - {{name: hour, every: 1h}}
  - {{name: three_hours, length: 3h, every: 1h}}
  - {{name: local_day, every: 1d, zone: Europe/Berlin}}
aggregates: {{stage: [mean, p50, last], rain: [sum]}}
shards: {shards}
"""
ROW_TABLES = (
    *(schemas.STAGED_EVENTS, schemas.REJECTED_ROWS, schemas.ORDERED_EVENTS),
    *(schemas.DEAD_LETTERS, schemas.DUPLICATES, schemas.HELD_EVENTS, schemas.WATERMARKS),
)
WINDOW_TABLES = (
    *(schemas.WINDOW_AGGREGATES, schemas.PUBLISHED_WINDOWS),
    *(schemas.WINDOW_HISTORY, schemas.AMENDED_WINDOWS),
)
# They tell of the way as well: of the batches in which windows were published.
AUDIT_TABLES = (schemas.ORDER_AUDIT, schemas.PUBLICATION_STAMPS)
TABLES = (schemas.SOURCE_FILES, schemas.STAGED_SOURCES, *ROW_TABLES, *WINDOW_TABLES)
# What differs between two ways to the same content.
OF_THE_WAY = (schemas.PUBLISHED_AT_US, schemas.RUN_ID)


def arrivals(seed: int = 1, rows: int = 200) -> list[dict[str, Any]]:
    """A log of ``DAYS`` days in arrival order."""
    rnd = random.Random(seed)  # noqa: S311 (a log, no secret)
    times = sorted(rnd.randrange(DAYS * DAY_US) for _ in range(rows))
    log: list[dict[str, Any]] = []
    for at in times:
        mean = rnd.choice([600e6, 600e6, 3_000e6, 20_000e6])
        late = -(10**9) if rnd.random() < 0.02 else int(rnd.expovariate(1 / mean))
        station = rnd.randrange(4)
        row = {
            "station": f"s{station}",
            "sampled": START_US + at - late,
            "received": START_US + at,
            "stage": round(rnd.gauss(2, 1), 3),
            "rain": f"{rnd.randrange(500) / 100:.2f}",
            "link": "slow" if station == 3 else "fast",
            "firmware": "1.0",
        }
        log.append(row)
        extra = rnd.random()
        if extra < 0.08:
            log.append({**row, "received": row["received"] + rnd.randrange(5 * 10**9)})
        elif extra < 0.12:
            log.append({**row, "stage": 99.0})
        elif extra < 0.15:
            log.append({**row, "sampled": row["sampled"] + 1, "rain": "much"})
        elif extra < 0.18:
            log.append({**row, "station": None})
        elif extra < 0.20:
            log.append({**row, "received": None})
    return log


@dataclass(frozen=True)
class River:
    """An installation in a folder, with one stream."""

    folder: Path
    grain: str = "day"
    events_grain: str = "day"
    shards: int = 1

    @cached_property
    def settings(self) -> Settings:
        return Settings.under(self.folder)

    @cached_property
    def spec(self) -> StreamSpec:
        text = SPEC.format(grain=self.grain, events=self.events_grain, shards=self.shards)
        self.settings.streams.mkdir(parents=True, exist_ok=True)
        (self.settings.streams / "river.yaml").write_text(text)
        return load_spec(text, file="river.yaml")

    @cached_property
    def resources(self) -> dict[str, Any]:
        return resources_of(self.settings)

    @property
    def lake(self) -> Lake:
        lake: Lake = self.resources["lake"]
        return lake

    @cached_property
    def axis(self) -> Axis:
        return Axis.of_arrivals(self.spec)

    @cached_property
    def history(self) -> History:
        return History(self.lake, self.spec, Axis.of_events(self.spec))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """All arrival partitions of the log, and half a day of silence after them."""
        end_us = START_US + DAYS * DAY_US + DAY_US // 2
        return self.axis.between(self.axis.keys[0], self.axis.key_of(end_us - 1))

    def land(self, log: Sequence[dict[str, Any]], files: int = 1) -> None:
        """Write a log to as many files of about one size, in order."""
        self.land_folder()
        size = -(-len(log) // files)
        for number in range(files):
            self.land_file(number, log[number * size : (number + 1) * size])

    def land_folder(self) -> None:
        (self.folder / "landing").mkdir(parents=True, exist_ok=True)

    def land_file(self, number: int, rows: Sequence[dict[str, Any]]) -> None:
        path = self.folder / "landing" / f"{number:03}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def take_in(self, keys: Sequence[str]) -> None:
        """Run the stages over arrival partitions, without Dagster."""
        landing: Landing = self.resources["landing"]
        targets: Targets = self.resources["targets"]
        steps = (
            stage(self.spec, self.lake, landing.of(self.spec), self.axis, keys),
            reorder(self.spec, self.lake, self.axis, keys),
            close_windows(self.spec, self.lake, self.axis, keys),
            publish_windows(self.history, targets, keys, "a run"),
            audit_orders(self.spec, self.lake, self.axis, keys),
        )
        for step in steps:
            list(step)

    def amend(self) -> list[str]:
        """Reconcile the event partitions that wait; returns them."""
        targets: Targets = self.resources["targets"]
        keys = waiting(self.history)
        if keys:
            list(amend(self.history, targets, self.axis, keys, "a run"))
        return keys

    def run(self) -> None:
        """Take in everything, then amend."""
        self.take_in(self.keys)
        self.amend()

    def run_through_dagster(self, instance: dg.DagsterInstance) -> None:
        """The same through Dagster's jobs."""
        jobs = self.jobs(instance)
        jobs.run(arrivals_job("river"), self.keys)
        for stretch in stretches(self.history.events, waiting(self.history)):
            jobs.run(events_job("river"), stretch)

    def jobs(self, instance: dg.DagsterInstance) -> Jobs:
        quiet = dg.LoggerDefinition(lambda _: logging.Logger("quiet", logging.CRITICAL))  # noqa: LOG001 (of this run alone)
        defs = build_defs(
            self.settings,
            specs={"river": self.spec},
            resources=self.resources,
            loggers={"quiet": quiet},
        )
        return Jobs(defs, instance, ("quiet",))

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a table, by partition and shard, without marks."""
        if self.lake.version("river", name) is None:
            return frame_schema(self.spec, name).to_frame()
        return unit_of(self.lake, self.spec, schemas.WATERMARKS).read(name)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return all tables but the register; of the history what does not differ by the way."""
        tables = {name: self.table(name) for name in TABLES if name != schemas.SOURCE_FILES}
        history = tables[schemas.WINDOW_HISTORY].drop(OF_THE_WAY)
        order = (*schemas.WINDOW_IDENTITY, schemas.REVISION)
        return {**tables, schemas.WINDOW_HISTORY: history.sort(order)}

    def published(self) -> pl.DataFrame:
        """Return what the target holds now, without what differs by the way."""
        targets: Targets = self.resources["targets"]
        with targets.of(self.spec) as target:
            target.prepare("river", schemas.window_history_schema(self.spec))
            return target.current("river").drop(OF_THE_WAY)

    def current(self) -> pl.DataFrame:
        """Return what the lake says of every window now, without what differs by the way."""
        return current(self.table(schemas.WINDOW_HISTORY)).drop(OF_THE_WAY)

    def versions(self) -> dict[str, int | None]:
        """Return the number of the last commit of every table."""
        return {name: self.lake.version("river", name) for name in (*TABLES, *AUDIT_TABLES)}


def content(windows: pl.DataFrame) -> pl.DataFrame:
    """Return what windows say, whatever revision it took, without tombstones."""
    kept = windows.filter(pl.col(schemas.EVENT_COUNT) > 0)
    return kept.drop(schemas.REVISION, schemas.REASON).sort(schemas.WINDOW_IDENTITY)


def by_rank(*frames: pl.DataFrame) -> list[pl.DataFrame]:
    """Return frames of rows with `seq` replaced by its rank among all of them, sorted."""
    seqs = pl.concat([frame[schemas.SEQ] for frame in frames]).unique().sort()
    ranks = {seq: rank for rank, seq in enumerate(seqs)}
    names = (schemas.SEQ, schemas.DUPLICATE_OF_SEQ)
    return [
        frame.with_columns(
            pl.col(name).replace_strict(ranks) for name in names if name in frame.columns
        ).sort(schemas.SEQ)
        for frame in frames
    ]
