"""Many slices of one byte string at once: as a column of text, or compared with a literal.

Belongs here: what needs to know how bytes lie in memory. Which slices, and why, is `ndjson_twins`.
"""

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.text_lines import Ints

Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_WORD = 8
_INLINE = 12
_PREFIX = 4
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
_VIEW = np.dtype([("length", "<i4"), ("head", "<u4"), ("tail", "<u8")])


class Slices:
    """A byte string whose slices are asked for; positions must lie within it."""

    def __init__(self, data: bytes) -> None:
        # A word may be read at every byte, so there must be one word more than there are bytes.
        padded = data + bytes(_WORD)
        self._buffer = pa.py_buffer(padded)
        self._words: Words = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))

    def equal(self, start: Ints, literal: bytes) -> Flags:
        """Whether the literal stands at each position; one outside is clipped, not refused."""
        last = len(self._words) - 1
        result = np.ones(len(start), dtype=np.bool_)
        for done in range(0, len(literal), _WORD):
            piece = literal[done : done + _WORD]
            wanted = np.uint64(int.from_bytes(piece, "little"))
            found = self._words[np.clip(start + done, 0, last)]
            result &= (found & _MASKS[len(piece)]) == wanted
        return result

    def texts(self, start: Ints, length: Ints) -> pl.Series:
        """A String column of slices, which share the memory of the bytes; they must be UTF-8.

        The layout is that of an Arrow string view: up to twelve bytes stand in the view itself, a
        longer text has its first four there, the number of its buffer and its offset.
        """
        views = np.empty(len(start), dtype=_VIEW)
        views["length"] = length
        head = self._words[start] & _MASKS[np.minimum(length, _PREFIX)]
        views["head"] = head.astype(np.uint32)
        rest_length = np.clip(length - _PREFIX, 0, _WORD)
        rest = self._words[np.minimum(start + _PREFIX, len(self._words) - 1)] & _MASKS[rest_length]
        views["tail"] = np.where(length <= _INLINE, rest, start.astype(np.uint64) << np.uint64(32))
        buffers = [None, pa.py_buffer(views), self._buffer]
        return pl.Series(pa.Array.from_buffers(pa.string_view(), len(start), buffers))
