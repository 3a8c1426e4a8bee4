"""Columns of any type as the text they would have in NDJSON.

SEMANTICS 10: key, `event_id` and carried columns are text. Text stays as it is; here is what
becomes of typed columns (Parquet) and of JSON values that are no scalars: compact JSON with
sorted keys.
"""

import json
from collections.abc import Callable
from typing import Any

import polars as pl


class NumberText(str):
    """A JSON number as it was written, so that 1.10 stays 1.10."""

    __slots__ = ()


def compact_json(value: Any) -> str:
    """JSON without blanks, keys sorted by code point, numbers as written; raises RecursionError."""
    if isinstance(value, NumberText):
        return value
    if isinstance(value, dict):
        members = (f"{_quoted(key)}:{compact_json(value[key])}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(compact_json, value))}]"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def json_text(value: Any) -> str | None:
    """The text of a JSON value: a string as it is, a number as written, null as None."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return compact_json(value)


def to_text(values: pl.Series) -> pl.Series:
    """A String column of any column: numbers shortest, times as ISO 8601, nested ones as JSON."""
    dtype = values.dtype
    if dtype == pl.String:
        return values
    if isinstance(dtype, pl.Datetime):
        return _instants(values, dtype)
    if dtype.is_nested():
        return _mapped(values, compact_json)
    return values.cast(pl.String)


def _instants(values: pl.Series, dtype: pl.Datetime) -> pl.Series:
    """`2026-05-04T00:00:05.250000Z`, floored to that; without Z where no zone is known."""
    mark = "" if dtype.time_zone is None else "Z"
    return values.dt.replace_time_zone(None).dt.strftime(f"%Y-%m-%dT%H:%M:%S%.6f{mark}")


def _mapped(values: pl.Series, text: Callable[[Any], str]) -> pl.Series:
    texts = (None if value is None else text(value) for value in values.to_list())
    return pl.Series(values.name, list(texts), dtype=pl.String)
