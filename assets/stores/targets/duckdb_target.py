"""The embedded target: one DuckDB file, a schema for each stream.

A schema holds the tables ``windows_current`` (the current revision of every window, tombstones
too) and ``windows_revisions`` (every revision), and for readers the view ``windows`` (no
tombstones) and the table macro ``windows_as_of(t)``: what did we say at time T. Times are
TIMESTAMPTZ, named without ``_us``. Here belongs the SQL of the target; which revision comes next is
decided in ``transforms``.
"""
# ruff: noqa: S608 (identifiers are quoted, values travel in frames)

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import polars as pl
import pyarrow as pa

from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.side import READING, Reading
from assets.stores.targets.faults import TargetDataError, TargetOutageError, take
from assets.stores.targets.ledger import Ledger
from assets.stores.targets.target import (
    AS_OF,
    CURRENT,
    EVER,
    KEY,
    READABLE,
    REVISIONS,
    Published,
    Starts,
)
from transforms.errors import TargetError
from transforms.publishing.ledger import NO_NOTE, Covered, Note
from transforms.schemas import from_stored, to_stored

PATIENCE_S = 60.0
_PAUSE_S = 0.1
_INCOMING = "incoming"
_HOLDER = re.compile(r"Conflicting lock is held in (?P<program>.+?) \(PID (?P<pid>\d+)\)")


