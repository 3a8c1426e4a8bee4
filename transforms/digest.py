"""Digests of rows that do not depend on their order: a stable hash per row and exact sums of it.

Here belong the row hash (two 64-bit lanes over named columns), its sums over frames and over
groups, and their one text form. Which columns go in is the business of the caller: windows and
books hash other columns by the same means. The md5 frames of published rows are another matter.

The hash is 64-bit arithmetic over the words of ``column_words``, column after column, so that it is
the same on every machine, in every batch and for every thread count. It withstands accidents, not
forgers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.exact.column_words import Column, Words, column_words

Ints = npt.NDArray[np.int64]

HASH_NAME: Final = "lw1"  # names this scheme in every text form; another scheme, another name
LANE_0: Final = "lane_0"
LANE_1: Final = "lane_1"
LANE_DIGITS: Final = 24  # hexadecimal digits of an exact sum of up to 2**32 lanes

_LOW: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_BLOCK: Final = 1 << 16  # rows hashed at a time: their words stay in the processor's cache


class Mixer(NamedTuple):
    """The constants of one lane.

    ``null`` stands for a missing value; no value's words are the null of both lanes.
    """

    seed: np.uint64
    factor: np.uint64
    null: np.uint64


MIXERS: Final = (
    Mixer(
        np.uint64(0x243F6A8885A308D3),
        np.uint64(0xD6E8FEB86659FD93),
        np.uint64(0xA4093822299F31D0),
    ),
    Mixer(
        np.uint64(0x13198A2E03707344),
        np.uint64(0xA0761D6478BD642F),
        np.uint64(0x082EFA98EC4E6C89),
    ),
)
# The finalizer of splitmix64: shifts and factors, in turn.
_FINAL: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT: Final = np.uint64(31)


class Lanes(NamedTuple):
    """The two hashes of each row."""

    lane_0: Words
    lane_1: Words


def hash_rows(frame: pl.DataFrame, columns: Sequence[str]) -> Lanes:
    """Return the two lanes of each row over ``columns``, whose order is part of the hash."""
    rows = frame.select(columns)
    lanes = Lanes(*(np.full(rows.height, mixer.seed, dtype=np.uint64) for mixer in MIXERS))
    scratch = np.empty(min(_BLOCK, rows.height), dtype=np.uint64)
    for start in range(0, rows.height, _BLOCK):
        taken = [column_words(column) for column in rows.slice(start, _BLOCK)]
        for mixer, lane in zip(MIXERS, lanes, strict=True):
            block = lane[start : start + _BLOCK]
            for column in taken:
                _mix(block, column, mixer, scratch[: len(block)])
            _finish(block, scratch[: len(block)])
    return lanes


def _mix(block: Words, column: Column, mixer: Mixer, scratch: Words) -> None:
    """Take the words of one column into the hashes of a block, in place."""
    for given in column.words:
        words = given if column.nulls is None else np.where(column.nulls, mixer.null, given)
        np.bitwise_xor(block, words, out=block)
        np.multiply(block, mixer.factor, out=block)
        np.right_shift(block, _HALF, out=scratch)
        np.bitwise_xor(block, scratch, out=block)


def _finish(block: Words, scratch: Words) -> None:
    for shift, factor in _FINAL:
        np.right_shift(block, shift, out=scratch)
        np.bitwise_xor(block, scratch, out=block)
        np.multiply(block, factor, out=block)
    np.right_shift(block, _LAST_SHIFT, out=scratch)
    np.bitwise_xor(block, scratch, out=block)


def row_lanes(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return ``lane_0`` and ``lane_1`` (UInt64) of each row over ``columns``, in row order."""
    lanes = hash_rows(frame, columns)
    return pl.DataFrame({LANE_0: lanes.lane_0, LANE_1: lanes.lane_1})


@dataclass(frozen=True)
class DigestSum:
    """How many rows, and the exact sums of their lanes. Sums of parts add up to the whole's."""

    count: int = 0
    lane_0: int = 0
    lane_1: int = 0

    @classmethod
    def of(cls, frame: pl.DataFrame, columns: Sequence[str]) -> Self:
        """Return the digest of a frame's rows over ``columns``."""
        lanes = hash_rows(frame, columns)
        return cls(frame.height, _exact_sum(lanes.lane_0), _exact_sum(lanes.lane_1))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form. Raises ValueError for another scheme."""
        name, count, *lanes = text.split(":")
        if name != HASH_NAME:
            raise ValueError(f"{text}: a digest of another scheme than {HASH_NAME}")
        return cls(int(count), *(int(lane, 16) for lane in lanes))

    def __add__(self, other: "DigestSum") -> "DigestSum":
        """Return the digest of the rows of both."""
        return DigestSum(
            self.count + other.count, self.lane_0 + other.lane_0, self.lane_1 + other.lane_1
        )

    def __str__(self) -> str:
        """Return the text form, such as ``lw1:2:0000...:0000...``."""
        sums = (f"{lane:0{LANE_DIGITS}x}" for lane in (self.lane_0, self.lane_1))
        return ":".join((HASH_NAME, str(self.count), *sums))


def _exact_sum(lane: Words) -> int:
    high, low = int((lane >> _HALF).sum()), int((lane & _LOW).sum())
    return (high << 32) + low


class SplitSum(NamedTuple):
    """Exact sums of a lane for many groups: of its high and of its low halves, 32 bits each."""

    high: Words
    low: Words


def group_digests(lanes: Lanes, starts: Ints, counts: Ints) -> pl.Series:
    """Return the text form of the digest of each group of consecutive rows.

    ``starts`` holds the first row of every group, ``counts`` its number of rows, none of them zero.
    """
    sums = [
        SplitSum(np.add.reduceat(lane >> _HALF, starts), np.add.reduceat(lane & _LOW, starts))
        for lane in lanes
    ]
    return digest_texts(pl.Series(counts), *sums)


def digest_texts(counts: pl.Series, lane_0: SplitSum, lane_1: SplitSum) -> pl.Series:
    """Return the text form of many digests, as ``str`` gives it of a ``DigestSum``."""
    texts = [counts.cast(pl.String), _hexadecimal(lane_0), _hexadecimal(lane_1)]
    return pl.select(pl.concat_str(pl.lit(HASH_NAME), *texts, separator=":")).to_series()


def _hexadecimal(sums: SplitSum) -> pl.Series:
    """Return 24 digits of each sum, from its bytes, highest first."""
    digits = np.empty((len(sums.low), LANE_DIGITS // 2), dtype=np.uint8)
    digits[:, :8] = _bytes(sums.high + (sums.low >> _HALF), ">u8")
    digits[:, 8:] = _bytes(sums.low & _LOW, ">u4")
    layout = [None, pa.py_buffer(digits)]
    array = pa.Array.from_buffers(pa.binary(LANE_DIGITS // 2), len(digits), layout)
    return pl.Series(array, dtype=pl.Binary).bin.encode("hex")


def _bytes(numbers: Words, layout: str) -> npt.NDArray[np.uint8]:
    return numbers.astype(layout).view(np.uint8).reshape(len(numbers), -1)
