"""Values that fit their column to the last digit, or are refused: nothing is rounded silently.

A store rounds what it casts: 1.00001 becomes 1.0000 in a decimal(18,4), nanoseconds become
microseconds. Here belongs the test that nothing was lost; what is done with a row that does not fit
is the business of who publishes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from transforms.schemas import STORED_NAMES

SCALE: Final = "scale"
PRECISION_LOSS: Final = "precision-loss"
OUT_OF_RANGE: Final = "out-of-range"


@dataclass(frozen=True)
class Misfit:
    """The first value of a column that does not fit; ``reason`` is a word."""

    column: str
    reason: str
    value: str


class KindError(TypeError):
    """A column is of a type that its place cannot take whatever its values."""


def fitted(frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame | Misfit:
    """Return the frame in the types of a schema, or what does not fit.

    Columns that the schema does not name stay as they are. Raises ``KindError``.
    """
    for name, dtype in frame.schema.items():
        wanted = schema.get(name, dtype)
        if dtype == wanted:
            continue
        column, lost = _cast(frame[name], wanted)
        values = frame[name].filter(lost)
        if values.len():
            return Misfit(name, _reason(values, column.filter(lost)), values.cast(pl.String)[0])
        frame = frame.with_columns(column)
    return frame


def _cast(given: pl.Series, wanted: pl.DataType) -> tuple[pl.Series, pl.Series]:
    """A column in the type of its place, and where that lost something."""
    if isinstance(given.dtype, pl.Datetime) and given.name in STORED_NAMES:
        micros = given.dt.cast_time_unit("us")
        return micros.to_physical(), micros.dt.cast_time_unit("ns").ne_missing(
            given.dt.cast_time_unit("ns")
        )
    if _same_kind(given.dtype, wanted):
        column = given.cast(wanted, strict=False)
        return column, column.cast(given.dtype, strict=False).ne_missing(given)
    raise KindError(f"column {given.name} is {given.dtype}, not {wanted}")


def _same_kind(given: pl.DataType, wanted: pl.DataType) -> bool:
    both_decimal = isinstance(given, pl.Decimal) and isinstance(wanted, pl.Decimal)
    return both_decimal or (given.is_integer() and wanted.is_integer())


def _reason(values: pl.Series, fitted_values: pl.Series) -> str:
    """Name what was lost; a number with too many digits before the point is null after the cast."""
    if isinstance(values.dtype, pl.Datetime):
        return PRECISION_LOSS
    return OUT_OF_RANGE if fitted_values.null_count() else SCALE
