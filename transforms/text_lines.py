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

NEWLINE = ord("\n")
PADDING = bytes(1 << 12)
"""What may stand behind the content, so that it can be read by words, over its end too."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE = 1 << 18
NOT_TEXT = "not UTF-8 text: byte 0x{:02x} at byte {} of the line"


@dataclass(frozen=True)
class Lines:
    """Lines with their line ends: line i is `data[starts[i]:starts[i + 1]]`.

    `texts` is a String column of them; `faults` says, by line, why one is no text. Behind the last
    line is the padding.
    """

    data: bytes
    starts: Ints
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
    ends = positions(np.frombuffer(data, dtype=np.uint8)[:size], NEWLINE) + 1
    has_rest = size > (ends[-1] if len(ends) else 0)
    starts = np.concatenate([[0], ends, [size] if has_rest else []]).astype(np.int64)
    if data.isascii() or _is_utf8(data):
        return Lines(data, starts, _texts(data, starts), {})
    return _escaped(data, starts)


def positions(content: Bytes, byte: int) -> Ints:
    """Where a byte is; piece by piece, for memory that is used again need not be got again."""
    places = np.empty(np.count_nonzero(content == byte), dtype=np.int64)
    done = 0
    for start in range(0, len(content), _PIECE):
        found = np.flatnonzero(content[start : start + _PIECE] == byte)
        np.add(found, start, out=places[done : done + len(found)])
        done += len(found)
    return places


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


def _escaped(data: bytes, starts: Ints) -> Lines:
    """Decode line by line, for only some of them are no text."""
    texts: list[str] = []
    faults: dict[int, str] = {}
    for line, (start, end) in enumerate(pairwise(starts.tolist())):
        try:
            texts.append(data[start:end].decode())
        except UnicodeDecodeError as error:
            texts.append(data[start:end].decode(errors="backslashreplace"))
            faults[line] = NOT_TEXT.format(data[start + error.start], error.start + 1)
    return Lines(data, starts, pl.Series(texts, dtype=pl.String), faults)
