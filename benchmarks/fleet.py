"""The rows of the headline benchmark: a fleet that is late in three ways. Deterministic.

95 % of the rows arrive an exponential 2 s late, 4.5 % 30 s, 0.5 % 600 s; with a grace of 90 s a few
are dead letters. Every key samples once in ten seconds or so.
"""

import numpy as np
import polars as pl

KEYS = 10_000
INTERVAL_US = 10_000_000
START_US = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z

SPEC = """
name: fleet
source: {kind: files, path: 'landing/*.ndjson', format: ndjson}
columns:
  key: sensor
  event_time: {column: sampled_at, unit: us}
  arrival_time: {column: received_at, unit: us}
  values: {level: float}
arrival: {grain: day, start: 2024-01-01, zone: UTC}
events: {grain: day, start: 2024-01-01}
profiles:
  default: {grace: 90s, idle_timeout: 1h, capacity: 256, future_skew: 5m}
windows:
  - {name: minute, every: 1m}
aggregates:
  level: [mean, min, max]
target: default
shards: SHARDS
"""


def spec_text(shards: int = 1) -> str:
    """The stream's spec with so many shards."""
    return SPEC.replace("SHARDS", str(shards))


def lateness_us(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Lateness of each row: a mixture of three exponentials, in microseconds."""
    scale = rng.choice([2e6, 30e6, 600e6], size=rows, p=[0.95, 0.045, 0.005])
    return (rng.exponential(1.0, rows) * scale).astype(np.int64)


def rows(number: int, keys: int = KEYS) -> pl.DataFrame:
    """``number`` staged rows of ``keys`` sensors in arrival order, all within one day."""
    rng = np.random.default_rng(7)
    each = -(-number // keys)
    sensor = np.tile(np.arange(keys, dtype=np.int64), each)[:number]
    jitter = rng.integers(0, INTERVAL_US, number)
    event = START_US + np.repeat(np.arange(each), keys)[:number] * INTERVAL_US + jitter
    frame = pl.DataFrame(
        {
            "key": pl.Series(sensor, dtype=pl.Int64),
            "event_us": event,
            "arrival_us": event + lateness_us(rng, number),
            "level": rng.normal(2.0, 0.5, number).round(3),
        }
    )
    named = frame.with_columns(key=pl.format("sensor-{}", pl.col("key")))
    ordered = named.sort("arrival_us", maintain_order=True)
    return ordered.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("seq"),
        *("key", "event_us", "arrival_us", "level"),
        pl.lit(None, pl.String).alias("unreadable"),
    )
