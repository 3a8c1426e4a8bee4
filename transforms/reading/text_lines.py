"""Bytes to lines of text: where each begins, which are no text, which are blank.

Belongs here: what NDJSON and CSV share before a line is taken apart. A line that is not UTF-8 is
kept with each undecodable byte as a backslash escape, so that nothing of it is lost.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

NEWLINE, QUOTE = b'\n"'
PADDING = bytes(1 << 12)
"""What may stand behind the content, so that it can be read by words, over its end too."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE = 1 << 18
NOT_TEXT = "not UTF-8 text: byte 0x{:02x} at byte {} of the line"


@dataclass(frozen=True)
class Lines:
    """Lines with their line ends: line i is `data[starts[i]:starts[i + 1]]`.

    `texts` is a String column of them; `faults` says, by line, why one is no text. `signs` is where
    the bytes up to the quote are, and `kinds` which they are: line ends, quotes, blanks, control
    characters. `period` is how many of them each line has if all have the same in the same order,
    else 0. Behind the last line is the padding.
    """

    data: bytes
    starts: Ints
    signs: Ints
    kinds: Bytes
    period: int
    texts: pl.Series
    faults: dict[int, str]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def content(self) -> Bytes:
        """The bytes as an array, without a copy."""
        return np.frombuffer(self.data, dtype=np.uint8)[: self.starts[-1]]


def split_lines(data: bytes) -> Lines:
    """Split at line feeds; what follows the last one is a line too, if there is anything."""
    return split_padded(data + PADDING)


def split_padded(data: bytes) -> Lines:
    """Split content that has its padding, and so need not be copied."""
    size = len(data) - len(PADDING)
    content = np.frombuffer(data, dtype=np.uint8)[:size]
    signs = _signs(content)
    kinds = content[signs]
    period = _period(kinds)
    ends = (signs[period - 1 :: period] if period else signs[kinds == NEWLINE]) + 1
    has_rest = size > (ends[-1] if len(ends) else 0)
    starts = np.concatenate([[0], ends, [size] if has_rest else []]).astype(np.int64)
    is_text = data.isascii() or _is_utf8(data)
    texts, faults = (_texts(data, starts), {}) if is_text else _escaped(data, starts)
    return Lines(data, starts, signs, kinds, 0 if has_rest else period, texts, faults)


def _signs(content: Bytes) -> Ints:
    """Where the bytes up to the quote are: one search for line ends and quotes.

    Piece by piece, for memory that is used again need not be got again.
    """
    pieces = [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)]
    places = np.empty(sum(np.count_nonzero(piece <= QUOTE) for piece in pieces), dtype=np.int64)
    done = 0
    for number, piece in enumerate(pieces):
        found = np.flatnonzero(piece <= QUOTE)
        np.add(found, number * _PIECE, out=places[done : done + len(found)])
        done += len(found)
    return places


def _period(kinds: Bytes) -> int:
    """How many signs each line has, if all lines have the same; else 0."""
    period = kinds.tobytes().find(NEWLINE) + 1
    if not period or len(kinds) % period:
        return 0
    return period if np.array_equal(kinds[period:], kinds[:-period]) else 0


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(data: bytes, starts: Ints) -> pl.Series:
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_string(), len(starts) - 1, buffers)
    return pl.Series(array)


def _escaped(data: bytes, starts: Ints) -> tuple[pl.Series, dict[int, str]]:
    """Texts and faults, decoded line by line, for only some of them are no text."""
    texts: list[str] = []
    faults: dict[int, str] = {}
    for line, (start, end) in enumerate(pairwise(starts.tolist())):
        try:
            texts.append(data[start:end].decode())
        except UnicodeDecodeError as error:
            texts.append(data[start:end].decode(errors="backslashreplace"))
            faults[line] = NOT_TEXT.format(data[start + error.start], error.start + 1)
    return pl.Series(texts, dtype=pl.String), faults
