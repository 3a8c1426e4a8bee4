"""How healthy the clock of each key is, as far as arrivals betray it.

Delay is link plus clock: a clock that is ahead makes delays small or negative. So the *offset* of a
clock is how far its small delays (p05) lie below those usual for its profile, positive if ahead; it
*looks like a zone* where it is a multiple of half an hour, of a key whose delays vary by less. Its
*drift* is how fast those small delays fall, in millionths, where they do so steadily. A *jump* is a
step of event time that arrivals do not explain, with rows at the usual pace before and after it, as
after a reset (a flush steps back too, but its rows come at once). A row is *wrapped* if it is late
by 2**32 us or ms more than usual: a counter of 32 bits. All of it is a hint for a person; nothing
here changes how a row is judged.
"""

from typing import Final

import polars as pl

from transforms.durations import MINUTE_US
from transforms.lateness.deliveries import INTERVAL_US
from transforms.lateness.rows import ARRIVAL_STEP_US, DELAY_US, EVENT_STEP_US
from transforms.schemas import ARRIVAL_US, KEY, PROFILE

OFFSET_US: Final = "clock_offset_us"
CLOCKS: Final = pl.Schema(
    {
        OFFSET_US: pl.Int64(),
        "clock_zone_minutes": pl.Int64(),
        "clock_drift_ppm": pl.Float64(),
        "clock_jumps": pl.Int64(),
        "wrapped_rows": pl.Int64(),
    }
)

SPANS: Final = 8
# A line through fewer spans, or spans of fewer rows, says nothing of a clock.
_LEAST_SPANS: Final = 4
_SPAN_ROWS: Final = 5
_SMALL: Final = 0.05
_HALF_HOUR: Final = 30 * MINUTE_US
_ZONE_TOLERANCE: Final = 2 * MINUTE_US
_FURTHEST_ZONE: Final = 14 * 60 * MINUTE_US
_JUMP_LEAST: Final = 5 * MINUTE_US
_JUMP_INTERVALS: Final = 20
_ROWS_AROUND: Final = 4
_WRAPS: Final = (1 << 32, (1 << 32) * 1000)
_WRAP_TOLERANCE: Final = 2_000_000

_FEW_PAIRS: Final = 0.1

_FLOOR: Final = "floor"
_SPREAD: Final = "spread"
_STEADY: Final = "steady"
_SPAN: Final = "span"


