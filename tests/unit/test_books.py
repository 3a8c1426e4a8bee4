"""The books show a row that was lost, doubled or altered, in whatever state it ends."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from small_stream import small_spec

from transforms.books import Books, entry, rejected_entry
from transforms.digest import DigestSum
from transforms.schemas import rejected_schema, staged_schema

SPEC = small_spec()
STAGED = pl.DataFrame(
    {
        "seq": [0, 1, 2, 3],
        "key": ["a", "a", "b", "b"],
        "event_us": [5, 6, 7, 8],
        "arrival_us": [10, 11, 12, 13],
        "level": [1.0, None, float("nan"), None],
        "unreadable": [None, None, None, '{"level":"n/a"}'],
    },
    schema=staged_schema(SPEC),
)
REJECTED = pl.DataFrame(
    [(4, 11, "f", 5, "malformed_record", "no JSON", "{broken")],
    schema=rejected_schema(),
    orient="row",
)
ORDERED = STAGED[0:2].drop("unreadable")
HELD = STAGED[2:3].drop("unreadable")
DEAD = STAGED[3:4]
IN = entry(SPEC, STAGED) + rejected_entry(SPEC, REJECTED)


def books_of(ordered: pl.DataFrame, rejected: pl.DataFrame = REJECTED) -> Books:
    ends = {
        "ordered": entry(SPEC, ordered),
        "dead_letters": entry(SPEC, DEAD),
        "duplicates": DigestSum(),
        "rejected": rejected_entry(SPEC, rejected),
        "held": entry(SPEC, HELD),
    }
    return Books(IN, DigestSum(), ends)


def test_books_balance_when_every_row_is_in_one_state() -> None:
    books = books_of(ORDERED)
    assert books.balanced
    assert books.counts == {
        "staged": 5,
        "ordered": 2,
        "dead_letters": 1,
        "duplicates": 0,
        "rejected": 1,
        "held": 1,
    }
    assert books.as_json()["digests"]["staged"] == str(IN)


@pytest.mark.parametrize(
    "fault",
    [
        lambda rows: rows.head(1),
        lambda rows: pl.concat([rows, rows.head(1)]),
        lambda rows: pl.concat([rows.head(1), rows.head(1)]),
        lambda rows: rows.with_columns(pl.col("level") + 1),
        lambda rows: rows.with_columns(pl.col("level").fill_null(0.0)),
        lambda rows: rows.with_columns(pl.col("event_us") + 1),
        lambda rows: rows.with_columns(pl.col("seq").reverse()),
        lambda rows: rows.with_columns(key=pl.lit("b")),
    ],
    ids=["lost", "doubled", "replaced", "value", "null", "time", "swapped", "key"],
)
def test_a_row_lost_doubled_or_altered_shows(fault: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    assert not books_of(fault(ORDERED)).balanced


def test_of_a_rejected_row_the_raw_text_counts() -> None:
    assert not books_of(ORDERED, REJECTED.with_columns(raw=pl.lit("{broken }"))).balanced
    assert books_of(ORDERED, REJECTED.with_columns(reason=pl.lit("missing_key"))).balanced


def test_the_unreadable_text_counts() -> None:
    books = books_of(ORDERED)
    altered = entry(SPEC, DEAD.with_columns(unreadable=pl.lit(None, pl.String)))
    assert not replace(books, ends={**books.ends, "dead_letters": altered}).balanced


def test_rows_held_before_are_on_the_side_of_what_came_in() -> None:
    earlier = HELD.with_columns(pl.col("seq") + 100)
    before = entry(SPEC, earlier)
    ends = books_of(pl.concat([ORDERED, earlier])).ends
    assert Books(IN, before, ends).balanced
    assert not Books(IN, DigestSum(), ends).balanced
    assert Books(IN, before, ends).as_json()["digests"]["held_before"] == str(before)


def test_columns_stand_where_they_will_and_order_does_not_matter() -> None:
    shuffled = ORDERED.reverse().select(reversed(ORDERED.columns))
    assert books_of(shuffled).balanced
