"""The gaps of many twins: which texts are the JSON scalars that should be there, and their values.

Belongs here: columns of whole numbers become Int64 at once, which says the same as their texts for
none of these has a sign or a needless digit; all other texts are held to the pattern of their gap,
and null is null. Where the gaps are is `ndjson_twins`.
"""

from typing import NamedTuple

import numpy as np
import polars as pl

from transforms.reading.byte_slices import Flags
from transforms.reading.ndjson_layout import Gap
from transforms.reading.text_lines import Ints

_NULL = "null"
_VALID = "valid"
_MOST_DIGITS = 17
# The least number that has so many digits; of those with one, it is 0.
_LEAST = np.array([0, 0, *(10**size for size in range(1, _MOST_DIGITS + 1))])


class Judged(NamedTuple):
    """The rows of which every gap has the scalars it should, and which rows these are."""

    rows: pl.DataFrame
    is_valid: Flags


def plain_integers(texts: pl.Series, lengths: Ints) -> pl.Series | None:
    """Int64 of texts of these lengths if each is a plain integer, as Int64 would be written."""
    numbers = texts.cast(pl.Int64, strict=False)
    if numbers.has_nulls() or not len(lengths) or lengths.max() > _MOST_DIGITS:
        return None
    values = numbers.to_numpy()
    sizes = lengths[:1] if (lengths == lengths[0]).all() else lengths
    is_plain = (values >= _LEAST[sizes]) & (values < _LEAST[sizes + 1])
    return numbers if is_plain.all() else None


def judge(rows: pl.DataFrame, gaps: dict[str, Gap]) -> Judged:
    """Hold the columns of text to what may stand in their gaps."""
    patterns = {
        name: f"^(?:{gap.pattern})$" for name, gap in gaps.items() if rows[name].dtype == pl.String
    }
    if not patterns:
        return Judged(rows, np.ones(rows.height, dtype=np.bool_))
    is_valid = pl.all_horizontal(
        pl.col(name).str.contains(pattern) for name, pattern in patterns.items()
    )
    values = [pl.when(pl.col(name) != _NULL).then(pl.col(name)).alias(name) for name in patterns]
    judged = rows.with_columns(*values, is_valid.alias(_VALID))
    valid = judged[_VALID].to_numpy()
    return Judged(judged if valid.all() else judged.filter(_VALID), valid)
