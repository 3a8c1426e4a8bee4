"""A table of PostgreSQL as one side of a proof: one read-only snapshot, read over ADBC.

The first level is a bulk read, of which DuckDB makes the frames: the cheapest in CPU where the wire
is short. With ``pushdown`` the server makes the cells itself and only sums travel. The lower levels
are always pushed down: they move what differs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import adbc_driver_manager
import duckdb
import pyarrow as pa
from adbc_driver_postgresql import dbapi

from assets.stores.counting import Passed, unheard
from assets.stores.parity.dsn import explained, redacted, with_timeout
from assets.stores.parity.frame_maker import Bulk, FrameMaker
from assets.stores.parity.side import (
    READING,
    Frames,
    Prints,
    Reading,
    Scans,
    as_frames,
    rows_of,
    scans_of,
)
from assets.stores.parity.sql_side import SQLSide
from assets.stores.parity.staging import Stage
from transforms.errors import TargetError
from transforms.parity.canonical_self_test import (
    EXAMPLE,
    EXAMPLE_CONTRACT,
    VECTOR_CONTRACT,
    check_example,
    check_vectors,
    vectors,
)
from transforms.parity.canonical_sql import literal
from transforms.parity.canonical_types import Declared, postgres_column_type
from transforms.parity.cells import Print
from transforms.parity.contract import Contract, RefusedError
from transforms.parity.repair_sql import DOOMED, STAGED, postgres_repair
from transforms.parity.sql import PostgresDialect, Relation, bulk_query, cells_query, rows_query

# The parallel plan and the JIT cost more CPU than they save on these queries.
_SNAPSHOT = (
    "set transaction isolation level repeatable read, read only",
    "set local max_parallel_workers_per_gather = 0",
    "set local jit = off",
    "set local synchronize_seqscans = off",
    "set local timezone = 'UTC'",
)
_BATCH_BYTES = "adbc.postgresql.batch_size_hint_bytes"
_COLUMNS = (
    "select attname, format_type(atttypid, atttypmod) from pg_attribute"
    " where attrelid = {table}::regclass and attnum > 0 and not attisdropped order by attnum"
)


class PostgresSide(SQLSide):
    """``table`` is quoted, with its schema if it needs one."""

    takes_nul = False
    file: Path | None = None

    def __init__(self, dsn: str, table: str, how: Reading = READING) -> None:
        super().__init__(f"{redacted(dsn)}/{table}", table, PostgresDialect())
        self.in_process = not how.push_down
        self._dsn = dsn
        self._memory_mib = how.memory_mib
        self._open: dbapi.Connection | None = None
        self._frames: FrameMaker | None = None

    def __enter__(self) -> Self:
        """See ``Side``."""
        with self._explained():
            self._open = dbapi.connect(with_timeout(self._dsn))
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
            "first_level": "bulk read" if self.in_process else "pushed down",
        }

    def rows_about(self) -> int:
        """See ``Side``: what the server thinks, without looking."""
        [(rows,)] = self._query(
            "select coalesce((select greatest(reltuples, 0)::bigint from pg_class"
            f" where oid = to_regclass({literal(self._source)})), 0)"
        )
        return int(rows)

    def _described(self) -> list[Declared]:
        rows = self._query(_COLUMNS.format(table=literal(self._source)))
        return [postgres_column_type(name, kind) for name, kind in rows]

    def self_test(self) -> list[str]:
        """See ``Side``."""
        ((encoding,),) = self._query("select current_setting('server_encoding')")
        if encoding != "UTF8":
            raise RefusedError([f"{self.label}: the server's encoding is {encoding}, not UTF8"])
        paths = ["PostgreSQL pushed down", "PostgreSQL bulk read"]
        relation = vectors("postgres")
        query = rows_query(self._dialect, VECTOR_CONTRACT, relation, None, None)
        check_vectors(paths[0], self._query(query)[0][2:])
        check_example(paths[0], self._pushed(EXAMPLE_CONTRACT, EXAMPLE)[0].cells)
        with self._bulk(VECTOR_CONTRACT, relation) as bulk:
            check_vectors(paths[1], self._maker.columns(VECTOR_CONTRACT, bulk))
        check_example(paths[1], self._read(EXAMPLE_CONTRACT, EXAMPLE)[0].cells)
        return paths

    def vector_print(self) -> Print:
        """See ``Side``."""
        return self._prints(VECTOR_CONTRACT, vectors("postgres"))[0]

    def refresh(self) -> None:
        """See ``Side``."""
        with self._explained():
            self._connection.rollback()
        self._take_snapshot()

    def write(self, contract: Contract, stage: Stage) -> None:
        """See ``Side``; on a connection of its own, for the snapshot is read only."""
        upserts, removals = stage.sizes()
        repair = postgres_repair(contract, self._source)
        with self._explained(), dbapi.connect(with_timeout(self._dsn)) as connection:
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

    def _cells(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Scans:
        if self.in_process:
            return self._read(contract, relation, told)
        scans = self._pushed(contract, relation)
        told(rows_of(scans))
        return scans

    def _prints(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Prints:
        with self._bulk(contract, relation, told) as bulk:
            return self._maker.prints(contract, bulk)

    def _pushed(self, contract: Contract, relation: Relation) -> Scans:
        return scans_of(self._query(cells_query(self._dialect, contract, relation)))

    def _read(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Scans:
        with self._bulk(contract, relation, told) as bulk:
            return self._maker.cells(contract, bulk)

    @contextmanager
    def _bulk(
        self, contract: Contract, relation: Relation, told: Passed = unheard
    ) -> Iterator[Bulk]:
        query, storage = bulk_query(contract, relation)
        with self._explained(), self._connection.cursor() as cursor:
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
            told_of = reader if told is unheard else _telling(reader, told)
            yield Bulk(told_of, storage, relation.cut)

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
        except (adbc_driver_manager.Error, pa.ArrowException, duckdb.Error) as error:
            # The driver's own words may quote the address: they do not travel further.
            raise TargetError(f"{self.label}: {explained(error, self._dsn)}") from None


def _telling(reader: pa.RecordBatchReader, told: Passed) -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            told(batch.num_rows)
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
