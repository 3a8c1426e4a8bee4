"""The statements of a repair, for both engines: guarded merge, removal into ``parity_removed``.

Rows travel as text, which both engines read back to the same bits; times travel as microseconds and
days, for no text form of them is safe. Nothing is executed here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from transforms.parity.canonical import NULL, ColumnType, Kind, decode
from transforms.parity.canonical_sql import joined, literal, quoted
from transforms.parity.contract import Column, Contract, Role
from transforms.parity.sql import Dialect, DuckDBDialect, PostgresDialect
from transforms.parity.verdict import REVISION

REMOVED = "parity_removed"
STAGED = "parity_upserts"
DOOMED = "parity_removals"
_DAY_US = 86_400_000_000


def spelled(kind: ColumnType, column: bytes) -> str | None:
    """A column of a frame as the text that ``from_text`` reads."""
    value = None if column == NULL else decode(kind, column)
    match value:
        case None:
            return None
        case bytes():
            return value.hex()
        case float() if math.isinf(value):
            return "infinity" if value > 0 else "-infinity"
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case _:
            return str(value)


@dataclass(frozen=True)
class Repair:
    """What the statements of one engine are made of."""

    contract: Contract
    table: str  # quoted, with the database it is in
    label: str  # the same without that
    removed: str  # quoted
    dialect: Dialect
    from_text: Callable[[ColumnType, str], str]
    compared: Callable[[Column, str], str]
    as_json: str  # the whole row ``t``
    address: str  # where a row ``t`` is, as column ``place``
    binary: str  # the type of bytes

    def statements(self, *, upserts: int, removals: int) -> list[str]:
        """All of a repair, in one transaction: what goes goes first."""
        return (self.removal() if removals else []) + ([self.merge()] if upserts else [])

    def merge(self, staged: str = STAGED) -> str:
        """Write the staged rows; a newer revision stays, an equal row is left alone."""
        names = [quoted(column.name) for column in self.contract.proven]
        return (
            f"merge into {self.table} as t using ({self._typed(staged)}) as s on {self._same_key()}"
            f"{self._update()} when not matched then insert ({', '.join(names)})"
            f" values ({', '.join(f's.{name}' for name in names)})"
        )

    def removal(self, doomed: str = DOOMED) -> list[str]:
        """Move rows to ``parity_removed``: those of just these bytes, and just so many copies."""
        columns = [self.dialect.column(column) for column in self.contract.proven]
        key, row = joined(columns[: len(self.contract.key)]), joined(columns)
        numbered = (
            f"select g.*, x.copies, row_number() over (partition by g.kd, g.d) as nth from"
            f" (select {self.address}, {self.dialect.digest(key)} as kd,"
            f" {self.dialect.digest(row)} as d, {self.as_json} as content from {self.table} t"
            f"{self.dialect.fence}) g join {doomed} x on x.kd = g.kd and x.d = g.d"
        )
        names = "table_name, contract, key_digest, row_digest, content"
        said = f"{literal(self.label)}, {literal(self.contract.fingerprint)}"
        return [
            self._create_removed(),
            f"create temp table leaving as select * from ({numbered}) n where nth <= copies",
            f"insert into {self.removed} ({names}) select {said}, kd, d, content from leaving",
            f"delete from {self.table} as t using leaving l where {self._same_place()}",
            "drop table leaving",
        ]

    def _same_place(self) -> str:
        parts = [part.split(" as ") for part in self.address.split(", ")]
        return " and ".join(f"{place} = l.{name}" for place, name in parts)

    def _create_removed(self) -> str:
        return (
            f"create table if not exists {self.removed} (removed_at timestamptz not null"
            f" default current_timestamp, table_name text not null, contract text not null,"
            f" key_digest {self.binary} not null,"
            f" row_digest {self.binary} not null, content text not null)"
        )

    def _typed(self, staged: str) -> str:
        columns = ", ".join(
            f"{self.from_text(column.kind, f'c{i}')} as {quoted(column.name)}"
            for i, column in enumerate(self.contract.proven)
        )
        return f"select {columns} from {staged}"

    def _same_key(self) -> str:
        same = {Role.KEY: "=", Role.NULLABLE_KEY: "is not distinct from"}
        return " and ".join(
            f"t.{quoted(column.name)} {same[column.role]} s.{quoted(column.name)}"
            for column in self.contract.key
        )

    def _update(self) -> str:
        values = self.contract.values
        if not values:
            return ""
        differ = " or ".join(
            f"{self.compared(c, f't.{quoted(c.name)}')} is distinct from"
            f" {self.compared(c, f's.{quoted(c.name)}')}"
            for c in values
        )
        newer = f"t.{REVISION} <= s.{REVISION} and " if self._has_revision() else ""
        changes = ", ".join(f"{quoted(c.name)} = s.{quoted(c.name)}" for c in values)
        return f" when matched and {newer}({differ}) then update set {changes}"

    def _has_revision(self) -> bool:
        return any(c.name == REVISION and c.kind.kind is Kind.INT for c in self.contract.values)


def postgres_repair(contract: Contract, table: str) -> Repair:
    """For a table of PostgreSQL."""
    return Repair(
        contract,
        table,
        table,
        _beside(table),
        PostgresDialect(),
        _postgres_from_text,
        lambda column, name: f'{name} collate "C"' if column.kind.kind is Kind.TEXT else name,
        "to_jsonb(t)::text",
        "t.tableoid as place_table, t.ctid as place",
        "bytea",
    )


def duckdb_repair(contract: Contract, database: str, label: str) -> Repair:
    """For a table of a DuckDB file that is attached."""
    table = f"{database}.{label}"
    return Repair(
        contract,
        table,
        label,
        _beside(table),
        DuckDBDialect(),
        _duckdb_from_text,
        lambda _, name: name,
        "to_json(t)::text",
        "t.rowid as place",
        "blob",
    )


def _beside(table: str) -> str:
    schema, dot, _ = table.rpartition('."')
    return f"{schema}{'.' if dot else ''}{quoted(REMOVED)}"


def _postgres_from_text(kind: ColumnType, text: str) -> str:
    match kind.kind:
        case Kind.INSTANT:
            return f"(({_postgres_time(text)}) at time zone 'UTC')"
        case Kind.LOCAL:
            return _postgres_time(text)
        case Kind.DATE:
            days = f"date '1970-01-01' + {text}::int"
            return f"case when {text} like '%infinity' then {text}::date else {days} end"
        case Kind.BYTES:
            return f"decode({text}, 'hex')"
        case _:
            return f"{text}::{_POSTGRES[kind.kind].format(kind.precision, kind.scale)}"


def _postgres_time(text: str) -> str:
    moment = (
        f"timestamp '1970-01-01' + ({text}::bigint / {_DAY_US}) * interval '1 day'"
        f" + ({text}::bigint % {_DAY_US}) * interval '1 microsecond'"
    )
    return f"case when {text} like '%infinity' then {text}::timestamp else {moment} end"


def _duckdb_from_text(kind: ColumnType, text: str) -> str:
    makers = {
        Kind.INSTANT: ("TIMESTAMPTZ", f"make_timestamptz({text}::bigint)"),
        Kind.LOCAL: ("TIMESTAMP", f"make_timestamp({text}::bigint)"),
        Kind.DATE: ("DATE", f"DATE '1970-01-01' + {text}::integer"),
    }
    if kind.kind in makers:
        name, made = makers[kind.kind]
        return f"case when {text} like '%infinity' then {text}::{name} else {made} end"
    if kind.kind is Kind.BYTES:
        return f"unhex({text})"
    return f"{text}::{_POSTGRES[kind.kind].format(kind.precision, kind.scale)}"


_POSTGRES = {
    Kind.INT: "bigint",
    Kind.BOOL: "boolean",
    Kind.FLOAT: "float8",
    Kind.TEXT: "text",
    Kind.DECIMAL: "decimal({0},{1})",
    Kind.UUID: "uuid",
}
