"""Verdicts: what it means that the rows of a key are not the same single row on both sides.

A row is the tuple of its frame columns, in contract order. Here belong the judgement of one key and
the tally of many; how the keys were found is ``parity.descent``.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from transforms.parity.canonical import ColumnType, Kind, decode, shown
from transforms.parity.causes import Cause, cause_of
from transforms.parity.contract import Contract

Row = tuple[bytes, ...]
SAMPLES = 10
REVISION = "revision"
_INT = ColumnType(Kind.INT)
ROW = ""  # the column of a finding that is about the whole row


class Verdict(StrEnum):
    """Of a key, a partition or a proof."""

    EQUAL = "EQUAL"
    CHANGED = "CHANGED"
    MISSING = "MISSING"
    EXTRA = "EXTRA"
    DUPLICATE = "DUPLICATE"
    SUSPECT = "SUSPECT"
    SUPERSEDED = "SUPERSEDED"
    REFUSED = "REFUSED"


DIFFERENCES = (Verdict.CHANGED, Verdict.MISSING, Verdict.EXTRA, Verdict.DUPLICATE)


@dataclass(frozen=True)
class Difference:
    """All rows of one key on both sides."""

    key: bytes
    source: tuple[Row, ...]
    target: tuple[Row, ...]


class Matched(NamedTuple):
    """The rows of a key, paired: those equal are gone."""

    changed: list[tuple[Row, Row]]
    only_source: list[Row]
    only_target: list[Row]


class Mark(NamedTuple):
    """What a finding is about. ``column`` is ``ROW`` for the whole row."""

    verdict: Verdict
    column: str
    cause: str


@dataclass
class Finding:
    """How often, and some examples: key, source and target, as people read them."""

    count: int = 0
    samples: list[dict[str, str]] = field(default_factory=list)


def matched(difference: Difference) -> Matched:
    """Equal rows first, then the rest in order, one of each side."""
    if len(difference.source) == len(difference.target) == 1:
        pair = (difference.source[0], difference.target[0])
        return Matched([pair] if pair[0] != pair[1] else [], [], [])
    source, target = Counter(difference.source), Counter(difference.target)
    left, right = (sorted(side.elements()) for side in (source - target, target - source))
    pairs = list(zip(left, right, strict=False))
    return Matched(pairs, left[len(pairs) :], right[len(pairs) :])


def revision_cause(contract: Contract, source: Row, target: Row) -> Cause | None:
    """Whether the target holds an older or a newer revision; None where revisions do not differ."""
    place = contract.position(REVISION)
    if place is None or contract.proven[place].kind != _INT or source[place] == target[place]:
        return None
    before, after = decode(_INT, source[place]), decode(_INT, target[place])
    if not (isinstance(before, int) and isinstance(after, int)):
        return None
    return Cause.REVISION_BEHIND if after < before else Cause.REVISION_AHEAD


def changed_marks(contract: Contract, source: Row, target: Row) -> list[Mark]:
    """Of two rows of one key: each column that differs with its cause, or just the revision."""
    revision = revision_cause(contract, source, target)
    if revision:
        return [Mark(Verdict.CHANGED, REVISION, revision)]
    return [
        Mark(Verdict.CHANGED, column.name, cause_of(column.kind, before, after))
        for column, before, after in zip(contract.proven, source, target, strict=True)
        if before != after
    ]


def never_refused(_row: Row) -> bool:
    """No row is known to be refused by the target."""
    return False


@dataclass
class Tally:
    """What was found so far: keys by verdict, findings, and the causes that met in a row."""

    contract: Contract
    refused_by_target: Callable[[Row], bool] = never_refused
    keys: Counter[Verdict] = field(default_factory=Counter)
    findings: dict[Mark, Finding] = field(default_factory=dict)
    together: Counter[frozenset[Mark]] = field(default_factory=Counter)
    touched: int = 0  # keys of the source that are not EQUAL

    def add(self, difference: Difference) -> None:
        """Judge a key."""
        self.touched += bool(difference.source)
        single = len(difference.source) <= 1 and len(difference.target) <= 1
        pairs = matched(difference)
        marks = [mark for pair in pairs.changed for mark in self._changed(*pair)]
        if not single:
            self._doubled(difference, pairs)
        elif pairs.only_source:
            self._missing(pairs.only_source[0])
        elif pairs.only_target:
            self._note(Mark(Verdict.EXTRA, ROW, Cause.OTHER), None, pairs.only_target[0])
            self.keys[Verdict.EXTRA] += 1
        if marks:
            self.keys[Verdict.CHANGED] += 1
            if single:
                self.together[frozenset(marks)] += 1

    def _changed(self, source: Row, target: Row) -> list[Mark]:
        marks = changed_marks(self.contract, source, target)
        for mark in marks:
            place = None if mark.column == REVISION else self.contract.position(mark.column)
            self._note(mark, source, target, place)
        return marks

    def _missing(self, row: Row) -> None:
        refused = self.refused_by_target(row)
        cause = Cause.REFUSED_BY_TARGET if refused else Cause.OTHER
        self._note(Mark(Verdict.MISSING, ROW, cause), row, None)
        self.keys[Verdict.MISSING] += 1

    def _doubled(self, difference: Difference, pairs: Matched) -> None:
        for side, rows in (("source", difference.source), ("target", difference.target)):
            if len(rows) > 1:
                both = (rows[0], None) if side == "source" else (None, rows[0])
                self._note(Mark(Verdict.DUPLICATE, ROW, f"{len(rows)} in {side}"), *both)
        for row in pairs.only_source:
            self._note(Mark(Verdict.DUPLICATE, ROW, "unmatched in source"), row, None)
        for row in pairs.only_target:
            self._note(Mark(Verdict.DUPLICATE, ROW, "unmatched in target"), None, row)
        self.keys[Verdict.DUPLICATE] += 1
        if not difference.target:
            self.keys[Verdict.MISSING] += 1
        if not difference.source:
            self.keys[Verdict.EXTRA] += 1

    def _note(
        self, mark: Mark, source: Row | None, target: Row | None, place: int | None = None
    ) -> None:
        finding = self.findings.setdefault(mark, Finding())
        finding.count += 1
        if len(finding.samples) < SAMPLES:
            finding.samples.append(self._sample(source, target, place))

    def _sample(self, source: Row | None, target: Row | None, place: int | None) -> dict[str, str]:
        row = source if source is not None else target
        sample = {"key": self._shown(row or (), range(len(self.contract.key)))}
        places = range(len(self.contract.key), len(self.contract.proven))
        chosen: Sequence[int] = places if place is None else [place]
        for side, content in (("source", source), ("target", target)):
            if content is not None:
                sample[side] = self._shown(content, chosen)
        return sample

    def _shown(self, row: Row, places: Sequence[int]) -> str:
        columns = self.contract.proven
        return ", ".join(f"{columns[i].name}={shown(columns[i].kind, row[i])}" for i in places)
