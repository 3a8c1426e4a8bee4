"""The numbers of the quality page, straight from what is stored.

Here belongs what is counted for people to look at. What is right or wrong is said by verdicts; how
numbers are drawn is in ``charts``.
"""
# ruff: noqa: S608 (identifiers are quoted)

from dataclasses import dataclass
from typing import Final

import polars as pl

from expectations.evidence.tables import profile_of, register_profiles
from expectations.stored import Opened, Partition, Stored, opened
from transforms.schemas import STAGED_EVENTS, WATERMARKS

# Partitions and keys beyond these do not fit on a page that people read.
PARTITIONS: Final = 400
KEYS: Final = 30
WINDOWS: Final = 40
LATENESS_ROWS: Final = 20_000_000
_STEPS: Final = 40


@dataclass(frozen=True)
class Figures:
    """Everything that is drawn. Frames are small and sorted as they are shown.

    ``books``: state, rows. ``days``: partition, staged, dead, late, fraction. ``reasons``: state,
    reason, rows. ``lateness``: profile, from_s, to_s, rows. ``keys``: partition, key, rows, late.
    ``lag``: key, lag_s, silent_s. ``amended``: partition, windows, rows. ``changes``: the windows
    that changed most. ``clocks``: key, future, rows. ``orders``: by partition what the order audit
    says, null where there is none. ``proofs``: by event partition what was proved of the target.
    ``heard_us``: when the newest row arrived.
    """

    partitions: tuple[Partition, ...]
    books: pl.DataFrame
    days: pl.DataFrame
    reasons: pl.DataFrame
    lateness: pl.DataFrame
    keys: pl.DataFrame
    lag: pl.DataFrame
    amended: pl.DataFrame
    changes: pl.DataFrame
    clocks: pl.DataFrame
    orders: pl.DataFrame
    proofs: pl.DataFrame
    heard_us: int | None


def figures(arrivals: Stored, events: Stored) -> Figures:
    """Count what is stored of the newest partitions of both axes."""
    shown = arrivals.judging(arrivals.partitions[-PARTITIONS:])
    with opened(shown) as store, opened(events) as history:
        register_profiles(store)
        return Figures(
            shown.partitions,
            store.ask(_BOOKS),
            store.ask(_DAYS),
            store.ask(_REASONS),
            lateness(store),
            _of_keys(store),
            store.ask(_LAG),
            history.ask(_AMENDED),
            history.ask(_CHANGES),
            store.ask(_CLOCKS),
            store.ask(_ORDERS),
            history.ask(_PROOFS),
            store.ask("select max(last_arrival_us) from watermarks").item(),
        )


_BOOKS: Final = """
select 'staged' as state, (select count(*) from staged) + (select count(*) from rejected) as rows
union all select 'held before', (select count(*) from held_before
  where partition = (select min(partition) from judged))
union all select 'ordered', (select count(*) from ordered)
union all select 'dead letters', (select count(*) from dead)
union all select 'duplicates', (select count(*) from duplicates)
union all select 'rejected', (select count(*) from rejected)
union all select 'held', (select count(*) from held
  where partition = (select max(partition) from judged))
"""
_DAYS: Final = """
with s as (select partition, count(*) as n from staged group by all),
  d as (select partition, count(*) as n from dead group by all),
  o as (select partition, count(*) filter (is_late) as n from ordered group by all)
select partition, coalesce(s.n, 0) as staged, coalesce(d.n, 0) as dead, coalesce(o.n, 0) as late,
  case when s.n > 0 then coalesce(d.n, 0) / s.n else 0 end as fraction
from judged left join s using (partition) left join d using (partition)
left join o using (partition) order by place
"""
_REASONS: Final = """
select 'dead letters' as state, reason, count(*) as rows from dead group by all
union all select 'rejected', reason, count(*) from rejected group by all
order by state, rows desc
"""
_LAG: Final = f"""
select key, (end_us - watermark_us) / 1e6 as lag_s, (end_us - last_arrival_us) / 1e6 as silent_s
from watermarks join judged using (partition)
where partition = (select max(partition) from judged)
order by lag_s desc nulls first, key limit {KEYS}
"""
_AMENDED: Final = """
select partition, count(*) as windows, sum(abs(event_count - before))::bigint as rows from (
  select partition, revision, event_count, lag(event_count) over (
    partition by "window", key, window_start_us order by revision) as before
  from history
) where revision > 0 group by all order by partition
"""
_CHANGES: Final = f"""
select "window", key, window_start_us, revision, reason, published_at_us, before, event_count
from (
  select *, lag(event_count) over (
    partition by "window", key, window_start_us order by revision) as before
  from history
) where revision > 0
order by abs(event_count - before) desc, window_start_us desc, "window", key limit {WINDOWS}
"""
_CLOCKS: Final = f"""
select key, count(*) filter (reason = 'future_timestamp') as future, count(*) as dead_letters,
  max((event_us - arrival_us) / 1e6) filter (reason = 'future_timestamp') as ahead_s
from dead group by all having future > 0 order by future desc, key limit {KEYS}
"""
# What the audit says of pairs of one key, beside the share of rows that came behind a newer one.
_ORDERS: Final = """
with s as (select partition, count(*) as n from staged group by all),
  d as (select partition, count(*) as n from dead group by all),
  o as (select partition, count(*) filter (is_late) as n from ordered group by all),
  audit as (
    select partition,
      any_value(same_key_inverted) filter (order_of = 'source' and ordered_by = 'event')
        as source_inverted,
      any_value(same_key_inverted) filter (order_of = 'released' and ordered_by = 'event')
        as released_inverted,
      any_value(same_key_pairs) filter (order_of = 'released' and ordered_by = 'event')
        as released_pairs,
      any_value(same_key_inverted) filter (order_of = 'publishing' and ordered_by = 'landed')
        as landed_inverted
    from orders group by all
  )
select partition, place, source_inverted, released_inverted, released_pairs, landed_inverted,
  released_inverted = 0 and landed_inverted = 0 as is_kept,
  case when s.n > 0 then (coalesce(o.n, 0) + coalesce(d.n, 0)) / s.n else 0 end as disorder
from judged left join s using (partition) left join d using (partition)
left join o using (partition) left join audit using (partition) order by place
"""
_PROOFS: Final = """
with said as (
  select partition, count(distinct ("window", key, window_start_us)) as windows
  from history group by all
)
select partition, windows, target_rows, summary, case
  when verdict is null or verdict = 'EQUAL' and source_rows <> windows then 'NOT PROVED'
  else verdict end as verdict
from judged join said using (partition) left join proofs using (partition) order by place
"""


