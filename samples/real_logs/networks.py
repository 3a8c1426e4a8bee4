"""Name the seismic network of each change of the USGS feed: the leading letters of the quake's id.

Use: ``python samples/real_logs/networks.py OUT.parquet CHANGES.parquet``
"""

import sys
from pathlib import Path

import polars as pl


def with_network(changes: pl.DataFrame) -> pl.DataFrame:
    """The changes with ``net`` beside ``id``."""
    return changes.with_columns(net=pl.col("id").str.extract(r"^([a-z]+)"))


if __name__ == "__main__":
    out, changes = map(Path, sys.argv[1:])
    out.parent.mkdir(parents=True, exist_ok=True)
    with_network(pl.read_parquet(changes)).write_parquet(out)
