"""Evidence of what was published: revisions without gaps, and a target that holds the newest."""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.tables import columns, counts, evidence, first_window, instant
from expectations.stored import Opened
from transforms.schemas import window_schema

_NEWEST = """(select * from history qualify row_number() over (
  partition by "window", key, window_start_us order by revision desc) = 1)"""


def revisions(store: Opened) -> pl.DataFrame:
    """Find windows whose revisions are not 0, 1, 2 and so on, each once."""
    wrong = "n <> top + 1 or n <> different or bottom <> 0"
    said = first_window(wrong)
    return evidence(
        store,
        f"""select partition, key, {counts(wrong, said)} from (
          select partition, "window", key, window_start_us, count(*) as n, max(revision) as top,
            min(revision) as bottom, count(distinct revision) as different
          from history group by all
        ) group by all""",
    )


def target(store: Opened) -> pl.DataFrame:
    """Compare the newest revisions of the lake with what the target holds, column by column.

    Keys whose windows have equal hashes, summed exactly, are not looked at window by window.
    """
    names = list(window_schema(store.spec))
    store.connection.register("in_target", _in_target(store))
    content = f"hash({columns(names)})"
    sums = (
        f"select partition, key, count(*) as n, sum(({content} >> 32)::bigint) as high,"
        f" sum(({content} & 4294967295)::bigint) as low"
    )
    unequal = " or ".join(f"l.{columns([n])} is distinct from t.{columns([n])}" for n in names)
    return evidence(
        store,
        f"""
        with published as (select partition, {columns(names)} from {_NEWEST}),
        keys as (
          select coalesce(l.partition, t.partition) as partition, coalesce(l.key, t.key) as key,
            coalesce(l.n, t.n) as n, l.n is distinct from t.n or l.high is distinct from t.high
              or l.low is distinct from t.low as differs
          from ({sums} from published group by all) l
          full join ({sums} from in_target group by all) t
            on l.partition = t.partition and l.key = t.key
        ), suspects as (select partition, key from keys where differs),
        compared as (
          select coalesce(l.partition, t.partition) as partition, coalesce(l.key, t.key) as key,
            coalesce(l."window", t."window") as name,
            coalesce(l.window_start_us, t.window_start_us) as start,
            case when t.key is null then 'missing' when l.key is null then 'extra'
              when {unequal} then 'changed' end as fault
          from (select * from published semi join suspects using (partition, key)) l
          full join (select * from in_target semi join suspects using (partition, key)) t
            on l.partition = t.partition and l."window" = t."window" and l.key = t.key
            and l.window_start_us = t.window_start_us
        ), faults as (
          select partition, key, count(fault) as wrong,
            min(fault || ': ' || name || ' from ' || {instant("start")}) as said
          from compared group by all
        )
        select partition, key, n, coalesce(wrong, 0), said
        from keys left join faults using (partition, key)
        """,
    )


def _in_target(store: Opened) -> pl.DataFrame:
    """Return the windows of the target that belong to the judged partitions."""
    names = list(window_schema(store.spec))
    held = store.stored.target
    frame = window_schema(store.spec).to_frame() if held is None else held.select(names)
    store.connection.register("held_by_target", frame)
    return store.ask(f"""
        select j.partition, {columns(names, "t")} from held_by_target t join judged j
          on t.window_start_us < j.end_us
          and (t.window_start_us >= j.start_us or j.previous is null)
        """)
