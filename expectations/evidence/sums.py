"""Sums of rows by key, made in one scan of each table and shared by the questions of a stage.

Most of what a question costs is unpacking columns. So what several of them need is summed up once:
counts, extremes, and the exact sum of a hash of the content. A question that finds these sums in
order has looked at every row; only where they are not are rows looked at one by one.

The content of a row is DuckDB's own hash of its columns. It is no stable hash and need not be, for
all that is compared is hashed by one connection.
"""
# ruff: noqa: S608 (identifiers are quoted)

from collections.abc import Iterator
from typing import Final

import polars as pl

from expectations.evidence.tables import columns
from expectations.stored import Opened, StoredFile
from transforms.schemas import DUPLICATES, ORDERED_EVENTS, PROFILE, UNREADABLE, row_columns
from transforms.spec import StreamSpec

_WITH_UNREADABLE: Final = ("staged", "dead")


def content_sums(store: Opened, table: str) -> str:
    """Return SQL for the sums of the hash of rows, its upper and its lower half, per group."""
    unreadable = UNREADABLE if table in _WITH_UNREADABLE else "null::varchar"
    content = f"hash({columns(row_columns(store.spec))}, {unreadable})"
    return f"sum(({content} >> 32)::bigint) as high, sum(({content} & 4294967295)::bigint) as low"


def once(store: Opened, name: str, query: str) -> str:
    """Keep the answer to a query as a table for as long as the store is open; returns its name."""
    if not store.has(name):
        store.connection.execute(f"create temp table {name} as {query}")
    return name


def ordered_by_key(store: Opened) -> str:
    """Return the table of released rows by partition and key: rows, first and last time, sums."""
    return once(
        store,
        "ordered_by_key",
        f"""select partition, key, count(*) as rows, min(event_us) as first_us,
          max(event_us) as last_us, {content_sums(store, "ordered")}
        from ordered group by all""",
    )


def staged_by_key(store: Opened) -> str:
    """Return the table of staged rows by partition, key and profile (where rows have one).

    For each future skew that is declared: the newest event and arrival of rows that are not from
    the future, and the ``seq`` of a row that has it, as ``newest_0``, ``newest_seq_0`` and so on.
    """
    by_profile = f", {PROFILE}" if store.spec.profiles.by is not None else ""
    return once(
        store,
        "staged_by_key",
        f"""select partition, key{by_profile}, count(*) as rows, max(arrival_us) as last_came,
          {content_sums(store, "staged")}, {", ".join(_newest(store))}
        from staged group by all""",
    )


def skews(spec: StreamSpec) -> list[int]:
    """Return the future skews that are declared, each once."""
    return sorted({profile.future_skew_us for profile in spec.profiles.named.values()})


def _newest(store: Opened) -> Iterator[str]:
    """Yield the columns of the newest; which row it is matters where it may be a duplicate."""
    may_repeat = any(store.stored.rows(DUPLICATES, p.key) for p in store.stored.partitions)
    for place, skew_us in enumerate(skews(store.spec)):
        plausible = f"filter (event_us::hugeint - {skew_us} <= arrival_us)"
        for name, column in (("newest", "event_us"), ("moved", "arrival_us")):
            row = f"arg_max(seq, {column}) {plausible}" if may_repeat else "null::bigint"
            yield f"max({column}) {plausible} as {name}_{place}"
            yield f"{row} as {name}_seq_{place}"


def odd_rows(store: Opened) -> str:
    """Return the table of released rows that are out of order or tied with the row before them.

    ``wrong`` says that a row stands after one that it should precede, ``tied`` that it has its key
    and event time. The rows of a shard are one file, in the order of the file.
    """
    name = "odd_rows"
    if not store.has(name):
        keys = {partition.key for partition in store.stored.partitions}
        files = [file for file in store.stored.of(ORDERED_EVENTS, keys) if file.rows]
        frames = [_odd_rows(store, file) for file in files]
        store.connection.register(name, pl.concat([_ODD.to_frame(), *frames]))
    return name


_ODD: Final = pl.Schema(
    {
        "partition": pl.String(),
        "key": pl.String(),
        "event_us": pl.Int64(),
        "wrong": pl.Boolean(),
        "tied": pl.Boolean(),
    }
)


def _odd_rows(store: Opened, file: StoredFile) -> pl.DataFrame:
    """Find the odd rows of a file; only where some are tied does ``seq`` matter."""
    key, event = pl.col("key"), pl.col("event")
    is_same = key == key.shift()
    found = _odd(store, file, (key < key.shift()) | (is_same & (event < event.shift())))
    if not found["tied"].any():
        return found
    seq = pl.col("seq")
    falls = (event < event.shift()) | ((event == event.shift()) & (seq <= seq.shift()))
    return _odd(store, file, (key < key.shift()) | (is_same & falls))


def _odd(store: Opened, file: StoredFile, wrong: pl.Expr) -> pl.DataFrame:
    key, event = pl.col("key"), pl.col("event")
    tied = (key == key.shift()) & (event == event.shift())
    return (
        store.scan(file)
        .with_columns(wrong.alias("wrong"), tied.alias("tied"))
        .filter(pl.col("wrong") | pl.col("tied"))
        .select("partition", "key", event.dt.timestamp("us").alias("event_us"), "wrong", "tied")
        .collect()
    )
