"""The digest of rows: stable, independent of order and cut, and different for different rows."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.digest import (
    DigestSum,
    SplitSum,
    digest_texts,
    group_digests,
    hash_rows,
    row_lanes,
)

SCHEMA = {
    "key": pl.String,
    "event_us": pl.Int64,
    "level": pl.Float64,
    "cost": pl.Decimal(38, 2),
    "on": pl.Boolean,
}
COLUMNS = tuple(SCHEMA)
ROW: dict[str, Any] = {
    "key": "A",
    "event_us": 1,
    "level": 0.1,
    "cost": Decimal("1.10"),
    "on": True,
}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA)


def lanes(**changes: Any) -> tuple[int, int]:
    return row_lanes(frame(ROW | changes), COLUMNS).row(0)


def text_lanes(text: str | None) -> tuple[int, int]:
    return row_lanes(pl.DataFrame({"text": [text]}, schema={"text": pl.String}), ["text"]).row(0)


def test_the_scheme_is_pinned() -> None:
    rows = frame(
        ROW,
        ROW | {"key": "eine lange Schlüsselform", "level": math.nan, "cost": Decimal("-0.01")},
        dict.fromkeys(COLUMNS),
    )
    pinned = "lw1:3:000000012d81f24f5a7d34cf:00000000ede4ad34c64aebb0"
    assert str(DigestSum.of(rows, COLUMNS)) == pinned


def test_the_digest_of_nothing_is_all_zeros() -> None:
    zeros = "0" * 24
    assert str(DigestSum()) == f"lw1:0:{zeros}:{zeros}"
    assert DigestSum.of(frame(), COLUMNS) == DigestSum()


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("key", ["", None, "a", "B", "A\0", "\0A", "AAAAAAAAAAAA", "AAAAAAAAAAAAA", "A" * 2000]),
        ("event_us", [0, None, -1, 2, 2**63 - 1, -(2**63)]),
        ("level", [0.0, None, math.nan, 1.0, -1.0, 5e-324, 1e308]),
        ("cost", [Decimal(0), None, Decimal(1), Decimal(-1), Decimal(2**70), Decimal(-(2**70))]),
        ("on", [False, None]),
    ],
)
def test_every_other_value_gives_other_lanes(column: str, values: list[Any]) -> None:
    found = [lanes(), *(lanes(**{column: value}) for value in values)]
    for lane in zip(*found, strict=True):
        assert len(set(lane)) == len(found)


def test_the_two_lanes_differ() -> None:
    assert len(set(lanes())) == 2


def test_minus_zero_is_zero_and_all_nans_are_one() -> None:
    assert lanes(level=-0.0) == lanes(level=0.0)
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    assert lanes(level=odd[0]) == lanes(level=odd[1]) == lanes(level=math.nan)


def test_values_that_change_places_change_the_lanes() -> None:
    rows = pl.DataFrame({"a": [1, 2], "b": [2, 1]})
    assert row_lanes(rows, ["a", "b"]).row(0) == row_lanes(rows, ["b", "a"]).row(1)
    assert row_lanes(rows, ["a", "b"]).row(0) != row_lanes(rows, ["a", "b"]).row(1)


def test_texts_that_move_between_columns_change_the_lanes() -> None:
    rows = pl.DataFrame({"a": ["ab", "a"], "b": ["c", "bc"]})
    assert row_lanes(rows, ["a", "b"])["lane_0"].n_unique() == 2


@pytest.mark.parametrize("size", [12, 13, 16, 20, 21, 1027, 1028, 1029, 5000])
def test_every_byte_of_a_text_counts(size: int) -> None:
    text = "x" * size
    changed = [text[:n] + "y" + text[n + 1 :] for n in {0, 3, 4, 11, size // 2, size - 1}]
    found = [text_lanes(each) for each in (text, text[1:], text + "x", *changed)]
    assert len({lane for each in found for lane in each}) == 2 * len(found)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | st.text(max_size=40), min_size=1, max_size=20), st.data())
def test_a_text_has_its_lanes_wherever_it_stands(texts: list[str | None], data: Any) -> None:
    rows = pl.DataFrame({"text": texts}, schema={"text": pl.String})
    alone = [text_lanes(text) for text in texts]
    assert row_lanes(rows, ["text"]).rows() == alone
    start = data.draw(st.integers(0, len(texts)))
    assert row_lanes(rows[start:], ["text"]).rows() == alone[start:]


def many(count: int) -> pl.DataFrame:
    noise = np.random.default_rng(5)
    values = {
        "key": [None if n % 11 == 0 else f"sensor-{n % 7}" * (n % 4) for n in range(count)],
        "event_us": noise.integers(-(2**62), 2**62, count).tolist(),
        "level": noise.normal(size=count).tolist(),
        "cost": [None if n % 5 == 0 else Decimal(n) for n in range(count)],
        "on": [None if n % 3 == 0 else n % 2 == 0 for n in range(count)],
    }
    return pl.DataFrame(values, schema=SCHEMA)


def test_lanes_depend_neither_on_the_block_nor_on_the_chunks_of_a_frame() -> None:
    rows = many(70_000)
    whole = row_lanes(rows, COLUMNS)
    for part in (slice(0, 10), slice(65_530, 65_545), slice(69_990, None)):
        assert row_lanes(rows[part], COLUMNS).equals(whole[part])
    chunks = pl.concat([rows[:7], rows[7:65_537], rows[65_537:]], rechunk=False)
    assert row_lanes(chunks, COLUMNS).equals(whole)


def test_a_digest_does_not_depend_on_the_order_and_adds_up() -> None:
    rows = many(1000)
    whole = DigestSum.of(rows, COLUMNS)
    assert DigestSum.of(rows.sample(fraction=1, shuffle=True, seed=1), COLUMNS) == whole
    assert DigestSum.of(rows[:300], COLUMNS) + DigestSum.of(rows[300:], COLUMNS) == whole
    assert whole.count == 1000


def test_equal_pairs_do_not_cancel() -> None:
    p, q = frame(ROW, ROW), frame(ROW | {"event_us": 2}, ROW | {"event_us": 2})
    assert DigestSum.of(p, COLUMNS) != DigestSum.of(q, COLUMNS)


def test_the_digests_of_groups_are_those_of_their_rows() -> None:
    rows = many(1000)
    first, size = np.array([0, 1, 400]), np.array([1, 399, 600])
    found = group_digests(hash_rows(rows, COLUMNS), first, size).to_list()
    parts = [rows[:1], rows[1:400], rows[400:]]
    assert found == [str(DigestSum.of(part, COLUMNS)) for part in parts]


def test_a_sum_of_the_greatest_lanes_is_exact() -> None:
    greatest = np.full(5, 2**64 - 1, dtype=np.uint64)
    half = np.array([5 * (2**32 - 1)], dtype=np.uint64)
    text = digest_texts(pl.Series([5]), *[SplitSum(half, half)] * 2).item()
    assert text == str(DigestSum(5, *[5 * int(greatest[0])] * 2))


def test_a_type_without_a_canonical_form_is_refused() -> None:
    rows = pl.DataFrame({"when": [1.5]}, schema={"when": pl.Float32})
    with pytest.raises(TypeError, match="no canonical words for column 'when' of type Float32"):
        row_lanes(rows, ["when"])
