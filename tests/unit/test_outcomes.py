"""What became of each dead letter: counted, amended, or waiting with a reason."""

import polars as pl
from small_stream import counted, small_spec, watermark

from transforms.reconcile import reconcile
from transforms.reconciling import outcomes as said
from transforms.reconciling.outcomes import outcomes
from transforms.schemas import window_schema
from transforms.windows import first_publications

SPEC = small_spec()


def dead_letters(rows: pl.DataFrame, reason: str = "late_closed_window") -> pl.DataFrame:
    refused = rows.filter("is_dead_letter")
    return refused.select("seq", "key", pl.lit(reason).alias("reason"))


def outcome_of(
    rows: pl.DataFrame, reached: pl.DataFrame, *, reconciled: bool
) -> list[tuple[str, str]]:
    history = first_publications(SPEC, rows, None, reached)
    if reconciled:
        history = pl.concat([history, reconcile(SPEC, rows, history, reached)])
    found = outcomes(SPEC, dead_letters(rows), rows, history, reached)
    return found.select(said.OUTCOME, said.WHY).rows()


def test_a_row_that_its_open_window_counted_is_counted_once_that_is_published() -> None:
    rows = counted((5, 6, None), (7, 20, 10))
    assert outcome_of(rows, watermark(10), reconciled=True) == [(said.WAITING, said.OPEN)]
    assert outcome_of(rows, watermark(60), reconciled=True) == [(said.COUNTED, said.IN_TIME)]


def test_a_late_row_waits_for_reconciliation_and_is_amended_by_it() -> None:
    rows = counted((5, 6, None), (7, 80, 70))
    assert outcome_of(rows, watermark(70), reconciled=False) == [(said.WAITING, said.UNRECONCILED)]
    assert outcome_of(rows, watermark(70), reconciled=True) == [(said.AMENDED, said.LATE)]


def test_a_row_that_no_window_counts_waits_and_says_why() -> None:
    rows = counted((5, 6, None))
    history = window_schema(SPEC).to_frame()
    refused = pl.DataFrame({"seq": [9, 7, 8], "key": ["a", "a", "b"], "reason": list(said.REFUSED)})
    found = outcomes(SPEC, refused, rows, history, watermark(0))
    assert found["seq"].to_list() == [7, 8, 9]
    assert set(found[said.OUTCOME]) == {said.WAITING}
    assert set(found[said.WHY]) == set(said.REFUSED.values())


def test_a_row_of_several_windows_waits_as_long_as_one_of_them_does() -> None:
    spec = small_spec("  - {name: minute, every: 1m}\n  - {name: ten, every: 10m}")
    rows = counted((5, 6, None), (50, 92, 80))
    history = first_publications(spec, rows, None, watermark(80))
    history = pl.concat([history, reconcile(spec, rows, history, watermark(80))])
    found = outcomes(spec, dead_letters(rows), rows, history, watermark(80))
    assert found[said.WHY].to_list() == [said.OPEN]
    flushed = first_publications(spec, rows, watermark(80), watermark(80), flush=True)
    history = pl.concat([history, flushed])
    found = outcomes(spec, dead_letters(rows), rows, history, watermark(80), flushed=True)
    assert found[said.OUTCOME].to_list() == [said.AMENDED]
