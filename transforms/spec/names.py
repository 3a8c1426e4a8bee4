"""The rules of names in a spec: columns, published statistics, windows.

Here belongs which names may not meet. Other rules between fields are in ``spec_rules.py``.
"""

from collections.abc import Iterator
from typing import Any, Final

from transforms.schemas import (
    COUNT,
    ID_PREFIX,
    RESERVED_NAMES,
    fixed_window_columns,
    statistic_column,
    value_statistics,
)
from transforms.spec.words import Mistake, Words
from transforms.spec.written import Named, mapping, repeated, text, texts

_NOT_OURS: Final = "a name that is not one of the platform's own columns"
_NO_PATTERN: Final = "a name that is no pattern: not * alone, not from ^ to $"
_RENAME: Final = "rename the column where the rows are written"
_ONCE: Final = "each column once, whatever the case of its letters"
_APART: Final = "values and statistics whose published names do not meet"


def name_mistakes(spec: Any) -> Iterator[Mistake]:
    """Yield every name of a spec as written that meets another one."""
    for path, name in repeated(texts(spec, "columns", "event_id")):
        yield Mistake(path, name, _ONCE)
    for path, name in repeated(_window_names(spec)):
        yield Mistake(path, name, "a name that no other window has")
    yield from _row_mistakes(spec)
    yield from _published_mistakes(spec)


def _window_names(spec: Any) -> list[Named]:
    windows = spec.get("windows") if isinstance(spec, dict) else None
    entries = enumerate(windows if isinstance(windows, list) else ())
    names = [(place, text(entry, "name")) for place, entry in entries]
    return [(("windows", place, "name"), name) for place, name in names if name is not None]


def _row_mistakes(spec: Any) -> Iterator[Mistake]:
    """No column of a row takes a name of ours or of another column; stores ignore case."""
    names = [*_key_parts(spec), *_values(spec), *texts(spec, "columns", "carry"), *_ids(spec)]
    for path, name in names:
        if name.lower() in RESERVED_NAMES:
            yield Mistake(path, name, _NOT_OURS, _RENAME)
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            yield Mistake(path, name, _NO_PATTERN, _RENAME)
    for path, name in repeated(names):
        yield Mistake(path, name, _ONCE)


def _published_mistakes(spec: Any) -> Iterator[Mistake]:
    """No published column takes the name of another one."""
    ours = set(fixed_window_columns())
    for path, name in _statistics(spec):
        if name.lower() in ours:
            yield Mistake(path, Words(f"a published column {name}"), _NOT_OURS, _RENAME)
    for path, name in repeated([*_key_parts(spec), *_statistics(spec)]):
        yield Mistake(path, Words(f"a second published column {name}"), _APART, _RENAME)


def _key_parts(spec: Any) -> list[Named]:
    """The columns of a composite key; those of a simple one are only the column ``key``."""
    parts = texts(spec, "columns", "key")
    return parts if len(parts) > 1 else []


def _values(spec: Any) -> list[Named]:
    return [(("columns", "values", name), name) for name in mapping(spec, "columns", "values")]


def _ids(spec: Any) -> list[Named]:
    """The columns that staging adds for the identity alone."""
    elsewhere = {text(spec, "columns", "event_time", "column")}
    elsewhere |= {name for field in ("key", "carry") for _, name in texts(spec, "columns", field)}
    first = {name: path for path, name in reversed(texts(spec, "columns", "event_id"))}
    return [(path, ID_PREFIX + name) for name, path in first.items() if name not in elsewhere]


def _statistics(spec: Any) -> list[Named]:
    """Every published column of a value, with the place that asks for it."""
    aggregates = mapping(spec, "aggregates")
    return [
        (
            ("columns", "values", value) if statistic == COUNT else ("aggregates", value),
            statistic_column(value, statistic),
        )
        for value in mapping(spec, "columns", "values")
        for statistic in value_statistics(
            tuple(dict.fromkeys(name for _, name in texts(aggregates, value)))
        )
    ]
