"""What became of each dead letter: counted, amended, or waiting, and why.

Here belong the outcomes and their wording. Which windows are settled is judged as reconciliation
does, from the same rows and revisions.
"""

from collections.abc import Mapping
from typing import Final

import polars as pl

from transforms.aggregate import with_lanes
from transforms.publication import current
from transforms.reconcile import window_rows
from transforms.reconciling.judgement import CHANGE, IS_DUE, judge
from transforms.schemas import (
    CONFLICTING_DUPLICATE,
    FUTURE_TIMESTAMP,
    INVALID_VALUE,
    IS_DEAD_LETTER,
    KEY,
    REASON,
    REFUSED_AT_US,
    SEQ,
    WINDOW,
    WINDOW_END_US,
    WINDOW_START_US,
)
from transforms.spec import StreamSpec
from transforms.windowing.groups import in_order

OUTCOME: Final = "outcome"
WHY: Final = "why"
COUNTED: Final = "counted"
AMENDED: Final = "amended"
WAITING: Final = "waiting"

# Rows that no window counts: they wait for a person.
REFUSED: Final[Mapping[str, str]] = {
    FUTURE_TIMESTAMP: "its event time is too far ahead of its arrival: the clock was wrong",
    CONFLICTING_DUPLICATE: "another row of its identity came first, with other content",
    INVALID_VALUE: "a value cannot be read as its declared type",
}
UNRECONCILED: Final = "a window that holds it waits for reconciliation"
OPEN: Final = "a window that holds it is still open"
LATE: Final = "reconciliation counted it in every window that was closed when it came"
IN_TIME: Final = "every window that holds it counted it in its first publication"


def outcomes(
    spec: StreamSpec,
    dead_letters: pl.DataFrame,
    counted: pl.DataFrame,
    history: pl.DataFrame,
    watermarks: pl.DataFrame,
    *,
    flushed: bool = False,
) -> pl.DataFrame:
    """Return ``seq``, ``key``, ``reason``, ``outcome`` and ``why`` of each dead letter, by ``seq``.

    ``counted`` and ``history`` hold at least all rows and revisions of the windows of these rows.
    """
    rows = with_lanes(spec, in_order(counted))
    judged = judge(window_rows(spec, rows), current(history), watermarks, flushed=flushed)
    settled = _of_counted(spec, rows.filter(IS_DEAD_LETTER), judged)
    named = dead_letters.select(SEQ, KEY, REASON).join(settled, on=SEQ, how="left")
    return named.select(
        *(SEQ, KEY, REASON),
        pl.col(OUTCOME).fill_null(WAITING),
        pl.col(WHY).fill_null(pl.col(REASON).replace_strict(REFUSED, default=None)),
    ).sort(SEQ)


def _of_counted(spec: StreamSpec, rows: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """Return ``seq``, ``outcome`` and ``why`` of dead letters that windows count."""
    windows = window_rows(spec, rows, columns=(SEQ, REFUSED_AT_US)).join(
        judged.select(WINDOW, KEY, WINDOW_START_US, IS_DUE, CHANGE),
        on=(WINDOW, KEY, WINDOW_START_US),
    )
    unreconciled = (pl.col(IS_DUE) & pl.col(CHANGE).is_not_null()).any()
    is_open = pl.col(IS_DUE).not_().any()
    was_closed = (pl.col(WINDOW_END_US) <= pl.col(REFUSED_AT_US)).fill_null(value=False).any()
    why = (
        pl.when(unreconciled)
        .then(pl.lit(UNRECONCILED))
        .when(is_open)
        .then(pl.lit(OPEN))
        .when(was_closed)
        .then(pl.lit(LATE))
        .otherwise(pl.lit(IN_TIME))
    )
    found = windows.group_by(SEQ).agg(why.alias(WHY))
    outcome = pl.col(WHY).replace_strict({LATE: AMENDED, IN_TIME: COUNTED}, default=WAITING)
    return found.with_columns(outcome.alias(OUTCOME))
