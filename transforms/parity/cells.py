"""Cells: the sums that two multisets of rows share exactly when they are equal, and their root.

A cell is a bucket of keys. Sums of md5 lanes, not XOR, for XOR cancels pairs; duplicates that are
equal on both sides escape any sum, so they are counted. Here belongs the arithmetic in plain
Python; engines do the same in SQL (``parity.sql``).
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat, starmap
from typing import NamedTuple

from transforms.parity.canonical import text_frame
from transforms.parity.canonical_sql import BUCKETS, LANES

_ZERO = (0,) * LANES
# Frames of eleven ints, none of them null, one after another.
_PRESENT = 1
_INTS = struct.Struct(">" + 11 * "Bq")


class Cell(NamedTuple):
    """Rows of a bucket: number, lane sums of row digests and of key digests, surplus of keys."""

    n: int
    s: tuple[int, ...]
    k: tuple[int, ...]
    dup: int


class Print(NamedTuple):
    """Rows in this process: their number, and the sums of two hashes of 64 bits of each.

    Equal rows have equal prints; other rows have them with a chance of about 2^-64.
    """

    n: int
    forward: int
    backward: int


EMPTY = Cell(0, _ZERO, _ZERO, 0)
Cells = dict[int, Cell]


class Digests(NamedTuple):
    """A row as the descent sees it: md5 of its key frame and of its row frame."""

    key: bytes
    row: bytes


def digests(key_frame: bytes, rest: bytes) -> Digests:
    """Of a row frame that starts with its key frame."""
    return Digests(_md5(key_frame), _md5(key_frame + rest))


def _md5(frame: bytes) -> bytes:
    return hashlib.md5(frame, usedforsecurity=False).digest()


def lanes(digest: bytes) -> tuple[int, ...]:
    """Four unsigned little-endian words."""
    return struct.unpack("<4I", digest)


def bucket_of(key_digest: bytes) -> int:
    """The low 12 bits of lane 0."""
    return int.from_bytes(key_digest[:2], "little") & (BUCKETS - 1)


@dataclass
class _Growing:
    n: int = 0
    s: tuple[int, ...] = _ZERO
    k: tuple[int, ...] = _ZERO
    keys: set[bytes] = field(default_factory=set)

    def add(self, row: Digests) -> None:
        self.n += 1
        self.s = tuple(a + b for a, b in zip(self.s, lanes(row.row), strict=True))
        self.k = tuple(a + b for a, b in zip(self.k, lanes(row.key), strict=True))
        self.keys.add(row.key)


def cells_of(rows: Iterable[Digests]) -> Cells:
    """The oracle: cells of rows, in order of their buckets."""
    growing: dict[int, _Growing] = {}
    for row in rows:
        growing.setdefault(bucket_of(row.key), _Growing()).add(row)
    return {b: Cell(g.n, g.s, g.k, g.n - len(g.keys)) for b, g in sorted(growing.items())}


def total(cells: Iterable[Cell]) -> Cell:
    """The sum of cells that share no key."""
    columns = zip(*((cell.n, *cell.s, *cell.k, cell.dup) for cell in cells), strict=True)
    sums = tuple(map(sum, columns))
    return Cell(sums[0], sums[1:5], sums[5:9], sums[9]) if sums else EMPTY


def root(fingerprint: str, partitions: Mapping[str, Cells]) -> str:
    """One hex sha256 for a side: its contract and every cell, in order."""
    hashed = hashlib.sha256(text_frame(fingerprint))
    for partition, cells in sorted(partitions.items()):
        for frame in starmap(_cell_frame, sorted(cells.items())):
            hashed.update(text_frame(partition) + frame)
    return hashed.hexdigest()


def _cell_frame(bucket: int, cell: Cell) -> bytes:
    numbers = (bucket, cell.n, *cell.s, *cell.k, cell.dup)
    return _INTS.pack(*chain.from_iterable(zip(repeat(_PRESENT), numbers)))


def bad_buckets(source: Cells, target: Cells) -> list[int]:
    """Buckets to look into: other sums, or a key twice, which equal sums would hide."""
    return sorted(
        bucket
        for bucket in source.keys() | target.keys()
        if (p := source.get(bucket, EMPTY)) != (t := target.get(bucket, EMPTY)) or p.dup or t.dup
    )


def reading(source: Cell, target: Cell) -> str:
    """What two cells say before any row is read."""
    if source.dup or target.dup:
        return "DUPLICATE"
    if source.n != target.n:
        return "MISSING, EXTRA"
    if source.k != target.k:
        return "as many missing as extra"
    return "EQUAL" if source.s == target.s else "CHANGED only"
