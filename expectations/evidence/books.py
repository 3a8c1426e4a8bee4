"""Evidence of the books: what came in is somewhere, by count and by content.

The content of a row is DuckDB's own hash of its columns, summed exactly. It is no stable hash and
need not be, for both sides are hashed by one query.
"""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.tables import columns, evidence
from expectations.stored import Opened
from transforms.schemas import UNREADABLE, row_columns

_ENTERED = ("staged", "held_before")
_LEFT = ("ordered", "dead", "duplicates", "held")
_WITH_UNREADABLE = ("staged", "dead")


def balance(store: Opened) -> pl.DataFrame:
    """Balance, per key, rows that entered a partition with rows that left it or are held."""
    sides = [_side(store, table, 1) for table in _ENTERED]
    sides += [_side(store, table, -1) for table in _LEFT]
    return evidence(
        store,
        f"""
        with entries as ({" union all ".join(sides)}), sums as (
          select partition, key, sum(entered) as entered, sum(missing) as missing,
            sum(high) as high, sum(low) as low
          from entries group by all
        )
        select partition, key, entered,
          greatest(abs(missing), (high <> 0 or low <> 0)::bigint) as wrong,
          case when missing > 0 then missing || ' rows are in no state'
            when missing < 0 then -missing || ' rows came from nowhere'
            when wrong > 0 then 'rows are not as they came' end
        from sums
        """,
    )


def _side(store: Opened, table: str, sign: int) -> str:
    """Sum the rows of a table by key; only the few sums are added up across tables."""
    unreadable = UNREADABLE if table in _WITH_UNREADABLE else "null::varchar"
    content = f"hash({columns(row_columns(store.spec))}, {unreadable})"
    return f"""
        select partition, key, {max(sign, 0)} * count(*) as entered, {sign} * count(*) as missing,
          {sign} * sum((h >> 32)::bigint) as high, {sign} * sum((h & 4294967295)::bigint) as low
        from (select partition, key, {content} as h from {table}) group by all
        """
