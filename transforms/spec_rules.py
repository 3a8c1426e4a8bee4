"""Rules that look at more than one field of the spec, told from the text as it was written.

They work on what is written, not on validated sections, so that a mistake in one place hides none
in another. What one field or one section allows by itself is in the module of that section.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from transforms.schemas import (
    COUNT,
    ID_PREFIX,
    RESERVED_NAMES,
    STATISTICS,
    fixed_window_columns,
    statistic_column,
    value_statistics,
)
from transforms.spec_words import Mistake, Path, Words, nearest

_PERCENTILE: Final = re.compile(r"p([0-9]{1,3}(?:\.[0-9]+)?)")
_STATISTIC_WORDS: Final = (
    f"{', '.join(STATISTICS)}, or a percentile p0 to p100 such as p95 or p99.9"
)
_NOT_OURS: Final = "a name that is not one of the platform's own columns"
_RENAME: Final = "rename the column where the rows are written"
_ONCE: Final = "each column once, whatever the case of its letters"
_OWN_FIELDS_OF_PROFILES: Final = ("by", "key_map")

Named = tuple[Path, str]


def rule_mistakes(spec: Any) -> Iterator[Mistake]:
    """Yield every mistake that lies between fields of a spec as written."""
    yield from _link_mistakes(spec)
    yield from _identity_mistakes(spec)
    yield from _aggregate_mistakes(spec)
    yield from _window_name_mistakes(spec)
    yield from _row_name_mistakes(spec)
    yield from _published_name_mistakes(spec)


def percentile(statistic: str) -> float | None:
    """Return the quantile from 0 to 1 that ``p95`` or ``p99.9`` names, None for all else."""
    match = _PERCENTILE.fullmatch(statistic)
    if match is None or float(match[1]) > 100:  # noqa: PLR2004 - per cent
        return None
    return float(match[1]) / 100


def _link_mistakes(spec: Any) -> Iterator[Mistake]:
    """A profile is named by a column or by the key, and is declared."""
    profiles = _mapping(spec, "profiles")
    key_map = _mapping(profiles, "key_map")
    if profiles.get("by") is not None and key_map:
        hint = "a column or the key names the profile, not both"
        yield Mistake(("profiles", "key_map"), Words("by and key_map"), "one of the two", hint)
    declared = [name for name in profiles if name not in _OWN_FIELDS_OF_PROFILES]
    for key, name in key_map.items():
        if isinstance(name, str) and name not in declared:
            allowed = f"a declared profile: {', '.join(declared)}"
            yield Mistake(("profiles", "key_map", key), name, allowed, nearest(name, declared))


def _identity_mistakes(spec: Any) -> Iterator[Mistake]:
    """The identity is more than the key, and a horizon has something to bound."""
    columns = _mapping(spec, "columns")
    names = [name for _, name in _names(columns, "event_id")]
    event_time = _mapping(columns, "event_time").get("column")
    keys = {name for _, name in _names(columns, "key")}
    if names and set(names) <= keys:
        hint = "with the key alone, all rows of a key would be one event"
        yield Mistake(("columns", "event_id"), names, "columns beside those of the key", hint)
    if columns.get("dedup_horizon") is not None and (not names or event_time in names):
        hint = "the identity has the event time in it, so it has no need of a horizon"
        allowed = "a horizon only where event_id leaves out the event time"
        yield Mistake(("columns", "dedup_horizon"), columns["dedup_horizon"], allowed, hint)
    for path, name in _repeated(_names(columns, "event_id")):
        yield Mistake(("columns", *path), name, _ONCE)


def _aggregate_mistakes(spec: Any) -> Iterator[Mistake]:
    """Aggregates are of declared values, and are statistics we know."""
    values = _mapping(_mapping(spec, "columns"), "values")
    aggregates = _mapping(spec, "aggregates")
    for value in aggregates:
        if value not in values:
            allowed = f"a value declared in columns.values: {', '.join(values) or 'there is none'}"
            found = Words("a value that is not declared")
            yield Mistake(("aggregates", value), found, allowed, nearest(value, values))
        yield from _statistic_mistakes(_names(aggregates, value))


def _statistic_mistakes(statistics: list[Named]) -> Iterator[Mistake]:
    for path, name in statistics:
        if name not in STATISTICS and percentile(name) is None:
            hint = nearest(name, STATISTICS)
            yield Mistake(("aggregates", *path), name, _STATISTIC_WORDS, hint)
    for path, name in _repeated(statistics):
        yield Mistake(("aggregates", *path), name, "each statistic once")


def _window_name_mistakes(spec: Any) -> Iterator[Mistake]:
    windows = spec.get("windows") if isinstance(spec, dict) else None
    entries = enumerate(windows if isinstance(windows, list) else ())
    names = [(place, entry.get("name")) for place, entry in entries if isinstance(entry, dict)]
    texts: list[Named] = [
        (("windows", place, "name"), name) for place, name in names if isinstance(name, str)
    ]
    for path, name in _repeated(texts):
        yield Mistake(path, name, "a name that no other window has")


def _row_name_mistakes(spec: Any) -> Iterator[Mistake]:
    """No column of a row takes a name of ours or of another column; stores ignore case."""
    names = _row_names(spec)
    for path, name in names:
        if name.lower() in RESERVED_NAMES:
            yield Mistake(path, name, _NOT_OURS, _RENAME)
    for path, name in _repeated(names):
        yield Mistake(path, name, _ONCE)


def _published_name_mistakes(spec: Any) -> Iterator[Mistake]:
    """No published column takes the name of another one."""
    ours = set(fixed_window_columns())
    published = [*_key_parts(spec), *_statistic_names(spec)]
    for path, name in _statistic_names(spec):
        if name.lower() in ours:
            words = Words(f"a value whose published column is {name}")
            yield Mistake(path, words, _NOT_OURS, _RENAME)
    for path, name in _repeated(published):
        words = Words(f"a second published column {name}")
        yield Mistake(path, words, "values and statistics whose names do not meet", _RENAME)


def _row_names(spec: Any) -> list[Named]:
    columns = _mapping(spec, "columns")
    values: list[Named] = [
        (("columns", "values", name), name) for name in _mapping(columns, "values")
    ]
    carried = [(("columns", *path), name) for path, name in _names(columns, "carry")]
    elsewhere = {_mapping(columns, "event_time").get("column")}
    elsewhere |= {name for _, name in (*_names(columns, "key"), *_names(columns, "carry"))}
    kept = {name: path for path, name in _names(columns, "event_id") if name not in elsewhere}
    ids: list[Named] = [(("columns", *path), ID_PREFIX + name) for name, path in kept.items()]
    return [*_key_parts(spec), *values, *carried, *ids]


def _key_parts(spec: Any) -> list[Named]:
    """The columns of a composite key; those of a simple one are only the column ``key``."""
    parts = [(("columns", *path), name) for path, name in _names(_mapping(spec, "columns"), "key")]
    return parts if len(parts) > 1 else []


def _statistic_names(spec: Any) -> list[Named]:
    aggregates = _mapping(spec, "aggregates")
    names: list[Named] = []
    for value in _mapping(_mapping(spec, "columns"), "values"):
        declared = dict.fromkeys(name for _, name in _names(aggregates, value))
        for statistic in value_statistics(tuple(declared)):
            implied = statistic == COUNT or value not in aggregates
            path: Path = ("columns", "values", value) if implied else ("aggregates", value)
            names.append((path, statistic_column(value, statistic)))
    return names


def _repeated(names: list[Named]) -> list[Named]:
    """Those whose name stood before, whatever the case of its letters."""
    seen: Counter[str] = Counter()
    repeated = []
    for path, name in names:
        seen[name.lower()] += 1
        if seen[name.lower()] > 1:
            repeated.append((path, name))
    return repeated


def _mapping(parent: Any, name: str) -> dict[str, Any]:
    """The mapping under a name, empty where something else or nothing stands."""
    value = parent.get(name) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _names(parent: dict[str, Any], field: str) -> list[Named]:
    """The texts of a list with their places; a single text counts as a list of it."""
    value = parent.get(field)
    if isinstance(value, str):
        return [((field,), value)]
    items = enumerate(value if isinstance(value, list) else ())
    return [((field, place), item) for place, item in items if isinstance(item, str)]
