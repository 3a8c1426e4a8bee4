"""Narrow arrays by key: grouping, packing, the running maximum, and the ends of int64."""

import numpy as np
import pytest

from transforms.judging.keyed import (
    FOREVER,
    NEVER,
    Grouped,
    before_each,
    fit_packing,
    group,
    minus,
    running_max,
)


def grouped(*codes: int, keys: int = 3) -> Grouped:
    return group(np.array(codes, np.uint16), keys)


def test_rows_of_a_key_come_together_in_their_own_order() -> None:
    groups = grouped(2, 0, 2, 0)
    assert groups.order.tolist() == [1, 3, 0, 2]
    assert groups.codes.tolist() == [0, 0, 2, 2]
    assert groups.counts.tolist() == [2, 0, 2]
    assert groups.present.tolist() == [0, 2]
    assert groups.starts.tolist() == [0, 2]
    assert groups.ends.tolist() == [1, 3]


def test_more_keys_than_sixteen_bits_are_grouped_alike() -> None:
    codes = np.random.default_rng(7).integers(0, 70_000, 200_000).astype(np.uint32)
    groups = group(codes, 70_000)
    assert np.array_equal(groups.order, np.argsort(codes, kind="stable"))
    assert np.array_equal(groups.codes, np.sort(codes))


def test_no_rows_make_no_groups() -> None:
    groups = grouped()
    assert groups.order.size == groups.starts.size == 0
    assert running_max(groups, np.empty(0, np.int64)).size == 0


@pytest.mark.parametrize(
    "times",
    [[5, -3, NEVER, 7], [NEVER, NEVER], [FOREVER, 0, NEVER], [-(2**62), 2**62], [NEVER + 1, 0], []],
)
def test_packed_words_sort_by_key_then_time_and_give_the_times_back(times: list[int]) -> None:
    event = np.array(times, np.int64)
    packing = fit_packing(2, event)
    low, high = (packing.pack(np.full(event.size, code, np.uint16), event) for code in (0, 1))
    words = np.concatenate([low, high])
    assert np.argsort(words, kind="stable").tolist() == sorted(
        range(words.size), key=lambda i: (i >= event.size, times[i % event.size])
    )
    assert packing.times(high).tolist() == times


def test_a_few_times_of_another_age_are_packed_by_rank_and_the_rest_by_distance() -> None:
    event = np.array([7, -(2**62), 9, 3 - 2**62])
    packing = fit_packing(10_000, event)
    assert packing.outliers.tolist() == [-(2**62), 3 - 2**62]
    assert packing.times(packing.pack(np.zeros(4, np.uint16), event)).tolist() == event.tolist()


def test_a_packing_holds_what_lies_between_the_times_it_was_made_for() -> None:
    packing = fit_packing(1, np.array([3, 9]))
    assert packing.holds(np.array([2, 3, 6, 9, 10])).tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("far", [0, NEVER + 9])
def test_the_running_maximum_starts_anew_with_every_key(far: int) -> None:
    values = np.array([NEVER, 4, 2, 1, far])
    reached = running_max(grouped(0, 0, 0, 1, 1), values)
    assert reached.tolist() == [NEVER, 4, 4, 1, max(1, far)]


def test_before_the_first_row_of_a_key_stands_what_is_carried() -> None:
    before = before_each(grouped(0, 0, 2), np.array([1, 2, 3]), np.array([10, 11, 12]))
    assert before.tolist() == [10, 1, 12]


def test_a_difference_outside_int64_stays_at_its_end() -> None:
    left, right = np.array([NEVER, FOREVER, 5, NEVER]), np.array([1, -1, 3, 0])
    assert minus(left, right).tolist() == [NEVER, FOREVER, 2, NEVER]
    assert minus(np.array([NEVER + 5]), 5).tolist() == [NEVER]
    assert minus(np.array([0, 1]), NEVER).tolist() == [FOREVER, FOREVER]
