"""Level one in this process: DuckDB over a table of its own, or over what a bulk read hands over.

Here belongs who runs the queries of level one; what they are is ``transforms.parity.sql``.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from assets.stores.parity.settings import settle
from assets.stores.parity.side import Prints, Scans, prints_of, scans_of
from transforms.parity.canonical_sql import Storage
from transforms.parity.contract import Contract
from transforms.parity.grid import Cut
from transforms.parity.sql import DuckDBDialect, Relation, cells_query, prints_query, rows_query

_BULK = "bulk"
_NATIVE = DuckDBDialect()


@dataclass(frozen=True)
class Bulk:
    """Rows that are read as they come: what is stored how, and how they fall apart."""

    reader: pa.RecordBatchReader
    storage: Mapping[str, Storage] = field(default_factory=dict)
    cut: Cut | None = None


class FrameMaker:
    """DuckDB in memory, over Arrow that came from elsewhere."""

    def __init__(self, memory_mib: int) -> None:
        self._connection = duckdb.connect()
        settle(self._connection, memory_mib)

    def close(self) -> None:
        """Let go of its memory."""
        self._connection.close()

    def cells(self, contract: Contract, bulk: Bulk) -> Scans:
        """Cells of rows, by partition."""
        with self._given(bulk) as (dialect, relation):
            return read_cells(self._connection, contract, relation, dialect)

    def prints(self, contract: Contract, bulk: Bulk) -> Prints:
        """Prints of rows, by partition."""
        with self._given(bulk) as (dialect, relation):
            return read_prints(self._connection, contract, relation, dialect)

    def columns(self, contract: Contract, bulk: Bulk) -> list[bytes]:
        """The frame columns of one row."""
        with self._given(bulk) as (dialect, relation):
            query = rows_query(dialect, contract, relation, None, None)
            return list(self._connection.execute(query).fetchall()[0][2:])

    @contextmanager
    def _given(self, bulk: Bulk) -> Iterator[tuple[DuckDBDialect, Relation]]:
        self._connection.register(_BULK, bulk.reader)
        try:
            yield DuckDBDialect(bulk.storage), Relation(_BULK, cut=bulk.cut)
        finally:
            self._connection.unregister(_BULK)


def read_cells(
    connection: duckdb.DuckDBPyConnection,
    contract: Contract,
    relation: Relation,
    dialect: DuckDBDialect = _NATIVE,
) -> Scans:
    """One scan of a relation."""
    return scans_of(connection.execute(cells_query(dialect, contract, relation)).fetchall())


def read_prints(
    connection: duckdb.DuckDBPyConnection,
    contract: Contract,
    relation: Relation,
    dialect: DuckDBDialect = _NATIVE,
) -> Prints:
    """One scan of a relation, hashed and no more."""
    return prints_of(connection.execute(prints_query(dialect, contract, relation)).fetchall())
