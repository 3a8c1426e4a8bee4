"""Staging: the rows of an arrival partition, taken from the source once, numbered, and kept.

Here belongs how source files become ``staged_events`` and ``rejected_rows``, partition by
partition, and what is noted of them (``staged_sources``): which files, and their digests as they
were read. How a file is read is in ``stores.sources``; what a row means is in
``transforms.staging``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import dagster as dg
import polars as pl

from assets.catalogue import (
    asset_spec,
)
from assets.metadata import ROWS, Metadata, lateness, row_counts
from assets.partitions import Axis, Bounds
from assets.steps import Done, Stores, step
from assets.stores.intake import Intake, Piece
from assets.stores.lake import Lake, Slot
from assets.stores.marks import Mark, changes, digest_of
from assets.stores.source_files import SourceFile
from assets.stores.tables import (
    DIGEST,
    FINGERPRINT,
    NAME,
    ORDINAL,
    REJECTED_COUNT,
    STAGED_COUNT,
    by_shard,
    frame_schema,
    unit_of,
)
from assets.stores.unit_of_work import UnitOfWork
from transforms.books import entry, rejected_entry
from transforms.digest import DigestSum
from transforms.errors import LakeError, SourceError
from transforms.judging.keyed import NEVER
from transforms.schemas import (
    ARRIVAL_US,
    PROFILE,
    REASON,
    REJECTED_ROWS,
    SEQ,
    STAGED_EVENTS,
    STAGED_SOURCES,
)
from transforms.spec import StreamSpec
from transforms.staging import FILE_ROWS, first_seq

DESCRIPTIONS: Final = {
    STAGED_EVENTS: "Rows as they arrived: keys, times and values read as declared, numbered once.",
    REJECTED_ROWS: "Rows without a readable key or time, kept whole, with the reason.",
}


@dataclass(frozen=True)
class Staged:
    """What was staged of a partition: rows that were read, and rows that could not be."""

    partition: str
    staged: pl.DataFrame
    rejected: pl.DataFrame

    def figures(self) -> dict[str, Metadata]:
        """Return what the UI shows of the partition, by table."""
        reasons = self.rejected.group_by(REASON).len().sort(REASON).iter_rows()
        return {
            STAGED_EVENTS: {ROWS: self.staged.height, **lateness(self.staged)},
            REJECTED_ROWS: {ROWS: self.rejected.height, **row_counts(dict(reasons))},
        }


def stage(
    spec: StreamSpec, lake: Lake, intake: Intake, axis: Axis, partitions: Sequence[str]
) -> Iterator[Staged]:
    """Stage partitions that follow one another; yields each of them when it is written."""
    refuse_other_cut(spec, lake, axis)
    fed = feeding(intake.survey(), axis, partitions)
    intake.load({file.name: file for files in fed.values() for file in files}.values())
    with unit_of(lake, spec, STAGED_SOURCES) as unit:
        for partition in partitions:
            bounds = _bounds(axis, partition)
            pieces = [
                intake.piece(file, bounds.start_us, bounds.end_us)
                if file.is_present
                else _staged_before(spec, unit, file, partition)
                for file in fed[partition]
            ]
            yield _write(spec, unit, partition, pieces)
            unit.finish()
            intake.forget(piece.file for piece in pieces if piece.file.ends_before(bounds.end_us))


def refuse_other_cut(spec: StreamSpec, lake: Lake, axis: Axis) -> None:
    """Raise LakeError if the lake has partitions that the spec has not: rows would be there twice.

    They are of another grain, or before the start.
    """
    foreign = unit_of(lake, spec, STAGED_SOURCES).partitions(STAGED_SOURCES).difference(axis.keys)
    if foreign:
        raise LakeError(
            f"{spec.name}: the lake has partition {min(foreign)}, and by the spec there is none of "
            f"that name (arrival: grain {spec.arrival.grain}, start {spec.arrival.start}); "
            "keep the lake of another spec apart: give the stream another name, or move its folder "
            "away and run it anew"
        )


def feeding(
    files: Iterable[SourceFile], axis: Axis, partitions: Sequence[str]
) -> dict[str, list[SourceFile]]:
    """Return for each partition of a range the files that may have rows in it, in source order."""
    fed: dict[str, list[SourceFile]] = {partition: [] for partition in partitions}
    for file in files:
        if file.first_us is None or file.last_us is None:
            continue
        for partition in axis.between(axis.key_of(file.first_us), axis.key_of(file.last_us)):
            if partition in fed:
                fed[partition].append(file)
    return fed


def digest_of_sources(files: Iterable[SourceFile]) -> str:
    """Return what the files of a partition are: a digest of their names and contents."""
    return digest_of(*(text for file in files for text in (file.name, file.fingerprint)))


def _bounds(axis: Axis, partition: str) -> Bounds:
    """The arrivals of a partition: the first one has what came before it, too."""
    bounds = axis.bounds(partition)
    return bounds if axis.previous(partition) else Bounds(int(NEVER), bounds.end_us)


def _staged_before(spec: StreamSpec, unit: UnitOfWork, file: SourceFile, partition: str) -> Piece:
    """Return what a partition has of a file that is gone from the source."""
    mark = unit.marks(STAGED_SOURCES, [partition]).get(partition)
    if mark is None or changes(spec, Mark.read(mark)):
        raise SourceError(
            f"{file.name}: the file is gone, and partition {partition} needs its rows; put it "
            "back, or put an empty file in its place to do without them"
        )
    first = first_seq(file.ordinal)
    of_file = pl.col(SEQ).is_between(first, first + FILE_ROWS, closed="left")
    staged, rejected = (
        unit.read(table, partitions=[partition]).filter(of_file)
        for table in (STAGED_EVENTS, REJECTED_ROWS)
    )
    return Piece(file, staged, rejected)


def _write(spec: StreamSpec, unit: UnitOfWork, partition: str, pieces: Sequence[Piece]) -> Staged:
    """Write the rows of a partition, shard by shard, and the mark that says what they are."""
    no_rows, no_rejected = (
        frame_schema(spec, table).to_frame() for table in (STAGED_EVENTS, REJECTED_ROWS)
    )
    rejected = pl.concat([no_rejected, *(piece.rejected for piece in pieces)]).sort(SEQ)
    per_piece = [by_shard(spec, piece.staged) for piece in pieces]
    shards = [[parts[shard] for parts in per_piece] for shard in range(spec.shards)]
    staged = [pl.concat([no_rows, *parts]).sort(ARRIVAL_US, SEQ) for parts in shards]
    sources = [_sources(spec, pieces, parts, is_first=not n) for n, parts in enumerate(shards)]
    digests = [text for notes in sources for text in notes[DIGEST]]
    made_from = digest_of(*digests, *(_profiles(rows) for rows in staged))
    mark = Mark.of(spec, made_from, digest_of_sources(piece.file for piece in pieces))
    for shard, rows in enumerate(staged):
        slot = Slot(partition, shard)
        unit.replace(STAGED_EVENTS, slot, rows)
        unit.replace(REJECTED_ROWS, slot, rejected if shard == 0 else no_rejected)
        unit.replace(STAGED_SOURCES, slot, sources[shard], str(mark))
    return Staged(partition, pl.concat(staged), rejected)


def _sources(
    spec: StreamSpec, pieces: Sequence[Piece], rows: Sequence[pl.DataFrame], *, is_first: bool
) -> pl.DataFrame:
    """Note what each file gave to a shard, by count and digest, as it was read.

    Rejected rows have no key; they go with the first shard.
    """
    notes = []
    for piece, staged in zip(pieces, rows, strict=True):
        rejected = piece.rejected if is_first else piece.rejected.clear()
        notes.append(
            {
                NAME: piece.file.name,
                ORDINAL: piece.file.ordinal,
                FINGERPRINT: piece.file.fingerprint,
                STAGED_COUNT: staged.height,
                REJECTED_COUNT: rejected.height,
                DIGEST: str(entry(spec, staged) + rejected_entry(spec, rejected)),
            }
        )
    return pl.DataFrame(notes, schema=frame_schema(spec, STAGED_SOURCES))


def _profiles(rows: pl.DataFrame) -> str:
    """A digest of the profiles of rows, which are not in the books."""
    return str(DigestSum.of(rows, [SEQ, PROFILE])) if PROFILE in rows.columns else ""


def staging_assets(spec: StreamSpec, axis: Axis) -> dg.AssetsDefinition:
    """Return the assets ``staged_events`` and ``rejected_rows`` of a stream."""

    def work(stores: Stores, partitions: Sequence[str]) -> Iterator[Done]:
        for staged in stage(spec, stores.lake, stores.landing.of(spec), axis, partitions):
            yield staged.partition, staged.figures()

    specs = [asset_spec(spec, table, text) for table, text in DESCRIPTIONS.items()]
    return step(spec, "staging", axis, specs, work)
