"""The descent: from two ordered streams of digests to the keys whose rows differ.

Both sides come in order of the key digest, in frames of any length; memory holds one frame a side
and the keys in between. Here belongs the matching of multisets; what a difference means is
``parity.verdict``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from transforms.parity.canonical_sql import BUCKETS
from transforms.parity.cells import Cell, Cells
from transforms.parity.contract import RefusedError

DIGESTS = pl.Schema({"kd": pl.Binary, "d": pl.Binary})
STREAM_SHARE = 0.2  # above this share of rows in bad buckets, rows are compared as they stream by
STREAM_FLOOR = 5_000  # below this many rows the two steps are cheaper than their talk


class Pair(NamedTuple):
    """Rows of the same keys from both sides; all rows of a key are in one pair."""

    source: pl.DataFrame
    target: pl.DataFrame


@dataclass
class _Side:
    """A stream, and what of it was read but not yet handed on."""

    frames: Iterator[pl.DataFrame]
    held: pl.DataFrame
    ended: bool = False

    def fill(self) -> None:
        """Read one more frame."""
        following = next(self.frames, None)
        if following is None:
            self.ended = True
            return
        self.held = pl.concat([self.held, following])
        if not self.held["kd"].is_sorted():
            raise RefusedError(["a store handed rows over in another order than it was asked for"])

    def last(self) -> bytes | None:
        """The key up to which all rows are surely here, exclusively; None: all are."""
        if self.ended:
            return None
        return self.held["kd"][-1] if self.held.height else b""

    def take(self, below: bytes | None) -> pl.DataFrame:
        """Hand on the rows of keys below."""
        here = self.held.height if below is None else self.held["kd"].search_sorted(below, "left")
        taken, self.held = self.held[:here], self.held[here:]
        return taken


def aligned(
    schema: pl.Schema, source: Iterable[pl.DataFrame], target: Iterable[pl.DataFrame]
) -> Iterator[Pair]:
    """Both streams, cut at the same keys."""
    sides = [_Side(iter(stream), schema.to_frame()) for stream in (source, target)]
    while not all(side.ended and side.held.is_empty() for side in sides):
        below = _common(sides)
        pair = Pair(*(side.take(below) for side in sides))
        if pair.source.height or pair.target.height:
            yield pair
        elif below is not None:  # nothing is complete yet: the slower stream must go on
            _slowest(sides).fill()


def _common(sides: Sequence[_Side]) -> bytes | None:
    marks = [mark for side in sides if (mark := side.last()) is not None]
    return min(marks, default=None)


def _slowest(sides: Sequence[_Side]) -> _Side:
    return min((side for side in sides if not side.ended), key=lambda side: side.last() or b"")


def differing(pair: Pair) -> pl.Series:
    """Key digests whose rows are not the same single row on both sides, in order."""
    marked = pl.concat(
        [
            pair.source.select("kd", "d", p=pl.lit(1), t=pl.lit(0)),
            pair.target.select("kd", "d", p=pl.lit(0), t=pl.lit(1)),
        ]
    )
    keys = marked.group_by("kd").agg(
        one_each=(pl.col("p").sum() == 1) & (pl.col("t").sum() == 1),
        same=pl.col("d").n_unique() == 1,
    )
    return keys.filter(~(pl.col("one_each") & pl.col("same")))["kd"].sort()


def grouped(frame: pl.DataFrame) -> dict[bytes, list[tuple[bytes, ...]]]:
    """Rows as tuples of frame columns, by key digest; of few rows, for it makes objects."""
    rows: dict[bytes, list[tuple[bytes, ...]]] = {}
    columns = [name for name in frame.columns if name not in DIGESTS]
    for key, *row in frame.select("kd", *columns).iter_rows():
        rows.setdefault(key, []).append(tuple(row))
    return rows


def summed(frame: pl.DataFrame) -> Cells:
    """Cells of a frame of digests, vectorized; equal to ``parity_cells.cells_of``."""
    lanes = frame.select(
        *(_lane("d", lane).alias(f"s{lane}") for lane in range(4)),
        *(_lane("kd", lane).alias(f"k{lane}") for lane in range(4)),
        kd="kd",
    )
    names = [name for name in lanes.columns if name != "kd"]
    cells = (
        lanes.group_by(bucket=pl.col("k0") & (BUCKETS - 1))
        .agg(
            pl.len().alias("n"),
            *(pl.col(name).sum() for name in names),
            keys=pl.col("kd").n_unique(),
        )
        .sort("bucket")
    )
    return {
        row["bucket"]: Cell(
            row["n"],
            tuple(row[f"s{lane}"] for lane in range(4)),
            tuple(row[f"k{lane}"] for lane in range(4)),
            row["n"] - row["keys"],
        )
        for row in cells.iter_rows(named=True)
    }


def _lane(column: str, lane: int) -> pl.Expr:
    word = pl.col(column).bin.slice(4 * lane, 4)
    return word.bin.reinterpret(dtype=pl.UInt32, endianness="little").cast(pl.Int64)


def stream_all(rows_in_bad: int, rows: int) -> bool:
    """Whether the rows themselves are streamed, rather than digests first."""
    return rows_in_bad > STREAM_FLOOR and rows_in_bad > STREAM_SHARE * rows
