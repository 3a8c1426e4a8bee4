import math
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from transforms.parity.canonical import ColumnType, Value, encode
from transforms.parity.causes import cause_of

NOON = datetime(2024, 2, 29, 12, 0, 5, 123_456, UTC)


def cause(kind: str, source: Value | None, target: Value | None) -> str:
    column = ColumnType.parse(kind)
    return str(cause_of(column, encode(column, source), encode(column, target)))


@pytest.mark.parametrize(
    ("kind", "source", "target", "expected"),
    [
        ("float", 0.1 + 0.2, 0.3, "float-last-bits"),
        ("float", 5e-324, -5e-324, "float-last-bits"),
        ("float", math.nextafter(1.0, 2.0), 1.0, "float-last-bits"),
        ("float", 1.0 + 5 * math.ulp(1.0), 1.0, "other"),
        ("float", math.nan, None, "null-nan"),
        ("float", None, math.nan, "null-nan"),
        ("float", math.nan, 1.0, "other"),
        ("float", None, 1.0, "other"),
        ("float", 1.23456, 1.23, "scale"),
        ("float", 1.0, 2.0, "other"),
        ("float", math.inf, 1.0, "other"),
        ("text", None, "", "null-empty"),
        ("bytes", b"", None, "null-empty"),
        ("text", None, " ", "other"),
        ("instant", NOON, NOON.replace(hour=14), "whole-hours"),
        ("instant", NOON, NOON.replace(hour=6, minute=15), "whole-hours"),
        ("instant", NOON, NOON.replace(day=28, hour=22), "whole-hours"),
        ("instant", NOON, NOON.replace(day=28, hour=21), "other"),
        ("instant", NOON, NOON.replace(minute=7), "other"),
        ("instant", NOON, NOON.replace(microsecond=123_000), "fraction-cut"),
        ("instant", NOON, NOON.replace(microsecond=0), "fraction-cut"),
        ("instant", NOON.replace(microsecond=0), NOON, "fraction-cut"),
        ("instant", NOON, NOON.replace(second=6, microsecond=0), "fraction-cut"),
        ("instant", NOON, NOON.replace(second=7, microsecond=0), "other"),
        ("instant", math.inf, NOON, "other"),
        ("local", 0, 3_600_000_000, "whole-hours"),
        ("date", 0, 1, "other"),
        ("decimal(18,4)", Decimal("1.2345"), Decimal("1.23"), "scale"),
        ("decimal(18,4)", Decimal("1.2355"), Decimal("1.236"), "scale"),
        ("decimal(18,4)", Decimal("1.0000"), Decimal("1.00001"), "scale"),
        ("decimal(18,4)", Decimal("1.5"), Decimal("2.5"), "other"),
        ("decimal(18,4)", Decimal("NaN"), Decimal("2.5"), "other"),
        ("text", "\u00e9", "e\u0301", "unicode-form"),
        ("text", "ab", "ab  ", "trailing-blank"),
        ("text", "ab", " ab", "other"),
        ("text", "Straße", "STRASSE", "case"),
        ("text", '{"b":1,"a":2}', '{"a": 2, "b": 1}', "json-form"),
        ("text", "[1.0]", "[1.00]", "json-form"),
        ("text", '{"a":1}', '{"a":2}', "other"),
        ("int", 1, 2, "other"),
        ("bool", True, False, "other"),
    ],
)
def test_the_first_cause_that_fits(
    kind: str, source: Value | None, target: Value | None, expected: str
) -> None:
    assert cause(kind, source, target) == expected
