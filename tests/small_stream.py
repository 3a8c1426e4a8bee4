"""A small stream for tests of what comes after reorder: its spec, counted rows, watermarks.

Times are whole seconds here and microseconds in the frames.
"""

import polars as pl

from transforms.schemas import counted_schema, watermark_schema
from transforms.spec import StreamSpec, load_spec

SECOND = 1_000_000
MINUTE = 60 * SECOND

SPEC_TEXT = """
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: sampled_at, unit: iso8601}
  arrival_time: {column: received_at, unit: iso8601}
  values: {level: float}
arrival: {grain: day, start: 1970-01-01, zone: UTC}
events: {grain: day}
profiles:
  default: {grace: 10s, idle_timeout: 'off', capacity: 1000, future_skew: 1d}
windows:
WINDOWS
aggregates:
  level: [sum]
target: default
"""
MINUTES = "  - {name: minute, every: 1m}"


def small_spec(windows: str = MINUTES) -> StreamSpec:
    return load_spec(SPEC_TEXT.replace("WINDOWS", windows), file="small.yaml")


def counted(*rows: tuple[float, float, float | None]) -> pl.DataFrame:
    """Rows of key `a` as (event time, arrival time, W that refused it or None); level is 1."""
    return pl.DataFrame(
        [
            {
                "seq": seq,
                "key": "a",
                "event_us": round(event * SECOND),
                "arrival_us": round(arrival * SECOND),
                "level": 1.0,
                "is_late": refused is not None,
                "is_dead_letter": refused is not None,
                "refused_at_us": None if refused is None else round(refused * SECOND),
            }
            for seq, (event, arrival, refused) in enumerate(rows)
        ],
        schema=counted_schema(small_spec()),
    )


def watermark(seconds: float | None, key: str = "a") -> pl.DataFrame:
    reached = None if seconds is None else round(seconds * SECOND)
    row = {"key": key, "watermark_us": reached, "last_arrival_us": 0, "profile": "default"}
    return pl.DataFrame([row | {"max_event_us": 0}], schema=watermark_schema())
