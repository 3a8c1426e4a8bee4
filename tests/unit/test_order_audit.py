from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from transforms.order_audit import OrderAudit, PairCounts, audit_order, in_order_of
from transforms.ordering.inversions import grouped_inverted_pairs, inverted_pairs, stable_order

# Completed, with four workers that claim one job at a time.
DONE_UNKEYED = "1 3 5 4 2 6 8 10 7 11 9 13 15 12 14 18 16 20 17 19 23 21 22 24"
# Begun and completed, with four workers that claim four jobs at a time.
BEGUN_BY_FOURS = "1 5 9 13 6 2 14 7 10 11 15 3 16 12 4 8 17 21 22 18 19 23 24 20"
DONE_BY_FOURS = "5 1 13 6 9 10 14 2 15 11 3 7 16 8 4 12 21 17 18 22 23 19 20 24"
# Claimed, begun (the same) and completed, with a claim that skips an entity in flight.
CLAIMED_KEYED = "1 4 7 10 11 2 5 12 6 8 3 9 13 16 19 14 17 22 20 15 21 18 23 24"
DONE_KEYED = "10 1 4 11 5 7 2 8 6 3 12 13 16 9 19 14 20 15 17 21 22 18 23 24"
IN_ORDER = " ".join(map(str, range(1, 25)))


def audit_of(jobs: str, per_entity: int = 3) -> OrderAudit:
    """Audit jobs 1..n, given in the order in which they came, so many in a row to an entity."""
    came = [int(job) for job in jobs.split()]
    rows = pl.DataFrame(
        {
            "entity": [f"e{job // per_entity + 1}" for job in range(len(came))],
            "came": [came.index(job) for job in range(1, len(came) + 1)],
        }
    )
    return audit_order(rows, key=["entity"], order=["came"])


@pytest.mark.parametrize(
    ("jobs", "inverted", "same_key"),
    [
        (IN_ORDER, 0, 0),
        (DONE_UNKEYED, 17, 8),
        (BEGUN_BY_FOURS, 53, None),
        (DONE_BY_FOURS, 57, 6),
        (CLAIMED_KEYED, 39, 0),
        (DONE_KEYED, 40, 0),
    ],
)
def test_the_known_runs_have_their_known_counts(
    jobs: str, inverted: int, same_key: int | None
) -> None:
    (column,) = audit_of(jobs).columns
    assert (column.overall.inverted, column.overall.pairs) == (inverted, 276)
    assert column.same_key.pairs == 24
    if same_key is not None:
        assert column.same_key.inverted == same_key


@pytest.mark.parametrize(("per_entity", "pairs"), [(1, 0), (3, 24), (8, 84), (24, 276)])
def test_same_key_pairs_follow_how_many_jobs_share_a_key(per_entity: int, pairs: int) -> None:
    (column,) = audit_of(DONE_UNKEYED, per_entity).columns
    assert column.same_key.pairs == pairs


def test_a_keyed_system_is_out_of_order_globally_and_right() -> None:
    audit = audit_of(CLAIMED_KEYED)
    assert audit.columns[0].overall.inverted > 0
    assert audit.same_key_inverted == 0
    assert audit.columns[0].worst_keys == ()


def test_the_worst_key_comes_first_with_the_first_pair_that_went_wrong() -> None:
    (column,) = audit_of(DONE_UNKEYED).columns
    worst = column.worst_keys[0]
    assert (worst.key, worst.rows, worst.inverted, worst.pairs) == ("e6", 3, 2, 3)
    pair = worst.example
    assert (pair.earlier_row, pair.later_row) == (16, 17)  # jobs 17 and 18, which came 18 and 15
    assert (pair.earlier_value, pair.later_value) == (18, 15)
    assert [key.inverted for key in column.worst_keys] == [2, 1, 1, 1, 1]
    assert column.keys_inverted == 7


def audit_values(values: object, keys: str = "", **options: object) -> OrderAudit:
    rows = pl.DataFrame({"at": values})
    rows = rows.with_columns(key=pl.Series(list(keys) or ["k"] * rows.height, dtype=pl.String))
    return audit_order(rows, key=["key"], order=["at"], **options)


def test_equal_values_are_tied_and_not_inverted() -> None:
    (column,) = audit_values([2, 2, 1, 1, 2], keys="abaab").columns
    assert column.overall == PairCounts(pairs=10, inverted=4, tied=4)
    assert column.same_key == PairCounts(pairs=4, inverted=2, tied=2)


