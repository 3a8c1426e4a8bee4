"""Evidence of watermarks: they never fall, and they stand where rows, grace and silence put them.

Here the watermark is bounded from what is stored: from below by every moving row and by the silence
at the end of the partition, from above by these and any silence that may have been in between.
"""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.sums import skews, staged_by_key
from expectations.evidence.tables import counts, evidence, instant, profile_of, register_profiles
from expectations.stored import Opened
from transforms.spec import StreamSpec


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
    """Find keys whose watermark their rows and their silence do not explain.

    Future rows and duplicates move nothing; everything else that was staged does. Future ones are
    left out of the sums by key; where the newest row of a key is a duplicate, its rows are looked
    at again.
    """
    register_profiles(store)
    by_key = staged_by_key(store)
    query = _EARNED.replace("BY_KEY", by_key).replace("PROFILE", profile_of(store.spec, "s"))
    for name in ("newest_seq", "moved_seq", "newest", "moved"):
        query = query.replace(f"OF_SKEW({name})", _of_skew(store.spec, name))
    return evidence(store, query)


def _of_skew(spec: StreamSpec, name: str) -> str:
    """Return the sum that leaves out what is future by the skew of the profile."""
    cases = (f"when {skew} then {name}_{place}" for place, skew in enumerate(skews(spec)))
    return f"case p.skew_us {' '.join(cases)} end"


_EARNED = """
with sums as (
  select s.partition, s.key, p.*, last_came, OF_SKEW(newest) as newest, OF_SKEW(moved) as moved,
    OF_SKEW(newest_seq) as newest_seq, OF_SKEW(moved_seq) as moved_seq
  from BY_KEY s left join profiles p on p.profile = PROFILE
), doubtful as (
  select s.partition, s.key from sums s join duplicates d
    on d.partition = s.partition and d.seq in (s.newest_seq, s.moved_seq)
), again as (
  select s.partition, s.key, PROFILE as profile, s.event_us, s.arrival_us
  from staged s semi join doubtful d on d.partition = s.partition and d.key = s.key
  anti join duplicates m on m.partition = s.partition and m.seq = s.seq
), moving as (
  select partition, key, profile, max(event_us) as newest, max(arrival_us) as moved
  from again join profiles using (profile) where event_us::hugeint - skew_us <= arrival_us
  group by all
), came as (
  select * from sums anti join doubtful using (partition, key)
  union all by name
  select s.* replace (m.newest as newest, m.moved as moved)
  from sums s semi join doubtful d on d.partition = s.partition and d.key = s.key
  left join moving m on m.partition = s.partition and m.key = s.key and m.profile = s.profile
), rows as (
  select partition, key, max(last_came) as last_came,
    max(newest::hugeint - grace_us)::bigint as pushed, max(newest) as newest,
    max(moved) as last_moved, min(idle_us + grace_us) as quickest
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
