"""The tables of a target that say what was published: batches, numbers, rows that it cannot hold.

They stand in the schema of the stream and are written in the transaction of the rows they speak of.
Here belongs their SQL, which both engines take; connections and transactions are the target's.
"""
# ruff: noqa: S608 (identifiers are quoted, texts are literals or parameters)

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transforms.parity.canonical_sql import literal
from transforms.publishing.ledger import Covered, DeadLetter, Entry, Note, State

BATCHES: Final = "publish_batches"
NUMBERS: Final = "publication_numbers"
DEAD: Final = "publish_dead_letters"
_LANES: Final = ("s0", "s1", "s2", "s3", "k0", "k1", "k2", "k3")
_ENTRY: Final = (
    *("fingerprint", "publication", '"partition"', "revision", "lo", "hi", "n"),
    *(*_LANES, "state", "attempts"),
)
Execute = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Ledger:
    """The ledger of a stream; ``schema`` is quoted, ``binary`` the engine's type of bytes."""

    schema: str
    binary: str

    def create(self) -> list[str]:
        """Return the statements that make the tables, again: nothing."""
        sums = ", ".join(f"{lane} bigint not null" for lane in ("n", *_LANES))
        return [
            (
                f"create table if not exists {self.schema}.{BATCHES} (fingerprint text not null,"
                ' publication text not null, "partition" text not null, revision bigint not null,'
                f" lo bigint not null, hi bigint not null, {sums}, state text not null,"
                " attempts integer not null, committed_at timestamptz not null"
                " default current_timestamp, primary key (publication, lo))"
            ),
            (
                f'create table if not exists {self.schema}.{NUMBERS} ("partition" text primary key,'
                ' "number" bigint not null)'
            ),
            (
                f"create table if not exists {self.schema}.{DEAD} (publication text not null,"
                ' "partition" text not null, "position" bigint not null, reason text not null,'
                " sqlstate text not null, detail text not null, fingerprint text not null,"
                f" frame {self.binary} not null, refused_at timestamptz not null"
                ' default current_timestamp, primary key (publication, "position"))'
            ),
        ]

    def write(self, execute: Execute, note: Note, *, changed: bool) -> None:
        """Write a note: numbers are raised where something changed."""
        if not note.entries:
            return
        partitions = sorted({entry.publication.partition for entry in note.entries})
        numbers = self._raise(execute, partitions) if changed else self.numbers(execute)
        for dead in note.dead_letters:
            self._keep(execute, dead)
        rows = ", ".join(
            _entry(entry, numbers.get(entry.publication.partition, 0)) for entry in note.entries
        )
        execute(
            f"insert into {self.schema}.{BATCHES} ({', '.join(_ENTRY)}) values {rows}"
            " on conflict do nothing",
            (),
        )

    def numbers(self, execute: Execute) -> dict[str, int]:
        """Return the publication number of each event partition."""
        rows = execute(f'select "partition", "number" from {self.schema}.{NUMBERS}', ())
        return {str(partition): int(number) for partition, number in rows}

    def covered(self, execute: Execute, publications: Iterable[str]) -> list[Covered]:
        """Return what of some publications, by their names, was taken before."""
        names = ", ".join(map(literal, publications)) or "null"
        rows = execute(
            f"select publication, lo, hi, state from {self.schema}.{BATCHES}"
            f" where publication in ({names})",
            (),
        )
        return [Covered(str(name), lo, hi, State(state)) for name, lo, hi, state in rows]

    def refused(self, execute: Execute) -> frozenset[bytes]:
        """Return the frames of the dead letters."""
        rows = execute(f"select distinct frame from {self.schema}.{DEAD}", ())
        return frozenset(bytes(frame) for (frame,) in rows)

    def _raise(self, execute: Execute, partitions: Sequence[str]) -> dict[str, int]:
        # In order, so that two writers never wait for each other.
        rows = ", ".join(f"({literal(name)}, 1)" for name in partitions)
        raised = execute(
            f'insert into {self.schema}.{NUMBERS} as p ("partition", "number") values {rows}'
            ' on conflict ("partition") do update set "number" = p."number" + 1'
            ' returning "partition", "number"',
            (),
        )
        return {str(partition): int(number) for partition, number in raised}

    def _keep(self, execute: Execute, dead: DeadLetter) -> None:
        execute(
            f'insert into {self.schema}.{DEAD} (publication, "partition", "position", reason,'
            " sqlstate, detail, fingerprint, frame) values ($1, $2, $3, $4, $5, $6, $7, $8)"
            " on conflict do nothing",
            (
                *(dead.publication.name, dead.publication.partition, dead.position),
                *(dead.reason, dead.sqlstate, dead.detail.replace("\0", "\\0")),
                *(dead.publication.fingerprint, dead.frame),
            ),
        )


def _entry(entry: Entry, number: int) -> str:
    publication, sums = entry.publication, entry.sums
    values = (
        *map(literal, (publication.fingerprint, publication.name, publication.partition)),
        *(number, entry.lo, entry.hi, sums.n, *sums.s, *sums.k),
        *(literal(entry.state), entry.attempts),
    )
    return f"({', '.join(map(str, values))})"
