"""What a target says when it does not take rows, as the types that decide what happens next.

Here belong the types and the reading of an SQLSTATE: rows that no target of this kind can hold
(class 22, 23), a target that is out of reach (08, 53, 57, or no answer at all), two writers in each
other's way (40, 55P03). Everything else stays a plain ``TargetError`` and stops the run. What is
done about them is ``assets.stores.publishing``.
"""

from collections.abc import Mapping
from typing import Final

import polars as pl

from transforms.errors import TargetError
from transforms.publishing.fitting import OUT_OF_RANGE, KindError, fitted

NUL_BYTE: Final = "nul-byte"
CONSTRAINT: Final = "constraint"
OTHER: Final = "other"
_REASONS: Final[Mapping[str, str]] = {
    "22021": NUL_BYTE,
    "22003": OUT_OF_RANGE,
    "22008": OUT_OF_RANGE,
}
_DATA: Final = frozenset({"22", "23"})
_OUTAGE: Final = frozenset({"08", "53", "57"})
_LOCK_NOT_AVAILABLE: Final = "55P03"
_NO_RIGHT: Final = "42501"
_CONTENTION: Final = "40"
# A peer that sends other bytes than it announced is a mistake of ours, not an outage.
_PROTOCOL: Final = "08P01"


class TargetDataError(TargetError):
    """Rows that the target cannot hold; ``reason`` is a word, ``sqlstate`` may be empty."""

    def __init__(self, message: str, *, reason: str = OTHER, sqlstate: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.sqlstate = sqlstate


class TargetOutageError(TargetError):
    """The target does not answer, or has no room or time: later it may."""

    may_pass = True


class TargetContentionError(TargetError):
    """Another writer was in the way: again at once, nobody is out of reach."""

    may_pass = True


def take(frame: pl.DataFrame, schema: pl.Schema | None, label: str) -> pl.DataFrame:
    """Return rows in the types that were prepared. Raises TargetDataError where a value is lost."""
    try:
        found = fitted(frame, schema or {})
    except KindError as error:
        raise TargetError(f"{label}: {error}") from error
    if isinstance(found, pl.DataFrame):
        return found
    message = f"{label}: column {found.column} cannot hold {found.value}: {found.reason}"
    raise TargetDataError(message, reason=found.reason)


def fault(message: str, sqlstate: str | None) -> TargetError:
    """Return the error that a message with an SQLSTATE stands for; None: nobody answered."""
    if sqlstate is None:
        return TargetOutageError(message)
    if sqlstate == _NO_RIGHT:
        message = f"{message}; docs/parity.md says which rights a publisher needs"
    state_class = sqlstate[:2]
    if state_class in _DATA:
        reason = _REASONS.get(sqlstate, CONSTRAINT if state_class == "23" else OTHER)
        return TargetDataError(message, reason=reason, sqlstate=sqlstate)
    if state_class == _CONTENTION or sqlstate == _LOCK_NOT_AVAILABLE:
        return TargetContentionError(message)
    if state_class in _OUTAGE and sqlstate != _PROTOCOL:
        return TargetOutageError(message)
    return TargetError(message)
