"""Which revisions are published: what is new, what is current, in which batches they are written.

Here belongs the bookkeeping of revisions as rows. Why a window needs another revision is found by
``reconcile``; its numbers come from ``aggregate``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import polars as pl

from transforms.digest import LANE_0, row_lanes
from transforms.schemas import (
    EVENT_COUNT,
    INPUT_DIGEST,
    PUBLISHED_AT_US,
    REVISION,
    RUN_ID,
    WINDOW_IDENTITY,
)

FIRST_REVISION = 0
_LANE = "_lane"


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


class Batch(NamedTuple):
    """Revisions that are written at once. Those of one lane are written one after another."""

    lane: int
    revisions: pl.DataFrame


def batches(
    revisions: pl.DataFrame, *, lanes: int, rows: int, size: Callable[[], int] | None = None
) -> Iterator[Batch]:
    """Cut revisions into batches of at most ``rows``, which different lanes offer in turn.

    A window is always in the same lane, and its revisions stand there in their order: while a lane
    is written in the order given, no revision of a window lands after a newer one, however many
    lanes are written side by side. A few rows are one lane. ``size`` is asked before each batch is
    cut, and takes the place of ``rows`` there.
    """
    return take_turns(in_lanes(revisions, lanes=lanes, rows=rows), size or (lambda: rows))


def in_lanes(revisions: pl.DataFrame, *, lanes: int, rows: int) -> dict[int, pl.DataFrame]:
    """Return the rows of each lane, in the order in which they are written."""
    lanes = min(lanes, -(-revisions.height // max(1, rows // lanes)))
    if not lanes:
        return {}
    lane = (row_lanes(revisions, WINDOW_IDENTITY)[LANE_0] % lanes).alias(_LANE)
    ordered = revisions.with_columns(lane).sort(_LANE, REVISION, maintain_order=True)
    of_lanes = ordered.partition_by(_LANE, as_dict=True, include_key=False, maintain_order=True)
    return {int(name): part for (name,), part in of_lanes.items()}


def take_turns(lanes: Mapping[int, pl.DataFrame], size: Callable[[], int]) -> Iterator[Batch]:
    """Cut a batch from each lane in turn, as long as any of them has rows."""
    pieces = {number: _pieces(rows, size) for number, rows in lanes.items()}
    for turn in zip_longest(*pieces.values()):
        for number, piece in zip(pieces, turn, strict=True):
            if piece is not None:
                yield Batch(number, piece)


def _pieces(rows: pl.DataFrame, size: Callable[[], int]) -> Iterator[pl.DataFrame]:
    at = 0
    while at < rows.height:
        piece = rows.slice(at, size())
        at += piece.height
        yield piece


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
