"""Windows: which rows count in which of them, when they are due, and their first publication.

Here belongs what SEMANTICS says of rows and windows: a row counts in each window that is open when
it arrives, a window is published once when the watermark of its key reaches its end. Where windows
lie is in ``grids``, what is computed of their rows in ``aggregate``; what changes a window after
its publication is the business of reconciliation.
"""

from typing import Final

import numpy as np
import polars as pl

from transforms.calendars import INT64
from transforms.grids import grid_of
from transforms.groups import ORDER, in_order
from transforms.schemas import (
    COUNTED_DEAD_LETTER_REASONS,
    IS_DEAD_LETTER,
    REASON,
    REFUSED_AT_US,
    WATERMARK_US,
    WINDOWS_MISSED,
    WINDOWS_TOTAL,
)
from transforms.spec import StreamSpec

NEVER: Final = int(INT64.min)


def missed_and_total(
    spec: StreamSpec, event_us: pl.Series, watermark_us: pl.Series
) -> pl.DataFrame:
    """Return ``windows_missed`` and ``windows_total`` of rows, one row for each event time.

    Total are the windows that hold the event time, missed those of them that are closed: their end
    is at or before the watermark the row met. A watermark of null (minus infinity) closes none.
    """
    event = event_us.to_numpy()
    watermark = watermark_us.fill_null(NEVER).to_numpy()
    missed, total = np.zeros_like(event), np.zeros_like(event)
    for window in spec.windows:
        closed, all_of_them = grid_of(window).count(event, watermark)
        missed += closed
        total += all_of_them
    return pl.DataFrame({WINDOWS_MISSED: missed, WINDOWS_TOTAL: total})


def counted_rows(ordered: pl.DataFrame, dead_letters: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that windows count, sorted by key, event time and seq.

    They are the ordered rows and the dead letters that were refused for their time or for want of
    room; ``refused_at_us`` is the watermark that such a row met, null where none had come yet.
    """
    accepted = ordered.with_columns(
        pl.lit(False).alias(IS_DEAD_LETTER), pl.lit(None, pl.Int64).alias(REFUSED_AT_US)
    )
    refused = dead_letters.filter(pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS)).with_columns(
        pl.lit(True).alias(IS_DEAD_LETTER), pl.col(WATERMARK_US).alias(REFUSED_AT_US)
    )
    refused = refused.select(accepted.columns)
    if not refused.height:
        return in_order(accepted)
    return in_order(accepted).merge_sorted(in_order(refused), key=ORDER)
