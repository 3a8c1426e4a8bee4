"""Evidence of staging: every row that was read is there once, in the partition it arrived in."""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

import polars as pl

from expectations.evidence.tables import counts, evidence, instant
from expectations.stored import Opened, literal
from transforms.schemas import REJECTED_ROWS, REJECTION_REASONS, STAGED_EVENTS

# The upper half of `seq` is the ordinal of the file.
_ORDINAL: Final = (pl.col("seq") // 2**32).alias("ordinal")
_FOUND: Final = pl.Schema(
    {
        "partition": pl.String(),
        "ordinal": pl.Int64(),
        "staged": pl.Int64(),
        "rejected": pl.Int64(),
        "doubled": pl.Int64(),
    }
)


def rows_of_files(store: Opened) -> pl.DataFrame:
    """Compare the rows of each file with what the reader noted, and look for a `seq` twice."""
    frames = [_found(store, partition.key) for partition in store.stored.partitions]
    store.connection.register("found", pl.concat([_FOUND.to_frame(), *frames]))
    return evidence(store, _ROWS_OF_FILES)


def _found(store: Opened, partition: str) -> pl.DataFrame:
    """Count the rows of each source file of a partition, and those whose `seq` another row has.

    Polars is 50 times as fast here as DuckDB.
    """
    staged, rejected = (_seqs(store, table, partition) for table in (STAGED_EVENTS, REJECTED_ROWS))
    seqs = pl.concat([staged, rejected])
    twice = seqs if seqs["seq"].n_unique() < seqs.height else seqs.clear()
    counts = [
        staged.group_by(_ORDINAL).agg(staged=pl.len()),
        rejected.group_by(_ORDINAL).agg(rejected=pl.len()),
        twice.group_by(_ORDINAL).agg(doubled=pl.len() - pl.col("seq").n_unique()),
    ]
    found = pl.concat(counts, how="diagonal").with_columns(partition=pl.lit(partition))
    return found.select(_FOUND.names()).cast(_FOUND)


def _seqs(store: Opened, table: str, partition: str) -> pl.DataFrame:
    files = [file for file in store.stored.of(table, {partition}) if file.rows]
    empty = pl.LazyFrame(schema={"seq": pl.Int64})
    return pl.concat([empty, *(store.scan(file).select("seq") for file in files)]).collect()


_ROWS_OF_FILES: Final = """
with stored as (
  select partition, ordinal, sum(staged) as staged, sum(rejected) as rejected,
    sum(doubled) as doubled
  from found group by all
), noted as (
  select partition, ordinal, any_value(name) as name, sum(staged_rows) as staged,
    sum(rejected_rows) as rejected
  from sources group by all
), compared as (
  select coalesce(n.partition, s.partition) as partition,
    coalesce(n.name, 'file ' || s.ordinal) as name,
    coalesce(n.staged, 0) as staged_then, coalesce(s.staged, 0) as staged_now,
    coalesce(n.rejected, 0) as rejected_then, coalesce(s.rejected, 0) as rejected_now,
    coalesce(s.doubled, 0) as doubled
  from noted n full join stored s on n.partition = s.partition and n.ordinal = s.ordinal
)
select partition, name, staged_now + rejected_now,
  greatest(abs(staged_then - staged_now) + abs(rejected_then - rejected_now), doubled) as wrong,
  case when wrong > 0 then 'read ' || (staged_then + rejected_then) || ' rows, stored '
    || staged_now || ' and ' || rejected_now || ' rejected, ' || doubled || ' of them twice' end
from compared
"""


def arrivals(store: Opened) -> pl.DataFrame:
    """Find rows that arrived outside of their partition; the first has what came before, too.

    The first and the last of a partition say whether there are any; then keys are looked at.
    """
    outside = "arrival_us >= end_us or (arrival_us < start_us and previous is not null)"
    said = f"'one arrived at ' || {instant(f'min(arrival_us) filter ({outside})')}"
    return evidence(
        store,
        f"""with came as materialized (
          select partition, count(*) as rows, min(arrival_us) as low, max(arrival_us) as high
          from staged group by all
        ), suspects as (
          select partition from came join judged using (partition)
          where high >= end_us or (low < start_us and previous is not null)
        )
        select partition, 'all keys', rows, 0, null from came anti join suspects using (partition)
        union all
        select partition, key, {counts(outside, said)}
        from staged semi join suspects using (partition) join judged using (partition)
        group by all""",
    )


def rejections(store: Opened) -> pl.DataFrame:
    """Find rejected rows without a known reason, a text, or a place in their file."""
    known = ", ".join(literal(reason) for reason in REJECTION_REASONS)
    wrong = (
        f"reason is null or reason not in ({known}) or raw is null or source is null"
        " or line is null or line < 1"
    )
    said = f"'reasons: ' || string_agg(distinct reason, ', ') filter ({wrong})"
    return evidence(
        store, f"select partition, source, {counts(wrong, said)} from rejected group by all"
    )
