"""Compensated sums equal the plain loop, bit by bit, for groups of any shape."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_windows import neumaier

from transforms.exact.compensated import group_sums

LARGEST = np.finfo(np.float64).max


def sums(*groups: list[float]) -> list[float]:
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    values = np.array([value for group in groups for value in group], dtype=np.float64)
    found: npt.NDArray[np.float64] = group_sums(values, np.cumsum(sizes) - sizes, sizes)
    return found.tolist()


@pytest.mark.parametrize(
    "group", [[1e16, 1.0, -1e16], [1e16, -1e16, 1.0], [1.0, 1e16, -1e16], [-1e16, 1.0, 1e16]]
)
def test_what_a_plain_sum_loses_is_kept_in_whatever_order(group: list[float]) -> None:
    assert sums(group) == [1.0]


def test_tenths_add_up_to_the_nearest_float() -> None:
    assert sums([0.1] * 10) == [1.0]


def test_no_groups_give_no_sums() -> None:
    assert sums() == []


def test_a_sum_of_one_value_is_the_value() -> None:
    assert sums([0.1], [-5e-324], [LARGEST]) == [0.1, -5e-324, LARGEST]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_total_beyond_float64_is_infinite_and_never_nan(sign: float) -> None:
    huge = sign * LARGEST
    assert sums([huge, huge, -huge], [1.0]) == [sign * math.inf, 1.0]
    assert sums([huge] * 9, [huge, huge, 1.0, -huge, -huge]) == [sign * math.inf] * 2


def test_a_zero_is_never_negative() -> None:
    assert [math.copysign(1, total) for total in sums([0.0], [1.0, -1.0], [-1.0, 1.0])] == [1] * 3


floats = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(floats, min_size=1, max_size=30), max_size=40))
def test_sums_are_those_of_the_plain_loop(groups: list[list[float]]) -> None:
    assert [x.hex() for x in sums(*groups)] == [neumaier(group).hex() for group in groups]


@pytest.mark.parametrize(
    "sizes",
    [
        *([4000], [1] * 4000, [3000, *[2] * 500], [700, 650, 1, 2, 640]),
        [1 + n % 50 for n in range(300)],
    ],
)
def test_long_and_short_groups_are_summed_alike(sizes: list[int]) -> None:
    noise = np.random.default_rng(3)
    groups = [(noise.normal(size=n) * 10.0 ** noise.integers(-9, 9, n)).tolist() for n in sizes]
    assert sums(*groups) == [neumaier(group) for group in groups]


def test_the_neighbours_of_a_group_do_not_change_its_sum() -> None:
    group = [0.1, 1e9, -3.7, 1e-9]
    alone = sums(group)
    assert sums([5.0] * 40, group, [1e300]) == [200.0, *alone, 1e300]
