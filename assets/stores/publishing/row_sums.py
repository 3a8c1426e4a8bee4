"""The digests of rows that are about to be published, as numbers that can be summed.

Here belongs the computing of them by DuckDB, in memory; what they prove is ``publishing.ledger``.
"""

from typing import Final

import duckdb
import polars as pl

from assets.stores.parity.settings import settle
from transforms.parity.contract import Contract
from transforms.parity.sql import DuckDBDialect, Relation, lanes_query
from transforms.publishing.ledger import Sums

S_LANES: Final = ("s0", "s1", "s2", "s3")
K_LANES: Final = ("k0", "k1", "k2", "k3")
_MEMORY_MIB: Final = 256


def row_lanes(contract: Contract, stored: pl.DataFrame) -> pl.DataFrame:
    """Return ``S_LANES`` and ``K_LANES`` of each row, in order; names and types as in stores."""
    if stored.is_empty():
        return pl.DataFrame(schema=dict.fromkeys((*S_LANES, *K_LANES), pl.Int64()))
    with duckdb.connect() as connection:
        settle(connection, _MEMORY_MIB)
        connection.register("rows", stored)
        query = lanes_query(DuckDBDialect(), contract, Relation("rows"))
        frame: pl.DataFrame = connection.sql(query).pl()
        return frame


def sums_of(lanes: pl.DataFrame) -> Sums:
    """Return the sums of rows: 2^31 rows fit an int64."""
    totals = lanes.select(pl.col(*S_LANES, *K_LANES).sum()).row(0)
    return Sums(lanes.height, totals[:4], totals[4:])
