"""Evidence of staging: every row that was read is there once, in the partition it arrived in."""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.tables import counts, evidence, instant
from expectations.stored import Opened, literal
from transforms.schemas import REJECTED_ROWS, REJECTION_REASONS, STAGED_EVENTS

# The upper half of `seq` is the ordinal of the file.
_ORDINAL = "(seq >> 32)"


def rows_of_files(store: Opened) -> pl.DataFrame:
    """Compare the rows of each file with what the reader noted, and look for a `seq` twice."""
    store.connection.register("doubled", _doubled(store))
    return evidence(store, _ROWS_OF_FILES)


def _doubled(store: Opened) -> pl.DataFrame:
    """Count rows whose `seq` another row of the partition has; Polars is 50 times as fast here."""
    frames = [_seqs_of(store, partition.key) for partition in store.stored.partitions]
    schema = {"partition": pl.String, "ordinal": pl.Int64, "doubled": pl.Int64}
    return pl.concat([pl.DataFrame(schema=schema), *frames])


def _seqs_of(store: Opened, partition: str) -> pl.DataFrame:
    files = [
        file
        for table in (STAGED_EVENTS, REJECTED_ROWS)
        for file in store.stored.of(table, {partition})
        if file.rows
    ]
    empty = pl.LazyFrame(schema={"seq": pl.Int64})
    seqs = pl.concat([empty, *(store.scan(file).select("seq") for file in files)]).collect()["seq"]
    twice = seqs if seqs.n_unique() < seqs.len() else seqs.clear()
    ordinal = pl.col("seq") // 2**32
    return (
        twice.to_frame()
        .group_by(ordinal.alias("ordinal"))
        .agg((pl.len() - pl.col("seq").n_unique()).cast(pl.Int64).alias("doubled"))
        .select(pl.lit(partition).alias("partition"), "ordinal", "doubled")
    )


_ROWS_OF_FILES = f"""
with found as (
  select partition, {_ORDINAL} as ordinal, count(*) as staged, 0 as rejected
  from staged group by all
  union all
  select partition, {_ORDINAL}, 0, count(*) from rejected group by all
), stored as (
  select partition, ordinal, sum(staged) as staged, sum(rejected) as rejected
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
    coalesce(d.doubled, 0) as doubled
  from noted n full join stored s on n.partition = s.partition and n.ordinal = s.ordinal
  left join doubled d on d.partition = s.partition and d.ordinal = s.ordinal
)
select partition, name, staged_now + rejected_now,
  greatest(abs(staged_then - staged_now) + abs(rejected_then - rejected_now), doubled) as wrong,
  case when wrong > 0 then 'read ' || (staged_then + rejected_then) || ' rows, stored '
    || staged_now || ' and ' || rejected_now || ' rejected, ' || doubled || ' of them twice' end
from compared
"""


def arrivals(store: Opened) -> pl.DataFrame:
    """Find rows that arrived outside of their partition; the first has what came before, too."""
    outside = "arrival_us >= end_us or (arrival_us < start_us and previous is not null)"
    said = f"'one arrived at ' || {instant(f'min(arrival_us) filter ({outside})')}"
    return evidence(
        store,
        f"select partition, key, {counts(outside, said)}"
        " from staged join judged using (partition) group by all",
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
