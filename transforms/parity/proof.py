"""What a proof says: verdicts, findings, what it did not look at; as one value, and as evidence.

Here belongs the summing up. It decides the exit code by one rule: all EQUAL, nothing amber.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from transforms.parity.canonical import Kind
from transforms.parity.cells import EMPTY, Cell, Cells, Print, reading, root, total
from transforms.parity.contract import Contract
from transforms.parity.faults import Planted
from transforms.parity.plan import Plan
from transforms.parity.verdict import DIFFERENCES, Mark, Tally, Verdict
from transforms.parity.waivers import Waiver, settling_line, uncovered, waived_marks

FORMAT = "lowwater-parity-1"
_NORMALISED = {
    Kind.FLOAT: "-0.0 is 0.0, every NaN is one NaN",
    Kind.INSTANT: "time zones are gone, the instant stays",
    Kind.DECIMAL: "all digits of the scale are written",
    Kind.INT: "the width is not compared",
}


@dataclass(frozen=True)
class Partition:
    """The cells of both sides.

    ``alike`` is the print that the rows of both sides have, where they were hashed in this process
    and found equal: then the cells are made of the source, and the target's are the same.
    """

    name: str
    source: Cells
    target: Cells
    column: str | None = None  # the one whose values are the partitions; None: there is one
    resumed: bool = False
    condition: str = ""  # what picks it on either side, where no column does
    alike: Print | None = None


@dataclass(frozen=True)
class Blindness:
    """What was compared as what, and what nobody looked at.

    ``declared``: column, type in the source, type in the target, type compared. ``left_out`` was
    asked for; ``not_compared`` was not, and is amber until a waiver covers it.
    """

    declared: tuple[tuple[str, str, str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()

    def normalised(self, contract: Contract) -> dict[str, str]:
        """Per column, the differences that CF1 does not see."""
        return {
            column.name: _NORMALISED[column.kind.kind]
            for column in contract.proven
            if column.kind.kind in _NORMALISED
        }


@dataclass(frozen=True)
class Sides:
    """Both stores, for people and for evidence: label (no password), versions, snapshot."""

    source: Mapping[str, str]
    target: Mapping[str, str]


@dataclass
class Proof:
    """All a run found out. ``refused`` holds reasons; with any of them nothing was proved."""

    sides: Sides
    contract: Contract | None = None
    partitions: list[Partition] = field(default_factory=list)
    tally: Tally | None = None
    blindness: Blindness = field(default_factory=Blindness)
    planted: tuple[Planted, ...] = ()
    self_test: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    suspect: int = 0
    superseded: int = 0
    moved_bytes: int = 0
    plan: Plan | None = None
    repaired: Plan | None = None
    waivers: tuple[Waiver, ...] = ()
    today: date = date.max
    # Publication numbers by partition, where there are any: the state that was proved.
    revisions: Mapping[str, int] = field(default_factory=dict)

    def waived(self) -> frozenset[Mark]:
        """Findings that a waiver covers."""
        return waived_marks(self.tally, self.waivers, self.today) if self.tally else frozenset()

    def waived_keys(self) -> int:
        """Keys that differ in waived values alone."""
        waived = self.waived()
        together = self.tally.together if self.tally else {}
        return sum(count for marks, count in together.items() if marks <= waived)

    def total(self, side: str) -> Cell:
        """The sum over everything that was read of a side."""
        cells = (getattr(partition, side) for partition in self.partitions)
        return total(cell for each in cells for cell in each.values())

    def counts(self) -> dict[Verdict, int]:
        """Keys by verdict, waived ones as EQUAL."""
        if self.refused or self.tally is None:
            return {Verdict.REFUSED: max(len(self.refused), 1)}
        source, waived = self.total("source"), self.waived_keys()
        counts = {verdict: self.tally.keys[verdict] for verdict in DIFFERENCES}
        counts[Verdict.CHANGED] -= waived
        equal = source.n - source.dup - self.tally.touched + waived
        return {
            Verdict.EQUAL: equal,
            **counts,
            Verdict.SUSPECT: self.suspect,
            Verdict.SUPERSEDED: self.superseded,
        }

    def amber(self) -> list[str]:
        """Gaps in what was looked at that nobody has accepted."""
        columns = uncovered(self.blindness.not_compared, self.waivers, self.today)
        return [f"column {column} of the target is not compared" for column in columns]

    def holds(self) -> bool:
        """Exit code 0: all EQUAL, none amber."""
        return not self.amber() and _all_equal(self.counts())

    def verdict(self) -> Verdict:
        """The gravest that occurred."""
        return _gravest(self.counts())

    def root(self, side: str) -> str:
        """One hash for a side."""
        if self.contract is None:
            return ""
        cells = {partition.name: getattr(partition, side) for partition in self.partitions}
        return root(self.contract.fingerprint, cells)

    def findings(self) -> list[dict[str, Any]]:
        """Each with its count, samples, and the line that would settle it."""
        waived = self.waived()
        found = self.tally.findings if self.tally else {}
        return [
            {
                "verdict": str(mark.verdict),
                "column": mark.column,
                "cause": str(mark.cause),
                "count": finding.count,
                "waived": mark in waived,
                "settle": settling_line(mark, finding.count),
                "samples": finding.samples,
            }
            for mark, finding in sorted(found.items())
        ]

    def summary(self) -> dict[str, Any]:
        """What a program wants to know: the evidence without the cells."""
        counts, amber = self.counts(), self.amber()
        return {
            "verdict": str(_gravest(counts)),
            "holds": not amber and _all_equal(counts),
            "counts": {str(verdict): count for verdict, count in counts.items()},
            "rows": {"source": self.total("source").n, "target": self.total("target").n},
            "waived_keys": self.waived_keys(),
            "findings": self.findings(),
            "amber": amber,
            "blindness": self._blindness(),
            "refused": list(self.refused),
            "roots": {"source": self.root("source"), "target": self.root("target")},
            "plan": self.plan.as_counts() if self.plan else {},
            "repaired": self.repaired.as_counts() if self.repaired else {},
            "moved_bytes": self.moved_bytes,
        }

    def evidence(self) -> dict[str, Any]:
        """Everything, so that another program can check it against either store."""
        return {
            "format": FORMAT,
            **self.summary(),
            "fingerprint": self.contract.fingerprint if self.contract else "",
            "contract": self.contract.as_rows() if self.contract else [],
            "sides": {"source": dict(self.sides.source), "target": dict(self.sides.target)},
            "self_test": list(self.self_test),
            "revisions": dict(self.revisions),
            "planted": [[p.name, p.seen, p.said] for p in self.planted],
            "waivers": [waiver.model_dump(mode="json") for waiver in self.waivers],
            "partitions": [_partition(partition) for partition in self.partitions],
        }

    def _blindness(self) -> dict[str, Any]:
        return {
            "declared": [list(row) for row in self.blindness.declared],
            "normalised": self.blindness.normalised(self.contract) if self.contract else {},
            "left_out": list(self.blindness.left_out),
            "not_compared": list(self.blindness.not_compared),
        }


def _all_equal(counts: Mapping[Verdict, int]) -> bool:
    return not any(count for verdict, count in counts.items() if verdict is not Verdict.EQUAL)


def _gravest(counts: Mapping[Verdict, int]) -> Verdict:
    order = (Verdict.REFUSED, *DIFFERENCES, Verdict.SUSPECT, Verdict.SUPERSEDED)
    return next((verdict for verdict in order if counts.get(verdict)), Verdict.EQUAL)


def _partition(partition: Partition) -> dict[str, Any]:
    readings = {
        bucket: reading(p, t)
        for bucket in sorted(partition.source.keys() | partition.target.keys())
        if (p := partition.source.get(bucket, EMPTY)) != (t := partition.target.get(bucket, EMPTY))
    }
    return {
        "name": partition.name,
        "resumed": partition.resumed,
        "target_by": "cells" if partition.alike is None else "print",
        "source": flat(partition.source),
        "target": flat(partition.target),
        "readings": {str(bucket): said for bucket, said in readings.items()},
    }


def flat(cells: Cells) -> list[list[int]]:
    """Cells as lists: bucket, n, S0 to S3, K0 to K3, dup."""
    return [[b, cell.n, *cell.s, *cell.k, cell.dup] for b, cell in sorted(cells.items())]


def from_flat(rows: Collection[Collection[int]]) -> Cells:
    """The inverse of ``flat``."""
    cells: Cells = {}
    for bucket, n, *sums, dup in rows:
        cells[bucket] = Cell(n, tuple(sums[:4]), tuple(sums[4:]), dup)
    return cells
