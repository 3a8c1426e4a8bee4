"""NDJSON to raw rows: lines that have twins all at once, the others one after another.

Belongs here: putting both together again, in the order of the file. What a line says is
`ndjson_lines`; the fast way is `ndjson_twins`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from transforms.reading.ndjson_lines import BLANK, fields_frame, read_line
from transforms.reading.ndjson_twins import Twins, find_twins, without
from transforms.reading.raw_rows import raw_schema
from transforms.reading.text_lines import NEWLINE, Ints, Lines
from transforms.schemas import LINE, RAW, SEQ


def ndjson_rows(lines: Lines, columns: Sequence[str]) -> pl.DataFrame:
    """Raw rows of some lines, numbered from 0; the first line is line 1."""
    rows = _with_content(lines)
    parts = list(find_twins(lines, rows, columns))
    left = rows
    for part in parts:
        left = without(left, part.lines)
    fields = _in_order([*parts, _one_by_one(lines, left, columns)] if len(left) else parts)
    frame = pl.DataFrame(schema=raw_schema(columns)) if fields is None else fields
    place = [
        pl.Series(SEQ, np.arange(len(rows))),
        pl.Series(LINE, rows + 1),
        (lines.texts if len(rows) == len(lines) else lines.texts.gather(rows)).alias(RAW),
    ]
    return pl.DataFrame([*place, *frame.select(raw_schema(columns).names()[3:]).get_columns()])


def _in_order(parts: Sequence[Twins]) -> pl.DataFrame | None:
    """The fields of all parts in the order of their lines."""
    if len(parts) < 2:  # noqa: PLR2004
        return parts[0].fields if parts else None
    order = np.argsort(np.concatenate([part.lines for part in parts]))
    # One part may have whole numbers where another has text.
    return pl.concat([part.fields for part in parts], how="vertical_relaxed")[order]


def _with_content(lines: Lines) -> Ints:
    """The numbers of the lines that are rows: all but the blank ones."""
    first = lines.content[lines.starts[:-1]]
    is_blank = (first == NEWLINE) & (np.diff(lines.starts) == 1)
    # Few lines begin with a blank; only these are looked at as a whole.
    for number in np.flatnonzero((first <= ord(" ")) & ~is_blank).tolist():
        is_blank[number] = not lines.texts[number].strip(BLANK)
    return np.flatnonzero(~is_blank)


def _one_by_one(lines: Lines, numbers: Ints, columns: Sequence[str]) -> Twins:
    texts = zip(numbers.tolist(), lines.texts.gather(numbers).to_list(), strict=True)
    records = (
        lines.faults.get(number) or read_line(text.removesuffix("\n"), columns)
        for number, text in texts
    )
    return Twins(numbers, fields_frame(records, columns))
