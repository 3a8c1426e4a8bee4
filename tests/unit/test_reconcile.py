"""Which revisions reconciliation gives a window, and why; the rows are all that it looks at."""

import polars as pl
import pytest
from small_stream import MINUTE, counted, small_spec, watermark

from transforms.digest import DigestSum
from transforms.publication import current, readable
from transforms.reconcile import Starts, reconcile
from transforms.schemas import window_schema
from transforms.windows import first_publications

SPEC = small_spec()
NOTHING = window_schema(SPEC).to_frame()
FOREVER = 10**9


def published(rows: pl.DataFrame, reached: pl.DataFrame) -> pl.DataFrame:
    return first_publications(SPEC, rows, None, reached)


def brief(revisions: pl.DataFrame) -> list[tuple[int, int, int, str]]:
    """Start in minutes, revision, rows counted, reason."""
    columns = revisions.select(
        pl.col("window_start_us") // MINUTE, "revision", "event_count", "reason"
    )
    return columns.rows()


def test_a_window_that_counts_all_its_rows_needs_nothing() -> None:
    rows = counted((5, 6, None), (65, 66, None))
    history = published(rows, watermark(60))
    assert reconcile(SPEC, rows, history, watermark(60)).is_empty()


def test_a_late_row_gives_the_next_revision_with_all_rows() -> None:
    rows = counted((5, 6, None), (7, 80, 70))
    history = published(rows, watermark(70))
    amended = reconcile(SPEC, rows, history, watermark(70))
    assert brief(history) == [(0, 0, 1, "closed")]
    assert brief(amended) == [(0, 1, 2, "late_rows")]
    assert amended.select("level_sum", "dead_letter_count", "known_at_us").row(0) == (
        *(2.0, 1, 80_000_000),
    )


def test_several_late_rows_of_a_window_give_one_revision() -> None:
    rows = counted((5, 6, None), (7, 80, 70), (8, 81, 70), (9, 82, 70))
    history = published(rows, watermark(70))
    assert brief(reconcile(SPEC, rows, history, watermark(70))) == [(0, 1, 4, "late_rows")]


def test_after_an_amendment_there_is_nothing_left_to_do() -> None:
    rows = counted((5, 6, None), (7, 80, 70))
    history = published(rows, watermark(70))
    history = pl.concat([history, reconcile(SPEC, rows, history, watermark(70))])
    assert reconcile(SPEC, rows, history, watermark(70)).is_empty()


def test_a_row_later_still_gives_one_more_revision() -> None:
    early = counted((5, 6, None), (7, 80, 70))
    history = published(early, watermark(70))
    history = pl.concat([history, reconcile(SPEC, early, history, watermark(70))])
    rows = counted((5, 6, None), (7, 80, 70), (8, 90, 85))
    assert brief(reconcile(SPEC, rows, history, watermark(85))) == [(0, 2, 3, "late_rows")]


def test_a_window_that_only_late_rows_reach_is_published_for_the_first_time() -> None:
    rows = counted((125, 130, None), (65, 131, 120))
    assert brief(reconcile(SPEC, rows, NOTHING, watermark(120))) == [(1, 0, 1, "late_rows")]


def test_a_window_whose_first_publication_was_lost_is_published_as_closed() -> None:
    rows = counted((5, 6, None))
    assert brief(reconcile(SPEC, rows, NOTHING, watermark(60))) == [(0, 0, 1, "closed")]


def test_an_open_window_is_published_by_a_flush_alone() -> None:
    rows = counted((5, 6, None))
    assert reconcile(SPEC, rows, NOTHING, watermark(59)).is_empty()
    flushed = reconcile(SPEC, rows, NOTHING, watermark(59), flushed=True)
    assert brief(flushed) == [(0, 0, 1, "flush")]


def test_a_key_without_a_watermark_has_no_closed_window() -> None:
    rows = counted((5, 6, None))
    assert reconcile(SPEC, rows, NOTHING, watermark(FOREVER, key="b")).is_empty()
    assert reconcile(SPEC, rows, NOTHING, watermark(None)).is_empty()


