"""The engine: two sides in, a proof out. Cells of both sides at once, then down to what differs.

Here belongs the order of the steps; what they compute is in ``transforms``, what they read is a
``Side``.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Protocol

from assets.stores.parity.descent import Descent
from assets.stores.parity.side import Scan, Side
from transforms.canonical import Kind
from transforms.canonical_self_test import check_oracle
from transforms.parity_cells import Cells, cells_of
from transforms.parity_contract import Contract, RefusedError, Wish, agree, only_in_target
from transforms.parity_descent import grouped
from transforms.parity_faults import Planted, digests_of, plant
from transforms.parity_plan import Planner
from transforms.parity_proof import Blindness, Partition, Proof, Sides
from transforms.parity_verdict import Difference, Row, Tally, never_refused
from transforms.parity_waivers import Waiver
from transforms.resequence import side_by_side

WHOLE = "all"
# Only what both engines write as the same text can name a partition.
_PARTITION_KINDS = frozenset({Kind.TEXT, Kind.INT, Kind.DATE})
_SAMPLE_BUCKETS = 8
_SAMPLE_ROWS = 200


class CellLedger(Protocol):
    """Remembers the cells of partitions, so that a killed run goes on where it was."""

    def recall(self, contract: Contract, partition: str) -> tuple[Cells, Cells] | None:
        """Cells of source and target, if both were read."""
        ...

    def keep(self, contract: Contract, partition: Partition) -> None:
        """Called once both sides of a partition were read."""
        ...


@dataclass(frozen=True)
class Options:
    """How a proof is run. ``commit_lag_s`` above 0: a second look decides what is suspected.

    Partitions are the values of a column, or named conditions in the SQL that both engines share.
    ``refused`` knows the rows that the target could not hold.
    """

    today: date
    partition: str | None = None
    waivers: tuple[Waiver, ...] = ()
    commit_lag_s: float = 0.0
    ledger: CellLedger | None = None
    sleep: Callable[[float], None] = time.sleep
    conditions: Mapping[str, str] | None = None
    refused: Callable[[Row], bool] = never_refused


def prove(source: Side, target: Side, wish: Wish, options: Options) -> Proof:
    """Compare two tables; what cannot be judged is REFUSED, with every reason."""
    proof = Proof(
        Sides(source.about(), target.about()), waivers=options.waivers, today=options.today
    )
    try:
        proof.self_test = (check_oracle(), *source.self_test(), *target.self_test())
        proof.contract = agree(source.columns(), target.columns(), wish)
        proof.blindness = _blindness(source, target, wish, proof.contract)
        descent = Descent(source, target, proof.contract)
        proof.partitions = _read(descent, options)
        proof.planted = _planted(descent, proof.partitions)
        descend(descent, proof, options)
    except RefusedError as refused:
        proof.refused = refused.reasons
    return proof


def _blindness(source: Side, target: Side, wish: Wish, contract: Contract) -> Blindness:
    left, right = ({c.name: c.declared for c in side.columns()} for side in (source, target))
    return Blindness(
        tuple((c.name, left[c.name], right[c.name], str(c.kind)) for c in contract.columns),
        tuple(wish.left_out),
        tuple(only_in_target(target.columns(), contract, wish)),
    )


def _read(descent: Descent, options: Options) -> list[Partition]:
    if options.conditions is not None:
        return [_one(descent, name, options, where) for name, where in options.conditions.items()]
    return [_one(descent, name, options) for name in _names(descent, options.partition)]


def _names(descent: Descent, column: str | None) -> Sequence[str]:
    if column is None:
        return [WHOLE]
    place = descent.contract.position(column)
    kind = None if place is None else descent.contract.proven[place].kind.kind
    if kind not in _PARTITION_KINDS:
        allowed = ", ".join(sorted(_PARTITION_KINDS))
        raise RefusedError([f"partition column {column} is {kind}; allowed: {allowed}"])
    sides = (descent.source, descent.target)
    return sorted({value for side in sides for value in side.partitions(column)})


def _one(descent: Descent, name: str, options: Options, where: str = "") -> Partition:
    known = options.ledger.recall(descent.contract, name) if options.ledger else None
    if known:
        return Partition(name, *known, options.partition, resumed=True, condition=where)
    empty = Partition(name, {}, {}, options.partition, condition=where)
    source, target = _both(descent, empty)
    partition = replace(empty, source=source, target=target)
    if options.ledger:
        options.ledger.keep(descent.contract, partition)
    return partition


def _both(descent: Descent, partition: Partition) -> tuple[Cells, Cells]:
    def scanned(side: Side) -> Scan:
        return side.cells(descent.contract, descent.where(side, partition))

    sides = (descent.source, descent.target)
    scans = list(side_by_side(scanned, sides, workers=2))
    nulls = [
        f"{side.label}: {scan.null_keys} rows have a null in their key"
        for side, scan in zip(sides, scans, strict=True)
        if scan.null_keys
    ]
    if nulls:
        raise RefusedError(nulls)
    return scans[0].cells, scans[1].cells


def _planted(descent: Descent, partitions: Sequence[Partition]) -> tuple[Planted, ...]:
    """Faults in a copy of some rows of the source; one that is not seen refuses the whole proof."""
    partition = max(partitions, key=lambda each: len(each.source), default=None)
    if partition is None or not partition.source:
        return ()
    rows = _sample(descent, partition)
    planted = tuple(plant(descent.contract, rows))
    unseen = [
        f"planted fault not recognised: {p.name}, said {p.said or 'nothing'}"
        for p in planted
        if p.seen is False
    ]
    if unseen:
        raise RefusedError(unseen)
    return planted


def _sample(descent: Descent, partition: Partition) -> list[Row]:
    """Rows of distinct keys; for buckets read whole, the oracle must find the same cell."""
    fullest = sorted(partition.source, key=lambda b: (-partition.source[b].n, b))
    buckets = fullest[:1] if partition.source[fullest[0]].n > 1 else fullest[:_SAMPLE_BUCKETS]
    where = descent.where(descent.source, partition)
    with closing(descent.source.rows(descent.contract, where, buckets, None)) as frames:
        first = next(frames, None)
        whole = next(frames, None) is None
    rows = grouped(first) if first is not None else {}
    if whole:
        _check_sample(descent.contract, partition, buckets, rows)
    return [each[0] for each in islice(rows.values(), _SAMPLE_ROWS)]


def _check_sample(
    contract: Contract,
    partition: Partition,
    buckets: Sequence[int],
    rows: dict[bytes, list[Row]],
) -> None:
    found = cells_of(digests_of(contract, row) for each in rows.values() for row in each)
    wrong = [
        f"bucket {bucket}: the oracle's cell differs from the one that was read"
        for bucket in buckets
        if found.get(bucket) != partition.source[bucket]
    ]
    if wrong:
        raise RefusedError(wrong)


def descend(descent: Descent, proof: Proof, options: Options) -> None:
    """Tally what differs in the partitions of a proof, and plan what would mend it."""
    proof.tally = tally = Tally(descent.contract, options.refused)
    planner = Planner(descent.contract, takes_nul=descent.target.takes_nul)
    proof.plan = planner.plan
    first: dict[bytes, bytes] = {}
    for partition in proof.partitions:
        for difference in descent.differences(partition):
            tally.add(difference)
            planner.decide(difference)
            if options.commit_lag_s:
                first[difference.key] = _print_of(difference)
    if first:
        _look_again(descent, proof, options, first)
    proof.moved_bytes = descent.moved_bytes


def _look_again(
    descent: Descent, proof: Proof, options: Options, first: dict[bytes, bytes]
) -> None:
    """What differs in the same way after the commit lag is a verdict, otherwise it is SUSPECT."""
    options.sleep(options.commit_lag_s)
    for side in (descent.source, descent.target):
        side.refresh()
    proof.tally = tally = Tally(descent.contract, options.refused)
    for partition in proof.partitions:
        for difference in descent.differences(partition, again=True):
            if first.get(difference.key) == _print_of(difference):
                tally.add(difference)
            else:
                proof.suspect += 1


def _print_of(difference: Difference) -> bytes:
    shape = repr((difference.source, difference.target)).encode()
    return hashlib.md5(shape, usedforsecurity=False).digest()
