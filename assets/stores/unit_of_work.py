"""What one step writes to the lake: several tables of a stream, many partitions, few commits.

Here belongs the protocol of marks. A marked table holds, beside its rows, one row for every shard
of a partition with ``mark`` set and all else null: a JSON text that says what the partition was
made from. The mark is withdrawn before the first table of its partition is replaced and set after
the last, so that a half-written partition is absent, not mixed. What a mark says is in ``marks``.

Files are written at once and cost no memory until ``flush``, which commits a whole chunk; until
then only this unit sees them. Rows equal to those stored are not written again.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Self

import polars as pl

from assets.stores.lake import Change, Lake, Slot, select
from assets.stores.lake_files import DataFile, Span
from transforms.schemas import MARK

# A chunk is committed when it holds so many rows or slots.
CHUNK_ROWS: Final = 2_000_000
CHUNK_SLOTS: Final = 512

Schemas = Callable[[str], pl.Schema]


@dataclass
class UnitOfWork:
    """The tables of a stream as they will be after the next commit.

    ``marked`` is the table that carries the marks of what is written here. ``schemas`` gives the
    schema of the frames of a table; ``shards`` is the number of shards of a partition.
    """

    lake: Lake
    stream: str
    marked: str
    schemas: Schemas
    shards: int = 1
    chunk_rows: int = CHUNK_ROWS
    _committed: dict[str, tuple[DataFile, ...]] = field(default_factory=dict, repr=False)
    _pending: dict[str, dict[Slot, DataFile]] = field(default_factory=dict, repr=False)
    _replaced: dict[str, set[str]] = field(default_factory=dict, repr=False)

    def partitions(self, table: str) -> set[str]:
        """Return the partitions of a table, those of this unit among them."""
        return {file.partition for file in self._files(table)}

    def rows(self, table: str) -> dict[str, int]:
        """Return how many rows each partition of a table has, marks among them."""
        counts: dict[str, int] = {}
        for file in self._files(table):
            counts[file.partition] = counts.get(file.partition, 0) + file.rows
        return counts

    def reach(self, table: str, span: Span) -> int:
        """Return how many rows the files have that a span makes one read."""
        return sum(file.rows for file in self._files(table) if file.may_hold([span]))

    def read(
        self,
        table: str,
        *,
        partitions: Collection[str] | None = None,
        shard: int | None = None,
        spans: Iterable[Span] = (),
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Return rows of a table, without marks, as this unit would commit it.

        They come by partition (in the order of their names), shard and the order written.
        """
        rows = self._scan(table, select(self._files(table), partitions, shard), spans)
        rows = rows if where is None else rows.filter(where)
        if MARK not in rows.collect_schema():
            return rows.collect()
        return rows.filter(pl.col(MARK).is_null()).drop(MARK).collect()

    def marks(
        self, table: str, partitions: Collection[str] | None = None, shard: int = 0
    ) -> dict[str, str]:
        """Return the marks of a marked table by partition, as one shard holds them."""
        files = select(self._files(table), partitions, shard)
        rows = self._scan(table, files, ()).filter(pl.col(MARK).is_not_null())
        texts = rows.select(MARK).collect()[MARK]
        return dict(zip((file.partition for file in files), texts, strict=True))

    def replace(self, table: str, slot: Slot, frame: pl.DataFrame, mark: str | None = None) -> bool:
        """Say what a slot holds from now on; returns whether that is news.

        ``mark`` is given for the marked table alone.
        """
        rows = frame if mark is None else _with_mark(frame, mark)
        self._replaced.setdefault(table, set()).add(slot.partition)
        if self._is_stored(table, slot, rows):
            return False
        written = self.lake.write(self.stream, table, slot, rows)
        self._pending.setdefault(table, {})[slot] = written
        return True

    def finish(self) -> None:
        """Say that a partition is complete, mark and all; a chunk that is full is committed."""
        files = [file for slots in self._pending.values() for file in slots.values()]
        if len(files) >= CHUNK_SLOTS or sum(file.rows for file in files) >= self.chunk_rows:
            self.flush()

    def flush(self) -> None:
        """Commit: marks withdrawn, tables replaced, marks set. Nothing is committed for no news."""
        changes = {table: self._change(table) for table in self._replaced}
        marks = changes.pop(self.marked, Change())
        touched = {
            file.partition
            for change in changes.values()
            for file in (*change.added, *change.removed)
        }
        withdrawn = select(self._stored(self.marked), touched, None)
        kept = [file for file in withdrawn if file not in marks.removed]
        self._commit(self.marked, Change((), withdrawn))
        for table, change in changes.items():
            self._commit(table, change)
        gone = [file for file in marks.removed if file not in withdrawn]
        self._commit(self.marked, Change([*marks.added, *kept], gone))
        self._committed.clear()
        self._pending.clear()
        self._replaced.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit what is left; after an error nothing since the last chunk is seen."""
        if kind is None:
            self.flush()

    def _commit(self, table: str, change: Change) -> None:
        self.lake.commit(self.stream, table, change, self._schema(table))

    def _change(self, table: str) -> Change:
        """What has to be committed: the new files, and those they stand for.

        Files of shards that a stream no longer has go with their partition.
        """
        pending = self._pending.get(table, {})
        gone = [
            file
            for file in select(self._stored(table), self._replaced[table], None)
            if Slot(file.partition, file.shard) in pending or file.shard >= self.shards
        ]
        return Change(list(pending.values()), gone)

    def _is_stored(self, table: str, slot: Slot, rows: pl.DataFrame) -> bool:
        present = [file for file in self._files(table) if (file.partition, file.shard) == slot]
        return (
            len(present) == 1
            and present[0].rows == rows.height
            and self._scan(table, present, ()).collect().equals(rows)
        )

    def _stored(self, table: str) -> tuple[DataFile, ...]:
        """The files of the last commit; one writer per stream, so no one else adds any."""
        if table not in self._committed:
            self.lake.refuse_other_columns(self.stream, table, self._schema(table))
            self._committed[table] = self.lake.files(self.stream, table)
        return self._committed[table]

    def _files(self, table: str) -> list[DataFile]:
        pending = self._pending.get(table, {})
        kept = [f for f in self._stored(table) if Slot(f.partition, f.shard) not in pending]
        return sorted([*kept, *pending.values()], key=lambda file: (file.partition, file.shard))

    def _scan(self, table: str, files: Iterable[DataFile], spans: Iterable[Span]) -> pl.LazyFrame:
        return self.lake.read(self.stream, table, files, self._schema(table), spans)

    def _schema(self, table: str) -> pl.Schema:
        return self.schemas(table)


def _with_mark(frame: pl.DataFrame, mark: str) -> pl.DataFrame:
    row = frame.clear(1).with_columns(pl.lit(mark).alias(MARK))
    return pl.concat([row, frame.with_columns(pl.lit(None, pl.String).alias(MARK))])
