"""Reorder: the fate of every staged row of an arrival partition, and the state it leaves.

Here belongs how a partition gets its state, the earlier rows and its frontier, and how what comes
of it is kept and its books verified. How rows are judged is in ``transforms.reorder``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import dagster as dg
import polars as pl

from assets.catalogue import (
    asset_spec,
    dep,
)
from assets.metadata import ROWS, Metadata, fraction, row_counts
from assets.partitions import Axis
from assets.steps import Done, Stores, step
from assets.stores.lake import Lake, Slot
from assets.stores.lake_files import Span
from assets.stores.marks import Mark, chained, require_mark
from assets.stores.tables import DIGEST, frame_schema, unit_of
from assets.stores.unit_of_work import UnitOfWork
from transforms.books import Books, entry, rejected_entry
from transforms.digest import DigestSum
from transforms.errors import CalculationError, LakeError
from transforms.reorder import Outcome, State, advance, earlier_bounds, empty_state
from transforms.schemas import (
    COUNTED_DEAD_LETTER_REASONS,
    DEAD_LETTER,
    DEAD_LETTERS,
    DUPLICATE,
    DUPLICATES,
    EVENT_US,
    HELD,
    HELD_EVENTS,
    IS_LATE,
    ORDERED,
    ORDERED_EVENTS,
    REASON,
    REJECTED,
    REJECTED_ROWS,
    STAGED,
    STAGED_EVENTS,
    STAGED_SOURCES,
    WATERMARKS,
    row_columns,
)
from transforms.spec import StreamSpec

# In the order in which they depend on each other's partition before.
DESCRIPTIONS: Final = {
    WATERMARKS: "The state of every key at the end of the partition: the mark of its completion.",
    HELD_EVENTS: "Rows accepted and waiting for the watermark at the end of the partition.",
    ORDERED_EVENTS: "Rows in order of event time per key, released when the watermark passed them.",
    DEAD_LETTERS: "Rows refused, kept whole, with the reason and the watermark that refused them.",
    DUPLICATES: "Rows that repeat a row already counted, with the row they repeat.",
}
# What one partition hands to the next.
STATE: Final = (WATERMARKS, HELD_EVENTS)
CARRIED_ROWS: Final = 200_000
# What a partition leaves in which state.
TABLE_OF: Final = {
    ORDERED: ORDERED_EVENTS,
    DEAD_LETTER: DEAD_LETTERS,
    DUPLICATE: DUPLICATES,
    REJECTED: REJECTED_ROWS,
    HELD: HELD_EVENTS,
}


@dataclass(frozen=True)
class Reordered:
    """What became of a partition: its books, and its dead letters by reason."""

    partition: str
    books: Books
    late: int
    keys: int
    reasons: dict[str, int]

    def figures(self) -> dict[str, Metadata]:
        """Return what the UI shows of the partition, by table."""
        counts = self.books.counts
        dead, staged = counts[DEAD_LETTER], counts[STAGED]
        return {
            ORDERED_EVENTS: {
                ROWS: counts[ORDERED],
                "late_rows": self.late,
                "late_fraction": fraction(self.late, counts[ORDERED]),
                "books": dg.MetadataValue.json(self.books.as_json()),
                **row_counts(counts),
            },
            DEAD_LETTERS: {
                ROWS: dead,
                "dead_letter_fraction": fraction(dead, staged),
                **row_counts(self.reasons),
            },
            DUPLICATES: {ROWS: counts[DUPLICATE]},
            HELD_EVENTS: {ROWS: counts[HELD]},
            WATERMARKS: {ROWS: self.keys},
        }


def reorder(
    spec: StreamSpec, lake: Lake, axis: Axis, partitions: Sequence[str]
) -> Iterator[Reordered]:
    """Reorder partitions that follow one another; yields each of them when it is written."""
    with unit_of(lake, spec, WATERMARKS) as unit:
        before = axis.previous(partitions[0])
        if before is not None:
            refuse_gaps(unit, spec, axis, before)
        unit.marks(STAGED_SOURCES, partitions)
        step = _Step(spec, unit, axis, Carried())
        for partition in partitions:
            before = axis.previous(partition)
            staged = require_mark(unit, spec, STAGED_SOURCES, partition)
            state = require_mark(unit, spec, WATERMARKS, before) if before else None
            mark = Mark.of(spec, chained(state, staged))
            shards = [step.shard(Slot(partition, shard), mark) for shard in range(spec.shards)]
            yield _added(partition, shards)
            unit.finish()


def refuse_gaps(unit: UnitOfWork, spec: StreamSpec, axis: Axis, last: str) -> None:
    """Raise LakeError if a partition up to ``last`` is not complete: its rows would be missing."""
    complete = unit.partitions(WATERMARKS)
    missing = next((key for key in axis.up_to(last) if key not in complete), None)
    if missing is not None:
        raise LakeError(
            f"{spec.name}: partition {missing} is not there, and what comes after may need its "
            f"rows; run it first: lowwater run {spec.staged_as} --from {missing}"
        )


@dataclass
class Carried:
    """The states that the partition before left, as far as they are small enough to be kept."""

    states: dict[int, State] = field(default_factory=dict)

    def take(self, shard: int) -> State | None:
        """Hand over the state of a shard."""
        return self.states.pop(shard, None)

    def keep(self, shard: int, state: State) -> None:
        """Keep the state of a shard for the next partition; what is large is read again."""
        if state.watermarks.height + state.held.height <= CARRIED_ROWS:
            self.states[shard] = state


@dataclass(frozen=True)
class _Step:
    """What the shards of all partitions of a run share."""

    spec: StreamSpec
    unit: UnitOfWork
    axis: Axis
    carried: Carried

    def shard(self, slot: Slot, mark: Mark) -> Reordered:
        """Judge the rows of a shard, keep what comes of them, verify the books.

        Each step lets go of the rows of the one before: a shard of a partition is in memory once.
        """
        before = self.carried.take(slot.shard) or state_before(
            self.spec, self.unit, self.axis, slot
        )
        late, keys, reasons = self._kept(slot, mark, self._judged(slot, before))
        books = _verified_books(self.spec, self.unit, slot, before.held)
        return Reordered(slot.partition, books, late, keys, reasons)

    def _judged(self, slot: Slot, before: State) -> Outcome:
        staged = self.unit.read(STAGED_EVENTS, partitions=[slot.partition], shard=slot.shard)
        earlier = _earlier(self.spec, self.unit, self.axis, slot, staged)
        frontier_us = self.axis.bounds(slot.partition).end_us
        return advance(self.spec, staged, before, earlier, frontier_us)

    def _kept(self, slot: Slot, mark: Mark, outcome: Outcome) -> tuple[int, int, dict[str, int]]:
        """Write what came of a shard; return late rows, keys, and dead letters by reason."""
        for table, rows in _tables(outcome).items():
            self.unit.replace(table, slot, rows)
        self.unit.replace(WATERMARKS, slot, outcome.state.watermarks, str(mark))
        self.carried.keep(slot.shard, outcome.state)
        reasons = outcome.dead_letters.group_by(REASON).len().sort(REASON)
        return (
            int(outcome.ordered[IS_LATE].sum()),
            outcome.state.watermarks.height,
            dict(reasons.iter_rows()),
        )


def state_before(spec: StreamSpec, unit: UnitOfWork, axis: Axis, slot: Slot) -> State:
    """Return the state that the partition before left in a shard."""
    before = axis.previous(slot.partition)
    if before is None:
        return empty_state(spec)
    watermarks, held = (unit.read(table, partitions=[before], shard=slot.shard) for table in STATE)
    return State(watermarks, held)


def _earlier(
    spec: StreamSpec, unit: UnitOfWork, axis: Axis, slot: Slot, staged: pl.DataFrame
) -> pl.DataFrame:
    """Return the rows of earlier partitions with which identities are compared."""
    columns = row_columns(spec)
    before = frozenset(axis.up_to(slot.partition)[:-1])
    if not before:
        return frame_schema(spec, ORDERED_EVENTS).to_frame().select(columns)
    bounds = earlier_bounds(spec, staged)
    spans = [] if bounds is None else [Span(EVENT_US, *bounds)]
    ordered, dead = (
        unit.read(table, partitions=before, shard=slot.shard, spans=spans)
        for table in (ORDERED_EVENTS, DEAD_LETTERS)
    )
    counted = dead.filter(pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS))
    return pl.concat([ordered.select(columns), counted.select(columns)])


def _tables(outcome: Outcome) -> dict[str, pl.DataFrame]:
    return {
        ORDERED_EVENTS: outcome.ordered,
        DEAD_LETTERS: outcome.dead_letters,
        DUPLICATES: outcome.duplicates,
        HELD_EVENTS: outcome.state.held,
    }


def _verified_books(
    spec: StreamSpec, unit: UnitOfWork, slot: Slot, held_before: pl.DataFrame
) -> Books:
    """Balance what the reader took in against what was written, read back.

    Raises CalculationError if they do not balance: then nothing of the chunk is committed.
    """

    def stored(table: str) -> pl.DataFrame:
        return unit.read(table, partitions=[slot.partition], shard=slot.shard)

    staged = (DigestSum.parse(text) for text in stored(STAGED_SOURCES)[DIGEST])
    ends = {
        state: (rejected_entry if state == REJECTED else entry)(spec, stored(table))
        for state, table in TABLE_OF.items()
    }
    books = Books(sum(staged, DigestSum()), entry(spec, held_before), ends)
    if not books.balanced:
        raise CalculationError(
            f"{spec.name}: the books of partition {slot.partition} do not balance: "
            f"{books.as_json()}"
        )
    return books


def _added(partition: str, shards: Sequence[Reordered]) -> Reordered:
    """Return the figures of a partition from those of its shards."""
    books = [shard.books for shard in shards]
    reasons = Counter[str]()
    for shard in shards:
        reasons.update(shard.reasons)
    total = Books(
        sum((book.staged for book in books), DigestSum()),
        sum((book.held_before for book in books), DigestSum()),
        {state: sum((book.ends[state] for book in books), DigestSum()) for state in TABLE_OF},
    )
    return Reordered(
        partition,
        total,
        sum(shard.late for shard in shards),
        sum(shard.keys for shard in shards),
        dict(sorted(reasons.items())),
    )


def reorder_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the assets that reordering makes; they build on themselves, a partition earlier."""
    before = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)
    watermarks = [dep(spec, STAGED_EVENTS), dep(spec, WATERMARKS, before)]
    deps = [*watermarks, dep(spec, HELD_EVENTS, before)]

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        for reordered in reorder(spec, stores.lake, axis, partitions):
            yield reordered.partition, reordered.figures()

    specs = [
        asset_spec(spec, table, text, watermarks if table == WATERMARKS else deps)
        for table, text in DESCRIPTIONS.items()
    ]
    return step(spec, "reorder", axis, specs, work)
