"""Replay an arrival log: the transforms one after the other, and nothing else.

Here belongs the order in which they are called for a log that is read at once: parts of the
arrivals, what each of them orders and publishes, one reconciliation at the very end. No Dagster, no
lake, no shared state. The command is in ``orchestration.commands.replay``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from time import time_ns
from typing import Any, Final

import polars as pl

from assets.stores.sources.files import number_on, read_files
from orchestration.replay_files import (
    TABLE_OF_STATE,
    WINDOWS,
    output_directory,
    read_table,
    write_books,
    write_tables,
)
from transforms.books import Books, entry, rejected_entry
from transforms.digest import DigestSum
from transforms.errors import UsageError
from transforms.publication import current, readable, stamped
from transforms.reconcile import reconcile
from transforms.reorder import Outcome, State, advance
from transforms.schemas import (
    ARRIVAL_US,
    DEAD_LETTER,
    DEAD_LETTERS,
    DUPLICATES,
    EVENT_COUNT,
    HELD_EVENTS,
    ORDERED_EVENTS,
    REASON,
    REJECTED,
    REJECTED_ROWS,
    REVISION,
    SEQ,
    WATERMARKS,
    WINDOW_HISTORY,
    dead_letter_schema,
    duplicate_schema,
    ordered_schema,
    row_columns,
    watermark_schema,
    window_schema,
)
from transforms.spec import StreamSpec, load_spec
from transforms.spec.tracks import AUTHORITATIVE
from transforms.windows import counted_rows, first_publications

RUN_ID: Final = "replay"


@dataclass(frozen=True)
class Result:
    """All that a replay makes, as frames by table, and what the reader took in."""

    tables: Mapping[str, pl.DataFrame]
    staged: DigestSum


def replay(
    spec_file: Path,
    inputs: Sequence[str],
    out: Path,
    *,
    cut: int = 1,
    until_us: int | None = None,
    flush: bool = False,
    track: str | None = None,
) -> dict[str, Any]:
    """Replay the log and write the files to ``out``; return the books and a count of windows.

    Raises SpecError, UsageError, SourceError, TargetError.
    """
    spec = _of_track(load_spec(_text(spec_file), file=str(spec_file)), track)
    result = calculate(spec, inputs, cut=cut, until_us=until_us, flush=flush)
    with output_directory(out) as folder:
        write_tables(folder, result.tables, spec.key_parts)
        books = _books(spec, folder, result.staged)
        write_books(folder, books)
    return {**books, "windows": _window_counts(result.tables[WINDOW_HISTORY]), "out": str(out)}


def _of_track(spec: StreamSpec, track: str | None) -> StreamSpec:
    """Return the spec to replay: of a track by its name, else of the authoritative one if any."""
    if track is None:
        return spec.of_track(AUTHORITATIVE) if spec.tracks else spec
    if track not in spec.tracks:
        known = ", ".join(spec.tracks) or "none is declared"
        raise UsageError(f"--track {track}: {spec.name} has no such track; known: {known}")
    return spec.of_track(track)


def _text(spec_file: Path) -> str:
    try:
        return spec_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{spec_file}: the spec cannot be read: {error}") from error


def calculate(
    spec: StreamSpec,
    inputs: Sequence[str],
    *,
    cut: int = 1,
    until_us: int | None = None,
    flush: bool = False,
) -> Result:
    """Read the log and carry it through; ``cut`` parts of equal size, a frontier last."""
    staged, rejected = _read(spec, inputs)
    progress = Progress.start(spec)
    parts = _parts(staged, cut)
    for part in parts[:-1]:
        progress = progress.after(spec, part)
    progress = progress.after(spec, parts[-1], frontier_us=until_us, flush=flush)
    tables = progress.tables(spec, flushed=flush) | {REJECTED_ROWS: rejected}
    return Result(tables, entry(spec, staged) + rejected_entry(spec, rejected))


def _read(spec: StreamSpec, inputs: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return staged rows in arrival order, and rejected rows."""
    reads = list(number_on(read_files(spec, inputs, data_dir=Path())))
    staged = pl.concat([read.staged for read in reads])
    return staged.sort(ARRIVAL_US, SEQ), pl.concat([read.rejected for read in reads])


