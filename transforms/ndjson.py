"""NDJSON to raw rows: lines that have twins all at once, the others one after another.

Belongs here: putting both together again, in the order of the file. What a line says is
`ndjson_lines`; the fast way is `ndjson_twins`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from transforms.ndjson_lines import BLANK, fields_frame, read_line
from transforms.ndjson_twins import find_twins, without
from transforms.raw_rows import FAULT, raw_schema
from transforms.schemas import LINE, RAW, SEQ
from transforms.text_lines import NEWLINE, Ints, Lines

_AT = "at"


def ndjson_rows(lines: Lines, columns: Sequence[str]) -> pl.DataFrame:
    """Raw rows of some lines, numbered from 0; the first line is line 1."""
    rows = _with_content(lines)
    parts = [
        twins.fields.with_columns(pl.Series(_AT, twins.lines), pl.lit(None, pl.String).alias(FAULT))
        for twins in find_twins(lines, rows, columns)
    ]
    left = rows
    for part in parts:
        left = without(left, part[_AT].to_numpy())
    if len(left) or not parts:
        parts.append(_one_by_one(lines, left, columns))
    schema = raw_schema(columns)
    frame = pl.concat([part.select(_AT, *schema.names()[3:]) for part in parts])
    ordered = frame.sort(_AT) if len(parts) > 1 else frame
    return ordered.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(SEQ),
        (pl.col(_AT) + 1).alias(LINE),
        (lines.texts if len(rows) == len(lines) else lines.texts.gather(rows)).alias(RAW),
        *schema.names()[3:],
    )


def _with_content(lines: Lines) -> Ints:
    """The numbers of the lines that are rows: all but the blank ones."""
    first = lines.content[lines.starts[:-1]]
    is_blank = (first == NEWLINE) & (np.diff(lines.starts) == 1)
    # Few lines begin with a blank; only these are looked at as a whole.
    for number in np.flatnonzero((first <= ord(" ")) & ~is_blank).tolist():
        is_blank[number] = not lines.texts[number].strip(BLANK)
    return np.flatnonzero(~is_blank)


def _one_by_one(lines: Lines, numbers: Ints, columns: Sequence[str]) -> pl.DataFrame:
    texts = zip(numbers.tolist(), lines.texts.gather(numbers).to_list(), strict=True)
    records = (
        lines.faults.get(number) or read_line(text.removesuffix("\n"), columns)
        for number, text in texts
    )
    return fields_frame(records, columns).with_columns(pl.Series(_AT, numbers))
