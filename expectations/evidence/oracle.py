"""The batch oracle: what every window must be, by a plain GROUP BY over all rows that count.

Here belong the statistics in SQL and how close they must be. Whole numbers, extremes, first and
last readings must be equal; sums and means of floats may differ by their rounding, for two
engines add in two orders.
"""
# ruff: noqa: S608 (identifiers are quoted)

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from expectations.evidence.counted import counted_view
from expectations.evidence.grids import in_windows, numbered, start_of
from expectations.evidence.tables import EVIDENCE, GRAIN_US, columns, evidence, instant
from expectations.stored import Opened, literal, quoted
from transforms.schemas import FLUSH, SEQ, WATERMARKS
from transforms.spec import StreamSpec, ValueType, WindowSpec

_LONGEST_DAY_US: Final = 25 * 3_600_000_000
_LONGEST_DAYS: Final = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
_EARLIEST_US: Final = -(1 << 63) + 1
# Relative to the size of the readings.
_ROUNDING: Final = 1e-9
_ROUNDING_OF_SPREAD: Final = 1e-6


@dataclass(frozen=True)
class Statistic:
    """A published column: what it must be, and how far off it may be (None: not at all)."""

    column: str
    expected: str
    tolerance: str | None = None


def group_by(store: Opened) -> pl.DataFrame:
    """Compare the newest revision of every window with all rows, grouped plainly."""
    partitions = store.stored.partitions
    first = min(partitions, key=lambda partition: partition.start_us)
    low = _EARLIEST_US if first.is_first else first.start_us
    reach = max(map(_longest_us, store.spec.windows))
    counted_view(store, None, low, store.stored.last.end_us + reach)
    newest = max((file.partition for file in store.stored.files.get(WATERMARKS, ())), default="")
    store.view("watermarks_now", WATERMARKS, store.stored.of(WATERMARKS, {newest}))
    frames = [evidence(store, _question(store.spec, window)) for window in store.spec.windows]
    return pl.concat([EVIDENCE.to_frame(), *frames])


def _longest_us(window: WindowSpec) -> int:
    days = _LONGEST_DAYS.get(str(window.unit))
    return window.length_us if days is None else days * window.count * _LONGEST_DAY_US


def _question(spec: StreamSpec, window: WindowSpec) -> str:
    statistics = [*_of_window(), *_statistics(spec)]
    expected = ", ".join(f"{s.expected} as {quoted(s.column)}" for s in statistics)
    faults = " ".join(f"when {_differs(s)} then {literal(s.column)}" for s in statistics)
    scales = ", ".join(
        f"max(abs({quoted(name)}::double)) filter ({_is_reading(name, kind)}) as {_scale(name)}"
        for name, kind in spec.columns.values.items()
    )
    return f"""
      with grouped as (
        select key, wid, wend_us, {expected}, {scales} from ({_rows(spec, window)}) group by all
      ), expected as (
        select j.partition, g.*, wend_us <= w.watermark_us as is_closed from (
          select *, {_place(spec, start_of(window, "wid"))} as place from grouped) g
        join ({_judged(spec)}) j using (place) left join watermarks_now w using (key)
      ), published as (
        select *, {numbered(window, "window_start_us")} as wid from history
        where "window" = {literal(window.name)}
        qualify row_number() over (partition by key, window_start_us order by revision desc) = 1
      ), compared as (
        select coalesce(e.partition, p.partition) as partition, coalesce(e.key, p.key) as key,
          coalesce(e.wend_us, p.window_end_us) as wend_us,
          case when p.key is null then 'not published'
            when e.key is null then 'published without rows'
            when p.reason <> {literal(FLUSH)} and not coalesce(e.is_closed, false)
              then 'published before it is closed'
            {faults} end as fault
        from (select * from expected where is_closed or (partition, key, wid) in (
            select (partition, key, wid) from published where event_count > 0)) e
        full join (select * from published where event_count > 0) p
          on p.partition = e.partition and p.key = e.key and p.wid = e.wid
      )
      select partition, key, count(*), count(fault),
        min(fault || ' of ' || {literal(window.name)} || ' that ends ' || {instant("wend_us")})
      from compared group by all
      """


