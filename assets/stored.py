"""What checks and reports may read: the valid files of a stream's tables, as data.

Here belongs which files of the lake count (those of complete partitions) and how the partitions
of both axes are told. What is asked of them is in ``expectations``.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.lake_files import UNKNOWN, DataFile
from assets.stores.tables import stored_schema, stream_of
from expectations.stored import Partition, Stored, StoredFile, table_schemas
from transforms import schemas
from transforms.spec import StreamSpec

# The table whose marks say that the partitions of a table are complete; others need none.
_MARKED_BY: Final = {
    schemas.STAGED_EVENTS: schemas.STAGED_SOURCES,
    schemas.REJECTED_ROWS: schemas.STAGED_SOURCES,
    schemas.ORDERED_EVENTS: schemas.WATERMARKS,
    schemas.DEAD_LETTERS: schemas.WATERMARKS,
    schemas.DUPLICATES: schemas.WATERMARKS,
    schemas.HELD_EVENTS: schemas.WATERMARKS,
}


def stored_of(
    lake: Lake,
    spec: StreamSpec,
    axis: Axis,
    partitions: Iterable[str],
    target: pl.DataFrame | None = None,
) -> Stored:
    """Return what is stored of a stream, and the partitions of one axis that are judged."""
    tables = tuple(table_schemas(spec))
    files = {table: lake.files(stream_of(spec, table), table) for table in tables}
    complete = {table: {file.partition for file in files[table]} for table in tables}
    return Stored(
        spec,
        {
            table: _files(
                lake,
                spec,
                table,
                [
                    file
                    for file in files[table]
                    if file.partition in complete[_MARKED_BY.get(table, table)]
                ],
            )
            for table in tables
        },
        judged(axis, partitions),
        target,
        dict(lake.storage_options or {}),
    )


def judged(axis: Axis, partitions: Iterable[str]) -> tuple[Partition, ...]:
    """Return partitions with their bounds, oldest first."""
    return tuple(
        Partition(key, axis.bounds(key).start_us, axis.bounds(key).end_us, axis.previous(key))
        for key in axis.in_order(partitions)
    )


def _files(
    lake: Lake, spec: StreamSpec, table: str, files: Sequence[DataFile]
) -> tuple[StoredFile, ...]:
    location = lake.location(stream_of(spec, table), table)
    has_mark = schemas.MARK in stored_schema(spec, table)
    return tuple(
        StoredFile(
            location.uri(file.path),
            file.partition,
            file.rows - has_mark,
            *file.ranges.get(schemas.EVENT_US, UNKNOWN),
            has_mark,
        )
        for file in files
    )
