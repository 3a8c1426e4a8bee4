"""Evidence of the books: what came in is somewhere, by count and by content."""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.sums import content_sums, ordered_by_key, staged_by_key
from expectations.evidence.tables import evidence
from expectations.stored import Opened

_FEW: tuple[tuple[str, int], ...] = (
    ("held_before", 1),
    ("dead", -1),
    ("duplicates", -1),
    ("held", -1),
)


def balance(store: Opened) -> pl.DataFrame:
    """Balance, per key, rows that entered a partition with rows that left it or are held."""
    sides = [_signed(staged_by_key(store), 1), _signed(ordered_by_key(store), -1)]
    sides += [_signed(_by_key(store, table), sign) for table, sign in _FEW]
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


def _by_key(store: Opened, table: str) -> str:
    sums = content_sums(store, table)
    return f"(select partition, key, count(*) as rows, {sums} from {table} group by all)"


def _signed(by_key: str, sign: int) -> str:
    """Only the few sums are added up across tables, not the rows."""
    return (
        f"select partition, key, {max(sign, 0)} * rows as entered, {sign} * rows as missing,"
        f" {sign} * high as high, {sign} * low as low from {by_key}"
    )
