"""A table of a DuckDB file, or Parquet files, as one side of a proof.

The file is opened to read only, so nobody writes to it while the proof reads. ``FrameMaker`` is the
same engine over what a bulk read hands over.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import pyarrow as pa

from assets.stores.parity.settings import settle
from assets.stores.parity.side import (
    BATCH_ROWS,
    Frames,
    Scan,
    as_frames,
    condition,
    literal,
    scan_of,
)
from assets.stores.parity.staging import Stage
from transforms.canonical_self_test import (
    EXAMPLE,
    EXAMPLE_CONTRACT,
    VECTOR_CONTRACT,
    check_example,
    check_vectors,
    vectors,
)
from transforms.canonical_sql import Storage, quoted
from transforms.canonical_types import Declared, duckdb_column_type
from transforms.errors import TargetError, UsageError
from transforms.parity_contract import Contract, RefusedError
from transforms.parity_repair_sql import duckdb_repair
from transforms.parity_sql import (
    CELL_COLUMNS,
    DuckDBDialect,
    Relation,
    cells_query,
    digests_query,
    rows_query,
)


def read_cells(
    connection: duckdb.DuckDBPyConnection,
    contract: Contract,
    relation: Relation,
    storage: Mapping[str, Storage] | None = None,
) -> Scan:
    """One scan of a relation."""
    query = cells_query(DuckDBDialect(storage or {}), contract, relation)
    rows = connection.execute(query).fetchall()
    return scan_of(dict(zip(CELL_COLUMNS, row, strict=True)) for row in rows)


_NO_FILE = ":memory:"


class FrameMaker:
    """DuckDB in memory, over Arrow that came from elsewhere."""

    def __init__(self, memory_mib: int) -> None:
        self._connection = duckdb.connect()
        settle(self._connection, memory_mib)

    def close(self) -> None:
        """Let go of its memory."""
        self._connection.close()

    def cells(
        self, contract: Contract, reader: pa.RecordBatchReader, storage: Mapping[str, Storage]
    ) -> Scan:
        """Cells of a stream that is read as it comes."""
        with self._given(reader) as relation:
            return read_cells(self._connection, contract, relation, storage)

    def columns(
        self, contract: Contract, reader: pa.RecordBatchReader, storage: Mapping[str, Storage]
    ) -> list[bytes]:
        """The frame columns of a stream of one row."""
        with self._given(reader) as relation:
            query = rows_query(DuckDBDialect(storage), contract, relation, None, None)
            return list(self._connection.execute(query).fetchall()[0][2:])

    @contextmanager
    def _given(self, reader: pa.RecordBatchReader) -> Iterator[Relation]:
        self._connection.register("bulk", reader)
        try:
            yield Relation("bulk")
        finally:
            self._connection.unregister("bulk")


class DuckDBSide:
    """``source`` is a FROM item: a quoted table, or ``read_parquet(...)`` with no file to open."""

    takes_nul = True

    def __init__(self, label: str, path: str, source: str, memory_mib: int = 256) -> None:
        self.label = label
        self.file = None if path == _NO_FILE else Path(path).resolve()
        self._path = path
        self._source = source
        self._memory_mib = memory_mib
        self._open: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> Self:
        """See ``Side``."""
        with self._explained():
            self._open = duckdb.connect(self._path, read_only=self.file is not None)
            settle(self._open, self._memory_mib)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """See ``Side``."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def about(self) -> dict[str, str]:
        """See ``Side``."""
        return {"store": self.label, "engine": f"DuckDB {duckdb.__version__}"}

    def columns(self) -> list[Declared]:
        """See ``Side``."""
        return self._columns

    @cached_property
    def _columns(self) -> list[Declared]:
        rows = self._query(f"describe select * from {self._source}")
        return [duckdb_column_type(str(name), str(kind)) for name, kind, *_ in rows]

    def self_test(self) -> list[str]:
        """See ``Side``."""
        query = rows_query(DuckDBDialect(), VECTOR_CONTRACT, vectors("duckdb"), None, None)
        check_vectors("DuckDB", self._query(query)[0][2:])
        with self._explained():
            scan = read_cells(self._connection, EXAMPLE_CONTRACT, EXAMPLE)
        check_example("DuckDB", scan.cells)
        return ["DuckDB"]

    def partitions(self, column: str) -> list[str]:
        """See ``Side``."""
        name = quoted(column)
        found = self._query(f"select distinct {name}::varchar from {self._source} order by 1")
        values = [value for (value,) in found]
        if None in values:
            raise RefusedError([f"{self.label}: partition column {column} holds a null"])
        return values

    def condition(self, column: str, value: str) -> str:
        """See ``Side``."""
        declared = next((c for c in self.columns() if c.name == column), None)
        return condition(declared, quoted(column), value)

    def cells(self, contract: Contract, where: str) -> Scan:
        """See ``Side``."""
        with self._explained():
            return read_cells(self._connection, contract, Relation(self._source, where))

    def digests(
        self, contract: Contract, where: str, buckets: Collection[int], *, located: bool
    ) -> Frames:
        """See ``Side``."""
        relation = Relation(self._source, where, located and self._has_buckets())
        return self._stream(digests_query(DuckDBDialect(), contract, relation, buckets))

    def rows(
        self,
        contract: Contract,
        where: str,
        buckets: Collection[int] | None,
        keys: Sequence[bytes] | None,
    ) -> Frames:
        """See ``Side``."""
        relation = Relation(self._source, where)
        return self._stream(rows_query(DuckDBDialect(), contract, relation, buckets, keys))

    def refresh(self) -> None:
        """See ``Side``: to see what was written meanwhile, the file is opened anew."""
        self.__exit__(None, None, None)
        self.__enter__()

    def write(self, contract: Contract, stage: Stage) -> None:
        """See ``Side``: the stage's connection writes, for a file has one writer at a time."""
        if self.file is None:
            raise UsageError(f"{self.label}: Parquet files cannot be repaired; write them again")
        self.__exit__(None, None, None)
        with self._explained():
            self._write(contract, stage)
        self.__enter__()

    def _write(self, contract: Contract, stage: Stage) -> None:
        upserts, removals = stage.sizes()
        repair = duckdb_repair(contract, "target", self._source)
        writer = stage.connection
        writer.execute(f"attach {literal(self._path)} as target")
        writer.begin()
        try:
            for statement in repair.statements(upserts=upserts, removals=removals):
                writer.execute(statement)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
        finally:
            writer.execute("detach target")

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._open is None:
            raise TargetError(f"{self.label}: not open; use it in a `with` block")
        return self._open

    def _has_buckets(self) -> bool:
        return any(column.name == "_bucket" for column in self.columns())

    def _query(self, query: str) -> list[tuple]:  # type: ignore[type-arg]
        with self._explained():
            return self._connection.execute(query).fetchall()

    def _stream(self, query: str) -> Frames:
        with self._explained():
            reader = self._connection.sql(query).to_arrow_reader(BATCH_ROWS)
            yield from as_frames(reader or ())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            raise TargetError(f"{self.label}: {str(error).splitlines()[0]}") from error
