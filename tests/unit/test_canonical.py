import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from transforms.parity.canonical import (
    ColumnType,
    Kind,
    Value,
    decode,
    encode,
    frame,
    int_frame,
    shown,
    text_frame,
)
from transforms.parity.canonical_self_test import check_oracle
from transforms.parity.canonical_vectors import SEPARATOR_ROWS, VECTORS, Vector

TEXT = ColumnType(Kind.TEXT)


def of(kind: str, value: Value | None) -> str:
    return encode(ColumnType.parse(kind), value).hex()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v.kind}-{v.value!r}")
def test_the_oracle_makes_every_vector(vector: Vector) -> None:
    assert encode(vector.kind, vector.value).hex() == vector.frame


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v.kind}-{v.value!r}")
def test_a_frame_can_be_read_back(vector: Vector) -> None:
    column = bytes.fromhex(vector.frame)
    assert encode(vector.kind, decode(vector.kind, column)) == column


@pytest.mark.parametrize(("texts", "expected"), SEPARATOR_ROWS)
def test_columns_cannot_run_into_each_other(texts: tuple[str, str], expected: str) -> None:
    assert frame([TEXT, TEXT], texts).hex() == expected


def test_the_self_test_of_the_oracle_carries_the_example_to_its_root() -> None:
    assert check_oracle() == "oracle"


def test_every_nan_is_one_nan() -> None:
    for bits in (0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001, 0x7FF8_DEAD_BEEF_0000):
        (payload,) = struct.unpack(">d", struct.pack(">Q", bits))
        assert of("float", payload) == "017ff8000000000000"


def test_a_whole_number_is_a_float_where_one_is_declared() -> None:
    assert of("float", 1) == of("float", 1.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.1", "1.1000"),
        ("-0.0000", "0.0000"),
        ("1E+3", "1000.0000"),
        ("12345678901234.5678", "12345678901234.5678"),
        ("1.00001", "1.00001"),  # does not fit: kept, and so unequal to anything that does
        ("1.000010", "1.00001"),
        ("100000000000000", "100000000000000"),
        ("NaN", "NaN"),
    ],
)
def test_a_decimal_is_its_text_with_all_digits_and_never_rounded(value: str, text: str) -> None:
    assert decode(TEXT, bytes.fromhex(of("decimal(18,4)", Decimal(value)))) == text


def test_more_digits_than_python_likes_are_exact() -> None:
    number = "1" * 30 + "." + "2" * 8
    assert decode(TEXT, bytes.fromhex(of("decimal(38,8)", Decimal(number)))) == number


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", True),
        ("int", 1.0),
        ("bool", 1),
        ("float", "1"),
        ("instant", datetime(2024, 1, 1)),  # noqa: DTZ001 - that it has no zone is the point
        ("local", datetime(2024, 1, 1, tzinfo=UTC)),
        ("instant", 1.5),
        ("date", datetime(2024, 1, 1, tzinfo=UTC)),
        ("text", b"a"),
        ("bytes", "a"),
        ("uuid", "f23e4567-e89b-12d3-a456-426614174000"),
        ("decimal(5,2)", 1.5),
    ],
)
def test_a_value_of_another_type_has_no_frame(kind: str, value: Value) -> None:
    with pytest.raises(TypeError):
        of(kind, value)


@pytest.mark.parametrize("text", ["float4", "decimal(4)", "decimal(4,5)", "jsonb", ""])
def test_a_type_that_cannot_be_proved_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed: int|has no canonical text"):
        ColumnType.parse(text)


def test_types_are_written_as_they_are_read() -> None:
    for text in (*(str(kind) for kind in Kind if kind is not Kind.DECIMAL), "decimal(18,4)"):
        assert str(ColumnType.parse(text)) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("instant", datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00Z"),
        (
            "instant",
            datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
            "1969-12-31T23:59:59.999999Z",
        ),
        ("local", 0, "1970-01-01T00:00:00"),
        ("date", date(2024, 2, 29), "2024-02-29"),
        ("date", 3_000_000, "3000000 since 1970-01-01"),
        ("instant", -math.inf, "-inf"),
        ("text", "it's", '"it\'s"'),
        ("text", "null", "'null'"),
        ("text", None, "null"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_values_are_shown_to_people(kind: str, value: Value | None, text: str) -> None:
    column_type = ColumnType.parse(kind)
    assert shown(column_type, encode(column_type, value)) == text


def test_the_frames_of_roots_carry_the_mark_of_presence() -> None:
    assert text_frame("a").hex() == "010000000161"
    assert int_frame(-1).hex() == "01ffffffffffffffff"
