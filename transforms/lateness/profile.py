"""The lateness profile of a stream: how late its rows come, as a whole, by profile and by key.

Here belongs the table that an operator reads before choosing a grace: quantiles, a log-scaled
histogram, the trend, and what ``lateness.deliveries`` and ``lateness.clocks`` know of each key; and
which keys look as if they were on another kind of link than the one they are declared for.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from transforms.durations import DAY_US, MILLISECOND_US
from transforms.lateness.arrival_log import Log
from transforms.lateness.clocks import CLOCKS, clocks, in_spans, slopes
from transforms.lateness.deliveries import DELIVERIES, deliveries
from transforms.lateness.rows import BEHIND_US, DELAY_US, lateness_rows
from transforms.reorder import DUPLICATE, REASONS
from transforms.schemas import FUTURE_TIMESTAMP, KEY, PROFILE

LEVEL: Final = "level"
NAME: Final = "name"
STREAM_LEVEL: Final = "stream"
LIKE: Final = "looks_like"

_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
QUANTILES: Final = pl.Schema(
    {
        f"{of}_{name}_us": pl.Int64()
        for of in ("delay", "behind")
        for name in ("min", *_QUANTILES, "max")
        if (of, name) != ("behind", "min")
    }
)
PROFILE_SCHEMA: Final = pl.Schema(
    {
        LEVEL: pl.String(),
        NAME: pl.String(),
        PROFILE: pl.String(),
        "keys": pl.Int64(),
        "rows": pl.Int64(),
        "duplicates": pl.Int64(),
        "future_rows": pl.Int64(),
        "behind_rows": pl.Int64(),
        **QUANTILES,
        "trend_us_per_day": pl.Float64(),
        # Rows by delay and by distance behind: in bucket i up to 2**i ms, the first none or less.
        "delay_histogram": pl.List(pl.Int64()),
        "behind_histogram": pl.List(pl.Int64()),
        **DELIVERIES,
        **CLOCKS,
        LIKE: pl.String(),
    }
)

BUCKETS: Final = 44
# A key with fewer rows is not compared with profiles.
_LEAST_ROWS: Final = 30
# It must be this many doublings away from its own profile, and nearer to the other by half.
_FAR: Final = 2.0
_FLOOR_US: Final = float(100 * MILLISECOND_US)


def lateness_profile(log: Log, profiles: Sequence[str]) -> pl.DataFrame:
    """Return the table: a row for the stream, then by profile, then by key, each sorted by name.

    ``profiles`` are the names by code. Only moving rows have a delay; re-deliveries and future rows
    are counted beside. Deliveries, clocks and ``looks_like`` are null above the level of keys.
    """
    rows = lateness_rows(log, profiles).with_columns(pl.lit("").alias(STREAM_LEVEL))
    apart = _apart(log, profiles).with_columns(pl.lit("").alias(STREAM_LEVEL))
    levels = [_level(rows, apart, level) for level in (STREAM_LEVEL, PROFILE, KEY)]
    sent = deliveries(rows)
    of_keys = sent.join(clocks(rows, sent), on=KEY).join(look_alikes(rows), on=KEY, how="left")
    levels[-1] = levels[-1].join(of_keys.rename({KEY: NAME}), on=NAME, how="left")
    whole = pl.concat(levels, how="diagonal")
    missing = [name for name in PROFILE_SCHEMA if name not in whole.columns]
    filled = whole.with_columns(pl.lit(None).alias(name) for name in missing)
    return filled.select(pl.col(name).cast(kind) for name, kind in PROFILE_SCHEMA.items())


def _apart(log: Log, profiles: Sequence[str]) -> pl.DataFrame:
    """Return re-deliveries and future rows: by key and profile, how many."""
    future = next(fate for fate, reason in REASONS.items() if reason == FUTURE_TIMESTAMP)
    at = np.flatnonzero((log.fates == DUPLICATE) | (log.fates == future))
    which = log.rows.profile
    code = np.full(at.size, which) if isinstance(which, int) else which[at]
    return pl.DataFrame(
        {
            KEY: log.keys.gather(log.rows.groups.codes[at]),
            PROFILE: pl.Series(profiles, dtype=pl.String).gather(pl.Series(code)),
            "duplicates": log.fates[at] == DUPLICATE,
            "future_rows": log.fates[at] == future,
        }
    )


def _level(rows: pl.DataFrame, apart: pl.DataFrame, level: str) -> pl.DataFrame:
    """Return the figures of rows by stream, profile or key."""
    told = rows.group_by(level).agg(
        pl.col(PROFILE).last() if level != PROFILE else pl.lit(None, pl.String).alias("_"),
        pl.col(KEY).n_unique().alias("keys") if level != KEY else pl.lit(1).alias("keys"),
        pl.len().alias("rows"),
        (pl.col(BEHIND_US) > 0).sum().alias("behind_rows"),
        *_quantiles(),
    )
    counted = apart.group_by(level).agg(pl.col("duplicates", "future_rows").sum())
    middle = pl.col(DELAY_US).median()
    trend = slopes(in_spans(rows, level, middle), level)
    joined = told.join(counted, on=level, how="full", coalesce=True)
    joined = joined.join(trend, on=level, how="left")
    for of, name in ((DELAY_US, "delay_histogram"), (BEHIND_US, "behind_histogram")):
        joined = joined.join(histograms(rows, level, of).rename({of: name}), on=level, how="left")
    counts = ("keys", "rows", "behind_rows", "duplicates", "future_rows")
    named = joined.with_columns(
        pl.lit(level).alias(LEVEL),
        pl.col(level).alias(NAME),
        pl.lit(None, pl.String).alias(PROFILE) if level == STREAM_LEVEL else pl.col(PROFILE),
        (pl.col("slope") * DAY_US).alias("trend_us_per_day"),
        pl.col(counts).fill_null(0).cast(pl.Int64),
    )
    kept = [name for name in PROFILE_SCHEMA if name in named.columns]
    return named.select(kept).sort(NAME)


def _quantiles() -> list[pl.Expr]:
    delay, behind = pl.col(DELAY_US), pl.col(BEHIND_US)
    return [
        delay.min().alias("delay_min_us"),
        *(
            column.quantile(share, "higher").cast(pl.Int64).alias(f"{of}_{name}_us")
            for of, column in (("delay", delay), ("behind", behind))
            for name, share in _QUANTILES.items()
        ),
        delay.max().alias("delay_max_us"),
        behind.max().alias("behind_max_us"),
    ]


def histograms(rows: pl.DataFrame, by: str, column: str) -> pl.DataFrame:
    """Count values of each group by power of two of a millisecond; the first has none or less."""
    milliseconds = (pl.col(column).clip(lower_bound=0) / MILLISECOND_US).ceil()
    bucket = (milliseconds.log(2).ceil() + 1).clip(0, BUCKETS - 1)
    number = pl.when(milliseconds <= 0).then(0).otherwise(bucket).cast(pl.Int64).alias("bucket")
    found = (
        rows.select(by, number).group_by(by, "bucket").agg(pl.len().cast(pl.Int64).alias(column))
    )
    every = pl.DataFrame({"bucket": pl.int_range(BUCKETS, eager=True)})
    grid = found.select(by).unique(maintain_order=True).join(every, how="cross")
    full = grid.join(found, on=[by, "bucket"], how="left", maintain_order="left")
    return full.group_by(by, maintain_order=True).agg(pl.col(column).fill_null(0))


def bucket_ends_us() -> list[int]:
    """Return the greatest value of each bucket of a histogram, 0 for the first."""
    return [0, *(MILLISECOND_US << number for number in range(BUCKETS - 1))]


def look_alikes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the keys whose delays are unlike their profile and like another, and like which.

    Compared are the median and p95 of the delay above its p05, so that a wrong clock is no other
    link, in doublings; a profile's are the medians over its keys. Columns ``key``, ``looks_like``.
    """
    small = pl.col(DELAY_US).quantile(0.05, "higher")
    shape = [
        (pl.col(DELAY_US).quantile(share, "higher") - small)
        .clip(lower_bound=_FLOOR_US)
        .log(2)
        .alias(name)
        for name, share in (("usual", 0.5), ("high", 0.95))
    ]
    keys = rows.group_by(KEY).agg(pl.col(PROFILE).last(), pl.len().alias("rows"), *shape)
    keys = keys.filter(pl.col("rows") >= _LEAST_ROWS)
    typical = keys.group_by(PROFILE).agg(pl.col("usual", "high").median().name.suffix("_there"))
    pairs = keys.join(typical.rename({PROFILE: LIKE}), how="cross").with_columns(
        pl.max_horizontal(
            (pl.col("usual") - pl.col("usual_there")).abs(),
            (pl.col("high") - pl.col("high_there")).abs(),
        ).alias("distance")
    )
    own = pairs.filter(pl.col(PROFILE) == pl.col(LIKE)).select(KEY, pl.col("distance").alias("own"))
    others = pairs.filter(pl.col(PROFILE) != pl.col(LIKE)).join(own, on=KEY)
    alike = (pl.col("own") >= _FAR) & (pl.col("distance") <= pl.col("own") / 2)
    nearest = others.filter(alike).sort("distance", LIKE).group_by(KEY, maintain_order=True).first()
    return nearest.select(KEY, LIKE).sort(KEY)
