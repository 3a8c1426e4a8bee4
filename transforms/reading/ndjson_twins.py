"""The fast way through NDJSON: lines that are laid out alike are taken apart all at once.

The layout of one line is looked for in all others, by comparing bytes at the places of the quotes.
A line that fits gives exactly what `ndjson_lines.read_line` gives for it (a property test holds the
two equal); a line that fits none of the few layouts tried is left to it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from transforms.reading.byte_slices import Flags, Slices
from transforms.reading.ndjson_layout import Gap, Hole, Layout, Piece, layout_of
from transforms.reading.ndjson_quotes import Quotes
from transforms.reading.ndjson_scalars import judge, plain_integers
from transforms.reading.raw_rows import FAULT, field
from transforms.reading.text_lines import NEWLINE, QUOTE, Ints, Lines

FEWEST_LINES = 200
"""Fewer are as quickly read one after another."""

MOST_LAYOUTS = 12
MOST_BYTES = 2**31 - 1
"""As far as the offsets of string views reach."""

_BACKSLASH, _RETURN, _BLANK = b"\\\r "


class Twins(NamedTuple):
    """Some lines by number, ascending, and a frame of their faults and fields (`raw_rows`)."""

    lines: Ints
    fields: pl.DataFrame


def find_twins(lines: Lines, candidates: Ints, columns: Sequence[str]) -> Iterator[Twins]:
    """Give the lines that have twins, layout by layout; no line twice."""
    if len(candidates) < FEWEST_LINES or len(lines.data) > MOST_BYTES:
        return
    left = _plain(lines, candidates)
    page = _Page(lines)
    for _ in range(MOST_LAYOUTS):
        if len(left) < FEWEST_LINES:
            return
        layout = layout_of(lines.texts[int(left[0])], columns)
        if layout is None:
            left = left[1:]
            continue
        twins = page.twins(left, layout, columns)
        yield twins
        left = without(left, twins.lines)


def without(numbers: Ints, taken: Ints) -> Ints:
    """The numbers that are not taken; both ascend, and what is taken is among them."""
    if len(taken) == len(numbers):
        return numbers[:0]
    is_left = np.ones(len(numbers), dtype=np.bool_)
    is_left[np.searchsorted(numbers, taken)] = False
    return numbers[is_left]


def _plain(lines: Lines, candidates: Ints) -> Ints:
    """The lines without a backslash and without a control character before their end."""
    has_odd = b"\\" in lines.data or np.count_nonzero(lines.kinds < _BLANK) > len(lines)
    if not has_odd and not lines.faults:
        return candidates
    content = lines.content
    signs = np.flatnonzero((content < _BLANK) | (content == _BACKSLASH))
    kinds = content[signs]
    following = content[np.minimum(signs + 1, len(content) - 1)]
    is_end = (kinds == NEWLINE) | ((kinds == _RETURN) & (following == NEWLINE))
    is_plain = np.ones(len(lines), dtype=np.bool_)
    is_plain[np.searchsorted(lines.starts, signs[~is_end], side="right") - 1] = False
    is_plain[list(lines.faults)] = False
    return candidates[is_plain[candidates]]


class _Spans(NamedTuple):
    """Which lines fit a layout, and from where to where each of its pieces is in every line."""

    fits: Flags
    spans: list[tuple[Ints, Ints]]


class _Page:
    """The bytes of all lines, and where their quotes are."""

    def __init__(self, lines: Lines) -> None:
        self._starts = lines.starts
        self._slices = Slices(lines.data)
        self._quotes = Quotes(lines)

    def twins(self, numbers: Ints, layout: Layout, columns: Sequence[str]) -> Twins:
        """The twins among some lines."""
        numbers = _only(numbers, self._quotes.counts(numbers) == layout.quotes)
        fits, spans = self._spans(numbers, layout)
        numbers = _only(numbers, fits)
        rows = {name: _nulls(len(numbers)) for name in (FAULT, *map(field, columns))}
        gaps: dict[str, Gap] = {}
        for at, (piece, (start, end)) in enumerate(zip(layout.pieces, spans, strict=True)):
            name = str(at) if piece.column is None else field(piece.column)
            if isinstance(piece, Gap):
                gaps[name] = piece
            if name in rows or name in gaps:
                rows[name] = self._texts(piece, _only(start, fits), _only(end - start, fits))
        judged = judge(pl.DataFrame(rows), gaps)
        fields = judged.rows.select(FAULT, *map(field, columns))
        return Twins(_only(numbers, judged.is_valid), fields)

    def _texts(self, piece: Piece, starts: Ints, lengths: Ints) -> pl.Series:
        """What stands in a piece of some lines: text, or whole numbers if it is one in each."""
        texts = self._slices.texts(starts, lengths)
        if isinstance(piece, Hole) or not piece.is_single:
            return texts
        integers = plain_integers(texts, lengths)
        return texts if integers is None else integers

    def _spans(self, numbers: Ints, layout: Layout) -> _Spans:
        """Walk along the layout in all lines at once, which have as many quotes as it has."""
        place, line_end = self._starts[numbers], self._starts[numbers + 1]
        quotes = 0
        fits = np.ones(len(numbers), dtype=np.bool_)
        spans = []
        for run, after in pairwise(layout.runs):
            fits &= self._slices.equal(place, run)
            place = place + len(run)
            quotes += run.count(QUOTE)
            after_quote = after.find(QUOTE)
            if after_quote < 0:
                end = line_end - len(after)
            else:
                end = self._quotes.places(numbers, quotes) - after_quote
            fits &= end >= place
            spans.append((place, end))
            place = end
        fits &= self._slices.equal(place, layout.runs[-1])
        fits &= place + len(layout.runs[-1]) == line_end
        return _Spans(fits, spans)


def _nulls(count: int) -> pl.Series:
    return pl.Series([None], dtype=pl.String).new_from_index(0, count)


def _only(values: Ints, chosen: Flags) -> Ints:
    return values if chosen.all() else values[chosen]
