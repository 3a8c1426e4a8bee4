"""The tables of a stream in PostgreSQL: made, and widened when the stream says more.

A schema holds ``windows_current``, ``windows_revisions`` and the ledger, and for readers the view
``windows`` and the function ``windows_as_of(t)``. Nothing is created where nothing is missing, so
that who publishes needs no right to create. Texts are ordered by their bytes, whatever the
language of the server. Here belongs the data definition; rows are the target's.
"""
# ruff: noqa: S608 (identifiers are quoted, texts are literals)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from assets.stores.targets.ledger import BATCHES, DEAD, NUMBERS, Execute, Ledger
from assets.stores.targets.target import AS_OF, CURRENT, KEY, READABLE, REVISIONS
from transforms.errors import TargetError
from transforms.parity.canonical_sql import literal, quoted

_LONGEST_NAME: Final = 63
# History is keyed by time first: so it grows at one end of its index, which is cheaper by a sixth.
_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    CURRENT: KEY,
    REVISIONS: ("window_start", "window", "key", "revision"),
}
_TYPES: Final[Mapping[type[pl.DataType], str]] = {
    pl.Int64: "bigint",
    pl.Float64: "double precision",
    pl.Boolean: "boolean",
    pl.String: "text",
    pl.Datetime: "timestamp with time zone",
}


def listed(names: Sequence[str], prefix: str = "") -> str:
    """Return names as identifiers, in a list."""
    return ", ".join(prefix + quoted(name) for name in names)


def type_of(column: str, dtype: pl.DataType) -> str:
    """Return the type of PostgreSQL for a column. Raises TargetError for one that has none."""
    if isinstance(dtype, pl.Decimal):
        return f"numeric({dtype.precision},{dtype.scale})"
    name = _TYPES.get(type(dtype))
    if name is None:
        raise TargetError(f"column {column}: {dtype} cannot be published")
    return name


@dataclass(frozen=True)
class Tables:
    """The tables of one stream; ``label`` names the server in messages."""

    stream: str
    label: str

    @property
    def schema(self) -> str:
        """The schema, quoted."""
        return quoted(self.stream)

    @property
    def ledger(self) -> Ledger:
        """The ledger beside the windows."""
        return Ledger(self.schema, "bytea")

    def name(self, table: str) -> str:
        """Return a table with its schema, quoted."""
        return f"{self.schema}.{quoted(table)}"

    def columns(self, execute: Execute, table: str) -> dict[str, str]:
        """Return the columns of a table and their types; none: there is no such table."""
        rows = execute(
            "select attname::text, format_type(atttypid, atttypmod) from pg_attribute"
            f" where attrelid = to_regclass({literal(self.name(table))})"
            " and attnum > 0 and not attisdropped order by attnum",
            (),
        )
        return {str(name): str(kind) for name, kind in rows}

    def prepare(self, execute: Execute, schema: pl.Schema) -> None:
        """Create or widen what a stream needs; two that prepare at once wait for each other."""
        wanted = {name: type_of(name, dtype) for name, dtype in schema.items()}
        self._refuse_long_names([self.stream, *wanted])
        held = {table: self.columns(execute, table) for table in _TABLES}
        complete = all(wanted.keys() <= columns.keys() for columns in held.values())
        if not complete or not self._has_ledger(execute):
            execute(f"select pg_advisory_xact_lock(hashtext({literal(self.stream)}))::text", ())
            self._create(execute, wanted)
        for table in _TABLES:
            self._refuse_other_types(self.columns(execute, table), wanted)

    def _create(self, execute: Execute, wanted: Mapping[str, str]) -> None:
        schemas = f"select 1 from pg_namespace where nspname = {literal(self.stream)}"
        if not execute(schemas, ()):
            execute(f"create schema {self.schema}", ())
        for table, key in _TABLES.items():
            self._create_or_widen(execute, table, key, wanted)
        self._create_readers(execute)
        for statement in self.ledger.create():
            execute(statement, ())

    def _create_or_widen(
        self, execute: Execute, table: str, key: Sequence[str], wanted: Mapping[str, str]
    ) -> None:
        present = self.columns(execute, table)
        new = [_definition(name, kind) for name, kind in wanted.items() if name not in present]
        if not present:
            body = ", ".join(new)
            execute(f"create table {self.name(table)} ({body}, primary key ({listed(key)}))", ())
            if table == CURRENT:
                # A proof reads days of windows at a time; they came in about that order.
                execute(
                    f"create index on {self.name(table)} using brin (window_start)"
                    " with (pages_per_range = 32, autosummarize = on)",
                    (),
                )
        elif new:
            added = ", ".join(f"add column {column}" for column in new)
            execute(f"alter table {self.name(table)} {added}", ())

    def _create_readers(self, execute: Execute) -> None:
        # Columns are added at the end alone: then both are replaced, and who may read them may.
        columns = listed(list(self.columns(execute, CURRENT)))
        readable, as_of = self.name(READABLE), self.name(AS_OF)
        execute(
            f"create or replace view {readable} as select {columns} from {self.name(CURRENT)}"
            " where event_count > 0",
            (),
        )
        execute(
            f"create or replace function {as_of}(t timestamptz) returns setof {readable}"
            f" language sql stable as $body$ select {columns} from"
            f" (select distinct on ({listed(KEY)}) {columns} from {self.name(REVISIONS)}"
            f" where published_at <= t order by {listed(KEY)}, revision desc) r"
            " where event_count > 0 $body$",
            (),
        )

    def _has_ledger(self, execute: Execute) -> bool:
        tables = " and ".join(
            f"to_regclass({literal(self.name(table))}) is not null"
            for table in (BATCHES, NUMBERS, DEAD)
        )
        rows: list[tuple[Any, ...]] = execute(f"select {tables}", ())
        return bool(rows[0][0])

    def _refuse_long_names(self, names: Sequence[str]) -> None:
        for name in names:
            if len(name.encode()) > _LONGEST_NAME:
                raise TargetError(
                    f"{self.label}: PostgreSQL cuts names to {_LONGEST_NAME} bytes;"
                    f" give {name} a shorter one"
                )

    def _refuse_other_types(self, present: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        for column, kind in wanted.items():
            if present.get(column, kind) != kind:
                raise TargetError(
                    f"{self.label}: column {column} of stream {self.stream} is {present[column]} in"
                    f" the target and {kind} in the spec; give the value another name, or publish"
                    " to another target"
                )


def _definition(name: str, kind: str) -> str:
    collation = ' collate "C"' if kind == "text" else ""
    return f"{quoted(name)} {kind}{collation}"
