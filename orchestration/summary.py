"""What became of a stream, in figures: counted in the lake, for people and for programs.

Here belong the figures that ``lowwater run`` ends with. They are read from what is stored, so that
a second run that does nothing shows the same ones.
"""

from typing import Any, Final

import polars as pl

from assets.history import History
from assets.partitions import Axis
from assets.quality import PAGE
from assets.reorder import TABLE_OF
from assets.stores.lake import Lake
from assets.stores.lake_files import Span
from assets.stores.tables import REJECTED_COUNT as REJECTED_ROWS_COUNT
from assets.stores.tables import STAGED_COUNT, VERDICT, WINDOWS, unit_of
from assets.stores.unit_of_work import UnitOfWork
from assets.touched import rows_waiting
from orchestration.settings import Settings
from orchestration.targets import target_of
from transforms.durations import HOUR_US
from transforms.reconciling.outcomes import AMENDED, COUNTED, WAITING
from transforms.schemas import (
    AMENDED_WINDOWS,
    COUNTED_DEAD_LETTER_REASONS,
    DEAD_LETTERS,
    EVENT_US,
    HELD,
    IS_LATE,
    KEY,
    ORDERED_EVENTS,
    PUBLISHED_WINDOWS,
    REASON,
    SEQ,
    STAGED,
    STAGED_SOURCES,
    TARGET_PARITY,
    TRACK_DIFFERENCE,
    WATERMARK_US,
    WATERMARKS,
    WINDOWS_MISSED,
    WINDOWS_TOTAL,
)
from transforms.spec import StreamSpec
from transforms.spec.fields import format_instant
from transforms.tracks import PUBLISHED, TRACK, convergence, largest_differences
from transforms.windows import missed_and_total

_NOW: Final = "watermark_now_us"


def summary_of_all(settings: Settings, lake: Lake, spec: StreamSpec) -> dict[str, Any]:
    """Return the figures of a stream; of one with tracks those of each, and how they differ."""
    arrivals, events = Axis.of_arrivals(spec), Axis.of_events(spec)
    all_of = [summary(settings, History(lake, part, events), arrivals) for part in spec.computed]
    if not spec.tracks:
        return all_of[0]
    return {
        "stream": spec.name,
        "balanced": all(figures["balanced"] for figures in all_of),
        "tracks": dict(zip(spec.tracks, all_of, strict=True)),
        "track_difference": track_differences(unit_of(lake, spec, TRACK_DIFFERENCE)),
    }


def track_differences(unit: UnitOfWork) -> dict[str, Any]:
    """Return, by track, how many windows are off the authoritative one, and how far at most."""
    differences = unit.read(TRACK_DIFFERENCE)
    found = {row.pop(TRACK): {**row, "largest": {}} for row in convergence(differences).to_dicts()}
    for row in largest_differences(differences).to_dicts():
        track, published = row.pop(TRACK), row.pop(PUBLISHED)
        if track in found:
            found[track]["largest"][published] = row
    return found


def summary(settings: Settings, history: History, arrivals: Axis) -> dict[str, Any]:
    """Return the figures of a stream as JSON holds them; times are ISO 8601, UTC."""
    spec = history.spec
    unit = unit_of(history.lake, spec, WATERMARKS)
    complete = arrivals.in_order(unit.partitions(WATERMARKS))
    dead = unit.read(DEAD_LETTERS, partitions=frozenset(complete))
    counts = rows_by_state(unit, complete)
    return {
        "stream": spec.name,
        "partitions": {
            "complete": len(complete),
            "first": complete[0] if complete else None,
            "last": complete[-1] if complete else None,
        },
        "counts": counts,
        "balanced": counts[STAGED] == sum(counts[state] for state in TABLE_OF),
        "dead_letters_by_reason": dict(dead.group_by(REASON).len().sort(REASON).iter_rows()),
        "dead_letters_by_outcome": outcomes(history, unit, dead, complete),
        "windows": windows(unit, complete),
        "parity": parity(unit),
        "worst_hour": worst_hour(unit, dead, complete),
        "places": places(settings, spec),
    }


