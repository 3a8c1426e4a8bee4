"""Many slices of one byte string at once: as a column of text, or compared with a literal.

Belongs here: what needs to know how bytes lie in memory. Which slices, and why, is `ndjson_twins`.
"""

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.text_lines import PADDING, Ints

Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_WORD = 8
LONGEST_LITERAL = len(PADDING) - _WORD
"""A literal looked for may have as many bytes."""

INLINE = 12
"""A text of as many bytes stands in the view itself."""

_PREFIX = 4
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
_HEAD_SHIFT = np.uint64(8 * _PREFIX)


class Slices:
    """A byte string with padding, whose slices are asked for."""

    def __init__(self, padded: bytes) -> None:
        self._buffer = pa.py_buffer(padded)
        # A word may be read at every byte, also by a literal that runs over the end.
        self._words: Words = np.ndarray((len(padded) - _WORD,), "<u8", padded, strides=(1,))

    def equal(self, start: Ints, literal: bytes) -> Flags:
        """Whether the literal stands at each position.

        A position may lie before the first byte, by no more than a literal: it says nothing then.
        """
        offsets = np.arange(0, len(literal), _WORD)[:, None]
        masks = _MASKS[np.minimum(len(literal) - offsets, _WORD)]
        wanted = np.frombuffer(literal.ljust(len(offsets) * _WORD, b"\0"), dtype="<u8")
        found = self._words[offsets + start] & masks
        equal: Flags = np.logical_and.reduce(found == wanted[:, None], axis=0)
        return equal

    def texts(self, start: Ints, length: Ints) -> pl.Series:
        """A String column of slices, which share the memory of the bytes; they must be UTF-8.

        The layout is that of an Arrow string view, here as two words: the length and the first four
        bytes; then up to eight more or, if there are more, the number of the buffer and the offset.
        """
        views: Words = np.empty((len(start), 2), dtype=np.uint64)
        size = length.astype(np.uint64)
        longest, shortest = int(length.max(initial=0)), int(length.min(initial=0))
        head = self._words[start] if shortest >= _PREFIX else self._cut(start, length)
        views[:, 0] = size | (head << _HEAD_SHIFT)
        far = start.astype(np.uint64) << np.uint64(32)
        if longest <= INLINE:
            views[:, 1] = self._cut(start + _PREFIX, length - _PREFIX)
        elif shortest > INLINE:
            views[:, 1] = far
        else:
            near = self._cut(start + _PREFIX, length - _PREFIX)
            views[:, 1] = np.where(length <= INLINE, near, far)
        # Texts that stand in their views do not keep the bytes.
        shared = [self._buffer] if longest > INLINE else []
        buffers = [None, pa.py_buffer(views), *shared]
        return pl.Series(pa.Array.from_buffers(pa.string_view(), len(start), buffers))

    def _cut(self, start: Ints, length: Ints) -> Words:
        """The word at each position, without what lies behind the length."""
        cut: Words = self._words[start] & _MASKS[np.clip(length, 0, _WORD)]
        return cut
