"""Which event partitions have something to reconcile, and whether that was done.

Here belongs the comparison of what reconciliation has seen of an event partition with what there is
to see now: dead letters that came too late for a window in it, and first publications that today's
rows would make otherwise. A run, a sensor and a person ask the same question here.
"""

from typing import Final

import polars as pl

from assets.history import History
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.marks import Mark, digest_of
from assets.stores.tables import unit_of
from assets.stores.unit_of_work import UnitOfWork
from transforms.digest import DigestSum
from transforms.schemas import (
    AMENDED_WINDOWS,
    CLOSED,
    COUNTED_DEAD_LETTER_REASONS,
    DEAD_LETTERS,
    EVENT_PARTITION,
    INPUT_DIGEST,
    REASON,
    REVISION,
    SEQ,
    WATERMARK_US,
    WATERMARKS,
    WINDOW,
    WINDOW_AGGREGATES,
    WINDOW_END_US,
    WINDOW_HISTORY,
    WINDOW_IDENTITY,
    WINDOW_START_US,
    WINDOWS_MISSED,
    row_columns,
)
from transforms.spec import StreamSpec
from transforms.windows import assign

# What is seen of an event partition in which no window needs another revision.
NO_REASON: Final = digest_of()

_NOW: Final = f"{INPUT_DIGEST}_now"


def touched(history: History) -> dict[str, str]:
    """Return the event partitions in which a window may need another revision.

    The text that goes with each is a digest of the reasons; it changes when they do.
    """
    unit = unit_of(history.lake, history.spec, AMENDED_WINDOWS)
    reasons: dict[str, list[str]] = {}
    for windows, columns in (_missed(history, unit), _differing(unit)):
        for partition, rows in history.by_partition(windows).items():
            reasons.setdefault(partition, []).append(str(DigestSum.of(rows, columns)))
    return {partition: digest_of(*texts) for partition, texts in reasons.items()}


def waiting(history: History) -> list[str]:
    """Return the event partitions that must be reconciled, oldest first."""
    return list(unreconciled(history))


def unreconciled(history: History) -> dict[str, str]:
    """Return the event partitions that must be reconciled, oldest first, and a digest of why.

    Those too that had reasons once and have none now: a file that was corrected took back the rows
    that a window was amended for.
    """
    unit = unit_of(history.lake, history.spec, AMENDED_WINDOWS)
    seen = {name: Mark.read(text).made_from for name, text in unit.marks(AMENDED_WINDOWS).items()}
    now = dict.fromkeys({*seen, *_amended(history, unit)}, NO_REASON) | touched(history)
    new = (name for name, reasons in now.items() if seen.get(name) != reasons)
    return {name: now[name] for name in history.events.in_order(new)}


def waiting_in_any(spec: StreamSpec, lake: Lake) -> dict[str, str]:
    """Return the event partitions that wait in any track of a stream, and a digest of why."""
    events = Axis.of_events(spec)
    reasons: dict[str, list[str]] = {}
    for part in spec.computed:
        for partition, why in unreconciled(History(lake, part, events)).items():
            reasons.setdefault(partition, []).append(f"{part.name}:{why}")
    return {name: digest_of(*reasons[name]) for name in events.in_order(reasons)}


def rows_waiting(history: History) -> pl.Series:
    """Return the ``seq`` of the dead letters that a window still has to be amended for."""
    unit = unit_of(history.lake, history.spec, AMENDED_WINDOWS)
    missed = history.with_partition(_missed(history, unit)[0])
    unreconciled = pl.col(EVENT_PARTITION).is_in(waiting(history))
    return missed.filter(unreconciled)[SEQ].unique()


def _amended(history: History, unit: UnitOfWork) -> set[str]:
    """Event partitions with revisions that reconciliation made; it may have been cut short."""
    made = (pl.col(REVISION) > 0) | (pl.col(REASON) != CLOSED)
    return {*history.by_partition(unit.read(WINDOW_HISTORY, where=made))}


def _missed(history: History, unit: UnitOfWork) -> tuple[pl.DataFrame, list[str]]:
    """Rows x windows that were closed when the row came, and the columns that tell them apart."""
    spec = history.spec
    columns = [*row_columns(spec), WINDOW, WINDOW_START_US]
    counted = pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS)
    complete = unit.partitions(WATERMARKS)
    missing = counted & (pl.col(WINDOWS_MISSED) > 0)
    late = unit.read(DEAD_LETTERS, partitions=complete, where=missing)
    closed = pl.col(WINDOW_END_US) <= pl.col(WATERMARK_US)
    missed = [assign(window, late).filter(closed).select(columns) for window in spec.windows]
    return pl.concat(missed), columns


def _differing(unit: UnitOfWork) -> tuple[pl.DataFrame, list[str]]:
    """First publications that would be others today, or none, and what tells them apart."""
    names = [*WINDOW_IDENTITY, INPUT_DIGEST]
    now = unit.read(WINDOW_AGGREGATES).select(names)
    first = (pl.col(REVISION) == 0) & (pl.col(REASON) == CLOSED)
    said = unit.read(WINDOW_HISTORY, where=first).select(names)
    both = said.join(now, on=WINDOW_IDENTITY, how="left", suffix="_now")
    differing = both.filter(pl.col(INPUT_DIGEST).ne_missing(pl.col(_NOW)))
    return differing, [*names, _NOW]
