"""Evidence of news: what is no fault of the platform, and still has to be known."""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

import polars as pl

from expectations.evidence.sums import staged_by_key
from expectations.evidence.tables import EVIDENCE, GRAIN_US, evidence, instant, register_profiles
from expectations.stored import Opened
from transforms.schemas import FUTURE_TIMESTAMP, STAGED_EVENTS, STAGED_SOURCES

# A share of rows from the future above this is the fault of a clock, not of a moment.
FUTURE_SHARE: Final = 0.02


def dead_letter_share(store: Opened) -> pl.DataFrame:
    """Find partitions with more dead letters than the alert level; their keys are named."""
    level = store.spec.alerts.dead_letter_fraction
    share = "sum(dead) over (partition by partition) / sum(staged) over (partition by partition)"
    return evidence(
        store,
        f"""select partition, key, staged,
          case when {share} > {1 if level is None else level} then dead else 0 end as wrong,
          case when wrong > 0 then round(100 * dead / staged, 2) || ' % of its rows; '
            || round(100 * {share}, 2) || ' % of all' end
        from ({_staged_and_dead(store, "true")})""",
    )


def clocks(store: Opened) -> pl.DataFrame:
    """Find keys that send rows from the future, more than a few."""
    return evidence(
        store,
        f"""select partition, key, staged,
          case when dead > {FUTURE_SHARE} * staged then dead else 0 end as wrong,
          case when wrong > 0 then round(100 * dead / staged, 2) || ' % of its rows' end
        from ({_staged_and_dead(store, f"reason = '{FUTURE_TIMESTAMP}'")})""",
    )


def _staged_and_dead(store: Opened, which: str) -> str:
    return f"""
      select s.partition, s.key, s.staged, coalesce(d.dead, 0) as dead
      from (
        select partition, key, sum(rows)::bigint as staged from {staged_by_key(store)} group by all
      ) s
      left join (select partition, key, count(*) as dead from dead where {which} group by all) d
        on d.partition = s.partition and d.key = s.key"""


def silence(store: Opened) -> pl.DataFrame:
    """Find keys that fell silent: their idle timeout, or a grain, ran out in the partition."""
    register_profiles(store)
    grain = GRAIN_US[store.spec.arrival.grain]
    return evidence(
        store,
        f"""
        with patience as (
          select w.partition, w.key, w.last_arrival_us, j.start_us, j.end_us,
            greatest(coalesce(p.idle_us, 0), {grain}) as allowed
          from watermarks w join judged j using (partition)
          left join profiles p on p.profile = w.profile
        ), heard as (select distinct partition from {staged_by_key(store)})
        select partition, key, 1,
          (last_arrival_us + allowed > start_us and last_arrival_us + allowed <= end_us)::bigint
            as wrong,
          case when wrong > 0 then 'last heard at ' || {instant("last_arrival_us")} end
        from patience
        union all
        select partition, 'all keys', 1, 1, 'nothing arrived in this partition'
        from judged anti join heard using (partition)
        """,
    )


def freshness(store: Opened) -> pl.DataFrame:
    """Find out, of the newest partition, whether the newest row is older than the stream allows."""
    keys = [partition.key for partition in store.stored.partitions]
    rows = [(key, "the stream", 1, *_staleness(store, key)) for key in keys]
    return pl.DataFrame(rows, schema=EVIDENCE, orient="row")


def _staleness(store: Opened, partition: str) -> tuple[int, str | None]:
    allowed_us, now_us = store.spec.alerts.stale_after_us, store.stored.now_us
    files = store.stored.files
    newest = max((file.partition for file in files.get(STAGED_SOURCES, ())), default="")
    with_rows = [file.partition for file in files.get(STAGED_EVENTS, ()) if file.rows]
    if allowed_us is None or now_us is None or partition != newest or not with_rows:
        return 0, None
    store.view("staged_last", STAGED_EVENTS, store.stored.of(STAGED_EVENTS, {max(with_rows)}))
    last = "max(arrival_us)"
    last_us, said = store.ask(f"select {last}, {instant(last)} from staged_last").row(0)
    is_stale = now_us - last_us > allowed_us
    return int(is_stale), f"the newest row arrived at {said}" if is_stale else None
