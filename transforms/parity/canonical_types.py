"""Which column types of PostgreSQL and DuckDB have a canonical frame, and why the others have none.

Here belongs the type check of a side. That both sides must then agree is ``parity.contract``.
"""

import re
from dataclasses import dataclass

from transforms.parity.canonical import ColumnType, Kind

_POSTGRES = {
    "smallint": Kind.INT,
    "integer": Kind.INT,
    "bigint": Kind.INT,
    "boolean": Kind.BOOL,
    "double precision": Kind.FLOAT,
    "timestamp with time zone": Kind.INSTANT,
    "timestamp without time zone": Kind.LOCAL,
    "date": Kind.DATE,
    "text": Kind.TEXT,
    "character varying": Kind.TEXT,
    "bytea": Kind.BYTES,
    "uuid": Kind.UUID,
}
_DUCKDB = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), Kind.INT),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), Kind.INT),
    "BOOLEAN": Kind.BOOL,
    "DOUBLE": Kind.FLOAT,
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
    "TIMESTAMP": Kind.LOCAL,
    "DATE": Kind.DATE,
    "VARCHAR": Kind.TEXT,
    "BLOB": Kind.BYTES,
    "UUID": Kind.UUID,
}
_WHY = (
    (r"real|FLOAT", "its 4 bytes are another number in 8"),
    (r"character(\(\d+\))?|bpchar", "it pads with blanks"),
    (r"jsonb?|JSON", "it does not keep the text; publish canonical JSON as text"),
    (r"UBIGINT|U?HUGEINT|U?BIGNUM", "it does not fit int64"),
    (r"TIMESTAMP_(S|MS|NS)|TIME.*|time.*|interval|INTERVAL", "its unit is not the microsecond"),
    (r".*\[\d*\]|STRUCT.*|MAP.*|UNION.*", "it is nested"),
)
_PG_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_DUCK_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_TYPMOD = re.compile(r"\(\d+\)")


@dataclass(frozen=True)
class Declared:
    """A column of a side. ``kind`` is None where it cannot be proved (``why``), or adopts a scale.

    ``adopts``: a ``numeric`` without digits takes the decimal type of the other side.
    """

    name: str
    declared: str
    kind: ColumnType | None
    why: str = ""
    adopts: bool = False


def postgres_column_type(name: str, declared: str) -> Declared:
    """From the text of ``format_type``."""
    if declared == "numeric":
        return Declared(name, declared, None, adopts=True)
    digits = _PG_NUMERIC.fullmatch(declared)
    if digits:
        return _decimal(name, declared, int(digits[1]), int(digits[2]))
    return _plain(name, declared, _POSTGRES.get(_TYPMOD.sub("", declared)))


def duckdb_column_type(name: str, declared: str) -> Declared:
    """From the text of ``describe``."""
    digits = _DUCK_DECIMAL.fullmatch(declared)
    if digits:
        return _decimal(name, declared, int(digits[1]), int(digits[2]))
    return _plain(name, declared, _DUCKDB.get(declared))


def _decimal(name: str, declared: str, precision: int, scale: int) -> Declared:
    if not 0 <= scale <= precision:
        return Declared(name, declared, None, "its scale is beyond its digits")
    return Declared(name, declared, ColumnType(Kind.DECIMAL, precision, scale))


def _plain(name: str, declared: str, kind: Kind | None) -> Declared:
    if kind is not None:
        return Declared(name, declared, ColumnType(kind))
    why = (reason for pattern, reason in _WHY if re.fullmatch(pattern, declared))
    return Declared(name, declared, None, next(why, "it has no canonical frame"))
