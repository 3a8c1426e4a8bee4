"""CF1 for a whole Polars frame, vectorized with NumPy: all frames in one buffer, cut by offsets.

Here belongs the path that needs no engine. Equal to the oracle, byte for byte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.parity.canonical import (
    DAYS_TO_2000,
    MICROS_TO_2000,
    ColumnType,
    Kind,
    Value,
    encode,
)
from transforms.parity.canonical_sql import Storage
from transforms.parity.cells import Digests, digests
from transforms.parity.contract import Column, Contract

_Bytes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int64]
_CANONICAL_NAN = np.uint64(0x7FF8_0000_0000_0000)


@dataclass(frozen=True)
class Frames:
    """``data[starts[i]:ends[i]]`` is frame ``i``; up to ``key_ends[i]`` it is the key frame."""

    data: _Bytes
    starts: _Ints
    key_ends: _Ints
    ends: _Ints

    def digests(self) -> list[Digests]:
        """Of each row."""
        view = self.data.tobytes()
        spans = zip(self.starts.tolist(), self.key_ends.tolist(), self.ends.tolist(), strict=True)
        return [digests(view[a:b], view[b:c]) for a, b, c in spans]


@dataclass(frozen=True)
class _Encoded:
    """A column: bytes of all rows, one after another, and how many belong to each."""

    data: _Bytes
    sizes: _Ints


def frames_of(
    contract: Contract, frame: pl.DataFrame, storage: Mapping[str, Storage] | None = None
) -> Frames:
    """Of the proven columns of a frame; times as Polars' own types, or as ``storage`` says."""
    stored = storage or {}
    columns = [
        _encoded(c, frame[c.name], stored.get(c.name, Storage.NATIVE)) for c in contract.proven
    ]
    sizes = np.sum([column.sizes for column in columns], axis=0, dtype=np.int64)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    data, place, key_ends = np.empty(int(sizes.sum()), np.uint8), starts.copy(), starts
    for position, column in enumerate(columns):
        _scatter(data, place, column)
        place = place + column.sizes
        if position == len(contract.key) - 1:
            key_ends = place
    return Frames(data, starts, key_ends, ends)


def _scatter(data: _Bytes, place: _Ints, column: _Encoded) -> None:
    sizes = column.sizes
    if not sizes.size:
        return
    if (sizes == sizes[0]).all():
        data[place[:, None] + np.arange(sizes[0])] = column.data.reshape(sizes.size, -1)
        return
    before = np.cumsum(sizes) - sizes
    data[np.repeat(place - before, sizes) + np.arange(column.data.size)] = column.data


def _encoded(column: Column, series: pl.Series, storage: Storage) -> _Encoded:
    fixed = _fixed(column.kind, series, storage)
    if fixed is not None:
        return _with_nulls(fixed, series.is_null().to_numpy())
    return _one_by_one(column.kind, series)


def _one_by_one(kind: ColumnType, series: pl.Series) -> _Encoded:
    """For types without a fixed width: each distinct value is spelled once."""
    codes = series.rank("dense").fill_null(0).to_numpy() if series.len() else np.empty(0, np.int64)
    values: list[Value | None] = series.drop_nulls().unique().sort().to_list()
    spelled = [encode(kind, value) for value in (None, *values)]
    sizes = np.array([len(text) for text in spelled], np.int64)
    begins = np.cumsum(sizes) - sizes
    each = sizes[codes]
    before = np.cumsum(each) - each
    source = np.repeat(begins[codes] - before, each) + np.arange(int(each.sum()))
    return _Encoded(np.frombuffer(b"".join(spelled), np.uint8)[source], each)


def _fixed(kind: ColumnType, series: pl.Series, storage: Storage) -> _Bytes | None:
    """The bodies as rows of big-endian bytes; where the series is null, of anything."""
    match kind.kind:
        case Kind.INT:
            return _big_endian(series.cast(pl.Int64).fill_null(0).to_numpy(), ">i8")
        case Kind.BOOL:
            return series.fill_null(value=False).to_numpy().astype(np.uint8).reshape(-1, 1)
        case Kind.FLOAT:
            return _float_bits(series.cast(pl.Float64).fill_null(0.0).to_numpy())
        case Kind.INSTANT | Kind.LOCAL:
            micros = series if storage is Storage.MICROS else series.dt.cast_time_unit("us")
            return _big_endian(micros.to_physical().fill_null(0).to_numpy() - MICROS_TO_2000, ">i8")
        case Kind.DATE:
            return _big_endian(series.to_physical().fill_null(0).to_numpy() - DAYS_TO_2000, ">i4")
        case _:
            return None


def _float_bits(values: npt.NDArray[np.float64]) -> _Bytes:
    bits = (values + 0.0).view(np.uint64)
    return _big_endian(np.where(np.isnan(values), _CANONICAL_NAN, bits), ">u8")


def _big_endian(numbers: npt.NDArray[np.generic], code: str) -> _Bytes:
    return numbers.astype(code).view(np.uint8).reshape(numbers.size, np.dtype(code).itemsize)


def _with_nulls(bodies: _Bytes, null: npt.NDArray[np.bool_]) -> _Encoded:
    rows, width = bodies.shape
    whole = np.empty((rows, width + 1), np.uint8)
    whole[:, 0], whole[:, 1:] = 1, bodies
    if not null.any():
        return _Encoded(whole.reshape(-1), np.full(rows, width + 1, np.int64))
    whole[null, 0] = 0
    kept = np.ones_like(whole, np.bool_)
    kept[null, 1:] = False
    return _Encoded(whole[kept], np.where(null, 1, width + 1).astype(np.int64))


def rows_of(
    contract: Contract, values: Sequence[Sequence[Value | None]]
) -> list[tuple[bytes, ...]]:
    """Rows of Python values, in contract order, as the frame columns that verdicts work on."""
    kinds = [column.kind for column in contract.proven]
    return [tuple(map(encode, kinds, row)) for row in values]
