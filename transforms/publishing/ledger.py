"""The ledger of a publication: which of its rows a target has taken, in sums that must add up.

A publication is the revisions of one event partition in order of what names them; its rows are
numbered from 0. An entry stands for rows ``lo`` up to ``hi`` that one transaction took. Here
belongs the arithmetic: sums of row digests, what is not covered yet, conservation. Where the
entries are kept is a target.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from transforms.parity.canonical import int_frame, text_frame
from transforms.parity.canonical_sql import LANES

_ZERO = (0,) * LANES


class Sums(NamedTuple):
    """Rows: their number, the sums of the lanes of their digests, and of their keys' digests."""

    n: int = 0
    s: tuple[int, ...] = _ZERO
    k: tuple[int, ...] = _ZERO

    def plus(self, other: Self) -> "Sums":
        """Return the sums of both together."""
        return Sums(self.n + other.n, _added(self.s, other.s), _added(self.k, other.k))


def _added(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def together(sums: Iterable[Sums]) -> Sums:
    """Return the sums of all."""
    total = Sums()
    for each in sums:
        total = total.plus(each)
    return total


class State(StrEnum):
    """What became of the rows of an entry."""

    COMMITTED = "committed"
    DEAD_LETTERED = "dead-lettered"


@dataclass(frozen=True)
class Publication:
    """All revisions of one event partition that are given to a target at a time."""

    fingerprint: str  # of the contract
    partition: str
    sums: Sums

    @property
    def name(self) -> str:
        """What tells it from every other one: hex sha256 over contract, partition and sums."""
        texts = b"".join(map(text_frame, (self.fingerprint, self.partition)))
        numbers = b"".join(map(int_frame, (self.sums.n, *self.sums.s, *self.sums.k)))
        return hashlib.sha256(texts + numbers).hexdigest()


@dataclass(frozen=True)
class Entry:
    """Rows ``lo`` up to ``hi`` of a publication, taken in one transaction."""

    publication: Publication
    lo: int
    hi: int
    sums: Sums
    state: State = State.COMMITTED
    attempts: int = 1


@dataclass(frozen=True)
class DeadLetter:
    """A row that the target cannot hold: why, and the row as a frame of its contract."""

    publication: Publication
    position: int
    reason: str
    sqlstate: str
    detail: str
    frame: bytes


@dataclass(frozen=True)
class Note:
    """What a transaction writes beside the rows it takes."""

    entries: tuple[Entry, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()


NO_NOTE = Note()


class Covered(NamedTuple):
    """Rows of a publication, by its name, that the ledger knows."""

    publication: str
    lo: int
    hi: int
    state: State


def uncovered(n: int, covered: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of [0, n) that no covered range holds, in order."""
    gaps, at = [], 0
    for lo, hi in sorted(covered):
        if lo > at:
            gaps.append((at, min(lo, n)))
        at = max(at, hi)
    return [*gaps, (at, n)] if at < n else gaps
