"""The columns of a published window, from the rows that it counts.

Here belong the assembly of a window's columns in the order of its contract and the digest of what
it rests on. The same code serves first publications and amendments, so that equal rows give equal
bits. Statistics of a value are defined in ``readings``; which rows a window counts, and when it is
due, in ``windows``.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import polars as pl

from transforms.digest import LANE_0, LANE_1, Lanes, group_digests, row_lanes
from transforms.errors import CalculationError
from transforms.resequence import side_by_side
from transforms.schemas import (
    ARRIVAL_US,
    COUNT,
    DEAD_LETTER_COUNT,
    DEAD_LETTER_FRACTION,
    EVENT_COUNT,
    EVENT_US,
    FIRST_EVENT_US,
    INPUT_DIGEST,
    IS_DEAD_LETTER,
    IS_LATE,
    KEY,
    KNOWN_AT_US,
    LAST_EVENT_US,
    LATE_ARRIVAL_COUNT,
    REASON,
    REFUSED_AT_US,
    REVISION,
    STREAM,
    WINDOW,
    WINDOW_END_US,
    WINDOW_START_US,
    statistic_column,
    statistic_dtype,
    value_statistics,
    window_schema,
)
from transforms.spec import StreamSpec, ValueType, WindowSpec
from transforms.windowing.calendars import IntArray
from transforms.windowing.grids import grid_of
from transforms.windowing.groups import Groups, in_groups, whole_keys
from transforms.windowing.readings import Readings, statistic

MOST_THREADS: Final = 4  # each holds a piece of rows: bounds the memory


def aggregate_schema(spec: StreamSpec) -> pl.Schema:
    """Return the columns of a window but its revision and reason, in the order of the contract."""
    whole = window_schema(spec)
    return pl.Schema({n: t for n, t in whole.items() if n not in {REVISION, REASON}})


def digest_columns(spec: StreamSpec) -> tuple[str, ...]:
    """Return what of a counted row enters ``input_digest``: all but its place in the source."""
    columns = spec.columns
    row = (KEY, EVENT_US, ARRIVAL_US, *columns.values, *columns.carry)
    return (*row, IS_LATE, IS_DEAD_LETTER)


def windows_of(
    spec: StreamSpec,
    rows: pl.DataFrame,
    needed: Callable[[pl.DataFrame], pl.DataFrame],
    choose: Callable[[Groups], Groups],
) -> pl.DataFrame:
    """Return the windows of counted rows in order (``in_order``) that ``choose`` leaves of them.

    ``needed`` may drop rows that no chosen window holds. Both are called from several threads, each
    with pieces of the rows; a piece is whole keys, so that no window depends on the cut.

    The columns are those of ``aggregate_schema``, the windows in the order of the spec, each sorted
    by key and start. Raises CalculationError where an exact sum leaves its type.
    """
    columns = (*digest_columns(spec), *spec.key_parts, REFUSED_AT_US)

    def of_piece(piece: pl.DataFrame) -> list[pl.DataFrame]:
        hashed = with_lanes(spec, needed(piece)).drop(spec.columns.carry)
        return [_windows_of_keys(spec, window, hashed, choose) for window in spec.windows]

    workers = min(pl.thread_pool_size(), MOST_THREADS)
    pieces = list(side_by_side(of_piece, whole_keys(rows.select(columns)), workers=workers))
    parts = [pl.DataFrame(schema=aggregate_schema(spec))]
    for place in range(len(spec.windows)):
        parts += [piece[place] for piece in pieces]
    return pl.concat(parts)


def _windows_of_keys(
    spec: StreamSpec, window: WindowSpec, rows: pl.DataFrame, choose: Callable[[Groups], Groups]
) -> pl.DataFrame:
    grid = grid_of(window)
    parts = [pl.DataFrame(schema=aggregate_schema(spec))]
    chosen = (choose(groups) for groups in in_groups(grid, rows) if groups.count)
    parts += [aggregate_groups(spec, window.name, groups) for groups in chosen if groups.count]
    windows = pl.concat(parts)
    return windows if grid.layers == 1 else windows.sort(KEY, WINDOW_START_US)


def with_lanes(spec: StreamSpec, rows: pl.DataFrame) -> pl.DataFrame:
    """Return counted rows with the two hashes of which ``input_digest`` is made."""
    return rows.hstack(row_lanes(rows, digest_columns(spec)))


def aggregate_groups(spec: StreamSpec, window: str, groups: Groups) -> pl.DataFrame:
    """Return the columns of ``aggregate_schema`` for groups of rows that carry their lanes.

    Raises CalculationError where an exact sum leaves its type; the message names the window.
    """
    columns = _facts(spec, window, groups)
    for value in spec.columns.values:
        columns |= _value_columns(spec, window, value, groups)
    schema = aggregate_schema(spec)
    return pl.DataFrame(columns).select(schema.names()).cast(schema)


def _facts(spec: StreamSpec, window: str, groups: Groups) -> dict[str, pl.Series | IntArray]:
    """The columns that every window has: what it is, and what rows it counts."""
    event = groups.rows.get_column(EVENT_US).to_numpy()
    arrival = groups.rows.get_column(ARRIVAL_US).to_numpy()
    dead = _count(groups, IS_DEAD_LETTER)
    parts = {name: groups.rows.get_column(name).gather(groups.first) for name in spec.key_parts}
    return {
        STREAM: pl.repeat(spec.name, len(groups.first), eager=True),
        WINDOW: pl.repeat(window, len(groups.first), eager=True),
        KEY: groups.keys,
        **parts,
        WINDOW_START_US: groups.start_us,
        WINDOW_END_US: groups.end_us,
        EVENT_COUNT: groups.size,
        LATE_ARRIVAL_COUNT: _count(groups, IS_LATE),
        DEAD_LETTER_COUNT: dead,
        DEAD_LETTER_FRACTION: pl.Series(dead / groups.size),
        FIRST_EVENT_US: event[groups.first],
        LAST_EVENT_US: event[groups.first + groups.size - 1],
        INPUT_DIGEST: _digests(groups),
        KNOWN_AT_US: np.maximum.reduceat(arrival, groups.first),
    }


def _count(groups: Groups, flag: str) -> IntArray:
    flags = groups.rows.get_column(flag).to_numpy()
    counts: IntArray = np.add.reduceat(flags, groups.first, dtype=np.int64)
    return counts


def _digests(groups: Groups) -> pl.Series:
    lanes = Lanes(*(groups.rows.get_column(name).to_numpy() for name in (LANE_0, LANE_1)))
    return group_digests(lanes, groups.first, groups.size)


def _value_columns(
    spec: StreamSpec, window: str, value: str, groups: Groups
) -> dict[str, pl.Series | IntArray]:
    """The number of readings of one value, and its declared statistics."""
    count, readings = readings_of(groups, value)
    declared = value_statistics(spec.aggregates.get(value, ()))[1:]
    if _needs_exact_sum(spec.columns.values[value], declared):
        _refuse_overflow(spec, window, value, groups.keep(count > 0), readings)
    columns: dict[str, pl.Series | IntArray] = {statistic_column(value, COUNT): count}
    for name in declared:
        dtype = statistic_dtype(spec.columns.values[value], name)
        columns[statistic_column(value, name)] = _spread(readings, name, dtype, count)
    return columns


def _needs_exact_sum(kind: ValueType, declared: Sequence[str]) -> bool:
    """Whether a sum must fit its type: a declared one, or a decimal's on the way to its mean."""
    needing = {"float": (), "decimal": ("sum", "mean", "std")}.get(kind.kind, ("sum",))
    return not set(needing).isdisjoint(declared)


