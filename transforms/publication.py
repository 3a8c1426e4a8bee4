"""Which revisions are published: what is new against the stored history, what is current.

Here belongs the bookkeeping of revisions as rows. Why a window needs another revision is found by
``reconcile``; its numbers come from ``aggregate``.
"""

from dataclasses import dataclass

import polars as pl

from transforms.schemas import (
    EVENT_COUNT,
    INPUT_DIGEST,
    PUBLISHED_AT_US,
    REVISION,
    RUN_ID,
    WINDOW_IDENTITY,
)

FIRST_REVISION = 0


@dataclass(frozen=True)
class FirstPublications:
    """First publications against the stored ones.

    ``new`` holds the rows to write. ``unchanged`` counts windows whose stored first publication has
    the same digest. ``differing`` holds those with another digest: nothing is written for them,
    reconciliation decides from all rows.
    """

    new: pl.DataFrame
    unchanged: int
    differing: pl.DataFrame


def compare_first(computed: pl.DataFrame, history: pl.DataFrame) -> FirstPublications:
    """Compare computed first publications with the stored first publications, never later ones."""
    stored = history.filter(pl.col(REVISION) == FIRST_REVISION)
    both = computed.join(
        stored.select(*WINDOW_IDENTITY, INPUT_DIGEST), on=WINDOW_IDENTITY, suffix="_stored"
    )
    equal = pl.col(INPUT_DIGEST) == pl.col(f"{INPUT_DIGEST}_stored")
    return FirstPublications(
        new=computed.join(stored, on=WINDOW_IDENTITY, how="anti"),
        unchanged=both.filter(equal).height,
        differing=both.filter(~equal).select(computed.columns),
    )


def current(history: pl.DataFrame) -> pl.DataFrame:
    """Return the newest revision of every window, tombstones too, sorted by what names a window."""
    return history.sort(*WINDOW_IDENTITY, REVISION).unique(
        WINDOW_IDENTITY, keep="last", maintain_order=True
    )


def readable(revisions: pl.DataFrame) -> pl.DataFrame:
    """Leave out the tombstones."""
    return revisions.filter(pl.col(EVENT_COUNT) > 0)


def stamped(revisions: pl.DataFrame, *, published_at_us: int, run_id: str) -> pl.DataFrame:
    """Say when and by which run revisions are published: the rows of the history."""
    return revisions.with_columns(
        pl.lit(published_at_us, pl.Int64).alias(PUBLISHED_AT_US),
        pl.lit(run_id, pl.String).alias(RUN_ID),
    )
