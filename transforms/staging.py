"""Raw rows to staged and rejected rows: where keys, times and values get their meaning.

A reader of a format gives raw rows (`raw_rows`); `parse` judges each of them by SEMANTICS 2.1 and
10. Also here: how a row gets its final `seq`, and which arrival stands in for one that cannot be
read. Reading bytes is `assets.stores.sources`; what becomes of staged rows is `reorder`.
"""

import json
from typing import NamedTuple

import polars as pl

from transforms.reading.raw_rows import field
from transforms.reading.rejections import reject
from transforms.reading.texts import to_text
from transforms.reading.times import read_times
from transforms.reading.values import read_values
from transforms.schemas import (
    ARRIVAL_US,
    EVENT_US,
    ID_PREFIX,
    KEY,
    KEY_BAR,
    ORIGINAL_EVENT_US,
    PROFILE,
    SEQ,
    UNREADABLE,
    staged_schema,
)
from transforms.spec import DEFAULT, StreamSpec, TimeColumn

FILE_ROWS = 2**32
"""How many `seq` a file of the lake has for itself: seq = ordinal x this + row."""


class Parsed(NamedTuple):
    """Staged rows (`schemas.staged_schema`) and rejected ones (`schemas.rejected_schema`)."""

    staged: pl.DataFrame
    rejected: pl.DataFrame

    @property
    def height(self) -> int:
        """How many rows there are in all; each of them has a `seq`."""
        return self.staged.height + self.rejected.height


def parse(spec: StreamSpec, raw: pl.DataFrame, *, source: str) -> Parsed:
    """Judge raw rows of the file named `source`: what can be staged, and what not and why."""
    event_us = _times(raw, spec.columns.event_time)
    rows = raw.hstack(
        [
            _key(spec, raw).alias(KEY),
            _floored(event_us, spec.resolution_us).alias(EVENT_US),
            event_us.alias(ORIGINAL_EVENT_US),
            _times(raw, spec.columns.arrival_time).alias(ARRIVAL_US),
        ]
    )
    readable, rejected = reject(spec, rows, source=source)
    return Parsed(_staged(spec, readable), rejected)


def with_seq(parsed: Parsed, first: int) -> Parsed:
    """Number the rows of a file from `first` on, instead of from 0."""
    if not first:
        return parsed
    shifted = pl.col(SEQ) + first
    return Parsed(parsed.staged.with_columns(shifted), parsed.rejected.with_columns(shifted))


def first_seq(ordinal: int) -> int:
    """The `seq` of the first row of a file of the lake, by the ordinal it was given."""
    return ordinal * FILE_ROWS


def fill_arrival_for_partition(parsed: Parsed) -> pl.Series:
    """For each rejected row of one file, the arrival that decides its partition, and nothing else.

    Its own; if it has none, that of the last row before it that has one, else of the next one; null
    where no row of the file has one. Staged rows all have their own.
    """
    rejected = parsed.rejected
    if not rejected[ARRIVAL_US].has_nulls():
        return rejected[ARRIVAL_US]
    arrivals = pl.concat([parsed.staged.select(SEQ, ARRIVAL_US), rejected.select(SEQ, ARRIVAL_US)])
    filled = arrivals.sort(SEQ).with_columns(pl.col(ARRIVAL_US).forward_fill().backward_fill())
    return rejected.select(SEQ).join(filled, on=SEQ, how="left", maintain_order="left")[ARRIVAL_US]


def _times(raw: pl.DataFrame, column: TimeColumn) -> pl.Series:
    return read_times(raw[field(column.column)], column.unit, column.zone)


def _key(spec: StreamSpec, raw: pl.DataFrame) -> pl.Series:
    """The key as text; null where a part of a composite one is null or empty."""
    parts = [to_text(raw[field(name)]) for name in spec.columns.key]
    if not spec.is_composite_key:
        return parts[0]
    escaped = [_escaped(part) for part in parts]
    return pl.select(pl.concat_str(escaped, separator=KEY_BAR)).to_series()


def _escaped(part: pl.Series) -> pl.Series:
    """A part of a key as it stands in the whole; null if it is empty."""
    if (part == "").any():
        part = part.replace("", None)
    if part.str.contains_any([KEY_BAR, "\\"]).any():
        part = part.str.replace_all("\\", "\\\\", literal=True)
        part = part.str.replace_all(KEY_BAR, f"\\{KEY_BAR}", literal=True)
    return part


def _floored(event_us: pl.Series, resolution_us: int | None) -> pl.Series:
    """Event times on the sampling grid; null where the grid line is below int64."""
    if resolution_us is None:
        return event_us
    floored = event_us // resolution_us * resolution_us
    return pl.select(pl.when(floored <= event_us).then(floored)).to_series()


def _staged(spec: StreamSpec, rows: pl.DataFrame) -> pl.DataFrame:
    """Readable rows with the columns of the contract, in its order."""
    columns = spec.columns
    made = {name: to_text(rows[field(name)]) for name in (*spec.key_parts, *columns.carry)}
    made |= {
        name: to_text(rows[field(name.removeprefix(ID_PREFIX))]) for name in columns.id_columns
    }
    values = {name: read_values(rows[field(name)], kind) for name, kind in columns.values.items()}
    made |= {name: value.values for name, value in values.items()}
    if spec.profiles.by is not None:
        made[PROFILE] = _profiles(spec, rows[field(spec.profiles.by)])
    flags = {
        name: value.is_unreadable
        for name, value in values.items()
        if value.is_unreadable is not None
    }
    made[UNREADABLE] = _unreadable(rows, flags)
    names = staged_schema(spec).names()
    return pl.DataFrame(
        [(made[name] if name in made else rows[name]).alias(name) for name in names]
    )


def _profiles(spec: StreamSpec, links: pl.Series) -> pl.Series:
    texts = to_text(links)
    named = texts.is_in(list(spec.profiles.named))
    return pl.select(pl.when(named).then(texts).otherwise(pl.lit(DEFAULT))).to_series()


def _unreadable(rows: pl.DataFrame, flags: dict[str, pl.Series]) -> pl.Series:
    """Per row, null or the texts of the values that could not be read, as JSON by column."""
    found: dict[int, dict[str, str]] = {}
    for name, flagged in flags.items():
        at = flagged.arg_true()
        texts = to_text(rows[field(name)].gather(at))
        for row, text in zip(at.to_list(), texts.to_list(), strict=True):
            found.setdefault(row, {})[name] = text
    told = pl.Series([None], dtype=pl.String).new_from_index(0, rows.height)
    if not found:
        return told
    return told.scatter(list(found), [_json(texts) for texts in found.values()])


def _json(texts: dict[str, str]) -> str:
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