def clocks(rows: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Return, for each key of ``lateness.rows``, the figures of ``CLOCKS``.

    ``intervals`` has ``interval_us`` by key. Drift is null where the rows do not tell.
    """
    small = pl.col(DELAY_US).quantile(_SMALL, "lower").cast(pl.Int64)
    floors = rows.group_by(KEY, maintain_order=True).agg(
        pl.col(PROFILE).last(),
        small.alias(_FLOOR),
        (pl.col(DELAY_US).median() - small).alias(_SPREAD),
    )
    usual = pl.col(_FLOOR).median().over(PROFILE).cast(pl.Int64)
    offsets = floors.select(KEY, (usual - pl.col(_FLOOR)).alias(OFFSET_US), _SPREAD)
    parts = (_drifts(rows), _jumps(rows, intervals), _wrapped(rows))
    for part in parts:
        offsets = offsets.join(part, on=KEY, how="left", maintain_order="left")
    tight = pl.col(_SPREAD) < _HALF_HOUR
    zone = pl.when(tight).then(_zone(pl.col(OFFSET_US))).alias("clock_zone_minutes")
    zoned = offsets.with_columns(zone)
    counts = pl.col("clock_jumps", "wrapped_rows").fill_null(0)
    return zoned.with_columns(counts).select(
        KEY, *(pl.col(name).cast(kind) for name, kind in CLOCKS.items())
    )


def _zone(offset: pl.Expr) -> pl.Expr:
    """Return the multiple of half an hour that an offset looks like, in minutes, or null."""
    halves = (offset / _HALF_HOUR).round()
    near = (offset - halves * _HALF_HOUR).abs() <= _ZONE_TOLERANCE
    alike = near & (halves != 0) & (offset.abs() <= _FURTHEST_ZONE + _ZONE_TOLERANCE)
    return pl.when(alike).then(halves * (_HALF_HOUR // MINUTE_US))


def in_spans(rows: pl.DataFrame, by: str, of: pl.Expr) -> pl.DataFrame:
    """Return a figure of each eighth of the rows of each group, as they came."""
    place = pl.col(ARRIVAL_US).rank("ordinal").over(by).cast(pl.Int64) - 1
    span = (place * SPANS // pl.len().over(by)).alias(_SPAN)
    middle = pl.col(ARRIVAL_US).mean().alias("middle")
    told = rows.with_columns(span).group_by(by, _SPAN).agg(of.alias("value"), middle, pl.len())
    return told.filter(pl.col("len") >= _SPAN_ROWS).sort(by, _SPAN)


def slopes(spans: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the slope of each group's figure over arrival time: the median of all pairs.

    It is steady where four in five pairs go the same way.
    """
    right = spans.rename({_SPAN: "later", "value": "value_then", "middle": "middle_then"})
    pairs = spans.join(right.drop("len"), on=by).filter(pl.col(_SPAN) < pl.col("later"))
    rise = (pl.col("value_then") - pl.col("value")) / (pl.col("middle_then") - pl.col("middle"))
    enough = pl.col(_SPAN).n_unique() >= _LEAST_SPANS - 1
    low, high = (rise.quantile(share) for share in (_FEW_PAIRS, 1 - _FEW_PAIRS))
    return pairs.group_by(by).agg(
        pl.when(enough).then(rise.median()).alias("slope"), (low * high > 0).alias(_STEADY)
    )


def _drifts(rows: pl.DataFrame) -> pl.DataFrame:
    small = pl.col(DELAY_US).quantile(_SMALL, "lower").cast(pl.Float64)
    falling = slopes(in_spans(rows, KEY, small), KEY)
    drift = pl.when(pl.col(_STEADY)).then(-1e6 * pl.col("slope")).alias("clock_drift_ppm")
    return falling.select(KEY, drift)


def _jumps(rows: pl.DataFrame, intervals: pl.DataFrame) -> pl.DataFrame:
    """Count steps of event time that arrivals do not explain, at an unhurried pace."""
    stepped = rows.join(
        intervals.select(KEY, INTERVAL_US), on=KEY, how="left", maintain_order="left"
    )
    most = pl.max_horizontal(pl.lit(_JUMP_LEAST), _JUMP_INTERVALS * pl.col(INTERVAL_US))
    unexplained = pl.col(EVENT_STEP_US) - pl.col(ARRIVAL_STEP_US)
    # The rows around it must come as live ones do, or it is a flush, or a row that was held up.
    around = [row for row in range(-_ROWS_AROUND, _ROWS_AROUND + 1) if row != 0]
    runs_on = pl.all_horizontal(
        (unexplained.shift(row).abs() <= most // _SPAN_ROWS)
        & (pl.col(ARRIVAL_STEP_US).shift(row) >= pl.col(INTERVAL_US) // 4)
        & (pl.col(KEY) == pl.col(KEY).shift(row))
        for row in around
    )
    jump = (unexplained.abs() > most) & (pl.col(EVENT_STEP_US).abs() > most) & runs_on
    jumps = stepped.select(KEY, jump.fill_null(value=False).alias("clock_jumps"))
    return jumps.group_by(KEY).agg(pl.col("clock_jumps").sum())


def _wrapped(rows: pl.DataFrame) -> pl.DataFrame:
    """Count rows that are late by 2**32 of a unit more than their key usually is."""
    usual = pl.col(DELAY_US).median()
    spread = pl.col(DELAY_US).quantile(0.9, "lower") - pl.col(DELAY_US).quantile(0.1, "lower")
    of_key = rows.group_by(KEY).agg(usual.alias("usual"), spread.alias("spread"))
    beyond = pl.col(DELAY_US) - pl.col("usual")
    wrapped = pl.any_horizontal(
        ((beyond - wrap).abs() <= pl.max_horizontal(pl.lit(_WRAP_TOLERANCE), pl.col("spread")))
        & (pl.col("spread") < wrap // 10)
        for wrap in _WRAPS
    )
    marked = rows.join(of_key, on=KEY, how="left").filter(wrapped)
    return marked.group_by(KEY).agg(pl.len().alias("wrapped_rows"))
