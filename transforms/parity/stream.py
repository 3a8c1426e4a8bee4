"""The contract of what a stream publishes: the columns of its revisions, as the target names them.

Here belongs how the schema of a stream becomes a contract. Which rows are compared is the engine.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from transforms.parity.canonical import ColumnType, Kind
from transforms.parity.contract import Column, Contract, Role
from transforms.schemas import (
    FRAME_NAMES,
    PUBLISHED_AT_US,
    RUN_ID,
    STORED_NAMES,
    WINDOW_IDENTITY,
    window_history_schema,
)

if TYPE_CHECKING:
    from transforms.spec import StreamSpec

_UNPROVEN = frozenset({PUBLISHED_AT_US, RUN_ID})  # who and when, not what
_KINDS = {
    pl.Int64: Kind.INT,
    pl.Float64: Kind.FLOAT,
    pl.Boolean: Kind.BOOL,
    pl.String: Kind.TEXT,
}


def published_contract(spec: "StreamSpec") -> Contract:
    """Key columns first, the rest in the order of the schema, names as they are stored."""
    schema = window_history_schema(spec)
    rest = [name for name in schema if name not in WINDOW_IDENTITY]
    return Contract(tuple(_columns(schema, (*WINDOW_IDENTITY, *rest))))


def _columns(schema: pl.Schema, names: Iterable[str]) -> Iterable[Column]:
    for name in names:
        yield Column(STORED_NAMES.get(name, name), _kind(name, schema[name]), _role(name))


def _role(name: str) -> Role:
    if name in WINDOW_IDENTITY:
        return Role.KEY
    return Role.UNPROVEN if name in _UNPROVEN else Role.VALUE


def _kind(name: str, dtype: pl.DataType) -> ColumnType:
    if STORED_NAMES.get(name) in FRAME_NAMES:
        return ColumnType(Kind.INSTANT)
    if isinstance(dtype, pl.Decimal):
        return ColumnType(Kind.DECIMAL, dtype.precision or 0, dtype.scale)
    return ColumnType(_KINDS[type(dtype)])
