"""Sums of whole numbers and decimals are exact, and null where they leave their type."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.exact.exact_sums import decimal_sums, whole_sums

MOST = 10**38 - 1


def decimals(*groups: list[int], scale: int = 0) -> list[Decimal | None]:
    values = [Decimal(f"{number}E-{scale}") for group in groups for number in group]
    sizes = np.array([len(group) for group in groups])
    series = pl.Series(values, dtype=pl.Decimal(38, scale))
    found: list[Decimal | None] = decimal_sums(series, np.cumsum(sizes) - sizes, scale).to_list()
    return found


def within_digits(number: int) -> Decimal | None:
    return Decimal(number) if abs(number) <= MOST else None


@pytest.mark.parametrize(
    ("group", "fits"),
    [
        ([MOST], True),
        ([-MOST], True),
        ([MOST, 1], False),
        ([-MOST, -1], False),
        ([MOST, 1, -1], True),
        ([MOST] * 3, False),
        ([-MOST] * 4, False),
        ([MOST] * 7 + [-MOST] * 6, True),
        ([2**63, 2**64 - 1, -1], True),
        ([-(2**64), 2**32], True),
    ],
)
def test_decimals_may_have_38_digits_and_no_more(group: list[int], *, fits: bool) -> None:
    assert decimals(group) == [Decimal(sum(group)) if fits else None]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-MOST, MOST) | st.integers(-9, 9), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_sums_of_decimals_are_exact(groups: list[list[int]]) -> None:
    assert decimals(*groups) == [within_digits(sum(group)) for group in groups]


def test_decimals_keep_their_scale() -> None:
    assert decimals([110, 190], [-1], scale=2) == [Decimal("3.00"), Decimal("-0.01")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=6),
        min_size=1,
        max_size=6,
    )
)
def test_sums_of_whole_numbers_are_exact(groups: list[list[int]]) -> None:
    sizes = np.array([len(group) for group in groups])
    values = np.array([number for group in groups for number in group], dtype=np.int64)
    found = whole_sums(values, np.cumsum(sizes) - sizes)
    totals = [sum(group) for group in groups]
    assert found.series().to_list() == [n if -(2**63) <= n < 2**63 else None for n in totals]
    assert found.floats().tolist() == [float(n) for n in totals]
