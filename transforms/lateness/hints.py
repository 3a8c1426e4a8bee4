"""Which keys somebody should look at, in words: a link declared wrongly, a clock that is wrong.

Here belongs from where on a figure of the lateness profile is worth a line. How the figures come
about is in ``lateness`` and ``lateness.clocks``. A hint changes nothing; a key may have several.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import polars as pl

from transforms.durations import DAY_US, MINUTE_US
from transforms.grace.advice import plain
from transforms.lateness.profile import LEVEL, LIKE, NAME
from transforms.schemas import KEY, PROFILE

# A clock this far off, and further than the delays of its key vary, is told of.
_OFFSET_US: Final = 5 * MINUTE_US
_LEAST_ROWS: Final = 30
# Quartz in sun and frost stays below this drift; no clock goes beyond, but links that get slower.
_DRIFT_PPM: Final = (50.0, 1000.0)


class Hint(NamedTuple):
    """What is odd about a key: of which kind, and in words."""

    key: str
    kind: str
    words: str


def hints(table: pl.DataFrame) -> list[Hint]:
    """Return what is odd about the keys of a lateness profile, by kind, then key."""
    keys = table.filter(pl.col(LEVEL) == KEY).sort(NAME).to_dicts()
    return [Hint(*found) for kind in _KINDS for found in _of_kind(kind, keys)]


def _of_kind(kind: str, keys: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for row in keys:
        words = _KINDS[kind](row)
        if words:
            yield row[NAME], kind, f"key {row[NAME]}{words}"


def _link(row: Mapping[str, Any]) -> str:
    if row[LIKE] is None:
        return ""
    return f" looks like a key of profile {row[LIKE]}: its delays are unlike those of its own"


def _zone(row: Mapping[str, Any]) -> str:
    minutes = row["clock_zone_minutes"]
    if minutes is None:
        return ""
    where = "ahead of" if minutes > 0 else "behind"
    apart = plain(abs(minutes) * MINUTE_US)
    return f": its clock is {apart} {where} those of profile {row[PROFILE]}: another time zone?"


def _offset(row: Mapping[str, Any]) -> str:
    """A wrong link and a zone have explained it already."""
    explained = row[LIKE] is not None or row["clock_zone_minutes"] is not None
    few = row["rows"] < _LEAST_ROWS
    offset, high, low = (row[name] for name in ("clock_offset_us", "delay_p90_us", "delay_min_us"))
    if explained or few or offset is None or abs(offset) < max(_OFFSET_US, high - low):
        return ""
    if offset > 0:
        return f": its clock is {plain(offset)} ahead of those of profile {row[PROFILE]}"
    late = f": it comes {plain(-offset)} later than profile {row[PROFILE]}"
    return f"{late}: a clock that is behind, or a slower link"


def _drift(row: Mapping[str, Any]) -> str:
    ppm = row["clock_drift_ppm"] or 0.0
    least, most = _DRIFT_PPM
    if not least <= abs(ppm) <= most:
        return ""
    a_day = plain(round(abs(ppm) * DAY_US / 1e6))
    return f": its clock {'gains' if ppm > 0 else 'loses'} {a_day} a day"


def _set(row: Mapping[str, Any]) -> str:
    jumps = row["clock_jumps"] or 0
    return f": its clock was set {_times(jumps)}" if jumps else ""


def _wrapped(row: Mapping[str, Any]) -> str:
    rows = row["wrapped_rows"] or 0
    late = f"{_rows(rows)} late by 2^32 us or ms more than usual"
    return f": {late}, a counter of 32 bits that wrapped" if rows else ""


def _future(row: Mapping[str, Any]) -> str:
    rows = row["future_rows"]
    return f": {_rows(rows)} from the future, beyond the skew allowed" if rows else ""


def _rows(number: int) -> str:
    return f"{number:,} row{'s are' if number > 1 else ' is'}"


def _times(number: int) -> str:
    return f"{number:,} times" if number > 1 else "once"


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "link": _link,
    "zone": _zone,
    "offset": _offset,
    "drift": _drift,
    "set": _set,
    "wrapped": _wrapped,
    "future": _future,
}
