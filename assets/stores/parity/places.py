"""Where a table is, as people write it: PostgreSQL, a DuckDB file, or Parquet files.

``postgresql://user@host/db/schema.table``, ``shop.duckdb/main.orders``, ``export/*.parquet``. Here
belongs reading that text; what is done with a side is the engine.
"""

import re
from collections.abc import Mapping

from assets.stores.parity.dsn import SCHEMES, quoted_table, split_table
from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.postgres_side import PostgresSide
from assets.stores.parity.side import Side, literal
from transforms.errors import UsageError

_DUCKDB = re.compile(r"(?:duckdb:)?(?P<path>.+?\.(?:duckdb|ddb|db))/(?P<table>[^/]+)")
_ALLOWED = "postgresql://host/db/table, file.duckdb/table, files.parquet"


def side_at(place: str, environment: Mapping[str, str], *, pushdown: bool, memory_mib: int) -> Side:
    """The side a text names. ``env:NAME/table`` takes a DSN, with its password, from a variable."""
    text = _from_environment(place, environment)
    if text.split("://")[0] in SCHEMES:
        dsn, table = split_table(text)
        return PostgresSide(dsn, table, pushdown=pushdown, memory_mib=memory_mib)
    if text.endswith(".parquet"):
        source = f"read_parquet({literal(text)})"
        return DuckDBSide(text, ":memory:", source, memory_mib)
    named = _DUCKDB.fullmatch(text)
    if named:
        return DuckDBSide(text, named["path"], quoted_table(named["table"]), memory_mib)
    raise UsageError(f"{place}: cannot tell where this table is; allowed: {_ALLOWED}")


def _from_environment(place: str, environment: Mapping[str, str]) -> str:
    if not place.startswith("env:"):
        return place
    name, _, table = place.removeprefix("env:").partition("/")
    if name not in environment:
        raise UsageError(f"{place}: the variable {name} is not set")
    base, question, options = environment[name].partition("?")
    return f"{base.rstrip('/')}/{table}{question}{options}"
