"""Evidence of identities: no event counts twice, and every duplicate repeats a row that counts."""
# ruff: noqa: S608 (identifiers are quoted)

from typing import Final

import polars as pl

from expectations.evidence.counted import counted_view
from expectations.evidence.tables import COUNTED, evidence, instant
from expectations.stored import Opened, literal, quoted
from transforms.schemas import ORDERED_EVENTS
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
    spec = store.spec
    rows = "(select partition, key, event_us from ordered union all"
    rows += f" select partition, key, event_us from dead where {COUNTED})"
    span = f"select min(event_us), max(event_us) from {rows}"
    if spec.identity_has_event_time:
        _view_around(store, span, 0)
        store.connection.register("ties", _ties(store))
        suspects = _SUSPECTS
    else:
        _view_around(store, span, spec.columns.dedup_horizon_us or _FAR_US)
        suspects = "true"
    query = _TWICE.replace("IDENTITY", _identity(spec)).replace("SUSPECTS", suspects)
    last = literal(store.stored.last.key)
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


def _ties(store: Opened) -> pl.DataFrame:
    """Return the key and event time of released rows that are not alone with them.

    They are neighbours in their file, which is sorted; that it is, is another invariant.
    """
    keys = {partition.key for partition in store.stored.partitions}
    alike = [pl.col(name) == pl.col(name).shift() for name in ("key", "event")]
    frames = pl.collect_all(
        [
            store.scan(file).select("key", "event").filter(*alike)
            for file in store.stored.of(ORDERED_EVENTS, keys)
            if file.rows
        ]
    )
    empty = pl.DataFrame(schema={"key": pl.String, "event_us": pl.Int64})
    us = pl.col("event").dt.timestamp("us").alias("event_us")
    return pl.concat([empty, *(frame.select("key", us) for frame in frames)])


# The filter on the event time alone is for speed: it looks at numbers.
_SUSPECTS: Final = f"""
  event_us in (select event_us from ties union all select event_us from dead_within where {COUNTED})
  and (key, event_us) in (
    select (key, event_us) from ties union all
    select (key, event_us) from dead_within where {COUNTED})
"""
_TWICE: Final = f"""
with rows as (
  select partition, key, event_us, seq, IDENTITY from (
    select * exclude (refused_at_us, is_dead_letter) from counted union all by name
    select * exclude (is_late) from held where partition = LAST
  ) where SUSPECTS
), neighbours as (
  select partition, key, event_us, lag(event_us) over same as earlier,
    lag(partition) over same as partition_then
  from rows window same as (partition by key, moment, ids order by event_us, seq)
), twice as (
  select greatest(partition, partition_then) as partition, key, count(*) as n,
    min(event_us) as first_us
  from neighbours where event_us - earlier <= HORIZON group by all
), looked_at as (
  select partition, key, count(*) as examined from ordered group by all
)
select coalesce(l.partition, t.partition), coalesce(l.key, t.key), coalesce(examined, n),
  coalesce(n, 0), case when n > 0 then 'the first is of ' || {instant("first_us")} end
from looked_at l full join (select * from twice semi join judged using (partition)) t
  on t.partition = l.partition and t.key = l.key
"""
