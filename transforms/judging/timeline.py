"""The rows of a partition by key and event time: their order, their ties, who came late.

Here belongs everything that is read off the rows sorted by time, without a watermark: which rows
share a time or an identity, in the log or with the rows that counted before, and which came behind
a newer one of their key. What follows for their fate is said in ``dedup`` and ``reorder``.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from transforms import schemas
from transforms.judging import dedup
from transforms.judging.keyed import (
    NEVER,
    Ints,
    Mask,
    Packing,
    Positions,
    RowIds,
    before_each,
    fit_packing,
    key_codes,
    take,
)
from transforms.judging.lineup import LineUp


@dataclass(frozen=True)
class Timeline:
    """All rows but the future ones by key and event time, ties as they came.

    ``order`` lists their positions; ``tied`` marks, in that order, a row with the key and time of
    the one before it. ``words`` are key and time of every row by position, ``NEVER`` for future
    ones.
    """

    packing: Packing
    words: Ints
    order: RowIds
    tied: Mask


def by_time(line: LineUp, future: Mask, newest_before: Ints) -> Timeline:
    """Sort the rows; ``newest_before`` is the greatest event time carried of each known key."""
    any_future = bool(future.any())
    event = np.where(future, NEVER, line.event) if any_future else line.event
    packing = fit_packing(line.keys.len(), event, newest_before)
    words = packing.pack(line.groups.codes, event)
    # Rows came nearly in order: the stable sort, which merges runs, is the fastest here.
    if any_future:
        live = np.flatnonzero(~future).astype(np.uint32)
        order = live[np.argsort(words[live], kind="stable")]
    else:
        order = np.argsort(words, kind="stable").astype(np.uint32)
    tied = np.zeros(order.size, np.bool_)
    np.equal(*_neighbours(take(words, order)), out=tied[1:])
    return Timeline(packing, words, order, tied)


def _neighbours(values: Ints) -> tuple[Ints, Ints]:
    return values[1:], values[:-1]


def came_late(line: LineUp, timeline: Timeline, future: Mask, newest_before: Ints) -> Mask:
    """Tell which rows came behind a moving row of their key with a greater event time.

    Duplicates need no care: the row they repeat came before them. Held rows keep what was said of
    them when they came.
    """
    groups, packing = line.groups, timeline.packing
    floor = packing.pack(np.arange(line.keys.len()), newest_before)
    newest = before_each(groups, timeline.words, floor)
    np.maximum.accumulate(newest, out=newest)
    late: Mask = timeline.words < newest
    late[future] = line.event[future] < packing.times(newest[future])
    if line.held.height:
        said = line.held[schemas.IS_LATE].to_numpy()
        late[line.is_held] = said[groups.order[line.is_held]]
    return late


def repeats(line: LineUp, timeline: Timeline, earlier: pl.DataFrame) -> dedup.Verdicts:
    """Judge the rows that may share an identity, among each other or with ``earlier``."""
    columns = dedup.suspect_columns(line.spec)
    known = earlier.select(columns).filter(pl.col(schemas.KEY).is_in(line.keys.implode()))
    share = _sharing_time if line.spec.identity_has_event_time else _sharing_identity
    positions, shared = share(line, timeline, known)
    if not positions.size:
        return dedup.NO_VERDICTS
    suspects = line.rows(positions, [*columns, schemas.UNREADABLE]).with_columns(
        pl.Series(dedup.POSITION, positions),
        pl.Series(dedup.COUNTS, line.is_held[positions]),
    )
    witnesses = known.filter(pl.Series(shared)).with_columns(
        pl.lit(None, pl.String).alias(schemas.UNREADABLE),
        pl.lit(None, pl.Int64).alias(dedup.POSITION),
        pl.lit(True).alias(dedup.COUNTS),
    )
    return dedup.resolve(line.spec, pl.concat([suspects, witnesses]))


def _sharing_time(line: LineUp, timeline: Timeline, known: pl.DataFrame) -> tuple[Positions, Mask]:
    """Return the rows that share key and event time with another, and which of ``known`` do."""
    tied = timeline.tied.copy()
    tied[:-1] |= timeline.tied[1:]
    shared = np.zeros(known.height, np.bool_)
    event = known[schemas.EVENT_US].to_numpy()
    inside = np.flatnonzero(timeline.packing.holds(event))
    if inside.size and tied.size:
        codes = key_codes(known[schemas.KEY], line.keys)[inside]
        words = timeline.packing.pack(codes, event[inside])
        sorted_words = take(timeline.words, timeline.order)
        place = np.minimum(np.searchsorted(sorted_words, words), tied.size - 1)
        met = sorted_words[place] == words
        shared[inside[met]] = True
        tied[place[met]] = True
    return timeline.order[tied].astype(np.int64), shared


def _sharing_identity(
    line: LineUp, timeline: Timeline, known: pl.DataFrame
) -> tuple[Positions, Mask]:
    """Return the rows that share their identity with another, and which of ``known`` do."""
    columns = [schemas.KEY, schemas.EVENT_US, *line.spec.identity_columns]
    positions = np.sort(timeline.order).astype(np.int64)
    rows = pl.concat([line.rows(positions, columns), known.select(columns)])
    identity = pl.struct(dedup.identity(line.spec))
    shared = rows.select(identity.is_duplicated()).to_series().to_numpy()
    return positions[shared[: positions.size]], shared[positions.size :]
