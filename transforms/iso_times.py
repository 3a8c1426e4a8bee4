"""ISO 8601 text to microseconds UTC, vectorized over the bytes of the texts.

The grammar (SEMANTICS 10): a date, its midnight; or a date, `T` or a blank, `hh:mm[:ss[.digits]]`
and an optional offset `Z`, `+hh`, `+hhmm` or `+hh:mm`. Digits finer than a microsecond are cut
off. A text without offset is read in the declared zone; without one it cannot be read.

Texts of one length are one matrix of bytes, and the few layouts that have this length are tried
on it one after another. Other formats are `time_formats`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.civil import DAY_US, Flags, Ints, clock_us, day_numbers, local_to_utc

Bytes = npt.NDArray[np.uint8]

_ZERO = ord("0")
_DATE = "dddd-dd-dd"
_CLOCKS = ("dd:dd", "dd:dd:dd")
_TAILS = ("Z", "±dd:dd", "±dddd", "±dd", "")
_CLASSES = {"T": b"T ", "±": b"+-"}
_DATE_LENGTH = len(_DATE)
_CLOCK_START = _DATE_LENGTH + 1
_SECOND_END = _CLOCK_START + len(_CLOCKS[-1])
_FRACTION_START = _SECOND_END + 1
_MICRO_DIGITS = 6
# Texts with a long fraction lose what no microsecond holds, so that only few lengths are left.
_CUT = (r"(\.[0-9]{6})[0-9]+", "$1")
_MOST_BYTES = len("2026-05-04T00:00:00.123456+00:00")


class Layout(NamedTuple):
    """How texts of one length may be written: a character class per byte, and where the tail is.

    `d` is a digit, `T` the letter or a blank, `±` a sign; anything else is itself.
    """

    template: str
    tail: str


def _layouts(length: int) -> Iterator[Layout]:
    """All layouts of a length."""
    if length == _DATE_LENGTH:
        yield Layout(_DATE, "")
    for tail in _TAILS:
        clock = length - _CLOCK_START - len(tail)
        for written in _CLOCKS:
            if clock == len(written):
                yield Layout(f"{_DATE}T{written}{tail}", tail)
        digits = clock - len(_CLOCKS[-1]) - 1
        if digits > 0:
            yield Layout(f"{_DATE}T{_CLOCKS[-1]}.{'d' * digits}{tail}", tail)


def read_iso_times(texts: pl.Series, zone: str | None) -> pl.Series:
    """Int64 microseconds UTC of a String column; null where it is null or no such time."""
    times = np.zeros(texts.len(), dtype=np.int64)
    known = np.zeros(texts.len(), dtype=np.bool_)
    lengths = texts.str.len_bytes()
    if (lengths > _MOST_BYTES).any():
        texts = texts.str.replace(*_CUT)
        lengths = texts.str.len_bytes()
    found = lengths.unique().to_list()
    for length in found:
        if length is None or not _DATE_LENGTH <= length <= _MOST_BYTES:
            continue
        rows = (lengths == length).arg_true() if len(found) > 1 else None
        columns = _byte_columns(texts if rows is None else texts.gather(rows), length)
        at = slice(None) if rows is None else rows.to_numpy()
        times[at], known[at] = _read_matrix(columns, length, zone)
    return pl.select(pl.when(pl.lit(pl.Series(known))).then(pl.lit(pl.Series(times)))).to_series()


def _byte_columns(texts: pl.Series, length: int) -> Bytes:
    """The bytes of texts of one length: one row for each position."""
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    start = int(np.frombuffer(offsets, dtype=np.int64)[array.offset])
    count = len(array) * length
    content = np.frombuffer(data, dtype=np.uint8)[start : start + count]
    return np.ascontiguousarray(content.reshape(-1, length).T)


def _read_matrix(columns: Bytes, length: int, zone: str | None) -> tuple[Ints, Flags]:
    """Times and whether there is one, by the first layout that a text fits."""
    times = np.zeros(columns.shape[1], dtype=np.int64)
    known = np.zeros(columns.shape[1], dtype=np.bool_)
    for layout in _layouts(length):
        fits = ~known & _fits(columns, layout.template)
        if fits.all():
            return _read_layout(columns, layout, zone)
        if fits.any():
            times[fits], known[fits] = _read_layout(columns[:, fits], layout, zone)
    return times, known


def _fits(columns: Bytes, template: str) -> Flags:
    fits = np.ones(columns.shape[1], dtype=np.bool_)
    for column, kind in zip(columns, template, strict=True):
        if kind == "d":
            fits &= (column - np.uint8(_ZERO)) < 10  # noqa: PLR2004  # wraps around below "0"
        else:
            allowed = [column == byte for byte in _CLASSES.get(kind, kind.encode())]
            fits &= np.logical_or.reduce(allowed)
    return fits


def _number(columns: Bytes, start: int, end: int) -> Ints:
    """The digits from `start` up to `end` as one number."""
    number = np.zeros(columns.shape[1], dtype=np.int64)
    for column in columns[start:end]:
        number *= 10
        number += column
        number -= _ZERO
    return number


def _read_layout(columns: Bytes, layout: Layout, zone: str | None) -> tuple[Ints, Flags]:
    """Times of texts that all have this layout, and whether date, clock and offset exist."""
    end = columns.shape[0] - len(layout.tail)
    days, exists = day_numbers(
        _number(columns, 0, 4), _number(columns, 5, 7), _number(columns, 8, 10)
    )
    times = days * DAY_US
    if end > _DATE_LENGTH:
        clock, on_the_clock = _clock(columns, end)
        times += clock
        exists &= on_the_clock
    if layout.tail == "":
        return _in_zone(times, exists, zone)
    if layout.tail != "Z":
        offset, is_offset = _offset(columns, end)
        times -= offset
        exists &= is_offset
    return times, exists


def _in_zone(times: Ints, exists: Flags, zone: str | None) -> tuple[Ints, Flags]:
    if zone is None:
        return times, np.zeros_like(exists)
    return local_to_utc(np.where(exists, times, 0), zone), exists


def _clock(columns: Bytes, end: int) -> tuple[Ints, Flags]:
    hour, minute = _number(columns, 11, 13), _number(columns, 14, 16)
    has_seconds = end >= _SECOND_END
    second = _number(columns, 17, 19) if has_seconds else np.zeros_like(hour)
    clock, exists = clock_us(hour, minute, second)
    kept = min(end, _FRACTION_START + _MICRO_DIGITS)
    if kept > _FRACTION_START:
        fraction = _number(columns, _FRACTION_START, kept)
        clock += fraction * 10 ** (_MICRO_DIGITS - (kept - _FRACTION_START))
    return clock, exists


def _offset(columns: Bytes, start: int) -> tuple[Ints, Flags]:
    """The offset that starts with its sign at `start`, in microseconds."""
    hour = _number(columns, start + 1, start + 3)
    minute = np.zeros_like(hour)
    if columns.shape[0] > start + 3:
        minute = _number(columns, columns.shape[0] - 2, columns.shape[0])
    seconds, exists = clock_us(hour, minute, np.zeros_like(hour))
    return np.where(columns[start] == ord("-"), -seconds, seconds), exists
