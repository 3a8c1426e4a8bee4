"""The rows of a repair on their way: in a file of their own, so that memory does not grow.

Here belongs the stage. It is filled while both sides are read, and emptied when the target is
written.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb
import polars as pl
import pyarrow as pa

from assets.stores.parity.settings import settle
from transforms.parity.contract import Contract
from transforms.parity.plan import Action
from transforms.parity.repair_sql import DOOMED, STAGED, spelled

_AT_ONCE = 4_096


class Stage:
    """Tables ``parity_upserts`` (``c0``..., text) and ``parity_removals`` (kd, d, copies)."""

    def __init__(self, contract: Contract, memory_mib: int = 256) -> None:
        self._kinds = [column.kind for column in contract.proven]
        self._memory_mib = memory_mib
        self._folder = tempfile.TemporaryDirectory(prefix="lowwater-parity-")
        self._upserts: list[tuple[str | None, ...]] = []
        self._removals: list[tuple[bytes, bytes, int]] = []

    def __enter__(self) -> Self:
        """Make the file."""
        self.connection = duckdb.connect(str(Path(self._folder.name) / "stage.duckdb"))
        settle(self.connection, self._memory_mib)
        columns = ", ".join(f"c{i} text" for i in range(len(self._kinds)))
        self.connection.execute(f"create table {STAGED} ({columns})")
        self.connection.execute(f"create table {DOOMED} (kd blob, d blob, copies integer)")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove it."""
        self.connection.close()
        self._folder.cleanup()

    def sizes(self) -> tuple[int, int]:
        """How many rows are to be written, how many (kinds of) rows to be removed."""
        query = f"select (select count(*) from {STAGED}), (select count(*) from {DOOMED})"
        ((upserts, removals),) = self.connection.execute(query).fetchall()
        return upserts, removals

    def reader(self, table: str) -> pa.RecordBatchReader:
        """One of the tables, as it is read."""
        return self.connection.sql(f"select * from {table}").to_arrow_reader(_AT_ONCE)

    def take(self, actions: Iterable[Action]) -> None:
        """Keep what is to be done."""
        for action in actions:
            if action.upsert is not None:
                self._upserts.append(tuple(map(spelled, self._kinds, action.upsert)))
            self._removals += [(r.digests.key, r.digests.row, r.copies) for r in action.removals]
            if len(self._upserts) + len(self._removals) >= _AT_ONCE:
                self._write()
        self._write()

    def _write(self) -> None:
        upserts = pl.DataFrame(
            self._upserts, {f"c{i}": pl.String for i in range(len(self._kinds))}, orient="row"
        )
        doomed = {"kd": pl.Binary, "d": pl.Binary, "copies": pl.Int32}
        removals = pl.DataFrame(self._removals, doomed, orient="row")
        for table, frame in ((STAGED, upserts), (DOOMED, removals)):
            self.connection.register("incoming", frame)
            self.connection.execute(f"insert into {table} select * from incoming")
            self.connection.unregister("incoming")
        self._upserts.clear()
        self._removals.clear()
