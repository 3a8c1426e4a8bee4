"""Times in a declared strptime format, such as `%d.%m.%Y %H:%M:%S`.

A format becomes one regular expression; a matched text becomes numbers, and the numbers an exact
time. Directives are those of Python's strptime, where `%f` takes any number of digits (what is
finer than a microsecond is cut off), and the shorthands `%T %D %F %R %e %.f %:z %s`. Names of
months and days are English.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from transforms.reading.civil import (
    DAY_US,
    SECOND_US,
    Flags,
    Ints,
    clock_us,
    day_numbers,
    local_to_utc,
    nullable,
)
from transforms.reading.number_times import read_number_times

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _words(names: tuple[str, ...]) -> str:
    """Full names before short ones, in any case."""
    return f"(?i:{'|'.join((*names, *(name[:3] for name in names)))})"


_OFFSET = r"Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?"
_DIRECTIVES = {
    "Y": r"(?P<Y>[0-9]{4})",
    "y": r"(?P<y>[0-9]{2})",
    "m": r"(?P<m>1[0-2]|0[1-9]|[1-9])",
    "B": rf"(?P<B>{_words(_MONTHS)})",
    "d": r"(?P<d>3[01]|[12][0-9]|0[1-9]|[1-9])",
    "e": r" ?(?P<d>3[01]|[12][0-9]|0[1-9]|[1-9])",
    "j": r"(?P<j>36[0-6]|3[0-5][0-9]|[12][0-9][0-9]|0[1-9][0-9]|00[1-9]|[1-9][0-9]|[1-9])",
    "H": r"(?P<H>2[0-3]|[01][0-9]|[0-9])",
    "I": r"(?P<I>1[0-2]|0[1-9]|[1-9])",
    "p": r"(?P<p>(?i:am|pm))",
    "M": r"(?P<M>[0-5][0-9]|[0-9])",
    "S": r"(?P<S>[0-5][0-9]|[0-9])",
    "f": r"(?P<f>[0-9]+)",
    ".f": r"\.(?P<f>[0-9]+)",
    "z": rf"(?P<z>{_OFFSET})",
    "s": r"(?P<s>-?[0-9]+)",
    "Z": r"(?:UTC|GMT|Z)",
    "A": _words(_DAYS),
    "%": "%",
}
_ALIASES = {
    "b": "%B",
    "h": "%B",
    "a": "%A",
    ":z": "%z",
    "::z": "%z",
    "#z": "%z",
    "T": "%H:%M:%S",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "R": "%H:%M",
}
_DIRECTIVE = re.compile(r"%(\.f|:{1,2}z|#z|.)?", re.DOTALL)
_LITERAL = re.compile(r"([^\w\s])")
_PIVOT = 69  # as POSIX has it, 69 to 99 are years of the last century


class TimeFormat(NamedTuple):
    """A format as a regular expression whose groups are named after its directives."""

    pattern: str
    fields: frozenset[str]


@lru_cache(maxsize=64)
def compile_format(text: str) -> TimeFormat:
    """Translate a strptime format; ValueError says what it lacks or what is not known in it."""
    pattern = _translate(_expand(text))
    names = re.findall(r"\(\?P<(\w)>", pattern)
    if len(names) != len(set(names)):
        raise ValueError(f"the format {text!r} has a part twice")
    fields = frozenset(names)
    has_month_day = bool({"m", "B"} & fields) and "d" in fields
    has_date = bool({"Y", "y"} & fields) and ("j" in fields or has_month_day)
    if not has_date and fields != {"s"}:
        raise ValueError(f"the format {text!r} does not say which day it is")
    if "I" in fields and "p" not in fields:
        raise ValueError(f"the format {text!r} has an hour up to 12 (%I) without %p")
    return TimeFormat(f"^{pattern}$", fields)


def _expand(text: str) -> str:
    return _DIRECTIVE.sub(lambda found: _ALIASES.get(found[1] or "", found[0]), text)


def _translate(text: str) -> str:
    pieces, end = [], 0
    for found in _DIRECTIVE.finditer(text):
        name = found[1]
        if name not in _DIRECTIVES:
            raise ValueError(f"the format {text!r} has {found[0]!r}, which is not known")
        pieces += [_literal(text[end : found.start()]), _DIRECTIVES[name]]
        end = found.end()
    return "".join((*pieces, _literal(text[end:])))


def _literal(text: str) -> str:
    """Text that stands for itself; blanks match one blank or more, as in Python."""
    return re.sub(r"\s+", r"\\s+", _LITERAL.sub(r"\\\1", text))


def read_formatted_times(texts: pl.Series, text: str, zone: str | None) -> pl.Series:
    """Int64 microseconds UTC of a String column; null where null or not of the format."""
    form = compile_format(text)
    parts = texts.str.extract_groups(form.pattern).struct.unnest()
    if form.fields == {"s"}:
        return read_number_times(parts["s"], "s")
    days, exists = _days(parts)
    clock, on_the_clock = _clock(parts)
    times, exists = days * DAY_US + clock, exists & on_the_clock
    if "z" in form.fields:
        times = times - _offsets(parts["z"])
    elif zone is None:
        exists = np.zeros_like(exists)
    else:
        times = local_to_utc(np.where(exists, times, 0), zone)
    return nullable(times, exists)


def _ints(parts: pl.DataFrame, name: str, default: int = 0) -> Ints:
    """A part as a number; what is absent, in the format or in a text, is `default`."""
    if name not in parts.columns:
        return np.full(parts.height, default, dtype=np.int64)
    return _numpy(parts[name].cast(pl.Int64, strict=False), default)


def _numpy(numbers: pl.Series, default: int = 0) -> Ints:
    filled: Ints = numbers.fill_null(default).to_numpy()
    return filled


def _days(parts: pl.DataFrame) -> tuple[Ints, Flags]:
    year = _ints(parts, "Y")
    if "y" in parts.columns:
        short = _ints(parts, "y")
        year = short + np.where(short < _PIVOT, 2000, 1900)
    if "j" in parts.columns:
        return _days_of_year(year, _ints(parts, "j"))
    month = _ints(parts, "m")
    if "B" in parts.columns:
        month = _month_numbers(parts["B"])
    return day_numbers(year, month, _ints(parts, "d"))


def _days_of_year(year: Ints, number: Ints) -> tuple[Ints, Flags]:
    one = np.ones_like(year)
    first, exists = day_numbers(year, one, one)
    last, _ = day_numbers(year, 12 * one, 31 * one)
    days = first + number - 1
    return days, exists & (number > 0) & (days <= last)


def _month_numbers(names: pl.Series) -> Ints:
    numbers = {month[:3]: number for number, month in enumerate(_MONTHS, start=1)}
    short = names.str.to_lowercase().str.head(3)
    found = short.replace_strict(numbers, default=0, return_dtype=pl.Int64)
    return _numpy(found)


def _clock(parts: pl.DataFrame) -> tuple[Ints, Flags]:
    hour = _ints(parts, "H")
    if "I" in parts.columns:
        afternoon = (parts["p"].str.to_lowercase() == "pm").fill_null(value=False).to_numpy()
        hour = _ints(parts, "I") % 12 + np.where(afternoon, 12, 0)
    clock, exists = clock_us(hour, _ints(parts, "M"), _ints(parts, "S"))
    if "f" in parts.columns:
        digits = parts["f"].str.head(6).str.pad_end(6, "0")
        clock = clock + _numpy(digits.cast(pl.Int64))
    return clock, exists


def _offsets(texts: pl.Series) -> Ints:
    """Offsets such as Z, +01, +0100 and -05:30 in microseconds."""
    digits = texts.str.replace_all("[^0-9]", "").str.pad_end(4, "0")
    hours = _numpy(digits.str.head(2).cast(pl.Int64, strict=False))
    minutes = _numpy(digits.str.slice(2, 2).cast(pl.Int64, strict=False))
    sign = np.where((texts.str.head(1) == "-").fill_null(value=False).to_numpy(), -1, 1)
    offsets: Ints = sign * (hours * 60 + minutes) * 60 * SECOND_US
    return offsets
