"""Evidence of watermarks: they never fall, and they stand where rows, grace and silence put them.

Here the watermark is bounded from what is stored: from below by every moving row and by the silence
at the end of the partition, from above by these and any silence that may have been in between.
"""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.tables import counts, evidence, instant, profile_of, register_profiles
from expectations.stored import Opened


def falls(store: Opened) -> pl.DataFrame:
    """Find keys whose watermark is lower than before, or that lost theirs."""
    lower = (
        "b.watermark_us is not null and (w.watermark_us is null or w.watermark_us < b.watermark_us)"
    )
    lost = f"(b.key is not null and w.key is null) or ({lower})"
    said = f"'it was ' || coalesce({instant('max(b.watermark_us)')}, 'not there yet')"
    return evidence(
        store,
        f"""select coalesce(w.partition, b.partition), coalesce(w.key, b.key),
          {counts(lost, said)}
        from watermarks w full join watermarks_before b
          on w.partition = b.partition and w.key = b.key group by all""",
    )


def earned(store: Opened) -> pl.DataFrame:
    """Find keys whose watermark their rows and their silence do not explain."""
    register_profiles(store)
    return evidence(store, _EARNED.replace("PROFILE", profile_of(store.spec, "s")))


# Future rows and duplicates move nothing; everything else that was staged does.
_EARNED = """
with stood as (
  select partition, seq from dead where reason = 'future_timestamp'
  union all select partition, seq from duplicates
), came as (
  select s.partition, s.key, s.event_us, s.arrival_us, m.seq is null as moves, p.*
  from staged s left join profiles p on p.profile = PROFILE
  left join stood m on m.partition = s.partition and m.seq = s.seq
), rows as (
  select partition, key, max(arrival_us) as last_came,
    max(event_us - grace_us) filter (moves) as pushed, max(event_us) filter (moves) as newest,
    max(arrival_us) filter (moves) as last_moved, min(idle_us + grace_us) as quickest
  from came group by all
), known as (
  select w.*, j.end_us, r.pushed, r.last_came, b.watermark_us as before,
    greatest(b.last_arrival_us, r.last_moved) as heard,
    greatest(b.max_event_us, r.newest) as newest,
    least(r.quickest, q.idle_us + q.grace_us, o.idle_us + o.grace_us) as quickest,
    case when j.end_us - w.last_arrival_us >= q.idle_us
      then j.end_us - q.idle_us - q.grace_us end as silence
  from watermarks w join judged j using (partition)
  left join rows r using (partition, key)
  left join watermarks_before b using (partition, key)
  left join profiles q on q.profile = coalesce(
    (select any_value(profile) from profiles x where x.profile = w.profile), 'default')
  left join profiles o on o.profile = b.profile
), bounds as (
  select *, greatest(before, pushed, silence) as low,
    greatest(before, pushed, silence, last_came - quickest) as high
  from known
)
select partition, key, 1,
  (watermark_us is distinct from low and not coalesce(watermark_us between low and high, false)
    or last_arrival_us is distinct from heard or max_event_us is distinct from newest)::bigint
    as wrong,
  case when wrong > 0 then 'it is ' || coalesce(INSTANT_W, 'missing') || ', and should be '
    || coalesce(INSTANT_LOW, 'missing') end
from bounds
""".replace("INSTANT_W", instant("watermark_us")).replace("INSTANT_LOW", instant("low"))
