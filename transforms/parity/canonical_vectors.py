"""The vectors of CF1, as data: what every path must compute before it may judge anything.

Each vector is a type, its value in Python, as a literal of both engines, and the frame in hex. The
example carries cells and a root through. How they are run is the business of the store.
"""

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from transforms.parity.canonical import ColumnType, Value


@dataclass(frozen=True)
class Vector:
    """One column value and its frame. ``postgres`` and ``duckdb`` are typed SQL expressions."""

    kind: ColumnType
    value: Value | None
    postgres: str
    duckdb: str
    frame: str


def _same(kind: str, value: Value | None, sql: str, frame: str) -> Vector:
    return Vector(ColumnType.parse(kind), value, sql, sql, frame)


def _two(kind: str, value: Value | None, postgres: str, duckdb: str, frame: str) -> Vector:
    return Vector(ColumnType.parse(kind), value, postgres, duckdb, frame)


_INDIAN = "2024-02-29 12:34:56.123456+05:30"
_UUID = "f23e4567-e89b-12d3-a456-426614174000"

VECTORS: Final = (
    _same("int", None, "null::bigint", "00"),
    _same("int", -1, "(-1)::bigint", "01ffffffffffffffff"),
    _same("bool", True, "true", "0101"),
    _same("bool", False, "false", "0100"),
    _two("float", -0.0, "'-0'::float8", "'-0.0'::double", "010000000000000000"),
    _two("float", math.nan, "'NaN'::float8", "'nan'::double", "017ff8000000000000"),
    _two("float", math.nan, "'-NaN'::float8", "'-nan'::double", "017ff8000000000000"),
    _two(
        "float",
        0.1 + 0.2,
        "0.1::float8 + 0.2::float8",
        "0.1::double + 0.2::double",
        "013fd3333333333334",
    ),
    _same(
        "instant",
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        "'1969-12-31 23:59:59.999999+00'::timestamptz",
        "01fffca2fec4c81fff",
    ),
    _same(
        "instant",
        datetime.fromisoformat(_INDIAN),
        f"'{_INDIAN}'::timestamptz",
        "010002b57ea53c5840",
    ),
    _same("instant", math.inf, "'infinity'::timestamptz", "017fffffffffffffff"),
    _same("instant", -math.inf, "'-infinity'::timestamptz", "018000000000000000"),
    _same(
        "local",
        datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001 - a local time that never happened in Berlin
        "'2024-03-31 02:30:00'::timestamp",
        "010002b7ea6b121a00",
    ),
    _same("local", -math.inf, "'-infinity'::timestamp", "018000000000000000"),
    _same("date", date(2024, 2, 29), "'2024-02-29'::date", "0100002279"),
    _same("date", date(1999, 12, 31), "'1999-12-31'::date", "01ffffffff"),
    _same("date", math.inf, "'infinity'::date", "017fffffff"),
    _same("date", -math.inf, "'-infinity'::date", "0180000000"),
    _two(
        "decimal(18,4)",
        Decimal("1.1"),
        "'1.1'::numeric",
        "'1.1'::decimal(18,4)",
        "0100000006312e31303030",
    ),
    _two(
        "decimal(18,4)",
        Decimal("-0.0"),
        "'-0.0'::numeric",
        "'-0.0'::decimal(18,4)",
        "0100000006302e30303030",
    ),
    _same("decimal(4,4)", Decimal("-0.5"), "'-0.5'::decimal(4,4)", "01000000072d302e35303030"),
    _same("text", "", "''::varchar", "0100000000"),
    _two("text", "\u00e9", "U&'\\00E9'::text", "chr(233)", "0100000002c3a9"),
    _two("text", "e\u0301", "U&'e\\0301'::text", "'e' || chr(769)", "010000000365cc81"),
    _two("text", "\U0001f30a", "U&'\\+01F30A'::text", "chr(127754)", "0100000004f09f8c8a"),
    _two("bytes", b"\x00\xff", "'\\x00ff'::bytea", "'\\x00\\xFF'::blob", "010000000200ff"),
    _same("uuid", UUID(_UUID), f"'{_UUID}'::uuid", "01f23e4567e89b12d3a456426614174000"),
)

# Two text columns: a separator between them would let these rows meet.
SEPARATOR_ROWS: Final = (
    (("a|", "b"), "0100000002617c010000000162"),
    (("a", "|b"), "01000000016101000000027c62"),
)

EXAMPLE_PARTITION: Final = "2024-02-29"
EXAMPLE_ROWS: Final[tuple[tuple[int, str | None], ...]] = ((1, "a"), (2, None), (2, None))
EXAMPLE_FINGERPRINT: Final = "a6ff51e59c23"
EXAMPLE_ROOT: Final = "f11770115a73"
# bucket: number of rows, S0, K0, dup
EXAMPLE_CELLS: Final = {
    1570: (2, 1_742_667_020, 6_504_156_228, 1),
    3558: (1, 1_135_031_890, 2_026_925_542, 0),
}
