"""First publications against the stored ones, and what is current."""

import polars as pl
from small_stream import counted, small_spec, watermark

from transforms.publication import compare_first, current, readable, stamped
from transforms.schemas import window_history_schema, window_schema
from transforms.windows import first_publications

SPEC = small_spec()
NOTHING = window_schema(SPEC).to_frame()
ROWS = counted((5, 6, None), (65, 66, None), (125, 126, None))
COMPUTED = first_publications(SPEC, ROWS, None, watermark(120))


def test_what_was_never_published_is_new() -> None:
    compared = compare_first(COMPUTED, NOTHING)
    assert compared.new.equals(COMPUTED)
    assert (compared.unchanged, compared.differing.height) == (0, 0)


def test_the_same_again_is_nothing_new() -> None:
    compared = compare_first(COMPUTED, COMPUTED)
    assert compared.new.is_empty()
    assert (compared.unchanged, compared.differing.height) == (2, 0)


def test_it_is_compared_with_the_stored_first_publication_never_with_a_later_revision() -> None:
    amended = COMPUTED.with_columns(revision=pl.lit(1, pl.Int64), input_digest=pl.lit("other"))
    compared = compare_first(COMPUTED, pl.concat([COMPUTED, amended]))
    assert compared.new.is_empty()
    assert (compared.unchanged, compared.differing.height) == (2, 0)


def test_another_digest_is_left_to_reconciliation() -> None:
    stored = COMPUTED.with_columns(input_digest=pl.lit("other"))
    compared = compare_first(COMPUTED, stored)
    assert compared.new.is_empty()
    assert compared.unchanged == 0
    assert compared.differing.equals(COMPUTED)


def test_the_newest_revision_is_current_and_a_tombstone_is_not_readable() -> None:
    stone = COMPUTED.head(1).with_columns(
        revision=pl.lit(1, pl.Int64), event_count=pl.lit(0, pl.Int64)
    )
    newest = current(pl.concat([stone, COMPUTED]))
    assert newest["revision"].to_list() == [1, 0]
    assert readable(newest)["revision"].to_list() == [0]


def test_the_history_says_when_and_by_which_run() -> None:
    rows = stamped(COMPUTED, published_at_us=5, run_id="r")
    assert rows.schema == window_history_schema(SPEC)
    assert rows.select("published_at_us", "run_id").unique().rows() == [(5, "r")]