def test_a_row_without_a_value_forms_no_pair() -> None:
    (column,) = audit_values([3.0, None, float("nan"), 1.0]).columns
    assert (column.rows, column.missing) == (2, 2)
    assert column.overall == PairCounts(pairs=1, inverted=1, tied=0)
    assert column.worst_keys[0].example.later_row == 3


def test_a_row_without_a_key_forms_no_same_key_pair() -> None:
    rows = pl.DataFrame({"key": [None, "a", None, "a"], "at": [4, 3, 2, 1]})
    audit = audit_order(rows, key=["key"], order=["at"])
    assert audit.keyless == 2
    assert audit.columns[0].overall.inverted == 6
    assert audit.columns[0].same_key == PairCounts(pairs=1, inverted=1, tied=0)


def test_a_key_may_have_several_columns() -> None:
    rows = pl.DataFrame({"a": ["x", "x", "y"], "b": [1, 2, 1], "at": [3, 2, 1]})
    audit = audit_order(rows, key=["a", "b"], order=["at"])
    assert audit.skew.keys == 3
    assert audit.same_key_inverted == 0


@pytest.mark.parametrize(
    "values",
    [
        [2, 10, 9],
        ["2", "10", "9"],
        ["2.5", "10.25", "9e0"],
        [2.5, float("inf"), 9.0],
        ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00-09:00", "2024-01-01T05:00:00+01:00"],
        [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 9, 3)],
        [2**63, 2**64 - 1, 2**63 + 1],
        [-(2**63), 2**63 - 1, 0],
        ["b", "d", "c"],
    ],
    ids=repr,
)
def test_whatever_has_an_order_can_be_audited(values: list[object]) -> None:
    dtype = pl.UInt64 if 2**64 - 1 in values else None
    (column,) = audit_values(pl.Series(values, dtype=dtype)).columns
    assert column.overall.inverted == 1
    assert column.worst_keys[0].example.earlier_row == 1


@pytest.mark.parametrize("height", [0, 1])
def test_no_pair_is_no_disorder(height: int) -> None:
    audit = audit_values(pl.Series([1] * height, dtype=pl.Int64))
    assert audit.columns[0].overall == PairCounts(0, 0, 0)
    assert audit.columns[0].overall.share == 0.0
    assert audit.same_key_inverted == 0


def test_the_skew_tells_what_one_key_costs() -> None:
    skew = audit_values(list(range(8)), keys="aaaabbcd").skew
    assert (skew.keys, skew.heaviest_key, skew.heaviest_rows) == (4, "a", 4)
    assert skew.heaviest_share == 0.5
    assert skew.speed_up(workers=8) == 2.0
    assert skew.speed_up(workers=1) == 1.0
    assert skew.effective_keys == pytest.approx(64 / (16 + 4 + 1 + 1))


def test_with_all_jobs_on_one_key_four_workers_are_one() -> None:
    assert audit_of(IN_ORDER, per_entity=24).skew.speed_up(workers=4) == 1.0
    assert audit_of(IN_ORDER, per_entity=1).skew.speed_up(workers=4) == 4.0


def test_the_skew_follows_a_declared_weight() -> None:
    rows = pl.DataFrame({"key": list("aab"), "at": [1, 2, 3], "seconds": [1.0, 1.0, 6.0]})
    skew = audit_order(rows, key=["key"], order=["at"], weight="seconds").skew
    assert (skew.heaviest_key, skew.heaviest_share) == ("b", 0.75)


def test_rows_are_brought_into_the_order_to_be_kept_as_numbers() -> None:
    rows = pl.DataFrame({"id": ["10", None, "9", "1"], "at": [3, 4, 2, 1]})
    assert in_order_of(rows, "id")["at"].to_list() == [1, 2, 3, 4]


def test_groups_are_counted_each_for_itself() -> None:
    sizes = np.array([0, 3, 1, 50, 2])
    orders = [np.arange(size)[::-1] for size in sizes]
    counted = grouped_inverted_pairs(np.concatenate(orders), sizes)
    assert counted.tolist() == [0, 3, 0, 50 * 49 // 2, 1]


@pytest.mark.parametrize("count", [0, 1, 2, 40, 41, 1_600, 1_601, 1_682, 100_000])
def test_a_reversed_sequence_inverts_every_pair_at_every_size_of_cut(count: int) -> None:
    order = stable_order(np.arange(count)[::-1])
    assert inverted_pairs(order) == count * (count - 1) // 2
