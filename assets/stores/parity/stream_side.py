"""What a stream published, as the lake says, as one side of a proof.

The current revisions are copied into a file of their own, partition by partition, so that memory
does not grow with the stream. Here belongs the copy; what is current is ``transforms.publication``.
"""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import polars as pl

from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.settings import settle
from assets.stores.parity.side import Reading
from transforms.schemas import to_stored

_TABLE: Final = "published"


@contextmanager
def published_side(
    label: str, schema: pl.Schema, frames: Iterable[pl.DataFrame], memory_mib: int
) -> Iterator[DuckDBSide]:
    """Yield a side over frames of a schema, under the names of stores; it is not open yet."""
    with tempfile.TemporaryDirectory(prefix="lowwater-parity-") as folder:
        file = Path(folder) / "published.duckdb"
        with duckdb.connect(str(file)) as connection:
            settle(connection, memory_mib)
            _insert(connection, f"create table {_TABLE} as", schema.to_frame())
            for frame in frames:
                _insert(connection, f"insert into {_TABLE}", frame)
        yield DuckDBSide(label, str(file), _TABLE, Reading(memory_mib=memory_mib))


def _insert(connection: duckdb.DuckDBPyConnection, verb: str, frame: pl.DataFrame) -> None:
    connection.register("incoming", to_stored(frame))
    connection.execute(f"{verb} select * from incoming")
    connection.unregister("incoming")