def _rows(spec: StreamSpec, window: WindowSpec) -> str:
    """Return a query for rows with the number and end of their window."""
    kept = columns(("key", "event_us", SEQ, "is_dead_letter", *spec.columns.values))
    rows = in_windows("counted", window, kept)
    held = [
        f"lead(event_us, 1, wend_us) over (partition by key, wid, {_is_reading(name, kind)}"
        f" order by event_us, {SEQ}) - event_us as {_hold(name)}"
        for name, kind in spec.columns.values.items()
        if "time_weighted_mean" in spec.aggregates.get(name, ())
    ]
    return f"select *, {', '.join(held)} from ({rows})" if held else rows


def _place(spec: StreamSpec, start_us: str) -> str:
    """Return the number of the event partition of a start; the first has what came before it."""
    grain = GRAIN_US[spec.events.grain]
    return f"greatest(({start_us} - {spec.events.start_us}) // {grain}, 0)"


def _judged(spec: StreamSpec) -> str:
    return f"select partition, {_place(spec, 'start_us')} as place from judged"


def _differs(statistic: Statistic) -> str:
    name = quoted(statistic.column)
    if statistic.tolerance is None:
        return f"p.{name} is distinct from e.{name}"
    return (
        f"(p.{name} is distinct from e.{name}"
        f" and not coalesce(abs(p.{name} - e.{name}) <= {statistic.tolerance}, false))"
    )


def _of_window() -> Iterator[Statistic]:
    yield Statistic("event_count", "count(*)")
    yield Statistic("dead_letter_count", "count(*) filter (is_dead_letter)")
    yield Statistic("first_event_us", "min(event_us)")
    yield Statistic("last_event_us", "max(event_us)")


def _statistics(spec: StreamSpec) -> Iterator[Statistic]:
    for name, kind in spec.columns.values.items():
        reading = _is_reading(name, kind)
        yield Statistic(f"{name}_count", f"count(*) filter ({reading})")
        for declared in spec.aggregates.get(name, ()):
            if declared != "count":
                yield _statistic(name, kind, declared, reading)


def _is_reading(name: str, kind: ValueType) -> str:
    column = quoted(name)
    return f"{column} is not null" + (f" and not isnan({column})" if kind.kind == "float" else "")


def _scale(name: str) -> str:
    return quoted(f"{name} scale")


def _hold(name: str) -> str:
    return quoted(f"{name} hold")


def _statistic(name: str, kind: ValueType, declared: str, reading: str) -> Statistic:
    value = f"{quoted(name)}::bigint" if kind.kind == "bool" else quoted(name)
    real = f"{value}::double"
    where = f"filter ({reading})"
    near = f"{_ROUNDING} * e.{_scale(name)}"
    column = f"{name}_{declared}"
    first, last = (f"{end}({value} order by event_us, {SEQ}) {where}" for end in ("first", "last"))
    if declared == "sum" and kind.kind == "float":
        return Statistic(column, f"fsum({value}) {where}", f"{near} * e.event_count")
    exact = {"sum": f"sum({value}) {where}", "first": first, "last": last}
    exact |= {end: f"{end}({value}) {where}" for end in ("min", "max")}
    if declared in exact:
        return Statistic(column, exact[declared])
    if declared.startswith("p"):
        share = float(declared[1:]) / 100
        return Statistic(column, f"quantile_cont({real}, {share!r}) {where}", near)
    if declared == "std":
        spread = f"{_ROUNDING_OF_SPREAD} * e.{_scale(name)}"
        return Statistic(column, f"stddev_samp({real}) {where}", spread)
    if declared == "rate":
        seconds = f"((max(event_us) {where} - min(event_us) {where}) / 1e6)"
        rate = f"({last}::double - {first}::double) / nullif({seconds}, 0)"
        return Statistic(
            column, rate, f"{_ROUNDING} * (abs(p.{quoted(column)}) + e.{_scale(name)})"
        )
    weighted = f"fsum({real} * {_hold(name)}) {where} / fsum({_hold(name)}) {where}"
    mean = f"fsum({real}) {where} / count(*) {where}"
    return Statistic(column, mean if declared == "mean" else weighted, near)
