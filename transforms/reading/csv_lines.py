"""CSV: the header, and one record after another, quoted line breaks and all.

A record has exactly as many fields as the header; any other is malformed. Where a quoted record
spans lines and does not fit, only its first line is at fault and reading goes on with the next, so
that one stray quote does not swallow what follows. An empty field is null, and whatever
`nulls` names; a blank line is no record.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transforms.errors import SourceError
from transforms.reading.ndjson_lines import Fields
from transforms.spec.words import nearest

SEPARATORS = (",", ";", "\t")


class Header(NamedTuple):
    """The separator, how many fields a record has, and where each wanted column is."""

    separator: str
    width: int
    positions: tuple[int, ...]


class Record(NamedTuple):
    """One record: the index of its first line, how many lines, and its fields or its fault."""

    first: int
    lines: int
    fields: Fields | str


def read_header(line: str, columns: Sequence[str], *, separator: str | None, name: str) -> Header:
    """Find the columns in a header line; `separator` None: read it off the line.

    SourceError names the file, the column that is not there or is there twice, and the nearest.
    """
    candidates = (separator,) if separator else SEPARATORS
    parsed = {sign: _split(line, sign) for sign in candidates}
    best = max(parsed, key=lambda sign: (len({*columns} & {*parsed[sign]}), len(parsed[sign])))
    names = parsed[best]
    return Header(best, len(names), tuple(_position(name, names, column) for column in columns))


def _split(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _position(file: str, names: Sequence[str], column: str) -> int:
    count = Counter(names)[column]
    if count == 1:
        return names.index(column)
    if count:
        raise SourceError(f"{file}: the header names column {column!r} {count} times")
    hint = nearest(column, names)
    raise SourceError(f"{file}: the header has no column {column!r}{f'; {hint}' if hint else ''}")


def read_records(
    lines: Sequence[str | None], header: Header, nulls: Sequence[str]
) -> Iterator[Record]:
    """The records of lines, with their line ends, after the header; None is a line of no text."""
    absent = frozenset(("", *nulls))
    at = 0
    while at < len(lines):
        line = lines[at]
        if line is None:
            yield Record(at, 1, "not UTF-8 text")
            at += 1
        elif is_blank(line, header.separator):
            at += 1
        else:
            record = _record(lines, at, header, absent)
            yield record
            at += record.lines


def is_blank(line: str, separator: str) -> bool:
    """Whether a line is no record: nothing on it but blanks that part no fields."""
    return not line.strip(" \t\r\n".replace(separator, ""))


def _record(lines: Sequence[str | None], at: int, header: Header, absent: frozenset[str]) -> Record:
    feed = _Feed(lines, at)
    try:
        names = next(csv.reader(feed, delimiter=header.separator, strict=True))
    except csv.Error as error:
        return Record(at, 1, f"not CSV: {error}")
    if len(names) != header.width:
        return Record(at, 1, f"{len(names)} fields, where the header has {header.width}")
    fields = [names[position] for position in header.positions]
    return Record(at, feed.taken, [None if text in absent else text for text in fields])


class _Feed:
    """Hands lines to the parser and counts what it takes; a line that is no text ends them."""

    def __init__(self, lines: Sequence[str | None], at: int) -> None:
        self._lines = lines
        self._at = at
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        place = self._at + self.taken
        line = self._lines[place] if place < len(self._lines) else None
        if line is None:
            raise StopIteration
        self.taken += 1
        return line
