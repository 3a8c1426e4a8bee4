"""What all parts of the stream spec are made of: the base model, mistakes, fields read from text.

Here belong types that more than one section uses. All scalars arrive as text, as they stand in the
file. What a section consists of is in ``spec_source.py``, ``spec_partitions.py``,
``spec_profiles.py`` and ``spec_windows.py``.
"""

import functools
import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as PydanticErrors
from pydantic_core import InitErrorDetails, PydanticCustomError

from transforms.durations import parse_duration
from transforms.spec.words import Mistake, nearest

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
INSTANT_WORDS: Final = "a time such as 2024-01-01, 2024-01-01T06:00:00 or 2024-01-01T06:00:00+01:00"
ZONE_WORDS: Final = "a time zone such as UTC or Europe/Berlin"
MISTAKE: Final = "mistake"

# YAML 1.1 reads each of these as false; only idle_timeout may be off.
_OFF: Final = frozenset({"off", "false", "no"})
# Inside the calendar of Python, so that no zone and no rounding leaves it.
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 9000
_NO_ZONES: Final = frozenset({"Factory", "localtime"})
_INSTANT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


class Section(BaseModel):
    """A part of the spec: frozen, and any field it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def refuse(*mistakes: Mistake) -> None:
    """Report mistakes from inside a validator; their paths are relative to it."""
    if mistakes:
        raise PydanticErrors.from_exception_data("spec", [_details(m) for m in mistakes])


def _details(mistake: Mistake) -> InitErrorDetails:
    words = {"allowed": mistake.allowed, "hint": mistake.hint}
    error = PydanticCustomError(MISTAKE, "{allowed}", words)
    return InitErrorDetails(type=error, loc=mistake.path, input=mistake.found)


def parse_instant(text: str, zone: str = "UTC") -> int:
    """Return microseconds since the epoch of an ISO 8601 text; ``zone`` serves one without offset.

    Digits finer than a microsecond are cut off. Raises ValueError for anything else.
    """
    if _INSTANT.fullmatch(text) is None:
        raise ValueError(INSTANT_WORDS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"a date and time that exist ({error})") from error
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    # fold=0 is the contract's reading: the first of two, and the offset before a gap.
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
    return (aware - EPOCH) // timedelta(microseconds=1)


def format_instant(us: int) -> str:
    """Return the ISO 8601 text in UTC of microseconds since the epoch (years 1 to 9999)."""
    return (EPOCH + timedelta(microseconds=us)).isoformat().replace("+00:00", "Z")


@functools.cache
def zones() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(zoneinfo.available_timezones()) - _NO_ZONES


def _read_duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_duration(value)
    except ValueError as error:
        hint = "only idle_timeout may be off" if value.lower() in _OFF else ""
        return refuse(Mistake((), value, str(error), hint))


def _read_idle_timeout(value: Any) -> Any:
    if not isinstance(value, str):
        return value if value is not None else refuse(Mistake((), None, "a duration, or off"))
    return None if value.lower() in _OFF else _read_duration(value)


def _read_instant(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_instant(value)
    except ValueError as error:
        return refuse(Mistake((), value, str(error)))


def _check_instant(value: Any) -> Any:
    _read_instant(value)
    return value


def _check_zone(value: Any) -> Any:
    if isinstance(value, str) and value not in zones():
        refuse(Mistake((), value, ZONE_WORDS, nearest(value, zones())))
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


LONGEST_NAME: Final = 100
Text = Annotated[str, StringConstraints(min_length=1)]
# It becomes a part of the names of folders, files and published columns.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=LONGEST_NAME)]
TextList = tuple[Text, ...]
TextOrList = Annotated[tuple[Text, ...], BeforeValidator(_listed), Field(min_length=1)]
Zone = Annotated[str, BeforeValidator(_check_zone)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
DurationUs = Annotated[int, BeforeValidator(_read_duration)]
PositiveDurationUs = Annotated[int, Field(gt=0), BeforeValidator(_read_duration)]
IdleTimeoutUs = Annotated[int | None, BeforeValidator(_read_idle_timeout)]
InstantUs = Annotated[int, BeforeValidator(_read_instant)]
InstantText = Annotated[str, BeforeValidator(_check_instant)]
