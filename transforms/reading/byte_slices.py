"""Many slices of one byte string at once: as a column of text, or compared with a literal.

Belongs here: what needs to know how bytes lie in memory. Which slices, and why, is `ndjson_twins`.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.reading.text_lines import PADDING, Ints

Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_WORD = 8
_WINDOW = 3 * _WORD
LONGEST_LITERAL = len(PADDING) - _WINDOW
"""A literal looked for may have as many bytes."""

INLINE = 12
"""A text of as many bytes stands in the view itself."""

_PREFIX = 4
_OFFSET_SHIFT = np.uint64(32)


def _masks(sizes: Iterable[int]) -> Words:
    """For each size in bytes, the bits of so many first bytes of a word."""
    return np.array([(1 << 8 * min(max(size, 0), _WORD)) - 1 for size in sizes], dtype=np.uint64)


# What a text of each length has of the two words of a view, the place of its length apart.
_HEADS = _masks(range(_PREFIX, _PREFIX + INLINE + 1)) ^ _masks([_PREFIX])
_TAILS = _masks(range(-_PREFIX, INLINE - _PREFIX + 1))


class Slices:
    """A byte string with padding, whose slices are asked for."""

    def __init__(self, padded: bytes) -> None:
        self._bytes = padded

    def equal(self, start: Ints, literal: bytes) -> Flags:
        """Whether the literal stands at each position.

        A position may lie before the first byte, by no more than a literal: it says nothing then.
        """
        equal: Flags = np.ones(len(start), dtype=np.bool_)
        for first in range(0, len(literal), _WINDOW):
            part = literal[first : first + _WINDOW]
            words = -(-len(part) // _WORD)
            wanted = np.frombuffer(part.ljust(words * _WORD, b"\0"), dtype="<u8")
            masks = _masks(range(len(part), 0, -_WORD))
            found = self._words(start + first if first else start, words)
            for word in range(words):
                equal &= (found[:, word] & masks[word]) == wanted[word]
        return equal

    def texts(self, start: Ints, length: Ints) -> pl.Series:
        """A String column of slices, which share the memory of the bytes; they must be UTF-8.

        The layout is that of an Arrow string view, here as two words: the length and the first four
        bytes; then up to eight more or, if there are more, the number of the buffer and the offset.
        No slice may begin among the first four bytes.
        """
        # What stands in the four bytes before a text gives way to its length.
        views = self._words(start - _PREFIX, 2)
        heads, tails = _view_masks(np.minimum(length, INLINE))
        views[:, 0] &= heads
        views[:, 0] |= length.astype(np.uint64)
        views[:, 1] &= tails
        is_far = length > INLINE
        np.copyto(views[:, 1], start.astype(np.uint64) << _OFFSET_SHIFT, where=is_far)
        # Texts that stand in their views do not keep the bytes.
        shared = [pa.py_buffer(self._bytes)] if is_far.any() else []
        buffers = [None, pa.py_buffer(views), *shared]
        return pl.Series(pa.Array.from_buffers(pa.string_view(), len(start), buffers))

    def _words(self, start: Ints, count: int) -> Words:
        """So many words from each position on, in a row of their own."""
        size = count * _WORD
        windows: npt.NDArray[np.void] = np.ndarray(
            (len(self._bytes) - size,), f"V{size}", self._bytes, strides=(1,)
        )
        words: Words = windows[start].view("<u8").reshape(-1, count)
        return words


def _view_masks(lengths: Ints) -> tuple[Words, Words]:
    """Masks of both words of views; one for all texts if they are of one length."""
    if len(lengths) and (lengths == lengths[0]).all():
        lengths = lengths[:1]
    return _HEADS[lengths], _TAILS[lengths]