def quoted(name: str) -> str:
    """A name as an SQL identifier, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def _columns(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def _same_window(left: str, right: str) -> str:
    return " and ".join(f"{left}.{quoted(name)} = {right}.{quoted(name)}" for name in KEY)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (duckdb.DataError, duckdb.IntegrityError) as error:
        raise TargetDataError(f"{path}: {_explain(error)}") from error
    except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
        raise TargetOutageError(f"{path}: {_explain(error)}") from error
    except duckdb.Error as error:
        raise TargetError(f"{path}: {_explain(error)}") from error


def _explain(error: duckdb.Error) -> str:
    """One line; of a lock it names who holds it, as DuckDB reports it."""
    holder = _HOLDER.search(str(error))
    if holder:
        return (
            f"the file is in use by {holder['program']} (process {holder['pid']});"
            " wait until that is done, or end it"
        )
    return str(error).splitlines()[0]


class DuckDBTarget:
    """A ``Target`` in one DuckDB file, which is made if it is not there.

    DuckDB lets one process at a time have the file, so keep the ``with`` block short. Who comes
    second waits for ``patience_s``, then is told who has it. The threads of a process prepare what
    they publish side by side, and write one after another.
    """

    def __init__(
        self,
        path: Path,
        *,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.path = path
        self.label = str(path)
        self._patience_s = patience_s
        self._clock = clock
        self._sleep = sleep
        self._writing = threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._prepared: dict[str, pl.Schema] = {}

    def __enter__(self) -> Self:
        """Open the file; the folder it is in is made."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TargetError(
                f"{self.path}: its folder cannot be made: {error.strerror}"
            ) from error
        with _explained(self.path):
            self._connection = self._connected()
            # A bar of its own would stand between the lines of a result.
            self._connection.execute("set TimeZone = 'UTC'; set enable_progress_bar = false")
        return self

    def _connected(self) -> duckdb.DuckDBPyConnection:
        deadline = self._clock() + self._patience_s
        while True:
            try:
                return duckdb.connect(str(self.path))
            except duckdb.IOException as error:
                if not _HOLDER.search(str(error)) or self._clock() >= deadline:
                    raise
            self._sleep(_PAUSE_S)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file, so that another process may have it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def prepare(self, stream: str, schema: pl.Schema) -> None:
        """See ``Target.prepare``."""
        self._refuse_ambiguous(stream)
        empty = to_stored(schema.to_frame())
        with _registered(self._open(), empty), self._transaction() as connection:
            connection.execute(f"create schema if not exists {self._name(stream)}")
            changed = [
                self._create_or_widen(connection, stream, table, key)
                for table, key in ((CURRENT, KEY), (REVISIONS, (*KEY, "revision")))
            ]
            if any(changed):
                self._create_readers(connection, stream, empty.columns)
            for statement in self._ledger(stream).create():
                connection.execute(statement)
        self._prepared[stream] = schema

    def publish(self, stream: str, revisions: pl.DataFrame, note: Note = NO_NOTE) -> Published:
        """See ``Target.publish``."""
        if revisions.is_empty() and not note.entries:
            return Published(0, 0, 0)
        incoming = to_stored(take(revisions, self._prepared.get(stream), self.label))
        columns, rows = set(incoming.columns), incoming.to_arrow()
        with self._writing:
            begun = self._clock()
            with _registered(self._open(), rows), self._transaction() as connection:
                self._keep_revisions(connection, stream)
                actions = self._make_current(connection, stream, columns)
                self._ledger(stream).write(self._execute, note, changed=bool(actions))
            seconds = self._clock() - begun
        inserted, amended = actions.count("INSERT"), actions.count("UPDATE")
        return Published(inserted, amended, revisions.height - inserted - amended, seconds)

    def refused(self, stream: str) -> frozenset[bytes]:
        """See ``Target.refused``."""
        with self._writing, _explained(self.path):
            return self._ledger(stream).refused(self._execute)

    def side(self, stream: str, how: Reading = READING) -> DuckDBSide:
        """See ``Target.side``."""
        table = f"{quoted(stream)}.{quoted(CURRENT)}"
        return DuckDBSide(f"{self.path}/{stream}.{CURRENT}", str(self.path), table, how)

    def current(self, stream: str, starts: Starts = EVER) -> pl.DataFrame:
        """See ``Target.current``."""
        which = starts.condition(lambda us: f"make_timestamptz({us})")
        source = f"{self._name(stream, CURRENT)} where {which}"
        return self._read(f"select * from {source} order by {_columns(KEY)}")

    def revisions(self, stream: str) -> pl.DataFrame:
        """See ``Target.revisions``."""
        order = _columns((*KEY, "revision"))
        return self._read(f"select * from {self._name(stream, REVISIONS)} order by {order}")

    def as_of(self, stream: str, instant_us: int) -> pl.DataFrame:
        """See ``Target.as_of``."""
        source = f"{self._name(stream, AS_OF)}(make_timestamptz({int(instant_us)}))"
        return self._read(f"select * from {source} order by {_columns(KEY)}")

    def covered(self, stream: str, publications: Iterable[str]) -> list[Covered]:
        """See ``Target.covered``."""
        with self._writing, _explained(self.path):
            return self._ledger(stream).covered(self._execute, publications)

    def numbers(self, stream: str) -> dict[str, int]:
        """See ``Target.numbers``."""
        with self._writing, _explained(self.path):
            return self._ledger(stream).numbers(self._execute)

    def _ledger(self, stream: str) -> Ledger:
        return Ledger(self._name(stream), "blob")

    def _execute(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._open().execute(statement, list(parameters)).fetchall()

    def _name(self, stream: str, table: str | None = None) -> str:
        parts = (self._database(), stream) if table is None else (self._database(), stream, table)
        return ".".join(quoted(part) for part in parts)

    def _database(self) -> str:
        # A result owns the connection until it is fetched to its end.
        [(name,)] = self._open().execute("select current_database()").fetchall()
        return str(name)

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise TargetError(f"{self.path}: not open; use the target in a `with` block")
        return self._connection

    def _read(self, query: str) -> pl.DataFrame:
        with _explained(self.path):
            frame: pl.DataFrame = self._open().sql(query).pl()
        return from_stored(frame)

    @contextmanager
    def _transaction(self) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = self._open()
        with _explained(self.path):
            connection.begin()
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _create_or_widen(
        self, connection: duckdb.DuckDBPyConnection, stream: str, table: str, key: tuple[str, ...]
    ) -> bool:
        """Whether the table was made, or got a column."""
        name, wanted = self._name(stream, table), _types(connection, _INCOMING)
        present = self._present(connection, stream, table)
        if not present:
            body = ", ".join(f"{quoted(column)} {kind}" for column, kind in wanted.items())
            connection.execute(f"create table {name} ({body}, primary key ({_columns(key)}))")
            return True
        self._refuse_other_types(stream, present, wanted)
        added = [column for column in wanted if column not in present]
        for column in added:
            connection.execute(f"alter table {name} add column {quoted(column)} {wanted[column]}")
        return bool(added)

    def _present(
        self, connection: duckdb.DuckDBPyConnection, stream: str, table: str
    ) -> dict[str, str]:
        rows = connection.execute(
            "select column_name, data_type from duckdb_columns() where database_name = ?"
            " and schema_name = ? and table_name = ? order by column_index",
            [self._database(), stream, table],
        ).fetchall()
        return {str(name): str(kind) for name, kind in rows}

    def _refuse_ambiguous(self, stream: str) -> None:
        # A view keeps schema and table alone, and DuckDB looks for a database of that name first.
        databases = self._open().execute("select database_name from duckdb_databases()").fetchall()
        if stream.lower() in {str(name).lower() for (name,) in databases}:
            raise TargetError(
                f"{self.path}: DuckDB takes the stream {stream} for a database of that name;"
                " rename the file or the stream"
            )

    def _refuse_other_types(
        self, stream: str, present: dict[str, str], wanted: dict[str, str]
    ) -> None:
        for column, kind in wanted.items():
            if present.get(column, kind) != kind:
                raise TargetError(
                    f"{self.path}: column {column} of stream {stream} is {present[column]} in the"
                    f" target and {kind} in the spec; give the value another name, or publish to"
                    " another target"
                )

    def _create_readers(
        self, connection: duckdb.DuckDBPyConnection, stream: str, declared: list[str]
    ) -> None:
        # The declared columns come first; statistics that are no longer declared stay readable.
        kept = _types(connection, self._name(stream, CURRENT))
        columns = _columns([*declared, *(name for name in kept if name not in declared)])
        connection.execute(
            f"create or replace view {self._name(stream, READABLE)} as"
            f" select {columns} from {self._name(stream, CURRENT)} where event_count > 0"
        )
        connection.execute(
            f"create or replace macro {self._name(stream, AS_OF)}(t) as table"
            f" select {columns} from (select * from {self._name(stream, REVISIONS)}"
            f" where published_at <= t {_newest_of_each()}) where event_count > 0"
        )

    def _keep_revisions(self, connection: duckdb.DuckDBPyConnection, stream: str) -> None:
        connection.execute(
            f"insert into {self._name(stream, REVISIONS)} by name select * from {_INCOMING}"
            " on conflict do nothing"
        )

    def _make_current(
        self, connection: duckdb.DuckDBPyConnection, stream: str, given: set[str]
    ) -> list[str]:
        # A statistic that is no longer declared must not outlive the revision that it belongs to.
        held = _types(connection, self._name(stream, CURRENT))
        changes = ", ".join(
            f"{quoted(name)} = {'i.' + quoted(name) if name in given else 'null'}"
            for name in held
            if name not in KEY
        )
        rows = connection.execute(
            f"merge into {self._name(stream, CURRENT)} as c"
            f" using (select * from {_INCOMING} {_newest_of_each()}) as i"
            f" on {_same_window('c', 'i')}"
            f" when matched and i.revision > c.revision then update set {changes}"
            " when not matched then insert by name returning merge_action"
        ).fetchall()
        return [str(action) for (action,) in rows]


def _newest_of_each() -> str:
    return f"qualify row_number() over (partition by {_columns(KEY)} order by revision desc) = 1"


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame | pa.Table
) -> Iterator[None]:
    connection.register(_INCOMING, rows)
    try:
        yield
    finally:
        connection.unregister(_INCOMING)


def _types(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    rows = connection.execute(f"describe {table}").fetchall()
    return {str(row[0]): str(row[1]) for row in rows}
