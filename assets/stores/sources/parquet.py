"""Parquet files to raw rows whose fields keep their types.

Belongs here: opening a Parquet file and saying what of it cannot be read as declared. A corrupt
file is an error as a whole, for nothing in it can be trusted.
"""

import io
from collections.abc import Sequence

import polars as pl

from transforms.errors import SourceError
from transforms.reading.raw_rows import FAULT, FIELD_PREFIX, field
from transforms.reading.texts import to_text
from transforms.schemas import LINE, RAW, SEQ
from transforms.spec import StreamSpec, TimeColumn
from transforms.spec.words import nearest

_NO_TEXT = (pl.Binary, pl.Object, pl.Duration)


def parquet_rows(
    spec: StreamSpec, data: bytes, columns: Sequence[str], *, name: str
) -> pl.DataFrame:
    """Raw rows of a Parquet file, without a raw text; see `raw_texts`.

    SourceError, with the `name` of the file, if it is corrupt, lacks a column, or has one of a type
    that cannot be read as declared.
    """
    try:
        schema = pl.read_parquet_schema(io.BytesIO(data))
        _check(spec, schema, columns, name)
        table = pl.read_parquet(io.BytesIO(data), columns=list(columns))
    except (pl.exceptions.PolarsError, OSError) as error:
        cause = str(error).splitlines()[0]
        raise SourceError(
            f"{name}: this is not a Parquet file that can be read: {cause}"
        ) from error
    fields = [_categories_as_text(table[column]).alias(field(column)) for column in columns]
    return pl.DataFrame(fields).select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias(SEQ),
        pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(LINE),
        pl.lit(None, pl.String).alias(RAW),
        pl.lit(None, pl.String).alias(FAULT),
        pl.all(),
    )


def _check(
    spec: StreamSpec, schema: dict[str, pl.DataType], columns: Sequence[str], name: str
) -> None:
    for column in columns:
        if column not in schema:
            hint = nearest(column, schema)
            tail = f"; {hint}" if hint else ""
            raise SourceError(f"{name}: the schema has no column {column!r}{tail}")
        if schema[column] in _NO_TEXT:
            raise SourceError(f"{name}: column {column!r} is {schema[column]}, which is no text")
    for time in (spec.columns.event_time, spec.columns.arrival_time):
        _check_time(time, schema[time.column], name)


def _check_time(time: TimeColumn, dtype: pl.DataType, name: str) -> None:
    """A timestamp without a zone in the file needs one in the spec: none is guessed."""
    is_zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
    if dtype in (pl.Date, pl.Datetime) and not is_zoned and time.zone is None:
        raise SourceError(
            f"{name}: column {time.column!r} is {dtype} without a zone; declare its `zone:`"
        )
    if dtype in (pl.Time, pl.Duration):
        raise SourceError(f"{name}: column {time.column!r} is {dtype}, which is no point in time")


def _categories_as_text(values: pl.Series) -> pl.Series:
    return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values


def raw_texts(rows: pl.DataFrame, seqs: pl.Series) -> pl.Series:
    """The fields of some raw rows as JSON of texts: what stands for their raw text."""
    fields = [name for name in rows.columns if name.startswith(FIELD_PREFIX)]
    chosen = rows.select(fields)[seqs.to_list()]
    texts = [to_text(chosen[name]).alias(name.removeprefix(FIELD_PREFIX)) for name in fields]
    return pl.DataFrame(texts).select(pl.struct(pl.all()).struct.json_encode()).to_series()
