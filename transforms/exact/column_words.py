"""The bits of a column as 64-bit words: what the row hash of ``digest`` is computed over.

Here belongs, for each type a row may hold, the canonical form of a value: one or two little-endian
words, the same on every machine and however a frame was made or cut. How words become a hash is
in ``digest``.

Float64 gives its bits, with one NaN and one zero; Int64 and Boolean give their number; Decimal the
two halves of its unscaled number; String its length and first four bytes, then the next eight,
which is all of a text of up to twelve bytes. Of a longer one the second word is a hash of what
follows the first four. A null gives a word of its own, see ``Column``.
"""

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

Words = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

NAN_WORD = np.uint64(0x7FF8000000000000)
SHORT_BYTES = 12  # a text up to here is its own two words: the layout of an Arrow string view
VECTOR_BYTES = 1024  # a longer text is hashed alone; few are, and each is worth a call

_HEAD_BYTES = 4
_FOLD_SEED = np.uint64(0x452821E638D01377)
_FOLD_FACTOR = np.uint64(0xE7037ED1A0B428DB)
_HALF = np.uint64(32)
_TAIL_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)


class Column(NamedTuple):
    """The words of one column, one or two arrays of a word per row, and where it is null.

    ``nulls`` is None where nothing is null; the words of a null row mean nothing.
    """

    words: tuple[Words, ...]
    nulls: BoolArray | None


def column_words(values: pl.Series) -> Column:
    """Return the words of a column of Float64, Int64, Boolean, Decimal or String.

    Raises TypeError for any other type, which has no canonical form here.
    """
    nulls = values.is_null().to_numpy() if values.null_count() else None
    if values.dtype == pl.Float64:
        return Column((_float_words(values),), nulls)
    if values.dtype == pl.Int64:
        return Column((_filled(values).view("<u8"),), nulls)
    if values.dtype == pl.Boolean:
        return Column((_filled(values.cast(pl.Int64)).view("<u8"),), nulls)
    if values.dtype == pl.String:
        return Column(_text_words(values), nulls)
    if isinstance(values.dtype, pl.Decimal):
        return Column(decimal_halves(values), nulls)
    raise TypeError(f"no canonical words for column {values.name!r} of type {values.dtype}")


def _filled(values: pl.Series) -> npt.NDArray[np.int64]:
    return (values.fill_null(0) if values.null_count() else values).to_numpy()


def _float_words(values: pl.Series) -> Words:
    filled = values.fill_null(0.0) if values.null_count() else values
    numbers = filled.to_numpy() + 0.0  # -0.0 + 0.0 is 0.0
    words: Words = numbers.view("<u8")
    words[np.isnan(numbers)] = NAN_WORD
    return words


def _halves(values: pl.Series) -> npt.NDArray[np.uint64]:
    """The 16 bytes per row of a decimal or a string view as two words, without a copy."""
    array = values.to_arrow(compat_level=pl.CompatLevel.newest())
    data = np.frombuffer(array.buffers()[1], dtype="<u8").reshape(-1, 2)
    return data[array.offset : array.offset + len(array)]


def decimal_halves(values: pl.Series) -> tuple[Words, Words]:
    """Return the low and the high half of the unscaled 128-bit numbers, in two's complement."""
    halves = _halves(values)
    return halves[:, 0], halves[:, 1]


def _text_words(values: pl.Series) -> tuple[Words, ...]:
    halves = _halves(values)
    head, rest = halves[:, 0], halves[:, 1]
    is_long = (values.str.len_bytes() > SHORT_BYTES).fill_null(value=False)
    if is_long.any():
        rest = rest.copy()
        rest[is_long.to_numpy()] = _rest_hashes(values.filter(is_long))
    return head, rest


def _rest_hashes(texts: pl.Series) -> Words:
    """A hash of each text without its first four bytes; texts are longer than twelve."""
    array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype="<i8")[array.offset : array.offset + len(array) + 1]
    start, length = bounds[:-1] + _HEAD_BYTES, np.diff(bounds) - _HEAD_BYTES
    content = np.frombuffer(data, dtype=np.uint8)
    hashes = np.empty(len(array), dtype=np.uint64)
    short = length <= VECTOR_BYTES
    hashes[short] = _fold(content, start[short], length[short])
    for row in np.flatnonzero(~short).tolist():
        text = content[start[row] : start[row] + length[row]]
        digest = hashlib.blake2b(text.tobytes(), digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _fold(
    content: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]
) -> Words:
    """Fold eight bytes at a time into the hash of every text that still has some."""
    padded = np.concatenate([content, np.zeros(8, dtype=np.uint8)])
    at_byte: Words = np.ndarray((len(content) + 1,), "<u8", padded, strides=(1,))
    hashes = (_FOLD_SEED ^ length.view(np.uint64)) * _FOLD_FACTOR
    active = np.arange(len(length))
    for done in range(0, int(length.max(initial=0)), 8):
        active = active[length[active] > done]
        left = np.minimum(length[active] - done, 8)
        word = at_byte[start[active] + done] & _TAIL_MASKS[left]
        folded = (hashes[active] ^ word) * _FOLD_FACTOR
        hashes[active] = folded ^ (folded >> _HALF)
    return hashes
