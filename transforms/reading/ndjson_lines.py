"""NDJSON, one line after another: what a line says, and why one cannot be taken apart.

This is what NDJSON means here. A row is a line that holds one JSON object; bare NaN and Infinity
are read as written; of a name that occurs twice the last one wins, as in most parsers; a name
that is absent is null. `ndjson_twins` is the fast way to the same rows.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from transforms.reading.raw_rows import FAULT, field
from transforms.reading.texts import NumberText, json_text

BLANK = " \t\r\n"
"""A line of nothing but these is no row."""

Fields = list[str | None]

_DECODER = json.JSONDecoder(parse_int=NumberText, parse_float=NumberText, parse_constant=NumberText)


def read_line(line: str, columns: Sequence[str]) -> Fields | str:
    """The text of each column, or the fault: what is wrong with the line."""
    try:
        record = _DECODER.decode(line)
        if not isinstance(record, dict):
            return f"the line holds {_kind(record)}, not a JSON object"
        fields = [json_text(record.get(name)) for name in columns]
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    except RecursionError:
        return "not JSON that can be read: nested too deep"
    return fields if "\\u" not in line or all(map(_is_text, fields)) else _HALF_A_PAIR


_HALF_A_PAIR = "not text: a \\u escape is half of a surrogate pair"


def _is_text(field_text: str | None) -> bool:
    """Whether a text can be stored: JSON can spell half of a surrogate pair, UTF-8 cannot."""
    return field_text is None or not any("\ud800" <= sign <= "\udfff" for sign in field_text)


def _kind(value: Any) -> str:
    kinds: dict[type, str] = {list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else kinds.get(type(value), "a number")


def fields_frame(records: Iterable[Fields | str], columns: Sequence[str]) -> pl.DataFrame:
    """A frame of records taken apart: a fault, or the text of each column."""
    faults: list[str | None] = []
    fields: tuple[Fields, ...] = tuple([] for _ in columns)
    append: tuple[Callable[[str | None], None], ...] = tuple(column.append for column in fields)
    nothing: Fields = [None] * len(columns)
    for record in records:
        fault, texts = (record, nothing) if isinstance(record, str) else (None, record)
        faults.append(fault)
        for add, text in zip(append, texts, strict=True):
            add(text)
    named = {FAULT: faults, **dict(zip(map(field, columns), fields, strict=True))}
    return pl.DataFrame(named, schema=dict.fromkeys(named, pl.String))
