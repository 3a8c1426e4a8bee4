"""Times written as numbers of seconds, milliseconds, microseconds or nanoseconds since the epoch.

Belongs here: exact arithmetic from the digits as written to whole microseconds, floored, with no
float on the way (1714780800.1234569999 s would lose its floor in one). Text with a calendar in it
is `times`.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from transforms.reading.numerals import numeral
from transforms.reading.texts import to_text

UNIT_EXPONENTS = {"s": 6, "ms": 3, "us": 0, "ns": -3}
"""Unit to the power of ten that makes microseconds of it."""

_SHORT_FRACTION = r"^([+-]?)([0-9]{1,12})\.([0-9]*)$"
_LIMITS = np.iinfo(np.int64)
_MOST_DIGITS = 19


def number_us(text: str, unit: str) -> int | None:
    """Read one number exactly; None if it is none or lies outside int64 microseconds."""
    number = numeral(text)
    if number is None:
        return None
    floored = number.floor_scaled(UNIT_EXPONENTS[unit], _MOST_DIGITS)
    return floored if floored is not None and _LIMITS.min <= floored <= _LIMITS.max else None


def read_number_times(values: pl.Series, unit: str) -> pl.Series:
    """Int64 microseconds of a column of text or integers; null where it is null or out of range."""
    times = _whole_us(values.cast(pl.Int64, strict=False), unit)
    if values.dtype == pl.String and unit in {"s", "ms", "us"}:
        times = _fill(times, values, lambda rest: _fraction_us(rest, unit))
    return _fill(times, values, lambda rest: _one_by_one(to_text(rest), unit))


def _whole_us(numbers: pl.Series, unit: str) -> pl.Series:
    exponent = UNIT_EXPONENTS[unit]
    if exponent < 0:
        floored: pl.Series = numbers // 10**-exponent
        return floored
    factor = 10**exponent
    fits = numbers.is_between(-(_LIMITS.max // factor), _LIMITS.max // factor)
    # What does not fit here is read again, digit by digit.
    scaled: pl.Series = pl.select(pl.when(fits).then(numbers)).to_series() * factor
    return scaled


def _fraction_us(texts: pl.Series, unit: str) -> pl.Series:
    """Numbers such as -12.5, vectorized; null for what is written in another way."""
    exponent = UNIT_EXPONENTS[unit]
    parts = texts.str.extract_groups(_SHORT_FRACTION).struct
    fraction = parts.field("3")
    kept = fraction.str.head(exponent).str.pad_end(exponent, "0") if exponent else None
    magnitude = parts.field("2").cast(pl.Int64) * 10**exponent
    if kept is not None:
        magnitude = magnitude + kept.cast(pl.Int64)
    cut = fraction.str.slice(exponent).str.contains("[1-9]").cast(pl.Int64)
    negative = parts.field("1") == "-"
    return pl.select(pl.when(negative).then(-magnitude - cut).otherwise(magnitude)).to_series()


def _one_by_one(texts: pl.Series, unit: str) -> pl.Series:
    return pl.Series(
        texts.name, [None if t is None else number_us(t, unit) for t in texts], dtype=pl.Int64
    )


def _fill(times: pl.Series, texts: pl.Series, read: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Let `read` try the texts that have no time so far."""
    if times.null_count() == texts.null_count():
        return times
    open_rows = (times.is_null() & texts.is_not_null()).arg_true()
    if not open_rows.len():
        return times
    return times.scatter(open_rows, read(texts.gather(open_rows)))
