"""The proof that a target holds what the lake says was published, and its repair.

Here belongs how a stream is put before the engine of proofs: both sides, partitions by the start of
their windows, publication numbers before and after. Which partitions are proved, and when, is
``assets.parity``.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from assets.stores.counting import RowCount
from assets.stores.parity.engine import prove
from assets.stores.parity.ledger import FileLedger, VersionedLedger
from assets.stores.parity.options import Options
from assets.stores.parity.repair import repair
from assets.stores.parity.side import READING, Reading, Side
from assets.stores.parity.stream_side import published_side
from assets.stores.publishing.delivery import Sink
from assets.stores.targets.faults import TargetOutageError
from transforms.errors import TargetError
from transforms.parity.canonical_types import Declared
from transforms.parity.cells import bad_buckets
from transforms.parity.contract import Wish
from transforms.parity.proof import Partition, Proof
from transforms.parity.verdict import Row
from transforms.publication import current
from transforms.schemas import (
    PUBLISHED_AT_US,
    RUN_ID,
    STORED_NAMES,
    WINDOW_IDENTITY,
    window_history_schema,
)
from transforms.spec import StreamSpec

LOG = logging.getLogger("lowwater.parity")
_UNPROVEN: Final = tuple(STORED_NAMES.get(name, name) for name in (PUBLISHED_AT_US, RUN_ID))
Read = Callable[[Sequence[str]], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class StreamProof:
    """A proof, and the publication number of each partition that it was made at.

    Those in ``superseded`` were published to while they were proved.
    """

    proof: Proof
    numbers: Mapping[str, int]
    superseded: frozenset[str]

    def of(self, partition: Partition) -> Proof:
        """What it says of one partition alone; findings stay those of all."""
        return replace(self.proof, partitions=[partition])

    def is_equal(self, partition: Partition) -> bool:
        """Whether both sides of a partition are the same, each key once."""
        cells = [*partition.source.values(), *partition.target.values()]
        return partition.source == partition.target and not any(cell.dup for cell in cells)


@dataclass(frozen=True)
class Kept:
    """A file that remembers partitions, and how many revisions the lake has of each now."""

    file: Path
    revisions: Mapping[str, int]

    def ledger(self, sides: "StreamSides", numbers: Mapping[str, int]) -> VersionedLedger:
        """Return the ledger of a stream: history only grows, and numbers are raised by changes."""
        versions = {
            name: f"{count} {numbers.get(name, 0)}" for name, count in self.revisions.items()
        }
        ledger = FileLedger(self.file, sides.label, sides.sink.target.label)
        return VersionedLedger(ledger, versions)


@dataclass(frozen=True)
class StreamSides:
    """What a proof of a stream reads: revisions of event partitions, and the target."""

    spec: StreamSpec
    sink: Sink
    label: str  # of the lake
    read: Read
    how: Reading = READING

    def prove(
        self,
        partitions: Sequence[str],
        options: Options,
        kept: Kept | None = None,
    ) -> StreamProof:
        """Hold partitions of the target against the lake. ``options`` has their grid."""
        before, refused = self._published()
        ledger = kept.ledger(self, before) if kept else None
        told = replace(options, refused=refused, ledger=ledger)
        with ExitStack() as stack:
            source, target = self._sides(stack, partitions)
            count = RowCount(self.sink.told, "proving", 2 * source.rows_about())
            counted = replace(told, told=count.add)
            proof = prove(source, target, self._wish(target.columns()), counted)
        return self._superseded(proof, before)

    def repair(
        self, partitions: Sequence[str], options: Options, approved: int | None
    ) -> StreamProof:
        """Prove, bring the target up to the lake, prove what was touched again.

        Revisions that the target lacks are published to it first, with their history.
        """
        found = self.prove(partitions, options)
        differing = [p.name for p in found.proof.partitions if bad_buckets(p.source, p.target)]
        self._restore([name for name in differing if name in set(partitions)])
        before, refused = self._published()
        told = replace(options, refused=refused)
        with ExitStack() as stack:
            source, target = self._sides(stack, partitions)
            proof = prove(source, target, self._wish(target.columns()), told)
            proof = repair(source, target, proof, told, approved)
        return self._superseded(proof, before)

    def _sides(self, stack: ExitStack, partitions: Sequence[str]) -> tuple[Side, Side]:
        schema = window_history_schema(self.spec)
        target = self.sink.target.side(self.spec.name, self.how)
        frames = map(current, self.read(partitions))
        memory = self.how.memory_mib
        copy: AbstractContextManager[Side] = published_side(self.label, schema, frames, memory)
        return stack.enter_context(stack.enter_context(copy)), stack.enter_context(target)

    def _wish(self, held: Sequence[Declared]) -> Wish:
        """Compare what is declared; a statistic that no longer is, nobody publishes."""
        schema = window_history_schema(self.spec)
        declared = {STORED_NAMES.get(name, name) for name in schema}
        former = [column.name for column in held if column.name not in declared]
        key = [STORED_NAMES.get(name, name) for name in WINDOW_IDENTITY]
        return Wish(key=key, left_out=(*_UNPROVEN, *former))

    def _restore(self, partitions: Iterable[str]) -> None:
        sink, stream = self.sink, self.spec.name
        with ExitStack() as stack:
            sink.call(lambda: stack.enter_context(sink.target))
            for partition in partitions:
                try:
                    revisions = pl.concat(self.read([partition]))
                    sink.call(partial(sink.target.publish, stream, revisions))
                except TargetOutageError:
                    raise
                except TargetError as error:
                    # A row that it cannot hold, a key that is gone: rows are mended one by one.
                    LOG.info("%s is not published whole: %s", partition, error)

    def _published(self) -> tuple[dict[str, int], Callable[[Row], bool]]:
        """Publication numbers, and which rows the target could not hold."""
        sink, stream = self.sink, self.spec.name
        with ExitStack() as stack:
            sink.call(lambda: stack.enter_context(sink.target))
            schema = window_history_schema(self.spec)
            sink.call(lambda: sink.target.prepare(stream, schema))
            numbers = sink.call(lambda: sink.target.numbers(stream))
            frames = sink.call(lambda: sink.target.refused(stream))
        return numbers, lambda row: b"".join(row) in frames

    def _superseded(self, proof: Proof, before: Mapping[str, int]) -> StreamProof:
        after, _ = self._published()
        names = {partition.name for partition in proof.partitions}
        moved = frozenset(name for name in names if before.get(name) != after.get(name))
        proof.superseded = len(moved)
        proof.revisions = {name: before[name] for name in sorted(names & before.keys())}
        return StreamProof(proof, before, moved)