def _parts(staged: pl.DataFrame, cut: int) -> list[pl.DataFrame]:
    bounds = [staged.height * number // cut for number in range(cut + 1)]
    return [staged[low:high] for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class Progress:
    """What the parts so far gave: rows by state, the state carried on, first publications."""

    ordered: pl.DataFrame
    dead_letters: pl.DataFrame
    duplicates: pl.DataFrame
    state: State
    published: pl.DataFrame

    @classmethod
    def start(cls, spec: StreamSpec) -> "Progress":
        """Nothing has arrived yet."""
        return cls(
            ordered_schema(spec).to_frame(),
            dead_letter_schema(spec).to_frame(),
            duplicate_schema(spec).to_frame(),
            State(watermark_schema().to_frame(), ordered_schema(spec).to_frame()),
            window_schema(spec).to_frame(),
        )

    def after(
        self,
        spec: StreamSpec,
        part: pl.DataFrame,
        *,
        frontier_us: int | None = None,
        flush: bool = False,
    ) -> "Progress":
        """Take one more part of the arrivals."""
        earlier = counted_rows(self.ordered, self.dead_letters).select(row_columns(spec))
        outcome = advance(spec, part, self.state, earlier, frontier_us)
        if flush:
            outcome = _flushed(outcome)
        ordered = pl.concat([self.ordered, outcome.ordered])
        dead_letters = pl.concat([self.dead_letters, outcome.dead_letters])
        published = first_publications(
            spec,
            counted_rows(ordered, dead_letters),
            self.state.watermarks,
            outcome.state.watermarks,
            flush=flush,
        )
        return Progress(
            ordered,
            dead_letters,
            pl.concat([self.duplicates, outcome.duplicates]),
            outcome.state,
            pl.concat([self.published, published]),
        )

    def tables(self, spec: StreamSpec, *, flushed: bool) -> dict[str, pl.DataFrame]:
        """Reconcile, once, and return every table but the rejected rows."""
        counted = counted_rows(self.ordered, self.dead_letters)
        amended = reconcile(spec, counted, self.published, self.state.watermarks, flushed=flushed)
        revisions = pl.concat([self.published, amended])
        return {
            ORDERED_EVENTS: self.ordered,
            DEAD_LETTERS: self.dead_letters,
            DUPLICATES: self.duplicates,
            HELD_EVENTS: self.state.held,
            WATERMARKS: self.state.watermarks,
            WINDOWS: readable(current(revisions)),
            WINDOW_HISTORY: stamped(revisions, published_at_us=time_ns() // 1_000, run_id=RUN_ID),
        }


def _flushed(outcome: Outcome) -> Outcome:
    """Release what is held; the watermarks stay."""
    held = outcome.state.held
    return replace(
        outcome,
        ordered=pl.concat([outcome.ordered, held]),
        state=State(outcome.state.watermarks, held.clear()),
    )


def _books(spec: StreamSpec, folder: Path, staged: DigestSum) -> dict[str, Any]:
    """Balance what was read against the files as they were written."""
    read_back = {state: read_table(folder, table) for state, table in TABLE_OF_STATE.items()}
    ends = {
        state: (rejected_entry if state == REJECTED else entry)(spec, frame)
        for state, frame in read_back.items()
    }
    reasons = {
        f"{state}_by_reason": _by_reason(read_back[state]) for state in (DEAD_LETTER, REJECTED)
    }
    books = Books(staged, DigestSum(), ends).as_json()
    return books | reasons


def _by_reason(rows: pl.DataFrame) -> dict[str, int]:
    return dict(rows.group_by(REASON).len().sort(REASON).iter_rows())


def _window_counts(history: pl.DataFrame) -> dict[str, int]:
    newest = current(history)
    return {
        "current": readable(newest).height,
        "amended": newest.filter(pl.col(REVISION) > 0, pl.col(EVENT_COUNT) > 0).height,
        "withdrawn": newest.filter(pl.col(EVENT_COUNT) == 0).height,
        "revisions": history.height,
    }
