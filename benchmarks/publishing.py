"""Many windows into an empty target, through everything that publishing does."""

import polars as pl

from assets.history import Targets
from assets.stores.targets.target import Target
from assets.stores.targets.writers import publish
from benchmarks.fleet import spec_text
from transforms.schemas import EVENT_PARTITION, window_history_schema
from transforms.spec import load_spec

CHUNK = 200_000


def publish_windows(target: Target, rows: int) -> int:
    """Publish so many windows of the stream of the benchmarks, in chunks; returns how many."""
    spec = load_spec(spec_text(1), file="fleet.yaml")
    schema = window_history_schema(spec)
    sink = Targets({spec.target: target}).sink_of(spec)
    for first in range(0, rows, CHUNK):
        numbers = pl.int_range(first, min(first + CHUNK, rows), eager=True)
        columns = [_column(name, dtype, numbers) for name, dtype in schema.items()]
        partition = pl.lit("2024-01-01").alias(EVENT_PARTITION)
        publish(sink, spec, pl.DataFrame(columns).with_columns(partition))
    return rows


def _column(name: str, dtype: pl.DataType, numbers: pl.Series) -> pl.Series:
    """Values that look like those of a stream."""
    if name == "window_start_us":
        return (numbers // 10_000 * 600_000_000 + 1_704_067_200_000_000).alias(name)
    if name == "revision":
        return (numbers * 0).alias(name)
    if name == "key":
        return pl.Series(name, [f"station-{number % 10_000}" for number in numbers])
    if dtype == pl.String:
        return pl.Series(name, ["fleet"]).new_from_index(0, len(numbers)).alias(name)
    if dtype == pl.Float64:
        return (numbers / 7).alias(name)
    return (numbers % 97).cast(dtype).alias(name)
