"""What evidence is read from: the files of the lake's tables, opened as DuckDB views.

Here belong the description of what is stored (paths and partitions, given as data) and the views
that every question of ``evidence`` is asked of. How the lake commits is no matter of this folder;
whoever runs the checks says which files are valid.

The views have the columns of frames, instants as int64 microseconds, and a column ``partition``.
``sources``, ``staged``, ``rejected``, ``ordered``, ``dead``, ``duplicates``, ``held``,
``watermarks``, ``windows`` and ``orders`` hold the rows of the judged arrival partitions;
``held_before`` and ``watermarks_before`` the state before each of them; ``history`` and ``proofs``
the revisions, and what was proved, of the judged event partitions. ``judged`` has a row for each
judged partition.
"""
# ruff: noqa: S608 (identifiers and paths are quoted)

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import duckdb
import polars as pl
import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from transforms.schemas import (
    DEAD_LETTERS,
    DUPLICATES,
    HELD_EVENTS,
    MARK,
    ORDER_AUDIT,
    ORDERED_EVENTS,
    REJECTED_ROWS,
    SHARD,
    STAGED_EVENTS,
    STAGED_SOURCES,
    STORED_NAMES,
    TARGET_PARITY,
    WATERMARKS,
    WINDOW_AGGREGATES,
    WINDOW_HISTORY,
    dead_letter_schema,
    duplicate_schema,
    ordered_schema,
    rejected_schema,
    staged_schema,
    to_stored,
    watermark_schema,
    window_history_schema,
    window_schema,
)
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

JUDGED: Final = "judged"
BEFORE: Final = "_before"
# Short names of the views, by table.
VIEWS: Final[Mapping[str, str]] = {
    STAGED_SOURCES: "sources",
    STAGED_EVENTS: "staged",
    REJECTED_ROWS: "rejected",
    ORDERED_EVENTS: "ordered",
    DEAD_LETTERS: "dead",
    DUPLICATES: "duplicates",
    HELD_EVENTS: "held",
    WATERMARKS: "watermarks",
    WINDOW_AGGREGATES: "windows",
    WINDOW_HISTORY: "history",
    ORDER_AUDIT: "orders",
    TARGET_PARITY: "proofs",
}
# What staging notes of each file that gave rows to a partition.
_SOURCES: Final = pl.Schema(
    {
        "name": pl.String(),
        "ordinal": pl.Int64(),
        "staged_rows": pl.Int64(),
        "rejected_rows": pl.Int64(),
    }
)
# What the order audit and the proofs of the target say, as far as it is read here.
_ORDERS: Final = pl.Schema(
    {
        **dict.fromkeys(("order_of", "ordered_by"), pl.String()),
        **dict.fromkeys(("same_key_pairs", "same_key_inverted", "keys"), pl.Int64()),
        "worst_keys": pl.String(),
    }
)
_PROOFS: Final = pl.Schema(
    {
        "verdict": pl.String(),
        **dict.fromkeys(("source_rows", "target_rows"), pl.Int64()),
        "summary": pl.String(),
    }
)


@dataclass(frozen=True)
class Partition:
    """A partition that is judged: [start, end) in microseconds UTC, and the one before it.

    ``is_first`` says that what lies before its start belongs to it too.
    """

    key: str
    start_us: int
    end_us: int
    previous: str | None = None

    @property
    def is_first(self) -> bool:
        """Whether there is no partition before it."""
        return self.previous is None


@dataclass(frozen=True)
class StoredFile:
    """A file of a table: its rows without marks, and bounds of its event times if they are known.

    ``has_mark`` says that a mark stands beside the rows. Its path names its partition, as
    ``arrival_partition=2024-01-01``.
    """

    uri: str
    partition: str
    rows: int
    low_us: int | None = None
    high_us: int | None = None
    has_mark: bool = False

    def may_hold(self, low_us: int, high_us: int) -> bool:
        """Whether an event time in the closed range may be in the file."""
        above = self.high_us is None or self.high_us >= low_us
        return above and (self.low_us is None or self.low_us <= high_us)


