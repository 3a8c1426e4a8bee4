"""The repair: what the proof found is mended in the target, and what was touched is proved again.

Here belongs the order of the steps. Which rows are written and which removed is ``parity.plan``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from assets.stores.parity.descent import Descent
from assets.stores.parity.engine import descend
from assets.stores.parity.options import Options
from assets.stores.parity.side import Side
from assets.stores.parity.staging import Stage
from transforms.errors import UsageError
from transforms.parity.cells import Cells, bad_buckets
from transforms.parity.plan import REMOVALS_WITHOUT_APPROVAL, Action, Plan, Planner
from transforms.parity.proof import Partition, Proof
from transforms.parity.verdict import Difference, changed_marks, matched


def repair(
    source: Side, target: Side, proof: Proof, options: Options, approved: int | None
) -> Proof:
    """A new proof, after the target was brought up to the source. A refused proof repairs nothing.

    Raises ``UsageError`` if more rows would be removed than ``approved`` says.
    """
    if proof.contract is None or proof.refused:
        return proof
    descent = Descent(source, target, proof.contract)
    planner = Planner(proof.contract, takes_nul=target.takes_nul)
    with Stage(proof.contract) as stage:
        stage.take(_actions(descent, planner, proof))
        _ask(planner.plan, approved)
        if any(stage.sizes()):
            with _out_of_the_way(source, target):
                target.write(proof.contract, stage)
    return _proved_again(descent, proof, options, planner.plan)


@contextmanager
def _out_of_the_way(source: Side, target: Side) -> Iterator[None]:
    """A DuckDB file that holds both tables is let go of while it is written."""
    shared = source.file is not None and source.file == target.file
    if shared:
        source.__exit__(None, None, None)
    yield
    if shared:
        source.__enter__()


def _actions(descent: Descent, planner: Planner, proof: Proof) -> Iterator[Action]:
    for partition in proof.partitions:
        for difference in descent.differences(partition):
            if not _is_waived(proof, difference):
                yield planner.decide(difference)


def _is_waived(proof: Proof, difference: Difference) -> bool:
    """Whether somebody accepted all that differs: then it stays."""
    waived = proof.waived()
    pairs = matched(difference)
    if not waived or proof.contract is None or pairs.only_source or pairs.only_target:
        return False
    marks = {mark for pair in pairs.changed for mark in changed_marks(proof.contract, *pair)}
    return bool(marks) and marks <= waived


def _ask(plan: Plan, approved: int | None) -> None:
    needed = plan.removals > REMOVALS_WITHOUT_APPROVAL
    if (needed and approved is None) or (approved is not None and approved != plan.removals):
        raise UsageError(
            f"the repair would remove {plan.removals} rows of the target:"
            f" approve with --approve-deletes {plan.removals}"
        )


def _proved_again(descent: Descent, proof: Proof, options: Options, plan: Plan) -> Proof:
    after = replace(proof, repaired=plan, suspect=0, partitions=[])
    for partition in proof.partitions:
        touched = bad_buckets(partition.source, partition.target)
        after.partitions.append(_recounted(descent, partition, touched) if touched else partition)
    descend(descent, after, options)
    return after


def _recounted(descent: Descent, partition: Partition, touched: list[int]) -> Partition:
    source, target = descent.recount(partition, touched)
    return replace(
        partition,
        source=_with(partition.source, touched, source),
        target=_with(partition.target, touched, target),
        alike=None,
    )


def _with(cells: Cells, touched: list[int], anew: Cells) -> Cells:
    untouched = {bucket: cell for bucket, cell in cells.items() if bucket not in set(touched)}
    return dict(sorted({**untouched, **anew}.items()))
