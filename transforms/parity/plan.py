"""The plan of a repair: what to write and to remove so that the target holds the source's rows.

Here belongs the decision for each key. The SQL is ``parity.repair_sql``; carrying it out is the
store.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from transforms.parity.canonical import Kind
from transforms.parity.causes import Cause
from transforms.parity.cells import Digests
from transforms.parity.contract import Contract
from transforms.parity.faults import digests_of
from transforms.parity.verdict import Difference, Row, revision_cause

REMOVALS_WITHOUT_APPROVAL = 100


class Removal(NamedTuple):
    """So many copies of a row to take out of the target."""

    digests: Digests
    copies: int


@dataclass(frozen=True)
class Action:
    """For one key: the row to be written if any, the rows to be removed."""

    upsert: Row | None = None
    removals: tuple[Removal, ...] = ()


@dataclass
class Plan:
    """How much a repair does. ``newer`` rows stay; ``unrepairable`` keys are doubled in the source.

    ``unwritable`` rows hold text with a NUL, which PostgreSQL refuses.
    """

    upserts: int = 0
    removals: int = 0
    newer: int = 0
    unrepairable: int = 0
    unwritable: int = 0

    def as_counts(self) -> dict[str, int]:
        """For reports."""
        return asdict(self)


@dataclass
class Planner:
    """Decides key by key, and keeps count. ``takes_nul`` is false for PostgreSQL."""

    contract: Contract
    takes_nul: bool = True
    plan: Plan = field(default_factory=Plan)

    def decide(self, difference: Difference) -> Action:
        """What to do about a key; an empty action where nothing can or may be done."""
        if len(difference.source) > 1:
            self.plan.unrepairable += 1
            return Action()
        if not difference.source:
            return self._without(difference.target)
        return self._like(difference.source[0], difference.target)

    def _like(self, wanted: Row, target: tuple[Row, ...]) -> Action:
        if any(self._is_newer(row, wanted) for row in target):
            self.plan.newer += 1
            return Action()
        kept = wanted if wanted in target else next(iter(target), None)
        action = self._without(target, kept)
        if kept == wanted:
            return action
        if not self.takes_nul and self._has_nul(wanted):
            self.plan.unwritable += 1
            return action
        self.plan.upserts += 1
        return Action(wanted, action.removals)

    def _without(self, target: tuple[Row, ...], kept: Row | None = None) -> Action:
        surplus = Counter(target)
        if kept is not None:
            surplus[kept] -= 1
        removals = tuple(
            Removal(digests_of(self.contract, row), copies)
            for row, copies in surplus.items()
            if copies
        )
        self.plan.removals += sum(removal.copies for removal in removals)
        return Action(removals=removals)

    def _is_newer(self, row: Row, wanted: Row) -> bool:
        return revision_cause(self.contract, wanted, row) is Cause.REVISION_AHEAD

    def _has_nul(self, row: Row) -> bool:
        return any(
            column.kind.kind is Kind.TEXT and b"\x00" in body[5:]
            for column, body in zip(self.contract.proven, row, strict=True)
        )
