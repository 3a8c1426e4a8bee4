"""A stream with a few windows, and sinks that publish them quickly, for tests of publishing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import polars as pl

from assets.stores.parity.side import READING, Reading, Side
from assets.stores.publishing.delivery import Retries, Sink
from assets.stores.targets.target import EVER, Published, Starts, Target
from transforms.publishing.batch_size import BatchSize
from transforms.publishing.breaker import Breaker
from transforms.publishing.ledger import NO_NOTE, Covered, Note
from transforms.schemas import EVENT_PARTITION, window_history_schema
from transforms.spec import load_spec

SPEC = load_spec(
    """
name: gauges
source: {kind: files, path: "*.ndjson", format: ndjson}
columns:
  key: station
  event_time: {column: at, unit: iso8601}
  arrival_time: {column: came, unit: iso8601}
  values: {stage: float, price: "decimal(9,2)"}
arrival: {grain: day, start: 2024-01-01, zone: UTC}
events: {grain: day}
profiles:
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
windows: [{name: hour, every: 1h}]
aggregates: {stage: [mean], price: [sum]}
target: default
""",
    file="gauges.yaml",
)
SCHEMA = window_history_schema(SPEC)
HOUR = 3_600_000_000
START = 19_723 * 24 * HOUR  # 2024-01-01
FAST = Retries(attempts=3, timeout_s=5, first_wait_s=0.001, longest_wait_s=0.002, jitter_s=0.001)


def revisions(keys: int, *, hours: int = 1, revision: int = 0, first: int = 0) -> pl.DataFrame:
    """Windows of some keys and hours, with the event partition that they are of."""
    rows = pl.DataFrame({"number": pl.int_range(keys * hours, eager=True)})
    key, hour = pl.col("number") % keys + first, pl.col("number") // keys
    known = {
        "stream": pl.lit("gauges"),
        "window": pl.lit("hour"),
        "key": pl.format("k{}", key),
        "window_start_us": START + hour * HOUR,
        "window_end_us": START + (hour + 1) * HOUR,
        "event_count": pl.lit(3),
        "stage_mean": key / 7 + revision,
        "price_sum": key.cast(pl.Decimal(38, 2)),
        "revision": pl.lit(revision),
        "reason": pl.lit("closed"),
        "published_at_us": pl.lit(START + revision),
        "run_id": pl.lit("run"),
    }
    columns = [
        known.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in SCHEMA.items()
    ]
    day = pl.from_epoch(START // HOUR // 24 + hour // 24, time_unit="d").cast(pl.String)
    return rows.select(*columns, day.alias(EVENT_PARTITION))


class Time:
    """Passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def sink_of(target: Target, *, rows: int = 20_000, retries: Retries = FAST) -> Sink:
    """A sink that waits for nothing."""
    time = Time()
    return Sink(target, Breaker(time), Fixed(rows), retries, sleep=time.sleep)


class Fixed(BatchSize):
    """Batches of one size, below the floor too."""

    def __init__(self, rows: int) -> None:
        super().__init__(1 << 40, rows=rows)

    def learn(self, *, seconds: float, rss_bytes: int) -> None:
        pass


@dataclass
class Moody:
    """A target whose calls go wrong as told: ``mood`` is asked before each publication."""

    inner: Target
    mood: Callable[[pl.DataFrame, Note], None]
    after: Callable[[pl.DataFrame, Note], None] = lambda _rows, _note: None
    asked: list[int] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.inner.label

    def __enter__(self) -> Self:
        self.inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.inner.__exit__(kind, error, trace)

    def prepare(self, stream: str, schema: pl.Schema) -> None:
        self.inner.prepare(stream, schema)

    def publish(self, stream: str, revisions: pl.DataFrame, note: Note = NO_NOTE) -> Published:
        self.asked.append(revisions.height)
        self.mood(revisions, note)
        published = self.inner.publish(stream, revisions, note)
        self.after(revisions, note)
        return published

    def covered(self, stream: str, publications: Iterable[str]) -> list[Covered]:
        return self.inner.covered(stream, publications)

    def numbers(self, stream: str) -> dict[str, int]:
        return self.inner.numbers(stream)

    def refused(self, stream: str) -> frozenset[bytes]:
        return self.inner.refused(stream)

    def side(self, stream: str, how: Reading = READING) -> Side:
        return self.inner.side(stream, how)

    def current(self, stream: str, starts: Starts = EVER) -> pl.DataFrame:
        return self.inner.current(stream, starts)

    def revisions(self, stream: str) -> pl.DataFrame:
        return self.inner.revisions(stream)

    def as_of(self, stream: str, instant_us: int) -> pl.DataFrame:
        return self.inner.as_of(stream, instant_us)


def held(target: Target) -> pl.DataFrame:
    """What the target holds now, as ``revisions`` made it."""
    with target:
        return target.current("gauges")
