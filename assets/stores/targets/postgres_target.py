"""A PostgreSQL target: COPY into a temporary table, then one statement that guards revisions.

A schema for each stream; its tables are in ``postgres_tables``, what was published in ``ledger``.
Here belong the statements that write and read windows; which revision comes next is decided in
``transforms``.
"""
# ruff: noqa: S608 (identifiers are quoted, values travel in frames)

import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import polars as pl
from adbc_driver_postgresql import dbapi

from assets.stores.parity.postgres_side import PostgresSide
from assets.stores.parity.side import READING, Reading
from assets.stores.targets.faults import take
from assets.stores.targets.ledger import Execute
from assets.stores.targets.postgres_connections import STATEMENT_TIMEOUT_S, Connections
from assets.stores.targets.postgres_tables import Tables, listed, type_of
from assets.stores.targets.target import (
    AS_OF,
    CURRENT,
    EVER,
    KEY,
    REVISIONS,
    Published,
    Starts,
)
from transforms.errors import TargetError
from transforms.parity.canonical_sql import quoted
from transforms.publishing.ledger import NO_NOTE, Covered, Note
from transforms.schemas import STORED_INSTANT, from_stored, to_stored

_INCOMING: Final = "lowwater_incoming"


class PostgresTarget:
    """A ``Target`` in a PostgreSQL database; ``dsn`` may hold a password, which nothing shows."""

    def __init__(self, dsn: str, *, statement_timeout_s: float = STATEMENT_TIMEOUT_S) -> None:
        self._connections = Connections(dsn, statement_timeout_s=statement_timeout_s)
        self._prepared: dict[str, pl.Schema] = {}

    @property
    def label(self) -> str:
        """Server and database."""
        return self._connections.label

    def __repr__(self) -> str:
        """Return it without the password."""
        return f"PostgresTarget({self.label})"

    def __enter__(self) -> Self:
        """See ``Target``."""
        self._connections.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See ``Target``."""
        self._connections.close()

    def prepare(self, stream: str, schema: pl.Schema) -> None:
        """See ``Target.prepare``."""
        stored = to_stored(schema.to_frame()).schema
        with self._connections.transaction() as cursor:
            self._tables(stream).prepare(_executing(cursor), stored)
        self._prepared[stream] = schema

    def publish(self, stream: str, revisions: pl.DataFrame, note: Note = NO_NOTE) -> Published:
        """See ``Target.publish``."""
        if revisions.is_empty() and not note.entries:
            return Published(0, 0, 0)
        tables = self._tables(stream)
        incoming = to_stored(take(revisions, self._prepared.get(stream), self.label))
        begun = time.monotonic()
        with self._connections.transaction() as cursor:
            execute = _executing(cursor)
            held = tables.columns(execute, CURRENT)
            self._refuse_other_columns(incoming.schema, held)
            _copy(cursor, tables, incoming)
            statement = _upsert(tables, list(held), incoming.columns)
            ((inserted, amended),) = execute(statement, ())
            tables.ledger.write(execute, note, changed=bool(inserted or amended))
        unchanged = incoming.height - inserted - amended
        return Published(inserted, amended, unchanged, time.monotonic() - begun)

    def covered(self, stream: str, publications: Iterable[str]) -> list[Covered]:
        """See ``Target.covered``."""
        with self._connections.transaction() as cursor:
            return self._tables(stream).ledger.covered(_executing(cursor), publications)

    def numbers(self, stream: str) -> dict[str, int]:
        """See ``Target.numbers``."""
        with self._connections.transaction() as cursor:
            return self._tables(stream).ledger.numbers(_executing(cursor))

    def refused(self, stream: str) -> frozenset[bytes]:
        """See ``Target.refused``."""
        with self._connections.transaction() as cursor:
            return self._tables(stream).ledger.refused(_executing(cursor))

    def side(self, stream: str, how: Reading = READING) -> PostgresSide:
        """See ``Target.side``."""
        return PostgresSide(self._connections.dsn, self._tables(stream).name(CURRENT), how)

    def current(self, stream: str, starts: Starts = EVER) -> pl.DataFrame:
        """See ``Target.current``."""
        source = f"{self._tables(stream).name(CURRENT)} where {starts.condition(_instant)}"
        return self._read(stream, source, KEY)

    def revisions(self, stream: str) -> pl.DataFrame:
        """See ``Target.revisions``."""
        return self._read(stream, self._tables(stream).name(REVISIONS), (*KEY, "revision"))

    def as_of(self, stream: str, instant_us: int) -> pl.DataFrame:
        """See ``Target.as_of``."""
        source = f"{self._tables(stream).name(AS_OF)}({_instant(instant_us)})"
        return self._read(stream, source, KEY)

    def _tables(self, stream: str) -> Tables:
        return Tables(stream, self.label)

    def _read(self, stream: str, source: str, order: Sequence[str]) -> pl.DataFrame:
        with self._connections.transaction() as cursor:
            kinds = self._tables(stream).columns(_executing(cursor), CURRENT)
            columns = ", ".join(_selected(name, kind) for name, kind in kinds.items())
            cursor.execute(f"select {columns} from {source} order by {listed(order)}")
            frame = pl.DataFrame(cursor.fetch_arrow_table())
        return from_stored(frame.with_columns(_read_as(kinds)))

    def _refuse_other_columns(self, schema: pl.Schema, held: Mapping[str, str]) -> None:
        for name, dtype in schema.items():
            kind = type_of(name, dtype)
            if held.get(name) != kind:
                there = held.get(name, "missing")
                raise TargetError(f"{self.label}: column {name} is {there}, not {kind}")


def _executing(cursor: dbapi.Cursor) -> Execute:
    def execute(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor.execute(statement, tuple(parameters) or None)
        return list(cursor.fetchall()) if cursor.description else []

    return execute


def _copy(cursor: dbapi.Cursor, tables: Tables, incoming: pl.DataFrame) -> None:
    columns = listed(incoming.columns)
    cursor.execute(f"drop table if exists pg_temp.{_INCOMING}")
    cursor.execute(
        f"create temp table {_INCOMING} on commit drop as"
        f" select {columns} from {tables.name(REVISIONS)} with no data"
    )
    rows = incoming.to_arrow(compat_level=pl.CompatLevel.oldest())
    cursor.adbc_ingest(_INCOMING, rows, mode="append", temporary=True)


def _upsert(tables: Tables, held: Sequence[str], given: Sequence[str]) -> str:
    """One statement: every revision is kept, the newest becomes current; how many did."""
    columns = listed(given)
    # A statistic that is no longer declared must not outlive the revision that it belongs to.
    changes = ", ".join(
        f"{quoted(name)} = {'excluded.' + quoted(name) if name in given else 'null'}"
        for name in held
        if name not in KEY
    )
    return (
        f"with kept as (insert into {tables.name(REVISIONS)} ({columns})"
        f" select {columns} from {_INCOMING} on conflict do nothing),"
        f" changed as (insert into {tables.name(CURRENT)} as c ({columns})"
        f" select distinct on ({listed(KEY)}) {columns} from {_INCOMING}"
        f" order by {listed(KEY)}, revision desc"
        f" on conflict ({listed(KEY)}) do update set {changes}"
        " where c.revision < excluded.revision returning xmax = 0 as is_new)"
        " select count(*) filter (where is_new), count(*) filter (where not is_new) from changed"
    )


def _selected(name: str, kind: str) -> str:
    # The driver has no decimal type to give a numeric: as text it keeps every digit.
    cast = "::text" if kind.startswith("numeric") else ""
    return f"{quoted(name)}{cast} as {quoted(name)}"


def _read_as(kinds: Mapping[str, str]) -> list[pl.Expr]:
    casts = []
    for name, kind in kinds.items():
        if kind.startswith("numeric("):
            precision, scale = map(int, kind.removeprefix("numeric(").rstrip(")").split(","))
            casts.append(pl.col(name).cast(pl.Decimal(precision, scale)))
        elif kind == "timestamp with time zone":
            casts.append(pl.col(name).cast(STORED_INSTANT))
    return casts


def _instant(us: int) -> str:
    return f"timestamptz 'epoch' + {int(us)} * interval '1 microsecond'"