def _spread(readings: Readings, name: str, dtype: pl.DataType, count: IntArray) -> pl.Series:
    """A statistic of all groups, null for those without a reading."""
    if not len(readings.size):
        return pl.repeat(None, len(count), dtype=dtype, eager=True)
    result = pl.Series(statistic(readings, name)).cast(dtype)
    if len(result) == len(count):
        return result
    place = pl.Series(np.cumsum(count > 0) - 1).set(pl.Series(count == 0), None)
    return result.gather(place)


def readings_of(groups: Groups, value: str) -> tuple[IntArray, Readings]:
    """Return how many readings each group has, and the readings of the groups that have any."""
    values = groups.rows.get_column(value)
    values = values.cast(pl.Int64) if values.dtype == pl.Boolean else values
    event = groups.rows.get_column(EVENT_US).to_numpy()
    there = values.is_not_null()
    if values.dtype == pl.Float64:
        there &= values.is_not_nan().fill_null(value=False)
    if there.all():
        return groups.size, Readings(values, event, groups.first, groups.size, groups.end_us)
    mask = there.to_numpy()
    count: IntArray = np.add.reduceat(mask, groups.first, dtype=np.int64)
    some = count > 0
    first = (np.cumsum(count) - count)[some]
    kept = values.filter(there)
    return count, Readings(kept, event[mask], first, count[some], groups.end_us[some])


def _refuse_overflow(
    spec: StreamSpec, window: str, value: str, groups: Groups, readings: Readings
) -> None:
    """Stop where an exact sum leaves its type, and name the first window that holds one."""
    if not len(readings.size) or not readings.total.null_count():
        return
    at = int(readings.total.is_null().arg_max() or 0)
    limit = "int64" if readings.values.dtype == pl.Int64 else "38 digits"
    raise CalculationError(
        f"the sum of {value} leaves {limit} in window {window} of stream {spec.name},"
        f" key {groups.keys[at]!r}, start {np.datetime64(int(groups.start_us[at]), 'us')} UTC:"
        f" declare {value} as float, or shorten the window"
    )
