"""Reorder: the fate of every row of an arrival partition, and the events it sets free, in order.

Here the tests of the contract are put together in their order: future, duplicate, invalid, behind,
overflow, accepted; then release. How W moves is in ``watermark``, what an identity is in ``dedup``,
who meets a full buffer in ``overflow``. Nothing here knows of files, the lake or the wall clock.

``advance`` looks at a whole partition at once. Its result is that of judging row by row in arrival
order, wherever the log is cut into partitions.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms import schemas
from transforms.durations import HOUR_US
from transforms.judging.dedup import Verdicts
from transforms.judging.keyed import NEVER, Ints, Mask, Positions, RowIds, minus, take
from transforms.judging.lineup import LineUp, line_up
from transforms.judging.overflow import Entrants, keys_within_reach, refused_for_room
from transforms.judging.timeline import by_time, came_late, repeats
from transforms.spec import StreamSpec
from transforms.watermark import (
    Arrivals,
    ProfileCodes,
    ProfileTable,
    Standing,
    at_frontier,
    profile_table,
    standing_after,
    standing_of,
    times_or_null,
    watermark_before_each,
    watermarks_of,
)
from transforms.windows import missed_and_total

Fates = npt.NDArray[np.uint8]

# From _FUTURE on, fates are dead letters.
ACCEPTED, DUPLICATE, _FUTURE, _CONFLICT, _INVALID, _BEHIND, _OVERFLOW = range(7)
REASONS: Final = {
    _FUTURE: schemas.FUTURE_TIMESTAMP,
    _CONFLICT: schemas.CONFLICTING_DUPLICATE,
    _INVALID: schemas.INVALID_VALUE,
    _BEHIND: schemas.BEHIND_WATERMARK,
    _OVERFLOW: schemas.BUFFER_OVERFLOW,
}

_MOST_SPANS: Final = 16


@dataclass(frozen=True)
class State:
    """What is carried from one arrival partition to the next: ``watermarks`` and ``held`` rows."""

    watermarks: pl.DataFrame
    held: pl.DataFrame


@dataclass(frozen=True)
class Outcome:
    """What became of the rows; the frames are sorted by key, event time and ``seq``."""

    ordered: pl.DataFrame
    dead_letters: pl.DataFrame
    duplicates: pl.DataFrame
    state: State


def empty_state(spec: StreamSpec) -> State:
    """Return the state before the first partition."""
    watermarks = schemas.watermark_schema().to_frame()
    return State(watermarks, schemas.ordered_schema(spec).to_frame())


def advance(
    spec: StreamSpec,
    staged: pl.DataFrame,
    state: State,
    earlier: pl.DataFrame,
    frontier_us: int | None,
) -> Outcome:
    """Judge the staged rows of a partition and release what W has passed.

    ``staged`` is sorted by arrival and ``seq``. ``earlier`` are the rows of earlier partitions that
    count (ordered, and counted dead letters; not the held ones), at least those whose event time
    is in ``earlier_bounds``. ``frontier_us`` is the time up to which arrivals are complete, or None
    if that is not known. Raises ValueError for rows that are not in arrival order.
    """
    if not staged[schemas.ARRIVAL_US].is_sorted():
        raise ValueError("staged rows must be in arrival order")
    table = profile_table(spec.profiles.named)
    line = line_up(spec, staged, state.held, state.watermarks[schemas.KEY])
    carried = standing_of(state.watermarks, line.keys, table)
    arrival = line.numbers(schemas.ARRIVAL_US)
    judged = _judge(_Partition(line, arrival, line.profiles(table), table, carried), earlier)
    standing = judged.standing
    if frontier_us is not None:
        standing = at_frontier(standing, frontier_us, table)
    return _settle(line, judged, standing, table)


def earlier_bounds(spec: StreamSpec, staged: pl.DataFrame) -> tuple[int, int] | None:
    """Return the first and last event time at which an earlier row has a say about identities.

    None means any time; a last one below the first means none.
    """
    spans = earlier_spans(spec, staged)
    if spans is None:
        return None
    return (spans[0][0], spans[-1][1]) if spans else (0, -1)


def earlier_spans(spec: StreamSpec, staged: pl.DataFrame) -> tuple[tuple[int, int], ...] | None:
    """Return, closer than ``earlier_bounds``, the ranges of event time that earlier rows need.

    A few rows that lie by years would else call for all years between. The ranges are closed,
    ascending and apart, at most 16; None means any time.
    """
    reach = 0 if spec.identity_has_event_time else spec.columns.dedup_horizon_us
    if reach is None:
        return None
    times = np.sort(_plausible_times(spec, staged))
    if not times.size:
        return ()
    gaps = minus(times[1:], times[:-1])
    wide = np.flatnonzero(gaps > max(2 * reach, HOUR_US))
    cuts = np.sort(wide[np.argsort(gaps[wide])[::-1][: _MOST_SPANS - 1]])
    first = minus(times[np.append(0, cuts + 1)], reach)
    last = minus(times[np.append(cuts, times.size - 1)], -reach)
    return tuple(zip(first.tolist(), last.tolist(), strict=True))


def _plausible_times(spec: StreamSpec, staged: pl.DataFrame) -> Ints:
    """Return the event times of all rows that no profile takes for future ones."""
    skew = max(profile.future_skew_us for profile in spec.profiles.named.values())
    event, arrival = (staged[name].to_numpy() for name in (schemas.EVENT_US, schemas.ARRIVAL_US))
    plausible: Ints = event[event <= minus(arrival, -skew)]
    return plausible


@dataclass(frozen=True)
class _Partition:
    """All that the fates depend on but the earlier rows; arrays by position."""

    line: LineUp
    arrival: Ints
    profile: ProfileCodes | int
    table: ProfileTable
    carried: Standing


@dataclass(frozen=True)
class Known:
    """What is true of the rows whatever their grace: all that does not depend on W, by position.

    ``fates`` are ``ACCEPTED`` for the rows that W decides about. ``by_time`` lists all rows but
    future ones by key and time.
    """

    rows: Arrivals
    fates: Fates
    late: Mask
    by_time: RowIds
    repeats: Verdicts


@dataclass(frozen=True)
class _Judged:
    """What became of the rows, by position.

    ``refused_at`` is W before each of the ``refused`` rows, which are the dead letters.
    """

    known: Known
    fates: Fates
    refused: Positions
    refused_at: Ints
    standing: Standing


def apart_from_watermark(spec: StreamSpec, staged: pl.DataFrame) -> tuple[pl.Series, Known]:
    """Judge the rows of a stream from its start as far as W has no say.

    ``staged`` is as in ``advance``. The names of the keys come first, in the order of their codes.
    """
    table = profile_table(spec.profiles.named)
    state = empty_state(spec)
    line = line_up(spec, staged, state.held, state.watermarks[schemas.KEY])
    carried = standing_of(state.watermarks, line.keys, table)
    arrival = line.numbers(schemas.ARRIVAL_US)
    part = _Partition(line, arrival, line.profiles(table), table, carried)
    return line.keys, _before_watermark(part, schemas.row_schema(spec).to_frame())


def _judge(part: _Partition, earlier: pl.DataFrame) -> _Judged:
    """Run the tests in the order of the contract: first those that do not depend on W."""
    known, line = _before_watermark(part, earlier), part.line
    watermark = watermark_before_each(known.rows, part.table)
    fates = known.fates.copy()
    fates[(line.event < watermark) & (fates == ACCEPTED) & ~line.is_held] = _BEHIND
    fates[_meeting_full_buffers(part, fates, known.by_time, watermark)] = _OVERFLOW
    refused = np.flatnonzero(fates >= _FUTURE)
    standing = standing_after(known.rows, watermark, part.table)
    return _Judged(known, fates, refused, watermark[refused], standing)


def _before_watermark(part: _Partition, earlier: pl.DataFrame) -> Known:
    fates = np.zeros(part.line.event.size, np.uint8)
    fates[_is_future(part)] = _FUTURE
    late, order, found = _judge_identities(part, fates, earlier)
    fates[_is_invalid(part.line) & (fates == ACCEPTED)] = _INVALID
    moving = (fates != _FUTURE) & (fates != DUPLICATE) & ~part.line.is_held
    return Known(_arrivals(part, moving), fates, late, order, found)


def _arrivals(part: _Partition, moving: Mask) -> Arrivals:
    return Arrivals(
        groups=part.line.groups,
        event=part.line.event,
        arrival=part.arrival,
        profile=part.profile,
        moving=moving,
        held=part.line.is_held,
        carried=part.carried,
    )


def _is_future(part: _Partition) -> Mask:
    skew = part.table.future_skew[part.profile]
    future: Mask = part.line.event > minus(part.arrival, -skew)
    return future & ~part.line.is_held


def _is_invalid(line: LineUp) -> Mask:
    unreadable = line.staged[schemas.UNREADABLE]
    if unreadable.null_count() == unreadable.len():
        return np.zeros(line.event.size, np.bool_)
    return line.staged_mask(unreadable.is_not_null().to_numpy())


def _judge_identities(
    part: _Partition, fates: Fates, earlier: pl.DataFrame
) -> tuple[Mask, RowIds, Verdicts]:
    """Enter duplicates and conflicts in ``fates``; return who came late, and the rows by time."""
    future = fates == _FUTURE
    timeline = by_time(part.line, future, part.carried.max_event)
    late = came_late(part.line, timeline, future, part.carried.max_event)
    found = repeats(part.line, timeline, earlier)
    fates[found.duplicates] = DUPLICATE
    fates[found.conflicts] = _CONFLICT
    return late, timeline.order, found


def _meeting_full_buffers(
    part: _Partition, fates: Fates, order: RowIds, watermark: Ints
) -> Positions:
    """Return the rows that meet a full buffer; nearly always the first test clears all keys."""
    line, capacity = part.line, part.table.capacity
    crowded = keys_within_reach(
        take(line.groups.codes, order),
        take(line.event, order),
        keys=line.keys.len(),
        capacity=int(capacity.min()),
        reach=_reach(part.carried, part.table),
    )
    if not crowded.any():
        return np.empty(0, np.int64)
    at = np.flatnonzero(line.groups.spread(crowded) & (fates == ACCEPTED))
    profile = part.profile if isinstance(part.profile, int) else part.profile[at]
    entrants = Entrants(
        position=at,
        codes=line.groups.codes[at],
        event=line.event[at],
        watermark=watermark[at],
        capacity=np.broadcast_to(capacity[profile], at.shape),
        held=line.is_held[at],
    )
    return refused_for_room(entrants)


def _reach(carried: Standing, table: ProfileTable) -> int:
    """Return how far above its W the newest event time of any key can be, now and later."""
    above = minus(carried.max_event, carried.watermark)
    return max(int(table.grace.max()), int(above.max(initial=0)))


def _settle(line: LineUp, judged: _Judged, standing: Standing, table: ProfileTable) -> Outcome:
    """Release what W has passed, and write down what became of every row."""
    waiting = line.event >= line.groups.spread(standing.watermark)
    accepted = judged.fates == ACCEPTED
    watermarks = watermarks_of(standing, line.keys, table)
    held = _accepted_rows(line, judged, accepted & waiting)
    return Outcome(
        ordered=_accepted_rows(line, judged, accepted & ~waiting),
        dead_letters=_dead_letters(line, judged),
        duplicates=_duplicates(line, judged.known.repeats),
        state=State(watermarks, held),
    )


def _accepted_rows(line: LineUp, judged: _Judged, chosen: Mask) -> pl.DataFrame:
    """Return the rows by key, event time and ``seq``, ready to be released or held."""
    at = _ties_by_seq(line, judged.known.by_time[take(chosen, judged.known.by_time)])
    rows = line.rows(at, schemas.row_columns(line.spec))
    return rows.with_columns(pl.Series(schemas.IS_LATE, take(judged.known.late, at)))


def _ties_by_seq(line: LineUp, at: RowIds) -> RowIds:
    """Put rows of one key and event time, which stand as they came, in the order of the source."""
    if not line.spec.identity_columns and line.spec.identity_has_event_time:
        return at  # no two of them count
    codes, event = take(line.groups.codes, at), take(line.event, at)
    with_next = (codes[1:] == codes[:-1]) & (event[1:] == event[:-1])
    tied = np.zeros(at.size, np.bool_)
    tied[1:] |= with_next
    tied[:-1] |= with_next
    seq = line.rows(at[tied], [schemas.SEQ]).to_series().to_numpy()
    at[tied] = at[tied][np.lexsort((seq, event[tied], codes[tied]))]
    return at


def _dead_letters(line: LineUp, judged: _Judged) -> pl.DataFrame:
    """Return the refused rows, with what refused them."""
    schema = schemas.dead_letter_schema(line.spec)
    at, watermark = judged.refused, times_or_null(judged.refused_at)
    windows = missed_and_total(line.spec, pl.Series(line.event[at]), watermark)
    missed = windows[schemas.WINDOWS_MISSED].to_numpy()
    said = {
        schemas.IS_LATE: pl.Series(judged.known.late[at]),
        schemas.REASON: _reasons(judged.fates[at], missed),
        schemas.WATERMARK_US: watermark,
        schemas.LATENESS_US: _lateness(line.event[at], judged.refused_at),
    }
    rows = line.rows(at, [name for name in schema if name in line.staged.columns])
    whole = rows.with_columns(**said).hstack(windows)
    return whole.select(list(schema)).sort(schemas.KEY, schemas.EVENT_US, schemas.SEQ)


def _reasons(fates: Fates, missed: Ints) -> pl.Series:
    """Name the fates of dead letters; a row behind W is late where it missed a closed window."""
    reasons = pl.Series(fates).replace_strict(REASONS, return_dtype=pl.String)
    late = pl.Series((fates == _BEHIND) & (missed > 0))
    return reasons.set(late, schemas.LATE_CLOSED_WINDOW)


def _lateness(event: Ints, watermark: Ints) -> pl.Series:
    """Return ``W - t``, negative for a row that was not behind; null where W is minus infinity."""
    lateness = pl.Series(minus(watermark, event))
    return lateness.set(pl.Series(watermark == NEVER), None)


def _duplicates(line: LineUp, repeats: Verdicts) -> pl.DataFrame:
    """Return the repeats, with the ``seq`` of the row that each repeats."""
    rows = line.rows(repeats.duplicates, schemas.row_columns(line.spec))
    named = rows.with_columns(pl.Series(schemas.DUPLICATE_OF_SEQ, repeats.duplicate_of_seq))
    return named.sort(schemas.KEY, schemas.EVENT_US, schemas.SEQ)
