"""The floor: what Polars needs to read the rows, sort them by one packed column, write them.

And what a user would write by hand in DuckDB. Neither shares code with the product.
"""

import json
import sys
import time
from pathlib import Path

import duckdb
import polars as pl

EVENT_BITS = 50
SQL = """
COPY (
  WITH judged AS (
    SELECT sensor, event, level, event < max(event) OVER earlier - INTERVAL 90 SECONDS AS late
    FROM (SELECT key AS sensor, event, arrival, seq, level FROM read_parquet($files))
    WINDOW earlier AS (PARTITION BY sensor ORDER BY arrival, seq
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  )
  SELECT sensor, time_bucket(INTERVAL 1 MINUTE, event) AS minute, count(*) AS event_count,
         avg(level) AS level_mean, min(level) AS level_min, max(level) AS level_max,
         count(*) FILTER (WHERE late) AS late_count
  FROM judged GROUP BY ALL
) TO '$out' (FORMAT parquet, COMPRESSION zstd)
"""


def polars_floor(files: list[str], out: Path) -> None:
    """Read, sort by a packed (key code, event time), write."""
    frame = pl.read_parquet(files)
    code = frame["key"].cast(pl.Categorical).to_physical().cast(pl.Int64)
    event = frame["event"].cast(pl.Int64)
    packed = code * 2**EVENT_BITS + (event - event.min())
    frame.with_columns(packed=packed).sort("packed").drop("packed").write_parquet(
        out / "floor.parquet"
    )


def duckdb_by_hand(files: list[str], out: Path) -> None:
    """Windows and the late split alone, in plain SQL."""
    names = "[" + ", ".join(f"'{name}'" for name in files) + "]"
    with duckdb.connect() as connection:
        sql = SQL.replace("$files", names).replace("$out", str(out / "by_hand.parquet"))
        connection.execute(sql)


WORK = {"polars": polars_floor, "duckdb": duckdb_by_hand}


def main() -> None:
    """``python -m benchmarks.floor NAME OUT FILE...``; prints seconds as JSON."""
    name, out, *files = sys.argv[1:]
    begun = time.perf_counter()
    WORK[name](files, Path(out))
    print(json.dumps({name: time.perf_counter() - begun}))


if __name__ == "__main__":
    main()
