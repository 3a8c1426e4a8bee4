"""Revisions as they are offered to a target: numbered rows of publications, and their sums.

A publication is what a lane holds of an event partition. Here belongs how revisions become
publications, and which entries of the ledger a batch of them stands for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import polars as pl

from assets.stores.publishing.row_sums import K_LANES, S_LANES, row_lanes, sums_of
from transforms.parity.canonical import Value, frame
from transforms.parity.contract import Contract
from transforms.publication import in_lanes
from transforms.publishing.ledger import (
    Covered,
    DeadLetter,
    Entry,
    Publication,
    State,
    Sums,
    uncovered,
)
from transforms.schemas import EVENT_PARTITION, to_stored

_PUBLICATION: Final = "_publication"
_POSITION: Final = "_position"
_RUN: Final = "_run"
_PLACES: Final = (_PUBLICATION, _POSITION, *S_LANES, *K_LANES)


@dataclass(frozen=True)
class Work:
    """Everything that is offered at a time: rows with their places, lane by lane."""

    contract: Contract
    publications: Sequence[Publication]
    lanes: Mapping[int, pl.DataFrame]

    @classmethod
    def of(cls, contract: Contract, revisions: pl.DataFrame, *, lanes: int, rows: int) -> Self:
        """Return the publications that revisions are; they have a column ``event_partition``."""
        publications: list[Publication] = []
        placed = {
            lane: _placed(contract, part, publications)
            for lane, part in in_lanes(revisions, lanes=lanes, rows=rows).items()
        }
        return cls(contract, publications, placed)

    def without(self, covered: Sequence[Covered]) -> "Work":
        """Return what no entry of the ledger covers: the rest, after a kill."""
        if not covered:
            return self
        gaps = pl.DataFrame(
            list(_gaps(self.publications, covered)),
            schema=dict.fromkeys((_PUBLICATION, "lo", "hi"), pl.Int64()),
            orient="row",
        )
        within = pl.col(_POSITION).is_between(pl.col("lo"), pl.col("hi"), closed="left")
        rest = {
            lane: rows.join(gaps, on=_PUBLICATION, maintain_order="left")
            .filter(within)
            .drop("lo", "hi")
            for lane, rows in self.lanes.items()
        }
        return Work(self.contract, self.publications, rest)

    @property
    def height(self) -> int:
        """How many rows."""
        return sum(rows.height for rows in self.lanes.values())

    def offer(self, rows: pl.DataFrame) -> "Offer":
        """Return a batch of the rows of a lane."""
        return Offer(self, rows)


@dataclass(frozen=True)
class Offer:
    """Rows that are written at once, or not at all."""

    work: Work
    rows: pl.DataFrame

    @property
    def height(self) -> int:
        """How many."""
        return self.rows.height

    @property
    def name(self) -> str:
        """The publication and the position of its first row, as the ledger has them."""
        number, position = self.rows[0, _PUBLICATION], self.rows[0, _POSITION]
        return f"{self.work.publications[number].name}:{position}"

    @property
    def partitions(self) -> list[str]:
        """The event partitions that the rows are of."""
        numbers = self.rows[_PUBLICATION].unique(maintain_order=True)
        return [self.work.publications[number].partition for number in numbers]

    @property
    def revisions(self) -> pl.DataFrame:
        """The rows as they are published."""
        return self.rows.drop(*_PLACES)

    def sums(self) -> Sums:
        """The sums of all rows."""
        return sums_of(self.rows)

    def halves(self) -> tuple["Offer", "Offer"]:
        """The rows before the middle, and those after it."""
        middle = self.height // 2
        return Offer(self.work, self.rows[:middle]), Offer(self.work, self.rows[middle:])

    def entries(self, state: State, attempts: int) -> tuple[Entry, ...]:
        """The ledger of these rows: an entry for each stretch of a publication."""
        starts_new = (pl.col(_PUBLICATION).diff() != 0) | (pl.col(_POSITION).diff() != 1)
        runs = self.rows.with_columns(starts_new.fill_null(value=True).cum_sum().alias(_RUN))
        return tuple(
            self._entry(run, state, attempts)
            for run in runs.partition_by(_RUN, maintain_order=True)
        )

    def _entry(self, run: pl.DataFrame, state: State, attempts: int) -> Entry:
        lo, publication = run[_POSITION][0], self.work.publications[run[_PUBLICATION][0]]
        return Entry(publication, lo, lo + run.height, sums_of(run), state, attempts)

    def dead_letter(self, reason: str, sqlstate: str, detail: str) -> DeadLetter:
        """The one row of this offer, as a row that the target cannot hold."""
        [entry] = self.entries(State.DEAD_LETTERED, 1)
        values = _values(self.revisions)
        proven = self.work.contract.proven
        body = frame([c.kind for c in proven], [values.get(c.name) for c in proven])
        return DeadLetter(entry.publication, entry.lo, reason, sqlstate, detail, body)


def _placed(
    contract: Contract, part: pl.DataFrame, publications: list[Publication]
) -> pl.DataFrame:
    """Add the places of the rows of a lane, and the publications that they are of."""
    names = part[EVENT_PARTITION].unique(maintain_order=True).to_list()
    first = len(publications)
    numbers = part[EVENT_PARTITION].replace_strict(
        names, range(first, first + len(names)), return_dtype=pl.Int64
    )
    bare = part.drop(EVENT_PARTITION)
    rows = pl.concat([bare, row_lanes(contract, to_stored(bare))], how="horizontal").with_columns(
        numbers.alias(_PUBLICATION)
    )
    rows = rows.with_columns(pl.int_range(pl.len()).over(_PUBLICATION).alias(_POSITION))
    parts = rows.partition_by(_PUBLICATION, as_dict=True, maintain_order=True)
    publications += [
        Publication(contract.fingerprint, name, sums_of(parts[first + place,]))
        for place, name in enumerate(names)
    ]
    return rows


def _gaps(
    publications: Sequence[Publication], covered: Sequence[Covered]
) -> Iterator[tuple[int, int, int]]:
    taken: dict[str, list[tuple[int, int]]] = {}
    for entry in covered:
        taken.setdefault(entry.publication, []).append((entry.lo, entry.hi))
    for number, publication in enumerate(publications):
        for lo, hi in uncovered(publication.sums.n, taken.get(publication.name, ())):
            yield number, lo, hi


def _values(rows: pl.DataFrame) -> dict[str, Value | None]:
    """One row as the oracle takes it; nanoseconds are cut, for a frame has none."""
    stored = to_stored(rows)
    instants = [name for name, kind in stored.schema.items() if isinstance(kind, pl.Datetime)]
    return stored.with_columns(pl.col(instants).dt.epoch("us")).row(0, named=True)