def rows_by_state(unit: UnitOfWork, complete: list[str]) -> dict[str, int]:
    """Return how many rows were staged, and how many are in each state now."""
    sources = unit.read(STAGED_SOURCES, partitions=frozenset(complete))
    staged = sources.select(pl.col(STAGED_COUNT).sum() + pl.col(REJECTED_ROWS_COUNT).sum()).item()
    counts = {STAGED: int(staged)}
    for state, table in TABLE_OF.items():
        rows = unit.rows(table)
        counted = complete[-1:] if state == HELD else complete
        counts[state] = sum(rows.get(partition, 0) for partition in counted)
    return counts


def outcomes(
    history: History, unit: UnitOfWork, dead: pl.DataFrame, complete: list[str]
) -> dict[str, int]:
    """Return how many dead letters are counted, amended or waiting.

    Counted: every window that holds the row counted it when it was first published. Amended: it
    came when one of them was closed, and reconciliation counted it there. Waiting: a window that
    holds it is open or not yet reconciled, or the row is of a kind that no window counts.
    """
    spec = history.spec
    now = unit.read(WATERMARKS, partitions=complete[-1:]).select(
        KEY, pl.col(WATERMARK_US).alias(_NOW)
    )
    rows = dead.join(now, on=KEY, how="left", maintain_order="left")
    closed = missed_and_total(spec, rows[EVENT_US], rows[_NOW])[WINDOWS_MISSED]
    counts = pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS)
    settled = counts & (pl.lit(closed) == pl.col(WINDOWS_TOTAL))
    was_late = pl.col(WINDOWS_MISSED) > 0
    unreconciled = pl.col(SEQ).is_in(rows_waiting(history).implode())
    outcome = (
        pl.when(~settled | (was_late & unreconciled))
        .then(pl.lit(WAITING))
        .when(was_late)
        .then(pl.lit(AMENDED))
        .otherwise(pl.lit(COUNTED))
    )
    found = dict(rows.group_by(outcome.alias("outcome")).len().iter_rows())
    return {name: int(found.get(name, 0)) for name in (COUNTED, AMENDED, WAITING)}


def windows(unit: UnitOfWork, complete: list[str]) -> dict[str, int]:
    """Return how many windows were published when they closed, and how many were amended since."""
    published, amended = (
        int(unit.read(table, partitions=chosen)[WINDOWS].sum())
        for table, chosen in ((PUBLISHED_WINDOWS, frozenset(complete)), (AMENDED_WINDOWS, None))
    )
    return {"published": published, "amended": amended}


def parity(unit: UnitOfWork) -> dict[str, int]:
    """Return how many event partitions have a proof, by what it said."""
    proofs = unit.read(TARGET_PARITY)
    return {str(name): int(count) for name, count in proofs.group_by(VERDICT).len().iter_rows()}


def worst_hour(unit: UnitOfWork, dead: pl.DataFrame, complete: list[str]) -> dict[str, Any] | None:
    """Return the hour of events with most dead letters, and how many of its rows came late."""
    if not dead.height:
        return None
    by_hour = dead.group_by(pl.col(EVENT_US) // HOUR_US * HOUR_US).len()
    hour_us, refused = by_hour.sort(["len", EVENT_US], descending=[True, False]).row(0)
    span = Span(EVENT_US, hour_us, hour_us + HOUR_US - 1)
    columns = [KEY, IS_LATE]
    ordered = unit.read(ORDERED_EVENTS, partitions=frozenset(complete), spans=[span])
    rows = pl.concat(
        [
            ordered.select(columns),
            dead.filter(pl.col(EVENT_US).is_between(span.low_us, span.high_us)).select(columns),
        ]
    )
    return {
        "start": format_instant(hour_us),
        "rows": rows.height,
        "late": int(rows[IS_LATE].sum()),
        "dead_letters": refused,
    }


def places(settings: Settings, spec: StreamSpec) -> dict[str, str]:
    """Return where to look further."""
    return {
        "tables": f"{settings.lake}/{spec.name}",
        "published": target_of(settings, spec).label,
        "logs": str(settings.logs),
        "report": str(settings.reports / spec.name / PAGE),
    }
