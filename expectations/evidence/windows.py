"""Evidence of first publications: published when due, counting what came, true to themselves.

Counts are compared by a fingerprint: over the windows of a key, the sum of count times a hash of
the window's number. It is one sum over the rows and one over the windows, and no grouping by
window; counts that differ give another sum, but for a chance of one in 2^32. Only where it
differs are windows counted one by one.
"""
# ruff: noqa: S608 (identifiers are quoted)

from collections.abc import Iterator
from typing import Final

import polars as pl

from expectations.evidence.counted import counted_view
from expectations.evidence.grids import in_windows, numbered
from expectations.evidence.tables import EVIDENCE, counts, evidence, first_window, instant
from expectations.stored import Opened, literal, quoted
from transforms.schemas import CLOSED, FLUSH, STATISTICS
from transforms.spec import WindowSpec

_WEIGHT: Final = "(hash(wid) & 4294967295)::bigint"


def due(store: Opened) -> pl.DataFrame:
    """Find windows published in a partition in which the watermark did not pass their end."""
    wrong = (
        f"reason <> {literal(FLUSH)} and (w.watermark_us is null or window_end_us > w.watermark_us)"
        " or coalesce(window_end_us <= b.watermark_us, false)"
    )
    said = first_window(wrong)
    return evidence(
        store,
        f"""select partition, key, {counts(wrong, said)}
        from windows left join watermarks w using (partition, key)
        left join watermarks_before b using (partition, key) group by all""",
    )


def row_counts(store: Opened) -> pl.DataFrame:
    """Compare the event count of each first publication with the rows that are stored for it."""
    examined = evidence(
        store, "select partition, key, count(*), 0, null from windows group by partition, key"
    )
    low, high = store.ask("select min(window_start_us), max(window_end_us) - 1 from windows").row(0)
    if low is None:
        return examined
    counted_view(store, store.stored.last, low, high)
    first = min(store.stored.partitions, key=lambda partition: partition.start_us)
    store.connection.execute(_LIMITS.replace("FIRST", literal(first.key)))
    frames = [_of_window(store, window) for window in store.spec.windows]
    return pl.concat([examined, *frames])


# What the judged partitions closed, all together.
_LIMITS: Final = """
create or replace temp table limits as
select key, max(w.watermark_us) as until, any_value(b.watermark_us) as before
from watermarks w left join (
  select key, watermark_us from watermarks_before where partition = FIRST) b using (key)
group by key
"""
# Whether a window that ends at ``wend_us`` is within the limits of a key.
_WITHIN: Final = "wend_us <= until and wend_us > coalesce(before, wend_us - 1)"
_WAS_OPEN: Final = "(refused_at_us is null or wend_us > refused_at_us)"


def _of_window(store: Opened, window: WindowSpec) -> pl.DataFrame:
    """Find the windows of one name that count other rows; first the keys that have any."""
    suspects = store.ask(_fingerprints(window, _surely(store)))
    if suspects.is_empty():
        return EVIDENCE.to_frame()
    store.connection.register("miscounted", suspects)
    return evidence(store, _one_by_one(window))


def _surely(store: Opened) -> str:
    """Return SQL for whether a window is within the limits of every key that has rows.

    Nearly all are, and need not be compared with the limits of their own key.
    """
    above, upto = store.ask("""
        select max(before), coalesce(min(coalesce(until, -1::bigint << 62)), 0)
        from (select distinct key from counted) left join limits using (key)
        """).row(0)
    return f"wend_us <= {upto}" + ("" if above is None else f" and wend_us > {above}")


def _rows_in(window: WindowSpec) -> str:
    return f"({in_windows('counted', window, 'key, refused_at_us')})"


def _published(window: WindowSpec) -> str:
    return f"""
      select partition, key, event_count, window_end_us,
        {numbered(window, "window_start_us")} as wid
      from windows where "window" = {literal(window.name)} and reason = {literal(CLOSED)}"""


def _fingerprints(window: WindowSpec, surely: str) -> str:
    """Return a query for the keys whose windows do not count their rows."""
    return f"""
      with counts as (
        select key, case when not ({surely}) then wend_us end as wend_us, count(*) as found,
          sum({_WEIGHT}) as mark
        from {_rows_in(window)} where {_WAS_OPEN} group by all
      )
      select key from (
        select key, found, mark from counts left join limits using (key)
        where wend_us is null or ({_WITHIN})
        union all
        select key, -sum(event_count), -sum(event_count * {_WEIGHT})
        from ({_published(window)}) group by key
      ) group by key having sum(found) <> 0 or sum(mark) <> 0"""


def _one_by_one(window: WindowSpec) -> str:
    closed_in = """(select min(w.partition) from watermarks w
      where w.key = f.key and w.watermark_us >= f.wend_us)"""
    return f"""
      with found as (
        select key, wid, any_value(wend_us) as wend_us, count(*) as n
        from {_rows_in(window)} join limits using (key)
        where {_WITHIN} and {_WAS_OPEN} and key in (select key from miscounted)
        group by key, wid
      ), published as (select * from ({_published(window)}) semi join miscounted using (key)),
      compared as (
        select coalesce(p.partition, {closed_in}) as partition, coalesce(p.key, f.key) as key,
          coalesce(p.window_end_us, f.wend_us) as wend_us, coalesce(p.event_count, 0) as said,
          coalesce(f.n, 0) as n
        from found f full join published p on p.key = f.key and p.wid = f.wid
      )
      select partition, key, 0, count(*), {literal(window.name)} || ' that ends '
        || {instant("min(wend_us)")} || ': ' || arg_min(said, wend_us) || ' counted, '
        || arg_min(n, wend_us) || ' rows'
      from compared where said <> n group by all"""


def agreement(store: Opened) -> pl.DataFrame:
    """Find windows whose own numbers contradict each other."""
    wrong = " or ".join(f"not coalesce({rule}, false)" for rule in _rules(store))
    return evidence(
        store,
        f"""select partition, key, {counts("wrong", first_window("wrong"))}
        from (select *, {wrong} as wrong from windows) group by all""",
    )


def _rules(store: Opened) -> Iterator[str]:
    yield "event_count > 0 and revision = 0 and known_at_us is not null"
    yield "dead_letter_count between 0 and event_count"
    yield "late_arrival_count between 0 and event_count"
    yield "abs(dead_letter_fraction - dead_letter_count / event_count) < 1e-9"
    yield "window_start_us <= first_event_us and first_event_us <= last_event_us"
    yield "last_event_us < window_end_us"
    for value, declared in store.spec.aggregates.items():
        yield from _rules_of_value(value, set(declared) & set(STATISTICS))
    for value in store.spec.columns.values:
        yield f"{quoted(f'{value}_count')} between 0 and event_count"


def _rules_of_value(value: str, declared: set[str]) -> Iterator[str]:
    count, low, high = (quoted(f"{value}_{name}") for name in ("count", "min", "max"))
    for name in ("min", "max", "mean", "sum", "first", "last"):
        if name in declared:
            yield f"({quoted(f'{value}_{name}')} is null) = ({count} = 0)"
    if {"min", "max"} <= declared:
        yield f"({count} = 0 or {low} <= {high})"
    for name in declared & {"mean", "first", "last", "time_weighted_mean"}:
        column, slack = quoted(f"{value}_{name}"), 1e-9
        if "min" in declared:
            yield f"({column} is null or {column} >= {low} - {slack} * (1 + abs({low})))"
        if "max" in declared:
            yield f"({column} is null or {column} <= {high} + {slack} * (1 + abs({high})))"
