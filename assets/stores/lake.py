"""The lake: Delta tables, one per stream and table name, cut into partitions and shards.

Here belong commits, what a table consists of, and reading it under the names of frames. How a file
is written is in ``lake_files``; what belongs together across tables (marks, chunks of partitions)
is in ``unit_of_work``; what a row means is nobody's business here.

A partition of a table is replaced in one commit, and one commit may replace many. The log is that
of the library: time travel, vacuum and other readers work as usual.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import polars as pl
from deltalake import DeltaTable, Schema
from deltalake.exceptions import TableNotFoundError

from assets.stores.lake_files import DataFile, Span, TableLocation, ranges_of_log
from transforms.errors import LakeError
from transforms.schemas import (
    ARRIVAL_PARTITION,
    EVENT_PARTITION,
    SHARD,
    from_stored,
    to_stored,
)

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction

COMMITS_PER_CHECKPOINT: Final = 100
# Small files of an appended partition are made one when there are so many of them.
APPENDED_FILES: Final = 16


class Slot(NamedTuple):
    """A shard of a partition: what is written as one file."""

    partition: str
    shard: int = 0


class Change(NamedTuple):
    """What one commit does to a table: files that come, files that go."""

    added: Collection[DataFile] = ()
    removed: Collection[DataFile] = ()


@dataclass
class Lake:
    """All tables under one root, a folder or a URI with its storage options.

    ``event_tables`` are the names of the tables that are cut by event partition; all others are cut
    by arrival partition.
    """

    root: str
    storage_options: Mapping[str, str] | None = None
    event_tables: Collection[str] = ()
    _open: dict[tuple[str, str], DeltaTable] = field(default_factory=dict, repr=False)

    def location(self, stream: str, table: str) -> TableLocation:
        """Return where a table is, whether it exists or not."""
        column = EVENT_PARTITION if table in self.event_tables else ARRIVAL_PARTITION
        return TableLocation(f"{self.root}/{stream}/{table}", column, self.storage_options)

    def version(self, stream: str, table: str) -> int | None:
        """Return the number of the last commit; None where the table is not there yet."""
        delta = self._delta(stream, table)
        return None if delta is None else delta.version()

    def files(self, stream: str, table: str) -> tuple[DataFile, ...]:
        """Return the files of a table as committed now, by partition and shard."""
        delta = self._delta(stream, table)
        if delta is None:
            return ()
        column = self.location(stream, table).partition_column
        entries = pl.DataFrame(delta.get_add_actions(flatten=True)).to_dicts()
        files = [
            DataFile(
                path=unquote(entry["path"]),  # the log holds URIs
                size=entry["size_bytes"],
                partition=entry[f"partition.{column}"],
                shard=entry[f"partition.{SHARD}"],
                rows=entry["num_records"],
                ranges=ranges_of_log(entry),
            )
            for entry in entries
        ]
        return tuple(sorted(files, key=lambda file: (file.partition, file.shard, file.path)))

    def partitions(self, stream: str, table: str) -> set[str]:
        """Return the partitions that are there, those without rows too."""
        return {file.partition for file in self.files(stream, table)}

    def scan(
        self,
        stream: str,
        table: str,
        *,
        partitions: Collection[str] | None = None,
        shard: int | None = None,
        spans: Iterable[Span] = (),
    ) -> pl.LazyFrame:
        """Return rows under the names of frames, pruned by partition, shard and statistics.

        Rows outside ``spans`` are left out. Raises LakeError where the table does not exist.
        """
        delta = self._delta(stream, table)
        if delta is None:
            raise LakeError(f"the lake {self.root} has no table {table} of {stream}: run it first")
        chosen = select(self.files(stream, table), partitions, shard)
        return self.read(stream, table, chosen, self._schema(stream, table, delta), spans)

    def read(
        self,
        stream: str,
        table: str,
        files: Iterable[DataFile],
        schema: pl.Schema,
        spans: Iterable[Span] = (),
    ) -> pl.LazyFrame:
        """Return the rows of given files; ``schema`` is that of the frame."""
        spans = tuple(spans)
        stored = to_stored(pl.LazyFrame(schema=schema)).collect_schema()
        chosen = [file for file in files if file.may_hold(spans)]
        rows = from_stored(self.location(stream, table).scan(chosen, stored))
        return rows.filter(*(pl.col(s.column).is_between(s.low_us, s.high_us) for s in spans))

    def other_columns(self, stream: str, table: str, schema: pl.Schema) -> list[str]:
        """Return in which columns the frames of a table differ from a schema; none if it is new."""
        delta = self._delta(stream, table)
        present = schema if delta is None else self._schema(stream, table, delta)
        if present == schema:
            return []
        return sorted({n for n, _ in {*present.items()} ^ {*schema.items()}} or {"their order"})

    def refuse_other_columns(self, stream: str, table: str, schema: pl.Schema) -> None:
        """Raise LakeError if a table exists whose frames have other columns."""
        other = self.other_columns(stream, table, schema)
        if other:
            raise LakeError(
                f"{self.location(stream, table).root} has other columns than the spec of {stream} "
                f"now declares ({', '.join(other)}); keep the lake of another spec apart: give "
                "the stream another name, or move its folder away and run it anew"
            )

    def write(self, stream: str, table: str, slot: Slot, frame: pl.DataFrame) -> DataFile:
        """Write a file that no reader sees before it is committed."""
        return self.location(stream, table).write(slot.partition, slot.shard, to_stored(frame))

    def commit(self, stream: str, table: str, change: Change, schema: pl.Schema) -> None:
        """Make a change seen, all of it at once; a table that is not there yet is created."""
        if not change.added and not change.removed:
            return
        delta = self._delta(stream, table) or self._create(stream, table, schema)
        location = self.location(stream, table)
        actions: list[AddAction | RemoveAction] = [
            *(location.added(file) for file in change.added),
            *(location.removed(file) for file in change.removed),
        ]
        delta.create_write_transaction(
            actions, "append", delta.schema(), [location.partition_column, SHARD]
        )

    def replace(self, stream: str, table: str, frames: Mapping[Slot, pl.DataFrame]) -> None:
        """Replace whole slots in one commit. All frames have one schema."""
        gone = [f for f in self.files(stream, table) if Slot(f.partition, f.shard) in frames]
        added = [self.write(stream, table, slot, frame) for slot, frame in frames.items()]
        for frame in frames.values():
            self.commit(stream, table, Change(added, gone), frame.schema)
            break

    def overwrite(self, stream: str, table: str, slot: Slot, frame: pl.DataFrame) -> None:
        """Put a frame in place of a whole table, whatever columns that had, in one commit."""
        delta = self._delta(stream, table) or self._create(stream, table, frame.schema)
        location = self.location(stream, table)
        delta.create_write_transaction(
            [location.added(self.write(stream, table, slot, frame))],
            "overwrite",
            self._layout(stream, table, frame.schema),
            [location.partition_column, SHARD],
        )

    def append(self, stream: str, table: str, frames: Mapping[Slot, pl.DataFrame]) -> None:
        """Add rows to slots in one commit; a slot of many small files becomes one file."""
        present = self.files(stream, table)
        added, gone = list[DataFile](), list[DataFile]()
        for slot, frame in frames.items():
            old = [file for file in present if (file.partition, file.shard) == slot]
            rows = frame
            if len(old) >= APPENDED_FILES:
                stored = self.read(stream, table, old, frame.schema).collect()
                rows = pl.concat([stored, frame])
                gone += old
            added.append(self.write(stream, table, slot, rows))
        for frame in frames.values():
            self.commit(stream, table, Change(added, gone), frame.schema)
            break

    def delete_partitions(self, stream: str, table: str, partitions: Collection[str]) -> None:
        """Take partitions out of a table, in one commit."""
        delta = self._delta(stream, table)
        if delta is not None:
            gone = select(self.files(stream, table), partitions, None)
            self.commit(stream, table, Change((), gone), self._schema(stream, table, delta))

    def prune(self, stream: str, table: str, days: int) -> int:
        """Delete files and log entries that no version of the last days needs; counts the files.

        Nobody may write meanwhile: files that are not committed yet go, too, if they are that old.
        """
        delta = self._delta(stream, table)
        if delta is None:
            return 0
        gone = delta.vacuum(24 * days, dry_run=False, enforce_retention_duration=False, full=True)
        delta.create_checkpoint()
        delta.cleanup_metadata()
        return len(gone)

    def _delta(self, stream: str, table: str) -> DeltaTable | None:
        """The table as it is now; reading the few new entries of its log is cheap."""
        known = self._open.get((stream, table))
        if known is not None:
            known.update_incremental()
            return known
        location = self.location(stream, table)
        try:
            delta = DeltaTable(location.root, storage_options=location.options)
        except TableNotFoundError:
            return None
        self._open[stream, table] = delta
        return delta

    def _create(self, stream: str, table: str, schema: pl.Schema) -> DeltaTable:
        location = self.location(stream, table)
        if location.is_local:
            Path(location.root).mkdir(parents=True, exist_ok=True)
        self._open[stream, table] = delta = DeltaTable.create(
            location.root,
            self._layout(stream, table, schema),
            mode="ignore",
            partition_by=[location.partition_column, SHARD],
            configuration={"delta.checkpointInterval": str(COMMITS_PER_CHECKPOINT)},
            storage_options=location.options,
        )
        return delta

    def _layout(self, stream: str, table: str, schema: pl.Schema) -> Schema:
        """The columns of a table that keeps frames of a schema."""
        stored = to_stored(pl.LazyFrame(schema=schema)).collect_schema()
        cut = {self.location(stream, table).partition_column: pl.String(), SHARD: pl.Int32()}
        return Schema.from_arrow(pl.DataFrame(schema={**stored, **cut}).to_arrow().schema)

    def _schema(self, stream: str, table: str, delta: DeltaTable) -> pl.Schema:
        """The schema of the frames of a table, from its log."""
        stored = pl.DataFrame(pl.Schema(delta.schema().to_arrow()).to_frame()).clear()
        cut = [self.location(stream, table).partition_column, SHARD]
        return from_stored(stored.drop(cut)).schema


def select(
    files: Iterable[DataFile], partitions: Collection[str] | None, shard: int | None
) -> list[DataFile]:
    """Return the files of the partitions and the shard; None stands for all."""
    return [
        file
        for file in files
        if (partitions is None or file.partition in partitions)
        and (shard is None or file.shard == shard)
    ]
