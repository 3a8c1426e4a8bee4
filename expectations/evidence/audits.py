"""Evidence of the audits: what the order audit and the proofs of the target say, if there are any.

Here their findings become evidence, and they are held to what is stored: an audit of other rows, or
a proof of fewer windows than there are, is as good as none.
"""
# ruff: noqa: S608 (identifiers are quoted)

import polars as pl

from expectations.evidence.sums import once
from expectations.evidence.tables import evidence
from expectations.stored import Opened


def orders(store: Opened) -> pl.DataFrame:
    """Find orders that pairs of one key broke, and partitions whose rows were not audited."""
    once(store, "keys_staged", _KEYS_STAGED)
    return evidence(store, _ORDERS)


# The orders that have to be kept, and what they are called.
_KEPT = """(values
  ('released', 'event', 'released rows, by event time'),
  ('publishing', 'landed', 'batches of a lane, by when they landed')
) as kept(order_of, ordered_by, named)"""
_KEYS_STAGED = "select partition, count(distinct key) as keys from staged group by all"
_ORDERS = f"""
with kept as (select * from {_KEPT}),
expected as (select partition, place, kept.* from judged cross join kept),
looked_at as (
  select partition, keys as keys_then from orders where order_of = 'source' and ordered_by = 'event'
)
select e.partition, named, greatest(coalesce(same_key_pairs, 0), 1),
  case when o.partition is null or coalesce(l.keys_then, 0) <> coalesce(k.keys, 0) then 1
    else same_key_inverted end as wrong,
  case when o.partition is null then 'there is no audit of this partition'
    when coalesce(l.keys_then, 0) <> coalesce(k.keys, 0) then 'the audit is of '
      || coalesce(l.keys_then, 0) || ' keys, there are rows of ' || coalesce(k.keys, 0)
    when wrong > 0 then 'pairs inverted, most of key '
      || coalesce(worst_keys ->> '$[0].key', '?') end
from expected e left join orders o using (partition, order_of, ordered_by)
left join looked_at l on l.partition = e.partition
left join keys_staged k on k.partition = e.partition
order by place
"""


def proofs(store: Opened) -> pl.DataFrame:
    """Find event partitions whose proof is not EQUAL, or is not of all their windows."""
    return evidence(store, _PROOFS)


_PROOFS = """
with windows as (
  select partition, count(distinct ("window", key, window_start_us)) as n from history group by all
), found as (
  select partition, unnest(from_json(summary -> '$.findings',
    '[{"verdict": "VARCHAR", "column": "VARCHAR", "cause": "VARCHAR", "count": "BIGINT"}]')) as f
  from proofs where verdict <> 'EQUAL'
), findings as (
  select partition, concat_ws(' ', f.verdict, nullif(f."column", ''), f.cause) as said,
    sum(f.count) as n
  from found group by all
), said as (
  select partition, said, 0 as examined, n::bigint as wrong,
    n || case n when 1 then ' window' else ' windows' end as detail
  from findings
  union all
  select partition, verdict, 0, 1, coalesce(nullif(array_to_string(
    from_json(summary -> '$.refused', '["VARCHAR"]')
    || from_json(summary -> '$.amber', '["VARCHAR"]'), '; '), ''), 'nothing more is known')
  from proofs anti join findings using (partition) where verdict <> 'EQUAL'
  union all
  select partition, 'proof', (p.partition is null)::bigint, 1,
    case when p.partition is null then 'it has not been proved'
    else 'the proof is of ' || source_rows || ' windows, there are ' || n end
  from windows left join proofs p using (partition)
  where p.partition is null or source_rows <> n and verdict not in ('REFUSED', 'SUPERSEDED')
)
select * from said
union all
select partition, 'all windows', greatest(source_rows, 1), 0, null from proofs
"""
