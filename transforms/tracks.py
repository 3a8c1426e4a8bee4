"""Tracks against each other: how far each revision of one was off, and when it came to agree.

Here belongs the comparison of revisions. Which tracks there may be is said in ``spec.tracks``; how
a track is computed differs in nothing from any other stream.
"""

from typing import Final

import polars as pl

from transforms.publication import current
from transforms.schemas import (
    EVENT_COUNT,
    FIRST_EVENT_US,
    KEY,
    KNOWN_AT_US,
    LAST_EVENT_US,
    REASON,
    REVISION,
    WINDOW,
    WINDOW_END_US,
    WINDOW_START_US,
    statistic_schema,
)
from transforms.spec import StreamSpec

TRACK: Final = "track"
AUTHORITATIVE_REVISION: Final = "authoritative_revision"
IS_EQUAL: Final = "is_equal"
EQUAL_AFTER_US: Final = "equal_after_us"
# How a track came to agree, in figures: its windows, and those that were, and are, not equal.
WINDOWS: Final = "windows"
OFF_AT_FIRST: Final = "windows_off_at_first"
OFF_NOW: Final = "windows_off_now"
PUBLISHED: Final = "published"
_FIRST: Final = "first"
_NOW: Final = "now"
_WINDOW: Final = (WINDOW, KEY, WINDOW_START_US, WINDOW_END_US)
_DIFFERENCE: Final = "_difference"
_TRUE: Final = "_true"


def difference_column(published: str) -> str:
    """Return the name of the difference of a published column."""
    return published + _DIFFERENCE


def difference_schema(spec: StreamSpec) -> pl.Schema:
    """Return the columns of a difference: counts are whole numbers, statistics floats."""
    statistics = statistic_schema(spec).items()
    return pl.Schema(
        {
            **dict.fromkeys((TRACK, WINDOW, KEY), pl.String()),
            **dict.fromkeys((WINDOW_START_US, WINDOW_END_US, REVISION), pl.Int64()),
            REASON: pl.String(),
            **dict.fromkeys((KNOWN_AT_US, AUTHORITATIVE_REVISION), pl.Int64()),
            difference_column(EVENT_COUNT): pl.Int64(),
            **{difference_column(name): _kind(name, dtype) for name, dtype in statistics},
            IS_EQUAL: pl.Boolean(),
            EQUAL_AFTER_US: pl.Int64(),
        }
    )


def track_difference(
    spec: StreamSpec, track: str, said: pl.DataFrame, authoritative: pl.DataFrame
) -> pl.DataFrame:
    """Compare every revision of a track with what the authoritative one says of the window now.

    Both frames are histories of windows. A row for each revision: the differences (track less
    authoritative, null where one of them has no number) and whether all that is published of the
    rows is equal, null while the authoritative track has said nothing. ``equal_after_us`` is by how
    much later than for its first revision, on the clock of arrivals, rows had to arrive until the
    track said what it said ever since and is equal; null while it is not. A window that the track
    lacks has one row, without a revision.
    """
    columns = _compared(spec)
    truth = current(authoritative).select(
        *_WINDOW,
        pl.col(REVISION).alias(AUTHORITATIVE_REVISION),
        *(pl.col(name).alias(name + _TRUE) for name in columns),
    )
    both = said.join(truth, on=_WINDOW, how="full", coalesce=True)
    # A window withdrawn by one track and never published by the other is missed by nobody.
    there = pl.col(REVISION).is_not_null() | (pl.col(EVENT_COUNT + _TRUE) > 0)
    compared = both.filter(there).sort(*_WINDOW, REVISION).with_columns(_is_equal(columns))
    return compared.select(_columns_of(spec, track)).match_to_schema(difference_schema(spec))


def _compared(spec: StreamSpec) -> tuple[str, ...]:
    """What is published of the rows themselves, whenever they came."""
    return (EVENT_COUNT, *statistic_schema(spec), FIRST_EVENT_US, LAST_EVENT_US)


def _is_equal(columns: tuple[str, ...]) -> pl.Expr:
    equal = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name + _TRUE)) for name in columns)
    known = pl.col(AUTHORITATIVE_REVISION).is_not_null()
    return pl.when(known).then(equal).alias(IS_EQUAL)


def _columns_of(spec: StreamSpec, track: str) -> list[pl.Expr]:
    kinds = {EVENT_COUNT: pl.Int64(), **statistic_schema(spec)}
    return [
        pl.lit(track).alias(TRACK),
        *(pl.col(name) for name in (*_WINDOW, REVISION, REASON, KNOWN_AT_US)),
        pl.col(AUTHORITATIVE_REVISION),
        *(_difference(name, dtype) for name, dtype in kinds.items()),
        pl.col(IS_EQUAL),
        _equal_after_us().alias(EQUAL_AFTER_US),
    ]


def _difference(name: str, dtype: pl.DataType) -> pl.Expr:
    kind = _kind(name, dtype)
    said, true = pl.col(name).cast(kind), pl.col(name + _TRUE).cast(kind)
    return (said - true).alias(difference_column(name))


def _kind(name: str, dtype: pl.DataType) -> pl.DataType:
    return pl.Int64() if dtype == pl.Int64 and name.endswith("_count") else pl.Float64()


def _equal_after_us() -> pl.Expr:
    """Rows are by window and revision. The last revision that is off is followed by equal ones."""
    off = pl.col(REVISION).filter(~pl.col(IS_EQUAL).fill_null(value=False)).max()
    settled = pl.col(REVISION) > off.fill_null(-1)
    since = pl.col(KNOWN_AT_US).filter(settled).first()
    return (since - pl.col(KNOWN_AT_US).first()).over(_WINDOW)


def convergence(differences: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each track: windows, how many were and are off, the longest way to equality.

    Windows of which the authoritative track has said nothing are left out.
    """
    known = differences.filter(pl.col(IS_EQUAL).is_not_null())
    by_window = known.group_by(TRACK, *_WINDOW, maintain_order=True).agg(
        pl.col(IS_EQUAL).first().alias(_FIRST),
        pl.col(IS_EQUAL).last().alias(_NOW),
        pl.col(EQUAL_AFTER_US).first(),
    )
    return by_window.group_by(TRACK, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias(WINDOWS),
        (~pl.col(_FIRST)).sum().cast(pl.Int64).alias(OFF_AT_FIRST),
        (~pl.col(_NOW)).sum().cast(pl.Int64).alias(OFF_NOW),
        pl.col(EQUAL_AFTER_US).max(),
    )


def largest_differences(differences: pl.DataFrame) -> pl.DataFrame:
    """Return for each track and published column how far it was off at most, and still is."""
    names = [name for name in differences.columns if name.endswith(_DIFFERENCE)]
    sizes = pl.col(names).cast(pl.Float64).abs()
    by_window = differences.group_by(TRACK, *_WINDOW, maintain_order=True)
    parts = [
        by_window.agg(size).group_by(TRACK, maintain_order=True).agg(pl.col(names).max())
        for size in (sizes.first(), sizes.last())
    ]
    first, now = (
        part.unpivot(index=TRACK, variable_name=PUBLISHED, value_name=name)
        for part, name in zip(parts, (_FIRST, _NOW), strict=True)
    )
    both = first.join(now, on=(TRACK, PUBLISHED), maintain_order="left")
    return both.with_columns(pl.col(PUBLISHED).str.strip_suffix(_DIFFERENCE))
