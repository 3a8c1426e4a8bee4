"""A table of a DuckDB file, or Parquet files, as one side of a proof.

The file is opened to read only, so nobody writes to it while the proof reads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb

from assets.stores.counting import Passed, unheard
from assets.stores.parity.frame_maker import read_cells, read_prints
from assets.stores.parity.settings import settle
from assets.stores.parity.side import (
    BATCH_ROWS,
    READING,
    Frames,
    Prints,
    Reading,
    Scans,
    as_frames,
    rows_of,
)
from assets.stores.parity.sql_side import SQLSide
from assets.stores.parity.staging import Stage
from transforms.errors import TargetError, UsageError
from transforms.parity.canonical_self_test import (
    EXAMPLE,
    EXAMPLE_CONTRACT,
    VECTOR_CONTRACT,
    check_example,
    check_vectors,
    vectors,
)
from transforms.parity.canonical_sql import literal
from transforms.parity.canonical_types import Declared, duckdb_column_type
from transforms.parity.cells import Print
from transforms.parity.contract import Contract
from transforms.parity.repair_sql import duckdb_repair
from transforms.parity.sql import DuckDBDialect, Relation, rows_query

_NO_FILE = ":memory:"


class DuckDBSide(SQLSide):
    """``source`` is a FROM item: a quoted table, or ``read_parquet(...)`` with no file to open."""

    takes_nul = True
    in_process = True

    def __init__(self, label: str, path: str, source: str, how: Reading = READING) -> None:
        if how.push_down:
            raise UsageError(f"{label}: nothing can be pushed down, no server stands behind it")
        super().__init__(label, source, DuckDBDialect())
        self.file = None if path == _NO_FILE else Path(path).resolve()
        self._path = path
        self._memory_mib = how.memory_mib
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

    def rows_about(self) -> int:
        """See ``Side``."""
        [(rows,)] = self._query(f"select count(*) from {self._source}")
        return int(rows)

    def _described(self) -> list[Declared]:
        rows = self._query(f"describe select * from {self._source}")
        return [duckdb_column_type(str(name), str(kind)) for name, kind, *_ in rows]

    def self_test(self) -> list[str]:
        """See ``Side``."""
        query = rows_query(self._dialect, VECTOR_CONTRACT, vectors("duckdb"), None, None)
        check_vectors("DuckDB", self._query(query)[0][2:])
        check_example("DuckDB", self._cells(EXAMPLE_CONTRACT, EXAMPLE)[0].cells)
        return ["DuckDB"]

    def vector_print(self) -> Print:
        """See ``Side``."""
        return self._prints(VECTOR_CONTRACT, vectors("duckdb"))[0]

    def _cells(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Scans:
        with self._explained():
            scans = read_cells(self._connection, contract, relation)
        told(rows_of(scans))
        return scans

    def _prints(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Prints:
        with self._explained():
            prints = read_prints(self._connection, contract, relation)
        told(sum(each.n for each in prints.values()))
        return prints

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
