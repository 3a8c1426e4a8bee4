"""Values: text that spells a number is that number; what does not fit its column is flagged."""

from decimal import Decimal
from fractions import Fraction
from math import copysign, isinf, isnan

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.reading.numerals import numeral
from transforms.reading.values import read_values
from transforms.spec import ValueType

INVALID = object()
"""What could not be read: null, and flagged."""


def kind(text: str) -> ValueType:
    return ValueType.model_validate(text)


def read(value: object, text: str) -> object:
    values, unreadable = read_values(pl.Series("v", [value]), kind(text))
    assert values.dtype == kind(text).dtype
    flagged = unreadable is not None and unreadable[0]
    assert not flagged or values[0] is None
    return INVALID if flagged else values[0]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("1", 1.0), ("-1.5", -1.5), ("1e3", 1000.0), ("1E-2", 0.01), ("+7", 7.0), ("007", 7.0)),
        *((".5", 0.5), ("5.", 5.0), (" 5 ", 5.0), ("\t5", 5.0), ("9007199254740993", 2.0**53)),
        *(("1e-400", 0.0), ("0.1", 0.1), ("123456789012345678901234567890", 1.2345678901234568e29)),
    ],
)
def test_text_that_spells_a_number_is_that_number(text: str, number: float) -> None:
    assert read(text, "float") == number


@pytest.mark.parametrize("column", ["float", "int", "decimal(5,2)", "bool"])
@pytest.mark.parametrize("text", [None, ""])
def test_null_and_empty_text_are_no_reading(text: str | None, column: str) -> None:
    assert read_values(pl.Series("v", [text], dtype=pl.String), kind(column)).values[0] is None
    assert read_values(pl.Series("v", [text], dtype=pl.String), kind(column)).is_unreadable is None


@pytest.mark.parametrize("text", ["nan", "NaN", "NAN", "-nan", "+NaN", " nan "])
def test_nan_in_any_case_is_no_reading(text: str) -> None:
    number = read(text, "float")
    assert isinstance(number, float)
    assert isnan(number)
    for column in ("int", "decimal(5,2)", "bool"):
        assert read(text, column) is None


@pytest.mark.parametrize("column", ["float", "int", "decimal(38,0)"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "inf",
            "-Infinity",
            "INF",
            "true",
            "False",
            "n/a",
            "--",
            "1,5",
            "1_000",
            "0x1F",
            "1e",
            ".",
        ),
        *("[1]", '{"mV":3}', " ", "1 2", "1d", "null", "\N{ARABIC-INDIC DIGIT ONE}"),
    ],
)
def test_what_is_no_finite_number_is_invalid(text: str, column: str) -> None:
    assert read(text, column) is INVALID


def test_a_number_too_great_for_a_float_is_infinite_and_so_invalid() -> None:
    assert read("1e400", "float") is INVALID
    assert read("-" + "9" * 400, "float") is INVALID


@pytest.mark.parametrize("text", ["-0.0", "-0", "-1e-400"])
def test_minus_zero_is_zero(text: str) -> None:
    number = read(text, "float")
    assert isinstance(number, float)
    assert copysign(1, number) == 1
    assert read(text, "decimal(5,2)") in {Decimal(0), INVALID}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("3", 3), ("1.0", 1), ("1e3", 1000), ("1.50e1", 15), ("5.", 5), ("-0.0", 0), ("+7", 7)),
        *(("9007199254740993", 2**53 + 1), ("9007199254740993.0", 2**53 + 1)),
        *(("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63))),
        ("-9223372036854775808.000", -(2**63)),
    ],
)
def test_whole_numbers_fit_an_int_exactly_however_they_are_written(text: str, number: int) -> None:
    assert read(text, "int") == number


@pytest.mark.parametrize(
    "text", ["1.5", "1e-1", "9223372036854775808", "-9223372036854775809", "1e19", "1e999999999"]
)
def test_a_fraction_and_what_leaves_int64_do_not_fit_an_int(text: str) -> None:
    assert read(text, "int") is INVALID


