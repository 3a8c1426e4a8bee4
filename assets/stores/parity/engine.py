"""The engine: two sides in, a proof out. Cells of both sides at once, then down to what differs.

Here belongs the order of the steps; what they compute is in ``transforms``, what they read is a
``Side``.
"""

import hashlib
from collections.abc import Sequence

from assets.stores.parity.descent import Descent
from assets.stores.parity.level_one import read
from assets.stores.parity.options import Options
from assets.stores.parity.side import Side
from transforms.parity.canonical_self_test import check_oracle, check_prints
from transforms.parity.cells import cells_of
from transforms.parity.contract import Contract, RefusedError, Wish, agree, only_in_target
from transforms.parity.descent import grouped
from transforms.parity.faults import Planted, digests_of, plant
from transforms.parity.plan import Planner
from transforms.parity.proof import Blindness, Partition, Proof, Sides
from transforms.parity.verdict import Difference, Row, Tally

_SAMPLE_ROWS = 200


def prove(source: Side, target: Side, wish: Wish, options: Options) -> Proof:
    """Compare two tables; what cannot be judged is REFUSED, with every reason."""
    proof = Proof(
        Sides(source.about(), target.about()), waivers=options.waivers, today=options.today
    )
    try:
        proof.self_test = (check_oracle(), *_self_test(source, target))
        proof.contract = agree(source.columns(), target.columns(), wish)
        proof.blindness = _blindness(source, target, wish, proof.contract)
        descent = Descent(source, target, proof.contract)
        proof.partitions = read(descent, options)
        proof.planted = _planted(descent, proof.partitions)
        descend(descent, proof, options)
    except RefusedError as refused:
        proof.refused = refused.reasons
    return proof


def _self_test(source: Side, target: Side) -> list[str]:
    paths = [*source.self_test(), *target.self_test()]
    if source.in_process and target.in_process:
        check_prints(source.vector_print(), target.vector_print())
        paths.append("hashed in this process")
    return paths


def _blindness(source: Side, target: Side, wish: Wish, contract: Contract) -> Blindness:
    left, right = ({c.name: c.declared for c in side.columns()} for side in (source, target))
    return Blindness(
        tuple((c.name, left[c.name], right[c.name], str(c.kind)) for c in contract.columns),
        tuple(wish.left_out),
        tuple(only_in_target(target.columns(), contract, wish)),
    )


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
    """Rows of distinct keys; the oracle must find the cells that the path of level one makes."""
    where = descent.where(descent.source, partition)
    frame, cells = descent.source.sample(descent.contract, where, _SAMPLE_ROWS)
    rows = grouped(frame)
    found = cells_of(digests_of(descent.contract, row) for each in rows.values() for row in each)
    if found != cells:
        raise RefusedError(
            [f"{descent.source.label}: of {frame.height} rows the oracle makes other cells"]
        )
    return [each[0] for each in rows.values()]


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