def test_rows_changed_by_staging_anew_are_restaged() -> None:
    history = published(counted((5, 6, None), (6, 7, None)), watermark(70))
    rows = counted((5, 6, None), (9, 7, None))
    assert brief(reconcile(SPEC, rows, history, watermark(70))) == [(0, 1, 2, "restaged")]


def test_a_window_with_no_rows_left_is_withdrawn() -> None:
    history = published(counted((5, 6, None), (65, 66, None)), watermark(120))
    stone = reconcile(SPEC, counted((65, 66, None)), history, watermark(120))
    assert brief(stone) == [(0, 1, 0, "withdrawn")]
    assert stone.select("window_end_us", "level_count", "level_sum", "known_at_us").row(0) == (
        *(MINUTE, 0, None, None),
    )
    assert stone["input_digest"].to_list() == [str(DigestSum())]
    assert readable(current(pl.concat([history, stone])))["window_start_us"].to_list() == [MINUTE]


def test_a_window_that_is_open_again_is_withdrawn_as_restaged() -> None:
    rows = counted((5, 6, None))
    history = published(rows, watermark(70))
    assert brief(reconcile(SPEC, rows, history, watermark(50))) == [(0, 1, 0, "restaged")]


def test_a_tombstone_stays_until_there_is_something_to_say() -> None:
    rows = counted((5, 6, None))
    history = published(rows, watermark(70))
    history = pl.concat([history, reconcile(SPEC, rows, history, watermark(50))])
    assert reconcile(SPEC, rows, history, watermark(50)).is_empty()
    assert brief(reconcile(SPEC, rows, history, watermark(70))) == [(0, 2, 1, "restaged")]


def test_late_rows_alone_wake_a_withdrawn_window() -> None:
    history = published(counted((5, 6, None)), watermark(70))
    gone = counted().clear()
    history = pl.concat([history, reconcile(SPEC, gone, history, watermark(70))])
    rows = counted((7, 80, 70))
    assert brief(reconcile(SPEC, rows, history, watermark(70))) == [(0, 2, 1, "late_rows")]


def test_the_order_of_the_rows_makes_no_difference() -> None:
    rows = counted((5, 6, None), (7, 80, 70), (65, 66, None))
    history = published(rows, watermark(70))
    backwards = reconcile(SPEC, rows.reverse(), history.reverse(), watermark(70))
    assert backwards.equals(reconcile(SPEC, rows, history, watermark(70)))


def test_overlapping_windows_are_amended_each_for_itself() -> None:
    spec = small_spec("  - {name: hop, length: 1m, every: 30s}")
    rows = counted((12, 13, None), (45, 82, 70), (80, 81, None))
    history = first_publications(spec, rows, None, watermark(70))
    amended = reconcile(spec, rows, history, watermark(70))
    assert amended.select("window_start_us", "revision", "event_count").rows() == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("starts", "minutes"),
    [
        (Starts(None, MINUTE), [0]),
        (Starts(MINUTE, 2 * MINUTE), [1]),
        (Starts(2 * MINUTE, None), [2]),
        (Starts(), [0, 1, 2]),
    ],
)
def test_an_event_partition_touches_its_own_windows_alone(
    starts: Starts, minutes: list[int]
) -> None:
    rows = counted((5, 6, None), (65, 66, None), (125, 126, None))
    amended = reconcile(SPEC, rows, NOTHING, watermark(FOREVER), starts=starts)
    assert [start for start, *_ in brief(amended)] == minutes
    withdrawn = reconcile(
        SPEC, rows.clear(), published(rows, watermark(FOREVER)), watermark(FOREVER), starts=starts
    )
    assert [start for start, *_ in brief(withdrawn)] == minutes


def test_only_changed_windows_are_computed_again_and_to_the_same_bits() -> None:
    rows = counted((5, 6, None), (7, 80, 70), (65, 66, None), (66, 67, None))
    history = published(rows, watermark(150))
    amended = reconcile(SPEC, rows, history, watermark(150))
    assert brief(amended) == [(0, 1, 2, "late_rows")]
    fresh = reconcile(SPEC, rows, NOTHING, watermark(150)).filter(pl.col("window_start_us") == 0)
    same = pl.exclude("revision", "reason")
    assert amended.select(same).equals(fresh.select(same))
