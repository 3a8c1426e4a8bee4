"""What one step writes to the lake: several tables of a stream, many partitions, few commits.

Here belongs the protocol of marks. A marked table holds, beside its rows, one row for every shard
of a partition with ``mark`` set and all else null: a JSON text that says what the partition was
made from. The mark is withdrawn before the first table of its partition is replaced and set after
the last, so that a half-written partition is absent, not mixed. What a mark says is in ``marks``.

Files are written at once and cost no memory until ``flush``, which commits a whole chunk; until
then only this unit sees them. Rows equal to those stored are not written again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import polars as pl

from assets.stores.lake import Change, Lake, Slot, select
from assets.stores.lake_files import DataFile, Span
from assets.stores.table_view import TableView
from transforms.schemas import MARK, Frame

# A chunk is committed when it holds so many rows or slots.
CHUNK_ROWS: Final = 2_000_000
CHUNK_SLOTS: Final = 512

Schemas = Callable[[str], pl.Schema]


@dataclass
class UnitOfWork:
    """The tables of a stream as they will be after the next commit.

    ``marked`` is the table that carries the marks of what is written here. ``schemas`` gives the
    schema of the frames of a table; ``shards`` is the number of shards of a partition; ``shared``
    names the stream of those tables that are another one's, and only read here.
    """

    lake: Lake
    stream: str
    marked: str
    schemas: Schemas
    shards: int = 1
    chunk_rows: int = CHUNK_ROWS
    shared: Mapping[str, str] = field(default_factory=dict)
    _views: dict[str, TableView] = field(default_factory=dict, repr=False)

    def partitions(self, table: str) -> set[str]:
        """Return the partitions of a table that have a file, those of this unit among them.

        Only in the marked tables does every complete partition have one.
        """
        return {file.partition for file in self._view(table).files()}

    def rows(self, table: str) -> dict[str, int]:
        """Return how many rows each partition of a table has, marks among them."""
        counts: dict[str, int] = {}
        for file in self._view(table).files():
            counts[file.partition] = counts.get(file.partition, 0) + file.rows
        return counts

    def reach(self, table: str, span: Span) -> int:
        """Return how many rows the files have that a span makes one read."""
        return sum(file.rows for file in self._view(table).files() if file.may_hold([span]))

    def read(
        self,
        table: str,
        *,
        partitions: Collection[str] | None = None,
        shard: int | None = None,
        spans: Sequence[Span] = (),
        where: pl.Expr | None = None,
    ) -> pl.DataFrame:
        """Return rows of a table, without marks, as this unit would commit it.

        They come by partition (in the order of their names), shard and the order written.
        """
        view = self._view(table)
        files = [file for file in view.files(partitions, shard) if file.may_hold(spans)]
        if not files:
            return _without_marks(view.schema.to_frame())
        rows = _without_marks(self._scan(table, files, spans))
        return (rows if where is None else rows.filter(where)).collect()

    def marks(self, table: str, partitions: Collection[str] | None = None) -> dict[str, str]:
        """Return the marks of a marked table by partition; all shards have the same.

        Those not known yet are read at once, so ask for many together.
        """
        view = self._view(table)
        files = [file for file in view.files(partitions, 0) if file.partition not in view.marks]
        if files:
            texts = self._scan(table, files).select(MARK).filter(pl.col(MARK).is_not_null())
            names = (file.partition for file in files)
            view.marks |= dict(zip(names, texts.collect()[MARK], strict=True))
        wanted = view.present if partitions is None else partitions
        return {name: view.marks[name] for name in wanted if name in view.marks}

    def replace(self, table: str, slot: Slot, frame: pl.DataFrame, mark: str | None = None) -> bool:
        """Say what a slot holds from now on; returns whether that is news.

        ``mark`` is given for the marked table alone. A slot without rows has no file: that its
        partition is complete is said by the mark, which is a row.
        """
        view = self._view(table)
        rows = frame if mark is None else _with_mark(frame, mark)
        rows = rows.match_to_schema(view.schema)
        view.touch(slot.partition)
        if mark is not None:
            view.marks[slot.partition] = mark
        if self._is_stored(table, slot, rows):
            return False
        file = self.lake.write(self.stream, table, slot, rows) if rows.height else None
        view.put(slot, file)
        return True

    def withdraw(self, partitions: Collection[str]) -> None:
        """Commit at once that marked partitions are absent, whatever they were made from.

        For work that leaves something behind before its mark is set: cut short, it is done again.
        """
        self.flush()
        files = select(self.lake.files(self.stream, self.marked), partitions, None)
        self._commit(self.marked, Change((), files))

    def finish(self) -> None:
        """Say that a partition is complete, mark and all; a chunk that is full is committed."""
        views = self._views.values()
        slots, rows = sum(view.slots for view in views), sum(view.news for view in views)
        if slots >= CHUNK_SLOTS or rows >= self.chunk_rows:
            self.flush()

    def flush(self) -> None:
        """Commit: marks withdrawn, tables replaced, marks set. Nothing is committed for no news."""
        changes = {table: view.change(self.shards) for table, view in self._views.items()}
        marks = changes.pop(self.marked, Change())
        touched = {
            file.partition
            for change in changes.values()
            for file in (*change.added, *change.removed)
        }
        stored = select(self.lake.files(self.stream, self.marked), touched, None)
        kept = [file for file in stored if file not in marks.removed]
        gone = [file for file in marks.removed if file not in stored]
        self._commit(self.marked, Change((), stored))
        for table, change in changes.items():
            self._commit(table, change)
        self._commit(self.marked, Change([*marks.added, *kept], gone))
        self._views.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commit what is left; after an error nothing since the last chunk is seen."""
        if kind is None:
            self.flush()

    def _commit(self, table: str, change: Change) -> None:
        self.lake.commit(self.stream, table, change, self.schemas(table))

    def _is_stored(self, table: str, slot: Slot, rows: pl.DataFrame) -> bool:
        present = self._view(table).of_slot(slot)
        if sum(file.rows for file in present) != rows.height:
            return False
        if not present:
            return True
        return len(present) == 1 and self._scan(table, present).collect().equals(rows)

    def _view(self, table: str) -> TableView:
        """The table as last committed and changed here; one writer per stream, so no one else."""
        if table not in self._views:
            schema, stream = self.schemas(table), self._stream_of(table)
            self.lake.refuse_other_columns(stream, table, schema)
            self._views[table] = TableView.of(schema, self.lake.files(stream, table))
        return self._views[table]

    def _scan(
        self, table: str, files: Iterable[DataFile], spans: Sequence[Span] = ()
    ) -> pl.LazyFrame:
        stream, schema = self._stream_of(table), self._view(table).schema
        return self.lake.read(stream, table, files, schema, spans)

    def _stream_of(self, table: str) -> str:
        return self.shared.get(table, self.stream)


def _without_marks(rows: Frame) -> Frame:
    """Leave out the rows and the column of marks, where there are any."""
    if MARK not in rows.collect_schema().names():
        return rows
    return rows.filter(pl.col(MARK).is_null()).drop(MARK)


def _with_mark(frame: pl.DataFrame, mark: str) -> pl.DataFrame:
    row = frame.clear(1).with_columns(pl.lit(mark).alias(MARK))
    return pl.concat([row, frame.with_columns(pl.lit(None, pl.String).alias(MARK))])
