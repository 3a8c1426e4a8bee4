"""How the rows of each key were delivered: at what pace, in which bursts, after which silences.

Words: the *interval* of a key is the usual distance of two of its readings in event time. Rows that
come within a tenth of it of each other are one *delivery*. A delivery of five rows or more that
spans as many intervals of event time is a *flush*: a device that had stored them hands them over. A
silence of more than five usual pauses between deliveries is an *outage*; it is *recovered* if a
flush follows it. Where readings lie more than three intervals apart in event time, what should
be between them never came: a *gap*.
"""

from typing import Final

import polars as pl

from transforms.lateness.rows import ARRIVAL_STEP_US
from transforms.schemas import ARRIVAL_US, EVENT_US, KEY

INTERVAL_US: Final = "interval_us"
DELIVERIES: Final = pl.Schema(
    {
        INTERVAL_US: pl.Int64(),
        "flushes": pl.Int64(),
        "flushed_rows": pl.Int64(),
        "largest_flush_rows": pl.Int64(),
        "outages": pl.Int64(),
        "outages_recovered": pl.Int64(),
        "longest_outage_us": pl.Int64(),
        "gaps": pl.Int64(),
        "gap_readings": pl.Int64(),
        "longest_gap_us": pl.Int64(),
    }
)

_TOGETHER: Final = 10  # a tenth of the interval
_FLUSH_ROWS: Final = 5
_OUTAGE_PAUSES: Final = 5
_GAP_INTERVALS: Final = 3

_DELIVERY: Final = "delivery"
_PAUSE: Final = "pause"
_ROWS: Final = "rows"
_SPAN: Final = "span"


def deliveries(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, for each key of ``lateness.rows``, the figures of ``DELIVERIES``."""
    sampled = _sampled(rows)
    bursts = _bursts(rows.join(sampled.select(KEY, INTERVAL_US), on=KEY, maintain_order="left"))
    told = sampled.join(_of_bursts(bursts), on=KEY, how="left", maintain_order="left")
    return told.select(
        KEY, *(pl.col(name).fill_null(0).cast(kind) for name, kind in DELIVERIES.items())
    )


def _sampled(rows: pl.DataFrame) -> pl.DataFrame:
    """Return interval and gaps of each key; an interval of 0 where none can be told."""
    by_time = rows.select(KEY, EVENT_US).sort(KEY, EVENT_US)
    step = pl.col(EVENT_US).diff().over(KEY)
    steps = by_time.with_columns(step.alias(_SPAN))
    interval = pl.col(_SPAN).filter(pl.col(_SPAN) > 0).median().round()
    usual = steps.group_by(KEY, maintain_order=True).agg(interval.cast(pl.Int64).alias(INTERVAL_US))
    usual = usual.with_columns(pl.col(INTERVAL_US).fill_null(0))
    missing = pl.col(_SPAN) > _GAP_INTERVALS * pl.col(INTERVAL_US)
    gaps = steps.join(usual, on=KEY).filter(missing & (pl.col(INTERVAL_US) > 0))
    lost = (pl.col(_SPAN) / pl.col(INTERVAL_US)).round().cast(pl.Int64) - 1
    found = gaps.group_by(KEY).agg(
        pl.len().alias("gaps"),
        lost.sum().alias("gap_readings"),
        pl.col(_SPAN).max().alias("longest_gap_us"),
    )
    return usual.join(found, on=KEY, how="left", maintain_order="left")


def _bursts(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the deliveries of each key as they came, with the pause before each."""
    apart = pl.col(ARRIVAL_STEP_US) > pl.col(INTERVAL_US) // _TOGETHER
    numbered = rows.with_columns(apart.fill_null(value=True).cum_sum().alias(_DELIVERY))
    return numbered.group_by(_DELIVERY, maintain_order=True).agg(
        pl.col(KEY, INTERVAL_US).first(),
        pl.col(ARRIVAL_STEP_US).first().alias(_PAUSE),
        pl.col(ARRIVAL_US).first(),
        pl.len().alias(_ROWS),
        (pl.col(EVENT_US).max() - pl.col(EVENT_US).min()).alias(_SPAN),
    )


def _of_bursts(bursts: pl.DataFrame) -> pl.DataFrame:
    wide = pl.col(_SPAN) >= (_FLUSH_ROWS - 1) * pl.col(INTERVAL_US)
    flush = (pl.col(_ROWS) >= _FLUSH_ROWS) & wide & (pl.col(INTERVAL_US) > 0)
    usual = pl.max_horizontal(pl.col(_PAUSE).median().over(KEY), pl.col(INTERVAL_US))
    outage = (pl.col(_PAUSE) > _OUTAGE_PAUSES * usual).fill_null(value=False)
    marked = bursts.with_columns(flush.alias("flush"), outage.alias("outage"))
    flush, outage = pl.col("flush"), pl.col("outage")
    return marked.group_by(KEY).agg(
        flush.sum().alias("flushes"),
        pl.col(_ROWS).filter(flush).sum().alias("flushed_rows"),
        pl.col(_ROWS).filter(flush).max().alias("largest_flush_rows"),
        outage.sum().alias("outages"),
        (flush & outage).sum().alias("outages_recovered"),
        pl.col(_PAUSE).filter(outage).max().alias("longest_outage_us"),
    )