@dataclass(frozen=True)
class Stored:
    """A stream as it is stored: the valid files by table, and the partitions to be judged.

    ``target`` holds the current revisions as the target has them, a frame of ``window_schema``;
    None stands for an empty one. ``storage_options`` are those of the lake. ``now_us`` is when they
    are judged; where it is None, nothing is stale.
    """

    spec: StreamSpec
    files: Mapping[str, tuple[StoredFile, ...]]
    partitions: tuple[Partition, ...]
    target: pl.DataFrame | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)
    now_us: int | None = None

    @property
    def last(self) -> Partition:
        """The last partition that is judged."""
        return max(self.partitions, key=lambda partition: partition.start_us)

    def judging(self, partitions: Iterable[Partition]) -> "Stored":
        """Return the same store, of which other partitions are judged."""
        return replace(self, partitions=tuple(partitions))

    def of(self, table: str, partitions: Collection[str]) -> list[StoredFile]:
        """Return the files of a table in the partitions."""
        return [file for file in self.files.get(table, ()) if file.partition in partitions]

    def rows(self, table: str, partition: str) -> int:
        """Return how many rows the log of the lake promises."""
        return sum(file.rows for file in self.of(table, {partition}))


def table_schemas(spec: StreamSpec) -> dict[str, pl.Schema]:
    """Return the schema of every table that evidence reads, in the names of frames."""
    return {
        STAGED_SOURCES: _SOURCES,
        STAGED_EVENTS: staged_schema(spec),
        REJECTED_ROWS: rejected_schema(),
        ORDERED_EVENTS: ordered_schema(spec),
        DEAD_LETTERS: dead_letter_schema(spec),
        DUPLICATES: duplicate_schema(spec),
        HELD_EVENTS: ordered_schema(spec),
        WATERMARKS: watermark_schema(),
        WINDOW_AGGREGATES: window_schema(spec),
        WINDOW_HISTORY: window_history_schema(spec),
        ORDER_AUDIT: _ORDERS,
        TARGET_PARITY: _PROOFS,
    }


@dataclass(frozen=True)
class Opened:
    """A connection with the views of a store."""

    connection: duckdb.DuckDBPyConnection
    stored: Stored

    @property
    def spec(self) -> StreamSpec:
        """The spec of the stream."""
        return self.stored.spec

    @cached_property
    def schemas(self) -> dict[str, pl.Schema]:
        """The schema of every table, in the names of frames."""
        return table_schemas(self.spec)

    def ask(self, query: str) -> pl.DataFrame:
        """Return the answer as a frame."""
        frame: pl.DataFrame = self.connection.sql(query).pl()
        return frame

    def has(self, name: str) -> bool:
        """Whether a table or a view of that name was made."""
        found = "select 1 from duckdb_views() where view_name = $1"
        found += " union all select 1 from duckdb_tables() where table_name = $1"
        return bool(self.connection.execute(found, [name]).fetchall())

    def view(self, name: str, table: str, files: Iterable[StoredFile]) -> None:
        """Make the rows of some files of a table a view, with the columns of its frames."""
        source = self._source(name, table, [file for file in files if file.rows])
        columns = ", ".join(_as_in_frames(column) for column in self.schemas[table])
        self.connection.execute(
            f"create or replace temp view {name} as select partition, {columns} from {source}"
        )

    def _source(self, name: str, table: str, files: list[StoredFile]) -> str:
        if not files:
            return self._registered(f"rows_of_{name}", _stored_frame(self.schemas[table]))
        column = _partition_column(files[0])
        rows = f"where {MARK} is null" if files[0].has_mark else ""
        if any("://" in file.uri for file in files):
            fetched = self._registered(f"rows_of_{name}", self._dataset(table, files, column))
            return f"(select *, {column} as partition from {fetched} {rows})"
        listed = ", ".join(literal(file.uri) for file in files)
        return (
            f"(select *, {column} as partition from read_parquet([{listed}],"
            f" hive_partitioning = true, hive_types_autocast = false) {rows})"
        )

    def _registered(self, name: str, rows: "pl.DataFrame | Dataset") -> str:
        self.connection.register(name, rows)
        return name

    def _dataset(self, table: str, files: list[StoredFile], column: str) -> "Dataset":
        """Return files of an object store, of which DuckDB fetches what a question asks for.

        DuckDB would need an extension to fetch by itself.
        """
        import pyarrow.dataset as ds  # noqa: PLC0415 (it takes pandas with it)

        root, _, _ = files[0].uri.partition(f"/{column}=")
        options = dict(self.stored.storage_options) or None
        named = pa.schema([(column, pa.string()), (SHARD, pa.string())])
        schema = pa.schema([*_arrow_schema(self.schemas[table]), (MARK, pa.string()), *named])
        return ds.dataset(
            [file.uri.removeprefix(f"{root}/") for file in files],
            schema=schema,
            format="parquet",
            filesystem=PyFileSystem(DeltaStorageHandler(root, options)),
            partitioning=ds.partitioning(named, flavor="hive"),
        )

    def scan(self, file: StoredFile) -> pl.LazyFrame:
        """Return the rows of one file as they are stored, in their order."""
        options = dict(self.stored.storage_options) or None
        return pl.scan_parquet(
            file.uri, glob=False, hive_partitioning=False, storage_options=options
        ).with_columns(pl.lit(file.partition).alias("partition"))