def _of_keys(store: Opened) -> pl.DataFrame:
    """Rows and late share, in every partition, of the keys latest and of those missed most."""
    return store.ask(f"""
        with rows as (select partition, key, count(*) as n from staged group by all),
        late as (
          select partition, key, count(*) as n from (
            select partition, key from ordered where is_late
            union all select partition, key from dead
          ) group by all
        ), counts as (
          select key, sum(coalesce(late.n, 0)) as trouble, count(*) as heard
          from rows left join late using (partition, key) group by all
        ), ranked as (
          select key, row_number() over (order by trouble desc, heard, key) as by_trouble,
            row_number() over (order by heard, trouble desc, key) as by_silence
          from counts order by least(by_trouble, by_silence), by_trouble limit {KEYS}
        )
        select partition, key, coalesce(rows.n, 0) as rows,
          case when rows.n > 0 then coalesce(late.n, 0) / rows.n end as late
        from judged cross join ranked left join rows using (partition, key)
        left join late using (partition, key) order by key, place
        """)


def lateness(store: Opened) -> pl.DataFrame:
    """Count how far rows were behind the newest event of their key, by profile.

    Of the newest partitions that hold a bounded number of rows. Steps grow by a constant factor.
    """
    counts = [
        _behind(store, partition.key)
        for partition in _newest(store.stored)
        if store.stored.rows(STAGED_EVENTS, partition.key)
    ]
    if not counts:
        return pl.DataFrame(schema={"profile": pl.String, "step": pl.Int64, "rows": pl.UInt32})
    total = pl.concat(counts).group_by("profile", "step").agg(pl.col("rows").sum())
    return total.sort("profile", "step")


def _newest(stored: Stored) -> list[Partition]:
    chosen, rows = list[Partition](), 0
    for partition in reversed(stored.partitions):
        rows += stored.rows(STAGED_EVENTS, partition.key)
        if chosen and rows > LATENESS_ROWS:
            break
        chosen.append(partition)
    return chosen


def _behind(store: Opened, partition: str) -> pl.DataFrame:
    """Rows of a partition by profile and by step of lateness; a row that is newest is at step 0."""
    rows = store.ask(f"""
        select key, event_us, {profile_of(store.spec, "staged")} as profile from staged
        where partition = '{partition}' order by arrival_us, seq
        """)
    before = store.ask(
        f"select key, max_event_us from watermarks_before where partition = '{partition}'"
    )
    newest = pl.max_horizontal(
        pl.col("event_us").cum_max().shift().over("key"), pl.col("max_event_us")
    )
    behind_s = (newest - pl.col("event_us")).clip(0).fill_null(0) / 1_000_000
    step = pl.when(behind_s > 0).then(step_of(behind_s)).otherwise(0).alias("step")
    return (
        rows.join(before, on="key", how="left", maintain_order="left")
        .select("profile", step)
        .group_by("profile", "step")
        .len("rows")
    )


def step_of(seconds: pl.Expr) -> pl.Expr:
    """Return the number of the step of a lateness, two steps to each doubling, from 1 s."""
    steps = (seconds.clip(1).log(2) * 2).floor().cast(pl.Int64) + 1
    return steps.clip(1, _STEPS)


def start_of_step(step: int) -> float:
    """Return the seconds at which a step starts."""
    return 0.0 if step < 1 else 2 ** ((step - 1) / 2)


def has_rows(stored: Stored) -> bool:
    """Whether there is anything to show."""
    return bool(stored.partitions) and bool(stored.files.get(WATERMARKS))
