"""Planted faults: a proof that the proof sees. Rows of the source are copied and one fault planted.

Each fault goes through cells, descent and verdict like any other difference; if one escapes, or is
called by another name, nothing this run says can be believed. All in memory: no store is touched.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from transforms.parity.canonical import NULL, PRESENT, Kind
from transforms.parity.causes import Cause
from transforms.parity.cells import Digests, bad_buckets, cells_of, digests
from transforms.parity.contract import Contract
from transforms.parity.descent import DIGESTS, Pair, differing
from transforms.parity.verdict import DIFFERENCES, Difference, Mark, Row, Tally, Verdict

_EMPTY = PRESENT + bytes(4)
_MICROS = {Kind.INSTANT, Kind.LOCAL}


@dataclass(frozen=True)
class Fault:
    """Two copies that differ by one fault, and what must be said of them.

    ``keys`` counts keys by verdict; ``marks`` are allowed columns and causes, empty for any.
    """

    name: str
    source: Sequence[Row]
    target: Sequence[Row]
    keys: dict[Verdict, int]
    marks: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Planted:
    """How one fault went: ``seen``, or None where contract or sample have no place for it."""

    name: str
    seen: bool | None
    said: str = ""


def digests_of(contract: Contract, row: Row) -> Digests:
    """Of a row as its frame columns."""
    key = len(contract.key)
    return digests(b"".join(row[:key]), b"".join(row[key:]))


def compared(contract: Contract, source: Sequence[Row], target: Sequence[Row]) -> Tally:
    """The whole descent over rows in memory."""
    tally = Tally(contract)
    left, right = ([digests_of(contract, row) for row in side] for side in (source, target))
    if not bad_buckets(cells_of(left), cells_of(right)):
        return tally
    frames = (pl.DataFrame(side, DIGESTS, orient="row") for side in (left, right))
    for key in differing(Pair(*frames)):
        tally.add(
            Difference(
                key,
                *(
                    tuple(row for row, digest in zip(rows, marks, strict=True) if digest.key == key)
                    for rows, marks in ((source, left), (target, right))
                ),
            )
        )
    return tally


def plant(contract: Contract, rows: Sequence[Row]) -> list[Planted]:
    """Every fault, tried on some rows of distinct keys."""
    return [_tried(contract, name, make(contract, list(rows))) for name, make in _FAULTS.items()]


def _tried(contract: Contract, name: str, fault: Fault | None) -> Planted:
    if fault is None:
        return Planted(name, seen=None)
    tally = compared(contract, fault.source, fault.target)
    keys = {verdict: tally.keys[verdict] for verdict in DIFFERENCES if tally.keys[verdict]}
    marks = {(mark.column, mark.cause) for mark in tally.findings}
    right = keys == fault.keys and (not fault.marks or marks <= fault.marks)
    return Planted(name, right, ", ".join(map(_words, tally.findings)))


def _words(mark: Mark) -> str:
    return " ".join(filter(None, mark))


def _places(contract: Contract, kinds: set[Kind]) -> Iterator[int]:
    first = len(contract.key)
    return (i for i, c in enumerate(contract.proven) if i >= first and c.kind.kind in kinds)


def _with(row: Row, place: int, column: bytes) -> Row:
    return (*row[:place], column, *row[place + 1 :])


def _changed(name: str, rows: list[Row], at: int, row: Row, marks: set[tuple[str, str]]) -> Fault:
    target = [*rows[:at], row, *rows[at + 1 :]]
    return Fault(name, rows, target, {Verdict.CHANGED: 1}, frozenset(marks))


def _float_bit(contract: Contract, rows: list[Row]) -> Fault | None:
    for place in _places(contract, {Kind.FLOAT}):
        for at, row in enumerate(rows):
            if row[place] != NULL and row[place][1:3] < b"\x7f\xf0":
                bits = struct.pack(">Q", int.from_bytes(row[place][1:], "big") ^ 1)
                marks = {(contract.proven[place].name, str(Cause.FLOAT_LAST_BITS))}
                return _changed("float bit", rows, at, _with(row, place, PRESENT + bits), marks)
    return None


def _microsecond(contract: Contract, rows: list[Row]) -> Fault | None:
    for place in _places(contract, _MICROS):
        for at, row in enumerate(rows):
            if row[place] != NULL and row[place][1] not in {0x7F, 0x80}:
                later = int.from_bytes(row[place][1:], "big") + 1
                name = contract.proven[place].name
                marks = {(name, str(Cause.OTHER)), (name, str(Cause.FRACTION_CUT))}
                changed = _with(row, place, PRESENT + struct.pack(">Q", later))
                return _changed("one microsecond", rows, at, changed, marks)
    return None


def _null_for_empty(contract: Contract, rows: list[Row]) -> Fault | None:
    for place in _places(contract, {Kind.TEXT, Kind.BYTES}):
        empty = [_with(rows[0], place, _EMPTY), *rows[1:]]
        marks = {(contract.proven[place].name, str(Cause.NULL_EMPTY))}
        return _changed("null for ''", empty, 0, _with(rows[0], place, NULL), marks)
    return None


def _swapped(contract: Contract, rows: list[Row]) -> Fault | None:
    key = len(contract.key)
    for at in range(1, len(rows)):
        if rows[0][key:] != rows[at][key:]:
            target = list(rows)
            target[0] = rows[0][:key] + rows[at][key:]
            target[at] = rows[at][:key] + rows[0][key:]
            return Fault("values swapped", rows, target, {Verdict.CHANGED: 2})
    return None


def _dropped(_contract: Contract, rows: list[Row]) -> Fault:
    return Fault("row dropped", rows, rows[1:], {Verdict.MISSING: 1})


def _added(_contract: Contract, rows: list[Row]) -> Fault:
    return Fault("row added", rows[1:], rows, {Verdict.EXTRA: 1})


def _doubled(_contract: Contract, rows: list[Row]) -> Fault:
    return Fault("row doubled", rows, [*rows, rows[0]], {Verdict.DUPLICATE: 1})


def _pairs_exchanged(_contract: Contract, rows: list[Row]) -> Fault | None:
    if len(rows) < 2:  # noqa: PLR2004 - a pair
        return None
    p, q = rows[:2]
    return Fault("p,p for q,q", [p, p, *rows[2:]], [q, q, *rows[2:]], _EXCHANGED)


_EXCHANGED = {Verdict.MISSING: 1, Verdict.EXTRA: 1, Verdict.DUPLICATE: 2}
_FAULTS: dict[str, Callable[[Contract, list[Row]], Fault | None]] = {
    "float bit": _float_bit,
    "one microsecond": _microsecond,
    "null for ''": _null_for_empty,
    "values swapped": _swapped,
    "row dropped": _dropped,
    "row added": _added,
    "row doubled": _doubled,
    "p,p for q,q": _pairs_exchanged,
}
