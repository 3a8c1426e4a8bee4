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

from transforms.reading.civil import (
    DAY_US,
    Flags,
    Ints,
    clock_us,
    day_numbers,
    local_to_utc,
    nullable,
)

Bytes = npt.NDArray[np.uint8]

_ZERO = np.uint8(ord("0"))
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
    lengths, content = _bytes(texts)
    if int(lengths.max(initial=0)) > _MOST_BYTES:
        texts = texts.str.replace(*_CUT)
        lengths, content = _bytes(texts)
    times = np.zeros(len(lengths), dtype=np.int64)
    known = np.zeros(len(lengths), dtype=np.bool_)
    counts = np.bincount(lengths, minlength=_MOST_BYTES + 1)[: _MOST_BYTES + 1]
    for length in (np.flatnonzero(counts[_DATE_LENGTH:]) + _DATE_LENGTH).tolist():
        if counts[length] == len(lengths):
            times, known = _read_matrix(_columns(content, length), zone)
        else:
            rows = np.flatnonzero(lengths == length)
            _, chosen = _bytes(texts.gather(rows))
            times[rows], known[rows] = _read_matrix(_columns(chosen, length), zone)
    return nullable(times, known)


def _bytes(texts: pl.Series) -> tuple[Ints, Bytes]:
    """How many bytes each text has, none where it is null, and all of them on end."""
    array = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8)
    return np.diff(bounds), content[bounds[0] : bounds[-1]]


def _columns(content: Bytes, length: int) -> Bytes:
    """The bytes of texts of one length: a row for each position."""
    return np.ascontiguousarray(content.reshape(-1, length).T)


def _read_matrix(columns: Bytes, zone: str | None) -> tuple[Ints, Flags]:
    """Times and whether there is one, by the first layout that a text fits."""
    times = np.zeros(columns.shape[1], dtype=np.int64)
    known = np.zeros(columns.shape[1], dtype=np.bool_)
    for layout in _layouts(columns.shape[0]):
        fits = ~known & _fits(columns, layout.template)
        if fits.all():
            return _read_layout(columns, layout, zone)
        if fits.any():
            times[fits], known[fits] = _read_layout(columns[:, fits], layout, zone)
    return times, known


def _fits(columns: Bytes, template: str) -> Flags:
    """Few operations on many columns at once, for threads wait for each other between them."""
    kinds = np.array(list(template))
    digits = columns[kinds == "d"]
    fits: Flags = ((digits - _ZERO) < 10).all(axis=0)  # noqa: PLR2004  # wraps around below "0"
    for kind in dict.fromkeys(template.replace("d", "")):
        signs = columns[kinds == kind]
        allowed = [signs == byte for byte in _CLASSES.get(kind, kind.encode())]
        fits &= np.logical_or.reduce(allowed).all(axis=0)
    return fits


def _pair(columns: Bytes, start: int) -> Ints:
    """The two digits from `start` on as one number."""
    tens = (columns[start] - _ZERO) * np.uint8(10)
    number: Ints = (tens + (columns[start + 1] - _ZERO)).astype(np.int64)
    return number


def _read_layout(columns: Bytes, layout: Layout, zone: str | None) -> tuple[Ints, Flags]:
    """Times of texts that all have this layout, and whether date, clock and offset exist."""
    end = columns.shape[0] - len(layout.tail)
    year = _pair(columns, 0) * 100 + _pair(columns, 2)
    days, exists = day_numbers(year, _pair(columns, 5), _pair(columns, 8))
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
    hour, minute = _pair(columns, 11), _pair(columns, 14)
    second = _pair(columns, 17) if end >= _SECOND_END else np.zeros_like(hour)
    clock, exists = clock_us(hour, minute, second)
    if end > _FRACTION_START:
        clock += _fraction_us(columns[_FRACTION_START:end])
    return clock, exists


def _fraction_us(digits: Bytes) -> Ints:
    """The digits of a fraction of a second, as far as microseconds go."""
    missing = _MICRO_DIGITS - digits.shape[0]
    padded = (
        np.pad(digits, ((0, missing), (0, 0)), constant_values=_ZERO) if missing > 0 else digits
    )
    micros: Ints = (_pair(padded, 0) * 100 + _pair(padded, 2)) * 100 + _pair(padded, 4)
    return micros


def _offset(columns: Bytes, start: int) -> tuple[Ints, Flags]:
    """The offset that starts with its sign at `start`, in microseconds."""
    length = columns.shape[0]
    hour = _pair(columns, start + 1)
    minute = _pair(columns, length - 2) if length > start + 3 else np.zeros_like(hour)
    offset, exists = clock_us(hour, minute, np.zeros_like(hour))
    return np.where(columns[start] == ord("-"), -offset, offset), exists
