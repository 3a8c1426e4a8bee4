"""The words in which a spec's mistakes are told: what each field allows, and the nearest name.

Here belongs text alone. Which model a field is in, and what is checked, is in the other ``spec_*``
modules.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Path = tuple[str | int, ...]


class Words(str):
    """Words of a message, told as they are, where a value would stand in quotes."""

    __slots__ = ()


@dataclass(frozen=True)
class Mistake:
    """A mistake at a path of keys and list positions; ``found`` is the value as it was read."""

    path: Path
    found: Any
    allowed: str
    hint: str = ""


_MAPPING: Final = "a mapping with"
_DURATION: Final = "a duration such as 500ms, 90s, 10m, 6h or 1d"
_INSTANT: Final = "a time such as 2024-01-01 or 2024-01-01T06:00:00Z"
_TIME_COLUMN: Final = f"{_MAPPING} column, unit and, where the text has no offset, zone"
_NAMES: Final = "a list of column names"
_NAME: Final = "lower case letters, digits and _, with a letter first, at most 100"
_AT_LEAST_ONE: Final = "a whole number of 1 or more"
_PROFILES: Final = f"{_MAPPING} default and further profiles"
_PROFILE: Final = f"{_MAPPING} grace, idle_timeout, capacity and future_skew"

# What a field allows, by its own name: the same name means the same in every section.
ALLOWED: Final[Mapping[str, str]] = {
    "name": _NAME,
    "description": "a text",
    "source": f"{_MAPPING} kind, path and format",
    "kind": "files",
    "path": "a glob of files, relative to the data directory, absolute, or s3://...",
    "format": "ndjson, csv or parquet",
    "separator": 'one character, such as ";" or "\\t"',
    "nulls": "a list of texts, such as [NA, 'null']",
    "columns": f"{_MAPPING} key, event_time, arrival_time and more",
    "key": "a column name, or a list of them",
    "event_time": _TIME_COLUMN,
    "arrival_time": _TIME_COLUMN,
    "column": "a column name",
    "unit": "iso8601, s, ms, us, ns, or a strptime format such as %d.%m.%Y %H:%M",
    "zone": "a time zone such as UTC or Europe/Berlin",
    "event_id": _NAMES,
    "values": "a mapping of column names to float, int, bool or decimal(p,s)",
    "carry": _NAMES,
    "dedup_horizon": _DURATION,
    "arrival": f"{_MAPPING} grain and start",
    "events": f"{_MAPPING} grain and, if it differs from the arrivals', start",
    "grain": "15m, hour or day",
    "start": _INSTANT,
    "settle": _DURATION,
    "tracks": f"{_MAPPING} the profiles of authoritative, and of one track or more beside it",
    "profiles": _PROFILES,
    "by": "the name of the column that names the profile",
    "key_map": "a mapping of keys to declared profiles",
    "default": _PROFILE,
    "grace": _DURATION,
    "idle_timeout": "a duration such as 10m, or off",
    "capacity": _AT_LEAST_ONE,
    "future_skew": _DURATION,
    "resolution": "a duration above zero, such as 1s",
    "earliest_event_time": _INSTANT,
    "windows": "a list of one window or more",
    "every": "a length such as 10m, 1h, 1d, 1w, 1mo, 1q or 1y",
    "length": "a length such as 10m, 1h, 1d, 1w, 1mo, 1q or 1y",
    "origin": _INSTANT,
    "aggregates": "a mapping of values to lists of statistics",
    "alerts": f"{_MAPPING} dead_letter_fraction and stale_after",
    "dead_letter_fraction": "a number from 0 to 1",
    "stale_after": "a duration above zero, such as 6h",
    "target": "the name of a target of the settings, such as default",
    "shards": _AT_LEAST_ONE,
}
# What an entry allows whose name or place the user chose, by the path it is an entry of.
ENTRY_ALLOWED: Final[Mapping[Path, str]] = {
    ("profiles",): _PROFILE,
    ("profiles", "key_map"): "the name of a declared profile",
    ("tracks",): _PROFILES,
    ("columns", "values"): "float, int, bool or decimal(p,s)",
    ("windows",): f"{_MAPPING} name and every",
    ("aggregates",): "a list of statistics, such as [mean, p95]",
}
# The length of a path such as ``tracks.fast.satellite``.
_TRACK_PROFILE: Final = 3


def allowed_at(path: Path) -> str:
    """Return what may stand at a path; an entry of a list allows what its list does."""
    if path[:-1] in ENTRY_ALLOWED and path[-1] not in {"by", "key_map"}:
        return ENTRY_ALLOWED[path[:-1]]
    if path[:1] == ("tracks",) and len(path) == _TRACK_PROFILE:
        return _PROFILE
    if path and isinstance(path[-1], int):
        return allowed_at(path[:-1])
    return ALLOWED.get(str(path[-1]), "") if path else f"{_MAPPING} the fields of a stream spec"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the known name most like this one, or nothing."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]}?" if close else ""


def found_words(value: Any) -> str:
    """Return a value as a message names it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    return value if isinstance(value, Words) else f"'{value}'"


def path_words(path: Path) -> str:
    """Return a path as a message names it: ``windows[1].every``."""
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return words.removeprefix(".")
