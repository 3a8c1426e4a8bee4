"""From cells to rows: what is asked of two sides when buckets disagree, and whether it is true.

Here belongs the asking. Matching is ``transforms.parity.descent``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from assets.stores.parity.side import Side
from transforms.parity.cells import Cells, bad_buckets, bucket_of, total
from transforms.parity.contract import Contract, RefusedError
from transforms.parity.descent import DIGESTS, Pair, aligned, differing, grouped, stream_all, summed
from transforms.parity.proof import Partition
from transforms.parity.verdict import Difference

KEYS_AT_ONCE = 2_000


@dataclass
class _Sums:
    """The cells of what streamed by, to be held against the cells of the first level."""

    source: Cells = field(default_factory=dict)
    target: Cells = field(default_factory=dict)
    moved_bytes: int = 0

    def add(self, pair: Pair) -> None:
        for cells, frame in ((self.source, pair.source), (self.target, pair.target)):
            self.moved_bytes += int(frame.estimated_size())
            for bucket, cell in summed(frame).items():
                cells[bucket] = total([cells[bucket], cell]) if bucket in cells else cell

    def agree_with(self, partition: Partition, buckets: Sequence[int]) -> bool:
        return all(
            found.get(bucket) == first.get(bucket)
            for found, first in ((self.source, partition.source), (self.target, partition.target))
            for bucket in buckets
        )


@dataclass
class Descent:
    """Two sides under one contract; counts what it moved."""

    source: Side
    target: Side
    contract: Contract
    moved_bytes: int = 0

    def differences(self, partition: Partition, *, again: bool = False) -> Iterator[Difference]:
        """Every key whose rows are not the same single row, in order of its digest.

        ``again``: a second look, for which the cells are no longer the measure. Raises
        ``RefusedError`` if a side does not hold what its cells say.
        """
        buckets = bad_buckets(partition.source, partition.target)
        if not buckets:
            return
        if _mostly_bad(partition, buckets):
            yield from self._streamed(partition, buckets, again=again)
        else:
            yield from self._by_key(partition, self._keys(partition, buckets, again=again))

    def _streamed(
        self, partition: Partition, buckets: Sequence[int], *, again: bool
    ) -> Iterator[Difference]:
        sums = _Sums()
        for pair in self._rows(partition, None, None):
            sums.add(pair)
            yield from _differences(pair)
        self._account(sums, partition, buckets, again=again)

    def _by_key(self, partition: Partition, keys: Sequence[bytes]) -> Iterator[Difference]:
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[first : first + KEYS_AT_ONCE]
            for pair in self._rows(partition, sorted(set(map(bucket_of, some))), some):
                self.moved_bytes += sum(int(side.estimated_size()) for side in pair)
                yield from _differences(pair)

    def _keys(self, partition: Partition, buckets: Sequence[int], *, again: bool) -> list[bytes]:
        keys, sums = self._digests(partition, buckets, located=True)
        if not again and not sums.agree_with(partition, buckets):
            # Somebody moved a row to another `_bucket`: it locates, it is not believed.
            keys, sums = self._digests(partition, buckets, located=False)
        self._account(sums, partition, buckets, again=again)
        return keys

    def _digests(
        self, partition: Partition, buckets: Sequence[int], *, located: bool
    ) -> tuple[list[bytes], _Sums]:
        sums, keys = _Sums(), []
        streams = (
            side.digests(self.contract, self.where(side, partition), buckets, located=located)
            for side in (self.source, self.target)
        )
        for pair in aligned(DIGESTS, *streams):
            sums.add(pair)
            keys += differing(pair).to_list()
        return keys, sums

    def _rows(
        self, partition: Partition, buckets: Sequence[int] | None, keys: Sequence[bytes] | None
    ) -> Iterable[Pair]:
        names = {f"c{i}": pl.Binary() for i in range(len(self.contract.proven))}
        streams = (
            side.rows(self.contract, self.where(side, partition), buckets, keys)
            for side in (self.source, self.target)
        )
        return aligned(pl.Schema({**DIGESTS, **names}), *streams)

    def recount(self, partition: Partition, buckets: Sequence[int]) -> tuple[Cells, Cells]:
        """The cells of some buckets, read anew."""
        _, sums = self._digests(partition, buckets, located=False)
        return sums.source, sums.target

    def where(self, side: Side, partition: Partition) -> str:
        """The condition that picks a partition on a side."""
        if partition.condition:
            return partition.condition
        return side.condition(partition.column, partition.name) if partition.column else "true"

    def _account(
        self, sums: _Sums, partition: Partition, buckets: Sequence[int], *, again: bool
    ) -> None:
        self.moved_bytes += sums.moved_bytes
        if not again and not sums.agree_with(partition, buckets):
            why = f"partition {partition.name}: rows changed after their cells were read"
            remedy = "run without what was resumed" if partition.resumed else "run again"
            raise RefusedError([f"{why}; {remedy}"])


def _mostly_bad(partition: Partition, buckets: Sequence[int]) -> bool:
    sides = (partition.source, partition.target)
    bad = max(total(side[b] for b in buckets if b in side).n for side in sides)
    return stream_all(bad, max(total(side.values()).n for side in sides))


def _differences(pair: Pair) -> Iterator[Difference]:
    keys = differing(pair)
    if keys.is_empty():
        return
    source, target = (grouped(side.filter(pl.col("kd").is_in(keys.implode()))) for side in pair)
    for key in keys:
        yield Difference(key, tuple(source.get(key, ())), tuple(target.get(key, ())))
