"""Evidence of identities: no event counts twice, and every duplicate repeats a row that counts."""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

import polars as pl

from expectations.evidence.counted import counted_view
from expectations.evidence.sums import odd_rows, ordered_by_key
from expectations.evidence.tables import COUNTED, evidence, instant
from expectations.stored import Opened, literal, quoted
from transforms.spec import StreamSpec

_FAR_US: Final = 1 << 62


def repeats(store: Opened) -> pl.DataFrame:
    """Find duplicates whose row, named by `seq`, is not there with their key and event time."""
    _view_around(store, "select min(event_us), max(event_us) from duplicates", 0)
    return evidence(
        store,
        """select d.partition, d.key, count(*), count(*) filter (c.seq is null) as wrong,
          case when wrong > 0 then 'such as seq ' || min(d.seq) filter (c.seq is null) end
        from duplicates d left join (
          select seq, key, event_us from counted union select seq, key, event_us from held
        ) c on c.seq = d.duplicate_of_seq and c.key = d.key and c.event_us = d.event_us
        group by all""",
    )


def counted_once(store: Opened) -> pl.DataFrame:
    """Find events that are more than once among the rows that count, up to the partition.

    Released rows of a key never go back in time (other invariants). So where the identity holds the
    event time, rows repeat within their partition or repeat a dead letter, and all others need no
    look. Without it they may repeat anywhere within the horizon.
    """
    spec, last = store.spec, literal(store.stored.last.key)
    span = f"""select min(first_us), max(last_us) from (
      select first_us, last_us from {ordered_by_key(store)} union all
      select min(event_us), max(event_us) from dead where {COUNTED})"""
    if spec.identity_has_event_time:
        _view_around(store, span, 0)
        odd_rows(store)
        store.connection.execute(_SUSPECTS.replace("LAST", last))
        suspects = "(key, event_us) in (select (key, event_us) from suspects)"
    else:
        _view_around(store, span, spec.columns.dedup_horizon_us or _FAR_US)
        suspects = "true"
    query = _TWICE.replace("IDENTITY", _identity(spec)).replace("IS_SUSPECT", suspects)
    return evidence(store, query.replace("LAST", last).replace("HORIZON", str(_horizon(spec))))


def _view_around(store: Opened, query: str, margin_us: int) -> None:
    """Make the view ``counted`` of the event times that a query finds, up to the last partition."""
    low, high = store.ask(query).row(0)
    if low is None:
        low, high = 1, 0
    counted_view(store, store.stored.last, low - margin_us, high + margin_us)


def _horizon(spec: StreamSpec) -> int:
    horizon = spec.columns.dedup_horizon_us
    return _FAR_US if horizon is None else horizon


def _identity(spec: StreamSpec) -> str:
    """Return what makes two rows of a key the same event; a null falls back to the event time."""
    names = [quoted(name) for name in spec.identity_columns]
    if not names:
        return "event_us as moment, null as ids"
    present = " and ".join(f"{name} is not null" for name in names)
    ids = f"case when {present} then [{', '.join(names)}] end as ids"
    at = (
        "event_us"
        if spec.identity_has_event_time
        else f"case when not ({present}) then event_us end"
    )
    return f"{at} as moment, {ids}"


# Where events may be that are there twice. Released rows that are tied are neighbours in their
# file, which is sorted; that it is, is another invariant. Most streams have none.
_SUSPECTS: Final = f"""
create or replace temp table suspects as
with few as (
  select key, event_us from dead_within where {COUNTED}
  union all select key, event_us from held where partition = LAST
)
select key, event_us from odd_rows where tied
union select key, event_us from few group by all having count(*) > 1
union select key, event_us from ordered_within semi join few using (key, event_us)
"""
_TWICE: Final = f"""
with rows as (
  select partition, key, event_us, seq, IDENTITY from (
    select * exclude (refused_at_us, is_dead_letter) from counted union all by name
    select * exclude (is_late) from held where partition = LAST
  ) where IS_SUSPECT
), neighbours as (
  select partition, key, event_us, lag(event_us) over same as earlier,
    lag(partition) over same as partition_then
  from rows window same as (partition by key, moment, ids order by event_us, seq)
), twice as (
  select greatest(partition, partition_then) as partition, key, count(*) as n,
    min(event_us) as first_us
  from neighbours where event_us - earlier <= HORIZON group by all
), looked_at as (
  select partition, key, rows as examined from ordered_by_key
)
select coalesce(l.partition, t.partition), coalesce(l.key, t.key), coalesce(examined, n),
  coalesce(n, 0), case when n > 0 then 'the first is of ' || {instant("first_us")} end
from looked_at l full join (select * from twice semi join judged using (partition)) t
  on t.partition = l.partition and t.key = l.key
"""
