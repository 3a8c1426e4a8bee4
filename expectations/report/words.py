"""How numbers, times and lists are spelled on the quality page."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

# So many names fit into a sentence.
_NAMED: Final = 3
_UNITS: Final = ((31_557_600, "years"), (86400, "d"), (3600, "h"), (60, "min"))
_YEAR_9999_US: Final = 253_370_764_800_000_000


def share(part: float, whole: float) -> str:
    """Return a part of a whole in per cent; of nothing there is none."""
    if not whole:
        return "none"
    value = part / whole
    return f"{value:.0%}" if value in {0, 1} else f"{value:.2%}"


def text(cell: object) -> str:
    """Return a cell of a table as it is shown."""
    return f"{cell:,}" if isinstance(cell, int) else "" if cell is None else str(cell)


def instant(us: int | None) -> str:
    """Return an instant to the minute; the zone is said once, at the end of the page."""
    if us is None:
        return ""
    if abs(us) > _YEAR_9999_US:
        return f"{us} us"
    return f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M}"


def duration(seconds: float | None) -> str:
    """Return a length of time in its largest unit."""
    if seconds is None:
        return ""
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def listed(names: Sequence[str]) -> str:
    """Return names as people list them; of many the first ones, and how many more there are."""
    shown = [*names[:_NAMED], *([f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])]
    if len(shown) < 2:  # noqa: PLR2004 (one name, or none)
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def sentence(parts: Iterable[str]) -> str:
    """Return what is not empty, separated by blanks."""
    return " ".join(filter(None, parts))
