"""Rules between the fields of a spec, told from the text as it was written.

What one field allows by itself is said by the model of its section; rules of names are in
``spec_names.py``, of one window in ``spec_windows.py``, of partitions in ``spec_partitions.py``.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from transforms.reading.time_formats import compile_format
from transforms.schemas import STATISTICS
from transforms.spec.names import name_mistakes
from transforms.spec.partitions import start_mistakes
from transforms.spec.source import ISO8601, NUMBER_UNITS
from transforms.spec.tracks import declared_profiles, track_mistakes
from transforms.spec.windows import grid_mistakes
from transforms.spec.words import ALLOWED, Mistake, Words, nearest
from transforms.spec.written import Named, mapping, repeated, text, texts

_PERCENTILE: Final = re.compile(r"p([0-9]{1,3}(?:\.[0-9]{1,9})?)")
_STATISTIC_WORDS: Final = (
    f"{', '.join(STATISTICS)}, or a percentile p0 to p100 such as p95 or p99.9"
)
_OFFSET_IN_FORMAT: Final = re.compile(r"%(:{0,3}z|#z|\+|s)")
_OTHER_NAMES: Final = {"median": "p50", "avg": "mean", "average": "mean", "stddev": "std"}


def rule_mistakes(spec: Any) -> Iterator[Mistake]:
    """Yield every mistake that lies between fields of a spec as written."""
    yield from _csv_mistakes(spec)
    for field in ("event_time", "arrival_time"):
        yield from _zone_mistakes(spec, field)
        yield from _format_mistakes(spec, field)
    yield from _identity_mistakes(spec)
    yield from start_mistakes(spec)
    yield from _link_mistakes(spec)
    yield from track_mistakes(spec)
    yield from _window_mistakes(spec)
    yield from _aggregate_mistakes(spec)
    yield from name_mistakes(spec)


def _csv_mistakes(spec: Any) -> Iterator[Mistake]:
    source = mapping(spec, "source")
    if text(source, "format") in {"ndjson", "parquet"}:
        for name in ("separator", "nulls"):
            if source.get(name) is not None:
                yield Mistake(("source", name), source[name], "this field only with format: csv")


def _zone_mistakes(spec: Any, field: str) -> Iterator[Mistake]:
    """A zone is for texts; a text whose format reads no offset has no meaning without one."""
    path = ("columns", field, "zone")
    unit, zone = (text(spec, "columns", field, name) for name in ("unit", "zone"))
    if unit in NUMBER_UNITS and zone is not None:
        hint = f"{unit} counts from the epoch in UTC"
        yield Mistake(path, zone, "a zone only for times written as text", hint)
    if unit is None or unit == ISO8601 or "%" not in unit or zone is not None:
        return
    if not _OFFSET_IN_FORMAT.search(unit):
        hint = f"{unit} reads no offset (%z), so the zone must be declared"
        yield Mistake(path, None, ALLOWED["zone"], hint)


def _format_mistakes(spec: Any, field: str) -> Iterator[Mistake]:
    """A format says which day it is, in directives that can be read."""
    unit = text(spec, "columns", field, "unit")
    if unit is None or "%" not in unit:
        return
    try:
        compile_format(unit)
    except ValueError as error:
        yield Mistake(("columns", field, "unit"), unit, ALLOWED["unit"], str(error))


def _identity_mistakes(spec: Any) -> Iterator[Mistake]:
    """The identity is more than the key, and a horizon has something to bound."""
    names = [name for _, name in texts(spec, "columns", "event_id")]
    if names and set(names) <= {name for _, name in texts(spec, "columns", "key")}:
        hint = "with the key alone, all rows of a key would be one event"
        found = Words(f"the key: {', '.join(names)}")
        yield Mistake(("columns", "event_id"), found, "columns beside those of the key", hint)
    horizon = mapping(spec, "columns").get("dedup_horizon")
    has_event_time = not names or text(spec, "columns", "event_time", "column") in names
    if horizon is not None and has_event_time:
        hint = "the identity holds the event time, so there is nothing to bound"
        allowed = "a horizon only where event_id leaves out the event time"
        yield Mistake(("columns", "dedup_horizon"), horizon, allowed, hint)


def _link_mistakes(spec: Any) -> Iterator[Mistake]:
    """A profile is named by a column or by the key, and is declared."""
    profiles, key_map = mapping(spec, "profiles"), mapping(spec, "profiles", "key_map")
    if profiles.get("by") is not None and profiles.get("key_map") is not None:
        hint = "a column or the key names the profile, not both"
        found = Words("both by and key_map")
        yield Mistake(("profiles", "key_map"), found, "one of the two", hint)
    declared = declared_profiles(spec)
    for key, name in key_map.items():
        if isinstance(name, str) and name not in declared:
            allowed = f"a declared profile: {', '.join(declared)}"
            yield Mistake(("profiles", "key_map", key), name, allowed, nearest(name, declared))


def _window_mistakes(spec: Any) -> Iterator[Mistake]:
    windows = spec.get("windows") if isinstance(spec, dict) else None
    for place, window in enumerate(windows if isinstance(windows, list) else ()):
        for mistake in grid_mistakes(window):
            path = ("windows", place, *mistake.path)
            yield Mistake(path, mistake.found, mistake.allowed, mistake.hint)


def _aggregate_mistakes(spec: Any) -> Iterator[Mistake]:
    """Aggregates are of declared values, and are statistics we know."""
    values = mapping(spec, "columns", "values")
    for value in mapping(spec, "aggregates"):
        yield from _statistic_mistakes(texts(spec, "aggregates", value))
        if value not in values and mapping(spec, "columns"):
            allowed = f"a value of columns.values: {', '.join(values) or 'none is declared'}"
            found = Words("a value that is not declared")
            yield Mistake(("aggregates", value), found, allowed, nearest(value, values))


def _is_percentile(name: str) -> bool:
    match = _PERCENTILE.fullmatch(name)
    return match is not None and Decimal(match[1]) <= 100  # noqa: PLR2004 - per cent


def _statistic_hint(name: str) -> str:
    other = _OTHER_NAMES.get(name.lower())
    return f"did you mean {other}?" if other else nearest(name, STATISTICS)


def _statistic_mistakes(statistics: list[Named]) -> Iterator[Mistake]:
    for path, name in statistics:
        if name not in STATISTICS and not _is_percentile(name):
            yield Mistake(path, name, _STATISTIC_WORDS, _statistic_hint(name))
    for path, name in repeated(statistics):
        yield Mistake(path, name, "each statistic once")
