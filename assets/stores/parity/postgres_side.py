"""A table of PostgreSQL as one side of a proof: one read-only snapshot, read over ADBC.

The first level is a bulk read, of which DuckDB makes the frames: the cheapest in CPU where the wire
is short. With ``pushdown`` the server makes the cells itself and only sums travel. The lower levels
are always pushed down: they move what differs.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import adbc_driver_manager
import pyarrow as pa
from adbc_driver_postgresql import dbapi

from assets.stores.parity.dsn import redacted
from assets.stores.parity.duckdb_side import FrameMaker
from assets.stores.parity.side import Frames, Scan, as_frames, condition, literal, scan_of
from assets.stores.parity.staging import Stage
from transforms.canonical_self_test import (
    EXAMPLE,
    EXAMPLE_CONTRACT,
    VECTOR_CONTRACT,
    check_example,
    check_vectors,
    vectors,
)
from transforms.canonical_sql import quoted
from transforms.canonical_types import Declared, postgres_column_type
from transforms.errors import TargetError
from transforms.parity_contract import Contract, RefusedError
from transforms.parity_repair_sql import DOOMED, STAGED, postgres_repair
from transforms.parity_sql import (
    PostgresDialect,
    Relation,
    bulk_query,
    cells_query,
    digests_query,
    rows_query,
)

# The parallel plan and the JIT cost more CPU than they save on these queries.
_SNAPSHOT = (
    "set transaction isolation level repeatable read, read only",
    "set local max_parallel_workers_per_gather = 0",
    "set local jit = off",
    "set local timezone = 'UTC'",
)
_BATCH_BYTES = "adbc.postgresql.batch_size_hint_bytes"
_COLUMNS = (
    "select attname, format_type(atttypid, atttypmod) from pg_attribute"
    " where attrelid = {table}::regclass and attnum > 0 and not attisdropped order by attnum"
)


class PostgresSide:
    """``table`` is quoted, with its schema if it needs one."""

    takes_nul = False
    file: Path | None = None

    def __init__(
        self, dsn: str, table: str, *, pushdown: bool = False, memory_mib: int = 256
    ) -> None:
        self.label = f"{redacted(dsn)}/{table}"
        self._dsn = dsn
        self._table = table
        self._pushdown = pushdown
        self._memory_mib = memory_mib
        self._open: dbapi.Connection | None = None
        self._frames: FrameMaker | None = None

    def __enter__(self) -> Self:
        """See ``Side``."""
        with self._explained():
            self._open = dbapi.connect(self._dsn)
        try:
            self._take_snapshot()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See ``Side``."""
        if self._frames is not None:
            self._frames.close()
        if self._open is not None:
            self._open.close()
        self._open = self._frames = None

    def about(self) -> dict[str, str]:
        """See ``Side``."""
        ((version, encoding, snapshot),) = self._query(
            "select version(), current_setting('server_encoding'), pg_current_snapshot()::text"
        )
        return {
            "store": self.label,
            "engine": version,
            "encoding": encoding,
            "snapshot": snapshot,
            "first_level": "pushed down" if self._pushdown else "bulk read",
        }

    def columns(self) -> list[Declared]:
        """See ``Side``."""
        return self._columns

    @cached_property
    def _columns(self) -> list[Declared]:
        rows = self._query(_COLUMNS.format(table=literal(self._table)))
        return [postgres_column_type(name, kind) for name, kind in rows]

    def self_test(self) -> list[str]:
        """See ``Side``."""
        ((encoding,),) = self._query("select current_setting('server_encoding')")
        if encoding != "UTF8":
            raise RefusedError([f"{self.label}: the server's encoding is {encoding}, not UTF8"])
        paths = ["PostgreSQL pushed down", "PostgreSQL bulk read"]
        relation = vectors("postgres")
        query = rows_query(PostgresDialect(), VECTOR_CONTRACT, relation, None, None)
        check_vectors(paths[0], self._query(query)[0][2:])
        check_example(paths[0], self._pushed(EXAMPLE_CONTRACT, EXAMPLE).cells)
        with self._bulk(VECTOR_CONTRACT, relation) as (reader, storage):
            check_vectors(paths[1], self._maker.columns(VECTOR_CONTRACT, reader, storage))
        check_example(paths[1], self._read(EXAMPLE_CONTRACT, EXAMPLE).cells)
        return paths

    def partitions(self, column: str) -> list[str]:
        """See ``Side``."""
        name = quoted(column)
        ordered = f'select distinct {name}::text collate "C" from {self._table} order by 1'
        values = [value for (value,) in self._query(ordered)]
        if None in values:
            raise RefusedError([f"{self.label}: partition column {column} holds a null"])
        return values

    def condition(self, column: str, value: str) -> str:
        """See ``Side``."""
        declared = next((c for c in self.columns() if c.name == column), None)
        return condition(declared, quoted(column), value)

    def cells(self, contract: Contract, where: str) -> Scan:
        """See ``Side``."""
        relation = Relation(self._table, where)
        return (self._pushed if self._pushdown else self._read)(contract, relation)

    def digests(
        self, contract: Contract, where: str, buckets: Collection[int], *, located: bool
    ) -> Frames:
        """See ``Side``."""
        relation = Relation(self._table, where, located and self._has_buckets())
        return self._stream(digests_query(PostgresDialect(), contract, relation, buckets))

    def rows(
        self,
        contract: Contract,
        where: str,
        buckets: Collection[int] | None,
        keys: Sequence[bytes] | None,
    ) -> Frames:
        """See ``Side``."""
        relation = Relation(self._table, where)
        return self._stream(rows_query(PostgresDialect(), contract, relation, buckets, keys))

    def refresh(self) -> None:
        """See ``Side``."""
        with self._explained():
            self._connection.rollback()
        self._take_snapshot()

    def write(self, contract: Contract, stage: Stage) -> None:
        """See ``Side``; on a connection of its own, for the snapshot is read only."""
        upserts, removals = stage.sizes()
        repair = postgres_repair(contract, self._table)
        with self._explained(), dbapi.connect(self._dsn) as connection:
            with connection.cursor() as cursor:
                for table, rows in ((STAGED, upserts), (DOOMED, removals)):
                    if rows:
                        cursor.adbc_ingest(table, stage.reader(table), "create", temporary=True)
                for statement in repair.statements(upserts=upserts, removals=removals):
                    cursor.execute(statement)
            connection.commit()
        self.refresh()

    def _take_snapshot(self) -> None:
        with self._explained(), self._connection.cursor() as cursor:
            for setting in _SNAPSHOT:
                cursor.execute(setting)

    def _pushed(self, contract: Contract, relation: Relation) -> Scan:
        query = cells_query(PostgresDialect(), contract, relation)
        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(query)
            return scan_of(cursor.fetch_arrow_table().to_pylist())

    def _read(self, contract: Contract, relation: Relation) -> Scan:
        with self._bulk(contract, relation) as (reader, storage):
            return self._maker.cells(contract, reader, storage)

    @contextmanager
    def _bulk(self, contract: Contract, relation: Relation) -> Iterator[tuple[Any, Any]]:
        query, storage = bulk_query(contract, relation)
        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(query)
            yield cursor.fetch_record_batch(), storage

    @property
    def _maker(self) -> FrameMaker:
        if self._frames is None:
            self._frames = FrameMaker(self._memory_mib)
        return self._frames

    @property
    def _connection(self) -> dbapi.Connection:
        if self._open is None:
            raise TargetError(f"{self.label}: not open; use it in a `with` block")
        return self._open

    def _has_buckets(self) -> bool:
        return any(column.name == "_bucket" for column in self.columns())

    def _query(self, query: str) -> list[tuple]:  # type: ignore[type-arg]
        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(query)
            rows: list[tuple] = cursor.fetchall()  # type: ignore[type-arg]
            return rows

    def _stream(self, query: str) -> Frames:
        with self._explained(), self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{_BATCH_BYTES: str(1 << 20)})
            cursor.execute(query)
            yield from as_frames(cursor.fetch_record_batch())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (adbc_driver_manager.Error, pa.ArrowException) as error:
            raise TargetError(f"{self.label}: {_explain(error)}") from error


def _explain(error: Exception) -> str:
    """The first line of what the server said."""
    first = str(error).strip().splitlines()[0]
    return first.split("ERROR:  ")[-1].removeprefix("IO: [libpq] ")
