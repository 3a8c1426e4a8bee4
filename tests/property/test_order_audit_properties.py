import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.order_audit import audit_order
from transforms.ordering.inversions import grouped_inverted_pairs, inverted_pairs, stable_order

SMALL = st.integers(-3, 3)
ANY = st.integers(-(2**63), 2**63 - 1)
VALUES = st.one_of(st.lists(SMALL, max_size=120), st.lists(ANY, max_size=120))
ROWS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.none() | SMALL), max_size=60)


def compared_one_by_one(values: list[int]) -> tuple[int, int]:
    """Count inverted and tied pairs by looking at each pair."""
    pairs = [(a, b) for place, a in enumerate(values) for b in values[place + 1 :]]
    return sum(a > b for a, b in pairs), sum(a == b for a, b in pairs)


@given(VALUES)
def test_the_count_is_that_of_a_comparison_of_each_pair(values: list[int]) -> None:
    order = stable_order(np.array(values, dtype=np.int64))
    assert inverted_pairs(order) == compared_one_by_one(values)[0]


@given(VALUES)
def test_a_stable_order_sorts_and_keeps_the_order_of_equals(values: list[int]) -> None:
    order = stable_order(np.array(values, dtype=np.int64)).tolist()
    assert order == sorted(range(len(values)), key=lambda place: (values[place], place))


@settings(max_examples=25)
@given(st.integers(41, 4_000), st.integers(1, 5_000), st.integers(0, 2**32 - 1))
def test_long_sequences_agree_with_a_merge_sort(count: int, distinct: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, distinct, count)
    assert inverted_pairs(stable_order(values)) == merged(values.tolist())[0]


def merged(values: list[int]) -> tuple[int, list[int]]:
    """Count inversions by merge sort."""
    if len(values) < 2:
        return 0, values
    left_count, left = merged(values[: len(values) // 2])
    right_count, right = merged(values[len(values) // 2 :])
    both = np.searchsorted(left, right, side="right")
    crossing = len(left) * len(right) - int(both.sum())
    return left_count + right_count + crossing, sorted(left + right)


@given(st.lists(st.lists(SMALL, max_size=90), max_size=8))
def test_groups_of_any_sizes_are_counted_each_for_itself(groups: list[list[int]]) -> None:
    orders = [stable_order(np.array(group, dtype=np.int64)) for group in groups]
    joined = np.concatenate([*orders, np.empty(0, dtype=np.int64)])
    counts = grouped_inverted_pairs(joined, np.array([len(o) for o in orders], dtype=np.int64))
    assert counts.tolist() == [compared_one_by_one(group)[0] for group in groups]


@given(ROWS)
def test_an_audit_agrees_with_a_comparison_of_each_pair(rows: list[tuple[str, int]]) -> None:
    frame = pl.DataFrame(rows, schema={"key": pl.String, "at": pl.Int64}, orient="row")
    (column,) = audit_order(frame, key=["key"], order=["at"]).columns
    present = [(key, at) for key, at in rows if at is not None]
    by_key = {key: [at for k, at in present if k == key] for key in "abc"}

    assert (column.rows, column.missing) == (len(present), len(rows) - len(present))
    counted = column.overall
    assert (counted.inverted, counted.tied) == compared_one_by_one([at for _, at in present])
    assert counted.pairs == len(present) * (len(present) - 1) // 2

    each = {key: compared_one_by_one(values) for key, values in by_key.items()}
    assert column.same_key.inverted == sum(inverted for inverted, _ in each.values())
    assert column.same_key.tied == sum(tied for _, tied in each.values())
    assert {k.key: k.inverted for k in column.worst_keys} == {
        key: inverted for key, (inverted, _) in each.items() if inverted
    }


@given(ROWS)
def test_an_example_is_a_pair_that_is_inverted(rows: list[tuple[str, int]]) -> None:
    frame = pl.DataFrame(rows, schema={"key": pl.String, "at": pl.Int64}, orient="row")
    (column,) = audit_order(frame, key=["key"], order=["at"]).columns
    for worst in column.worst_keys:
        pair = worst.example
        assert pair.earlier_row < pair.later_row
        assert rows[pair.earlier_row] == (worst.key, pair.earlier_value)
        assert rows[pair.later_row] == (worst.key, pair.later_value)
        assert pair.earlier_value > pair.later_value
