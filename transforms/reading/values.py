"""Declared value columns, from text or Parquet types to float, int, decimal or bool, exactly.

SEMANTICS 5 and 10: text that spells a number is that number; empty text is null; `nan` in any
case is NaN, which is no reading, as null is; infinity, true and false are no numbers. A number
fits `int` if it is whole (2.0 and 1e3 are, 1.5 is not) and within int64, and `decimal(p,s)` if it
needs no more digits than declared (1.10 fits one place). A bool is true or false in any case, or
the number 1 or 0, as which it counts. -0.0 is 0.0.

Only a float column can hold NaN; in the others it is stored as null. What cannot be read is null
too, and flagged: such a row is an `invalid_value`.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import polars as pl

from transforms.reading.numerals import BLANKS, Numeral, numeral
from transforms.reading.texts import to_text
from transforms.spec import ValueType

NAN_TEXT = r"^[+-]?(?i:nan)$"
_INT_LIMIT = 2**63
_INT_DIGITS = 19
_BOOLS = {"true": True, "false": False}


class Values(NamedTuple):
    """A column read as its type, and which of its rows could not be: None if all could."""

    values: pl.Series
    is_unreadable: pl.Series | None


def read_values(column: pl.Series, kind: ValueType) -> Values:
    """Read a column of text, or one that has the right type already (Parquet)."""
    if column.dtype == pl.String:
        return _from_text(column, kind)
    if kind.kind == "float" and column.dtype.is_numeric() and not column.dtype.is_decimal():
        return _finite(column.cast(pl.Float64), column)
    if column.dtype == {"bool": pl.Boolean(), "int": pl.Int64()}.get(kind.kind):
        return Values(column, None)
    return _from_text(to_text(column), kind)


def _from_text(texts: pl.Series, kind: ValueType) -> Values:
    if kind.kind == "float":
        return _finite(_floats(texts), texts)
    values = _READERS[kind.kind](texts, kind).alias(texts.name)
    unread = _unread(values, texts)
    if unread is not None:
        unread &= ~texts.str.strip_chars(BLANKS).str.contains(NAN_TEXT)
    return Values(values, unread)


def _unread(values: pl.Series, texts: pl.Series) -> pl.Series | None:
    """Which rows have no value though their text is not empty; None if there is no such row."""
    if values.null_count() == texts.null_count():
        return None
    unread = (values.is_null() & texts.is_not_null() & (texts != "")).fill_null(value=False)
    return unread if unread.any() else None


def _floats(texts: pl.Series) -> pl.Series:
    """The nearest float of each number, whatever blanks are around it."""
    values = texts.cast(pl.Float64, strict=False)
    return _fill(
        values, texts, lambda rest: rest.str.strip_chars(BLANKS).cast(pl.Float64, strict=False)
    )


def _finite(values: pl.Series, source: pl.Series) -> Values:
    """Infinity, written so or by too great an exponent, is unreadable; -0.0 is 0.0."""
    numbers = values.to_numpy()
    if not values.null_count() and not np.isinf(numbers).any():
        return Values(pl.Series(source.name, numbers + 0.0), None)
    finite = pl.when(~values.is_infinite()).then(values)
    kept = pl.select(pl.when(finite == 0).then(pl.lit(0.0)).otherwise(finite)).to_series()
    texts = source if source.dtype == pl.String else source.cast(pl.String)
    return Values(kept.alias(source.name), _unread(kept, texts))


def _ints(texts: pl.Series, _kind: ValueType) -> pl.Series:
    values = texts.cast(pl.Int64, strict=False)
    return _fill(values, texts, lambda rest: _map_distinct(rest, _whole, pl.Int64()))


def _whole(number: Numeral) -> int | None:
    if number.scale:
        return None
    value = number.floor_scaled(0, _INT_DIGITS)
    return value if value is not None and -_INT_LIMIT <= value < _INT_LIMIT else None


def _decimals(texts: pl.Series, kind: ValueType) -> pl.Series:
    precision, scale = kind.precision or 0, kind.scale or 0
    whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
    plain = rf"^[+-]?{whole}(?:\.[0-9]{{0,{scale}}}0*)?$"
    fits = texts.str.contains(plain)
    short = pl.select(pl.when(fits).then(texts)).to_series()
    values = short.cast(kind.dtype, strict=False)

    def exact(number: Numeral) -> Decimal | None:
        if number.scale > scale or number.whole_digits > precision - scale:
            return None
        return Decimal((number.negative, tuple(map(int, number.digits or "0")), number.exponent))

    return _fill(values, texts, lambda rest: _map_distinct(rest, exact, kind.dtype))


def _bools(texts: pl.Series, _kind: ValueType) -> pl.Series:
    words = texts.str.strip_chars(BLANKS).str.to_lowercase()
    values = words.replace_strict(_BOOLS, default=None, return_dtype=pl.Boolean)
    return _fill(values, texts, lambda rest: _map_distinct(rest, _zero_or_one, pl.Boolean()))


def _zero_or_one(number: Numeral) -> bool | None:
    value = _whole(number)
    return bool(value) if value in {0, 1} else None


_READERS: dict[str, Callable[[pl.Series, ValueType], pl.Series]] = {
    "int": _ints,
    "decimal": _decimals,
    "bool": _bools,
}


def _map_distinct(
    texts: pl.Series, read: Callable[[Numeral], object], dtype: pl.DataType
) -> pl.Series:
    """Read the rarer ways of writing one by one, each distinct text once."""
    distinct = texts.unique()
    numbers = (numeral(text) for text in distinct)
    values = pl.Series([None if n is None else read(n) for n in numbers], dtype=dtype)
    return texts.replace_strict(distinct, values, default=None, return_dtype=dtype)


def _fill(values: pl.Series, texts: pl.Series, read: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Let `read` try the texts that are not empty and have no value so far."""
    unread = _unread(values, texts)
    if unread is None:
        return values
    rows = unread.arg_true()
    return values.scatter(rows, read(texts.gather(rows)))
