"""Which rows repeat a row that already counts, and which contradict one.

Here belong identity, content and the order in which rows of one identity are compared. None of it
depends on the watermark. Where suspects are looked for (ties in a sorted log, the lake) is the
business of ``reorder``; this module judges whatever it is given.

A suspect frame has the columns of a staged row, and ``POSITION`` (Int64; the caller's name for the
row, null for a row of an earlier partition) and ``COUNTS`` (Boolean; it is known to count, for it
is held or in the lake).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from transforms import schemas
from transforms.judging.keyed import Ints, Mask, Positions, minus
from transforms.spec import StreamSpec

POSITION: Final = "_position"
COUNTS: Final = "_counts"
_CLUSTER: Final = "_cluster"
_READABLE: Final = "_readable"
_NOTHING: Final = -1


@dataclass(frozen=True)
class Verdicts:
    """What became of suspects, by position: repeats with the ``seq`` they repeat, and conflicts."""

    duplicates: Positions
    duplicate_of_seq: Ints
    conflicts: Positions


NO_VERDICTS: Final = Verdicts(*(np.empty(0, np.int64) for _ in range(3)))


def suspect_columns(spec: StreamSpec) -> list[str]:
    """Return the columns that decide about identity and content, and the order of arrival."""
    names = (schemas.SEQ, schemas.KEY, schemas.ARRIVAL_US)
    return list(dict.fromkeys((*names, *spec.content_columns, *spec.identity_columns)))


def identity(spec: StreamSpec) -> list[pl.Expr]:
    """Return what two rows of one identity agree in; a null agrees with a null.

    Where a column of the identity is null, the identity is the key and the event time.
    """
    names = spec.identity_columns
    if not names:
        timed = [pl.col(schemas.EVENT_US)] if spec.identity_has_event_time else []
        return [pl.col(schemas.KEY), *timed]
    lacking = pl.any_horizontal(pl.col(name).is_null() for name in names)
    timed_rows = pl.lit(True) if spec.identity_has_event_time else lacking
    return [
        pl.col(schemas.KEY),
        pl.when(timed_rows).then(pl.col(schemas.EVENT_US)).alias("_time"),
        *(pl.when(~lacking).then(pl.col(name)).alias(f"_part_{name}") for name in names),
        lacking.alias("_lacking"),
    ]


def resolve(spec: StreamSpec, suspects: pl.DataFrame) -> Verdicts:
    """Judge suspects against the first row of their identity that counts.

    A row that counts, or can be read, is a first; all that follow it in arrival order are repeats
    of it or conflicts with it. Under a dedup horizon only rows near it in event time are.
    """
    rows = _in_comparing_order(spec, suspects)
    judge = _first_that_counts(rows, spec.columns.dedup_horizon_us)
    at = np.flatnonzero(judge != _NOTHING)
    same = _same_content(spec, rows, at, judge[at])
    position = rows[POSITION].fill_null(_NOTHING).to_numpy()[at]
    judge_seq = rows[schemas.SEQ].to_numpy()[judge[at]]
    return Verdicts(position[same], judge_seq[same], position[~same])


def _in_comparing_order(spec: StreamSpec, suspects: pl.DataFrame) -> pl.DataFrame:
    """Sort by cluster, and inside it as rows came; rows that count came before all others."""
    clustered = _clustered(spec, suspects).with_columns(
        pl.col(schemas.UNREADABLE).is_null().alias(_READABLE)
    )
    came = [pl.col(COUNTS).not_(), pl.col(schemas.ARRIVAL_US), pl.col(schemas.SEQ)]
    return clustered.sort(_CLUSTER, *came)


def _clustered(spec: StreamSpec, suspects: pl.DataFrame) -> pl.DataFrame:
    """Number the clusters: rows that can ever be compared with each other are in one."""
    numbered = suspects.with_row_index(_CLUSTER).with_columns(
        pl.col(_CLUSTER).cast(pl.Int64).min().over(identity(spec))
    )
    horizon = spec.columns.dedup_horizon_us
    if horizon is None or spec.identity_has_event_time:
        return numbered
    by_time = numbered.sort(_CLUSTER, schemas.EVENT_US)
    event = by_time[schemas.EVENT_US].to_numpy()
    cluster = by_time[_CLUSTER].to_numpy()
    starts = np.ones(event.size, np.bool_)
    starts[1:] = (cluster[1:] != cluster[:-1]) | (minus(event[1:], event[:-1]) > horizon)
    return by_time.with_columns(pl.Series(_CLUSTER, np.cumsum(starts)))


def _first_that_counts(rows: pl.DataFrame, horizon_us: int | None) -> Positions:
    """Return, for each row, the row it must be compared with, or ``_NOTHING``.

    In each round the first undecided row of every cluster that counts judges the rows after it.
    Without a horizon there is one round.
    """
    cluster = rows[_CLUSTER].to_numpy()
    event = rows[schemas.EVENT_US].to_numpy()
    counts = rows[COUNTS].to_numpy()
    can_judge = counts | rows[_READABLE].to_numpy()
    judge = np.full(rows.height, _NOTHING, np.int64)
    open_rows = np.arange(rows.height)
    while (firsts := _firsts(open_rows[can_judge[open_rows]], cluster)).size:
        judge_of_row = _judge_of_each(open_rows, firsts, cluster)
        judged = (judge_of_row != _NOTHING) & (judge_of_row < open_rows) & ~counts[open_rows]
        judged &= _near(event[open_rows], event[judge_of_row], horizon_us)
        judge[open_rows[judged]] = judge_of_row[judged]
        open_rows = open_rows[~judged & (judge_of_row < open_rows) & (judge_of_row != _NOTHING)]
    return judge


def _firsts(rows: Positions, cluster: Ints) -> Positions:
    """Return the first of ``rows`` in each cluster; they are sorted by cluster."""
    return rows[np.flatnonzero(np.diff(cluster[rows], prepend=_NOTHING))]


def _judge_of_each(rows: Positions, firsts: Positions, cluster: Ints) -> Positions:
    """Return the one of ``firsts`` in each row's cluster, or ``_NOTHING``."""
    place = np.searchsorted(cluster[firsts], cluster[rows])
    found = firsts[np.minimum(place, firsts.size - 1)]
    return np.where(cluster[found] == cluster[rows], found, _NOTHING)


def _near(event: Ints, other: Ints, horizon_us: int | None) -> Mask:
    if horizon_us is None:
        return np.ones(event.size, np.bool_)
    distance = np.maximum(minus(event, other), minus(other, event))
    return distance <= horizon_us


def _same_content(spec: StreamSpec, rows: pl.DataFrame, at: Positions, judges: Positions) -> Mask:
    """Tell which rows have the content of their judge; what cannot be read is like nothing else."""
    content = rows.select(_comparable(rows, name) for name in spec.content_columns)
    left, right = content[at], content[judges]
    same = rows[_READABLE].to_numpy()[at]
    for name in content.columns:
        same = same & left[name].eq_missing(right[name]).to_numpy()
    return same


def _comparable(rows: pl.DataFrame, name: str) -> pl.Expr:
    """Return a content column in which no reading is null, be it sent as null or as NaN."""
    column = pl.col(name)
    return column.fill_nan(None) if rows.schema[name].is_float() else column
