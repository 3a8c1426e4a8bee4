"""Where a table is, as people write it: PostgreSQL, a DuckDB file, or Parquet files.

``postgresql://user@host/db/schema.table``, ``shop.duckdb/main.orders``, ``export/*.parquet``. Here
belongs reading that text; what is done with a side is the engine.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from assets.stores.parity.dsn import SCHEMES, quoted_table, redacted, split_table
from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.postgres_side import PostgresSide
from assets.stores.parity.side import READING, Reading, Side
from transforms.errors import UsageError
from transforms.parity.canonical_sql import literal

_DUCKDB = re.compile(r"(?:duckdb:)?(?P<path>.+?\.(?:duckdb|ddb|db))/(?P<table>[^/]+)")
_ALLOWED = "postgresql://host/db/table, env:DSN_VARIABLE/table, file.duckdb/table, files.parquet"


def sides_at(
    places: Iterable[str], environment: Mapping[str, str], how: Reading = READING
) -> list[Side]:
    """The sides that texts name; of a server that is to make the sums there must be one."""
    sides = [side_at(place, environment, how) for place in places]
    if how.push_down and all(side.in_process for side in sides):
        raise UsageError("--push-down: no table is in PostgreSQL, so no server can make the sums")
    return sides


def side_at(place: str, environment: Mapping[str, str], how: Reading = READING) -> Side:
    """The side a text names. ``env:NAME/table`` takes a DSN, with its password, from a variable."""
    if place.startswith("env:"):
        return _in_environment(place, environment, how)
    if place.split("://", maxsplit=1)[0] in SCHEMES:
        return PostgresSide(*split_table(place), how)
    here = replace(how, push_down=False)
    if place.endswith(".parquet"):
        return DuckDBSide(place, ":memory:", f"read_parquet({literal(place)})", here)
    named = _DUCKDB.fullmatch(place)
    if named:
        return DuckDBSide(place, named["path"], quoted_table(named["table"]), here)
    shown = redacted(place) if "://" in place else place
    raise UsageError(f"{shown}: cannot tell where this table is; allowed: {_ALLOWED}")


def _in_environment(place: str, environment: Mapping[str, str], how: Reading) -> Side:
    name, _, table = place.removeprefix("env:").partition("/")
    if not environment.get(name):
        raise UsageError(f"{place}: the variable {name} is not set")
    if not table:
        raise UsageError(f"{place}: name the table after the variable, as in env:{name}/table")
    return PostgresSide(environment[name], quoted_table(table), how)
