"""CSV to raw rows: the header, then records, vectorized where no field is quoted.

Belongs here: the way from lines to a frame. What a record is, and where one goes wrong, is
`csv_lines`.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from transforms.errors import SourceError
from transforms.reading.csv_lines import Header, is_blank, read_header, read_records
from transforms.reading.ndjson_lines import fields_frame
from transforms.reading.raw_rows import FAULT, field, raw_schema
from transforms.reading.text_lines import Lines
from transforms.schemas import LINE, RAW, SEQ

_LINE_END = "\r\n"


def csv_rows(
    lines: Lines, columns: Sequence[str], *, separator: str | None, nulls: Sequence[str], name: str
) -> pl.DataFrame:
    """Raw rows of a whole CSV file; its first line that is not blank is the header.

    SourceError, with the `name` of the file, if there is a column that the header does not have.
    """
    schema = raw_schema(columns)
    first = next((at for at in range(len(lines)) if not is_blank(lines.texts[at], "")), None)
    if first is None:
        return pl.DataFrame(schema=schema)
    if first in lines.faults:
        raise SourceError(f"{name}: the header cannot be read: {lines.faults[first]}")
    header_line = lines.texts[first].rstrip(_LINE_END)
    header = read_header(header_line, columns, separator=separator, name=name)
    is_plain = b'"' not in lines.data and not lines.faults
    read = _plain_rows if is_plain else _quoted_rows
    rows = read(lines, first + 1, header, columns, nulls)
    return rows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(SEQ)).select(
        schema.names()
    )


def _quoted_rows(
    lines: Lines, first: int, header: Header, columns: Sequence[str], nulls: Sequence[str]
) -> pl.DataFrame:
    texts = lines.texts.slice(first).to_list()
    readable = [None if at in lines.faults else text for at, text in enumerate(texts, first)]
    records = list(read_records(readable, header, nulls))
    raw = ["".join(texts[record.first : record.first + record.lines]) for record in records]
    faults = [lines.faults.get(first + record.first) or record.fields for record in records]
    at = [first + record.first + 1 for record in records]
    place = [pl.Series(LINE, at, dtype=pl.Int64), pl.Series(RAW, raw, dtype=pl.String)]
    return fields_frame(faults, columns).with_columns(place)


def _plain_rows(
    lines: Lines, first: int, header: Header, columns: Sequence[str], nulls: Sequence[str]
) -> pl.DataFrame:
    """Records without a quote: a line each, and every separator parts two fields."""
    texts = lines.texts.slice(first)
    stripped = texts.str.strip_chars_end(_LINE_END)
    counts = stripped.str.count_matches(header.separator, literal=True).cast(pl.Int64) + 1
    parts = stripped.str.splitn(header.separator, header.width).struct.unnest()
    fits = counts == header.width
    blanks = " \t".replace(header.separator, "")
    is_row = stripped.str.strip_chars(blanks) != ""
    told = pl.format("{} fields, where the header has {}", counts, pl.lit(header.width))
    fields = [
        _unless_null(parts.to_series(at), fits, nulls).alias(field(name))
        for name, at in zip(columns, header.positions, strict=True)
    ]
    frame = pl.DataFrame([pl.Series(LINE, np.arange(first + 1, len(lines) + 1)), texts.alias(RAW)])
    fault = pl.when(pl.lit(~fits)).then(told).alias(FAULT)
    return frame.with_columns(fault, *fields).filter(is_row)


def _unless_null(texts: pl.Series, fits: pl.Series, nulls: Sequence[str]) -> pl.Series:
    is_null = texts.is_in(["", *nulls])
    return pl.select(pl.when(fits & ~is_null).then(texts)).to_series()