def _as_in_frames(column: str) -> str:
    if column not in STORED_NAMES:
        return quoted(column)
    return f"epoch_us({quoted(STORED_NAMES[column])}) as {quoted(column)}"


def _stored_frame(schema: pl.Schema) -> pl.DataFrame:
    return to_stored(schema.to_frame()).with_columns(pl.lit(None, pl.String).alias("partition"))


def _arrow_schema(schema: pl.Schema) -> pa.Schema:
    frame = _stored_frame(schema).drop("partition")
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest()).schema


@contextmanager
def opened(stored: Stored) -> Iterator[Opened]:
    """Open the store; the views are gone when the block ends."""
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_progress_bar = false")
        store = Opened(connection, stored)
        _register_judged(store)
        keys = {partition.key for partition in stored.partitions}
        for table, name in VIEWS.items():
            store.view(name, table, stored.of(table, keys))
        for table in (HELD_EVENTS, WATERMARKS):
            _view_of_before(store, table)
        yield store


def _register_judged(store: Opened) -> None:
    rows = [
        (place, partition.key, partition.previous, partition.start_us, partition.end_us)
        for place, partition in enumerate(store.stored.partitions)
    ]
    schema = {
        "place": pl.Int64,
        "partition": pl.String,
        "previous": pl.String,
        "start_us": pl.Int64,
        "end_us": pl.Int64,
    }
    store.connection.register(JUDGED, pl.DataFrame(rows, schema=schema, orient="row"))


def _view_of_before(store: Opened, table: str) -> None:
    """Show the state before each judged partition under the name of that partition."""
    name = VIEWS[table]
    previous = {p.previous for p in store.stored.partitions if p.previous is not None}
    store.view(f"{name}_at", table, store.stored.of(table, previous))
    store.connection.execute(
        f"create or replace temp view {name}{BEFORE} as"
        f" select j.partition, s.* exclude (partition)"
        f" from {name}_at s join {JUDGED} j on s.partition = j.previous"
    )


def _partition_column(file: StoredFile) -> str:
    """Return the name that the path of a file gives its partition."""
    parts = [part.partition("=") for part in file.uri.split("/") if "=" in part]
    return next(name for name, _, _ in reversed(parts) if name.endswith("_partition"))


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
