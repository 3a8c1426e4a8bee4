"""Where the rows of a stream come from, and what its columns are.

Here belong the sections ``source`` and ``columns``. How a value or a time is read from text is the
business of staging; rules that look at several sections at once are in ``spec_rules.py``.
"""

import re
from typing import Annotated, Any, Final, Literal

import polars as pl
from pydantic import Field, StringConstraints, model_validator

from transforms.schemas import ID_PREFIX
from transforms.spec.fields import (
    PositiveDurationUs,
    Section,
    Text,
    TextList,
    TextOrList,
    Zone,
    refuse,
)
from transforms.spec.words import ENTRY_ALLOWED, Mistake

NUMBER_UNITS: Final = ("s", "ms", "us", "ns")
ISO8601: Final = "iso8601"

_SOURCES_TO_COME: Final = ("postgres", "kafka")
_DECIMAL: Final = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_MOST_DIGITS: Final = 38
_TYPE_WORDS: Final = ENTRY_ALLOWED["columns", "values"]


class Source(Section):
    """The files of a stream; ``path`` is a glob. ``separator`` None: read it off the header."""

    kind: Literal["files"]
    path: Text
    format: Literal["ndjson", "csv", "parquet"]
    separator: Annotated[str, StringConstraints(pattern=r'^[^"\r\n]$')] | None = None
    nulls: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _kind_is_supported(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind") in _SOURCES_TO_COME:
            hint = f"sources of kind {data['kind']} are not supported yet"
            refuse(Mistake(("kind",), data["kind"], "files", hint))
        return data


class TimeColumn(Section):
    """A column that holds times: its unit, and the zone of texts that carry no offset."""

    column: Text
    unit: Annotated[str, StringConstraints(pattern=r"^(iso8601|s|ms|us|ns|.*%.*)$")]
    zone: Zone | None = None


class ValueType(Section):
    """The type of a value column; ``precision`` and ``scale`` are of decimals alone."""

    kind: Literal["float", "int", "bool", "decimal"]
    precision: int | None = None
    scale: int | None = None

    @property
    def dtype(self) -> pl.DataType:
        """The type of the column in every frame."""
        if self.kind == "decimal":
            return pl.Decimal(self.precision, self.scale or 0)
        return {"float": pl.Float64(), "int": pl.Int64(), "bool": pl.Boolean()}[self.kind]

    @property
    def text(self) -> str:
        """The type as it is declared."""
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return refuse(Mistake((), data, _TYPE_WORDS))
        if data in {"float", "int", "bool"}:
            return {"kind": data}
        digits = _DECIMAL.fullmatch(data)
        if digits is None:
            return refuse(Mistake((), data, _TYPE_WORDS))
        precision, scale = int(digits[1]), int(digits[2])
        if not (1 <= precision <= _MOST_DIGITS and scale <= precision):
            allowed = f"decimal(p,s) with p from 1 to {_MOST_DIGITS} and s from 0 to p"
            refuse(Mistake((), data, allowed))
        return {"kind": "decimal", "precision": precision, "scale": scale}


class Columns(Section):
    """What the columns of the source mean. ``event_id`` empty: the event time is the identity."""

    key: TextOrList
    event_time: TimeColumn
    arrival_time: TimeColumn
    event_id: TextList = ()
    values: dict[Text, ValueType] = Field(default_factory=dict)
    carry: TextList = ()
    dedup_horizon_us: PositiveDurationUs | None = Field(
        default=None, validation_alias="dedup_horizon"
    )

    @property
    def id_columns(self) -> tuple[str, ...]:
        """Staged columns that are kept for the identity alone: ``id_<column>``."""
        elsewhere = {self.event_time.column, *self.key, *self.carry}
        return tuple(ID_PREFIX + name for name in self.event_id if name not in elsewhere)