@pytest.mark.parametrize(
    ("text", "column", "number"),
    [
        ("1.10", "decimal(5,1)", "1.1"),
        ("999.99", "decimal(5,2)", "999.99"),
        ("-999.990000", "decimal(5,2)", "-999.99"),
        ("00001.5", "decimal(2,1)", "1.5"),
        ("1e2", "decimal(3,0)", "100"),
        ("1.25e1", "decimal(3,1)", "12.5"),
        (".5", "decimal(2,2)", "0.5"),
        ("0.25", "decimal(2,2)", "0.25"),
        ("9" * 38, "decimal(38,0)", "9" * 38),
        ("0." + "9" * 38, "decimal(38,38)", "0." + "9" * 38),
    ],
)
def test_decimals_are_exact(text: str, column: str, number: str) -> None:
    assert read(text, column) == Decimal(number)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        *(("1.101", "decimal(5,2)"), ("1000", "decimal(5,2)"), ("1e3", "decimal(5,2)")),
        *(("1", "decimal(2,2)"), ("0.001", "decimal(2,2)"), ("1" + "0" * 38, "decimal(38,0)")),
        ("1e-40", "decimal(38,38)"),
    ],
)
def test_a_decimal_that_needs_more_digits_than_declared_does_not_fit(
    text: str, column: str
) -> None:
    assert read(text, column) is INVALID


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("true", True), ("false", False), ("True", True), ("FALSE", False), (" true", True)),
        *(("1", True), ("0", False), ("1.0", True), ("-0", False), ("2", INVALID)),
        *(("yes", INVALID), ("t", INVALID), ("inf", INVALID), ("-1", INVALID)),
    ],
)
def test_a_bool_is_true_or_false_or_the_number_it_counts_as(text: str, value: object) -> None:
    assert read(text, "bool") is value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back_to_the_bit(number: float) -> None:
    assert read(repr(number), "float") == number


@given(st.integers(-(2**70), 2**70), st.integers(0, 3))
def test_every_int_is_read_exactly_or_not_at_all(number: int, zeros: int) -> None:
    text = f"{number}.{'0' * zeros}" if zeros else str(number)
    assert read(text, "int") == (number if -(2**63) <= number < 2**63 else INVALID)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-2000, max_value=2000)
)
@settings(max_examples=200)
def test_every_decimal_fits_or_does_not(number: Decimal) -> None:
    fits = abs(number) < 1000 and number == round(number, 2)
    assert read(f"{number:f}", "decimal(5,2)") == (number if fits else INVALID)


@given(st.from_regex(r"\A[+-]?[0-9]{0,5}\.?[0-9]{0,5}(e[+-]?[0-9]{1,2})?\Z"))
def test_numerals_are_the_numbers_python_reads(text: str) -> None:
    try:
        expected = Fraction(text)
    except ValueError:
        assert numeral(text) is None
        return
    number = numeral(text)
    assert number is not None
    sign = -1 if number.negative else 1
    assert sign * int(number.digits or "0") * Fraction(10) ** number.exponent == expected
    assert number.floor_scaled(3, 400) == expected * 1000 // 1


def test_a_column_is_judged_cell_by_cell() -> None:
    texts = ["1", None, "x", "", "nan", "inf", "2.5"]
    values, unreadable = read_values(pl.Series("v", texts), kind("float"))
    assert [None if v is None or isnan(v) else v for v in values] == [1, *[None] * 5, 2.5]
    assert unreadable is not None
    assert unreadable.to_list() == [False, False, True, False, False, True, False]


def test_typed_columns_keep_their_numbers() -> None:
    assert read(3, "int") == 3
    assert read(3, "float") == 3.0
    assert read(2.0, "int") == 2
    assert read(2.5, "int") is INVALID
    assert read(float("inf"), "float") is INVALID
    assert read(Decimal("1.10"), "decimal(3,1)") == Decimal("1.1")
    assert read(Decimal("1.15"), "decimal(3,1)") is INVALID
    assert read(True, "bool") is True
    assert read(True, "float") is INVALID
    assert read(1, "bool") is True
    nan = read(float("nan"), "float")
    assert isinstance(nan, float)
    assert isnan(nan)
    assert not isinf(nan)
