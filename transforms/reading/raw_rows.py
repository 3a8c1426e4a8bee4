"""Raw rows: what every reader of a format gives, and what staging takes.

A raw row is where it stood (`seq`, `line`), its text (`raw`), why it could not be taken apart
(`fault`, null if it could), and the source columns that the spec names, as they were written.
Belongs here: their names and schema. Taking apart is `ndjson_lines`, `csv_lines` and the readers
of bytes; meaning is `staging`.
"""

from collections.abc import Sequence

import polars as pl

from transforms.schemas import LINE, RAW, SEQ
from transforms.spec import StreamSpec

FAULT = "fault"
FIELD_PREFIX = "field:"
"""Before the name of a source column, so that none collides with a column of ours."""


def source_columns(spec: StreamSpec) -> tuple[str, ...]:
    """The columns that the source must have, each once: all that the spec names."""
    columns = spec.columns
    names = (
        *columns.key,
        columns.event_time.column,
        columns.arrival_time.column,
        *columns.event_id,
        *columns.values,
        *columns.carry,
        *((spec.profiles.by,) if spec.profiles.by else ()),
    )
    return tuple(dict.fromkeys(names))


def field(name: str) -> str:
    """The column of a raw frame that holds a column of the source."""
    return FIELD_PREFIX + name


def raw_schema(columns: Sequence[str]) -> pl.Schema:
    """The schema of raw rows: `seq` counts the rows of a file from 0, `line` its lines from 1.

    Of malformed rows every field is null. A reader may leave fields typed whose text follows from
    their values.
    """
    frame: dict[str, pl.DataType] = {SEQ: pl.Int64(), LINE: pl.Int64()}
    frame |= {RAW: pl.String(), FAULT: pl.String()}
    return pl.Schema({**frame, **{field(name): pl.String() for name in columns}})
