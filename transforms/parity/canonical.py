"""CF1, the canonical frame: one exact byte string for a row, whatever engine holds it.

A row is its columns in contract order; a column is ``00`` (null), or ``01`` and a body that depends
on its type alone. Here stand the types and the oracle, in plain Python, which every faster path
must equal byte for byte (``canonical_vectors``). SQL for the engines is in ``canonical_sql``.

Values as the oracle takes and gives them: an instant or local time is int microseconds since
1970-01-01, a date int days since then, each ``math.inf`` or ``-math.inf`` where the store says
infinity; ``datetime`` and ``date`` objects are taken too.
"""

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from enum import StrEnum
from typing import Self
from uuid import UUID

NULL = b"\x00"
PRESENT = b"\x01"
NAN = bytes.fromhex("7ff8000000000000")
MICROS_TO_2000 = 946_684_800_000_000
DAYS_TO_2000 = 10_957
_EXACT = Context(prec=1_100)  # PostgreSQL declares up to 1,000 digits
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

Value = int | float | bool | str | bytes | Decimal | UUID | datetime | date


class Kind(StrEnum):
    """What a column holds; the only types that can be proved."""

    INT = "int"
    BOOL = "bool"
    FLOAT = "float"
    INSTANT = "instant"
    LOCAL = "local"
    DATE = "date"
    TEXT = "text"
    BYTES = "bytes"
    DECIMAL = "decimal"
    UUID = "uuid"


TEMPORAL = frozenset({Kind.INSTANT, Kind.LOCAL, Kind.DATE})


@dataclass(frozen=True)
class ColumnType:
    """A kind, and the digits of a decimal."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __post_init__(self) -> None:
        if self.kind is Kind.DECIMAL and not 0 <= self.scale <= self.precision:
            raise ValueError(f"decimal({self.precision},{self.scale}) has no canonical text")

    def __str__(self) -> str:
        """As a contract writes it, ``decimal(18,4)``."""
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.precision},{self.scale})"
        return str(self.kind)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The type a contract names; ``ValueError`` lists what there is."""
        digits = _DECIMAL.fullmatch(text.replace(" ", ""))
        if digits:
            return cls(Kind.DECIMAL, int(digits[1]), int(digits[2]))
        names = [str(kind) for kind in Kind if kind is not Kind.DECIMAL]
        if text not in names:
            raise ValueError(f"found {text}; allowed: {', '.join(names)}, decimal(p,s)")
        return cls(Kind(text))


def encode(kind: ColumnType, value: Value | None) -> bytes:
    """One column of a frame; ``TypeError`` where the value is not of the type."""
    return NULL if value is None else PRESENT + _body(kind, value)


def frame(types: Sequence[ColumnType], values: Sequence[Value | None]) -> bytes:
    """A row: its columns one after another."""
    return b"".join(encode(kind, value) for kind, value in zip(types, values, strict=True))


def text_frame(text: str) -> bytes:
    """A text column, as in fingerprints and roots."""
    return PRESENT + _text(text)


def int_frame(number: int) -> bytes:
    """An int column, as in roots; any size the cells can reach in int64."""
    return PRESENT + struct.pack(">q", number)


def decode(kind: ColumnType, column: bytes) -> Value | None:
    """The value that a column of a frame stands for; the inverse of ``encode``."""
    return None if column == NULL else _value(kind, column[1:])


def decimal_text(value: Decimal, scale: int, precision: int) -> str:
    """With ``scale`` digits; a value that does not fit keeps every digit it has, unrounded."""
    if not value.is_finite():
        return {"sNaN": "NaN"}.get(str(value), str(value))
    fitted = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    if fitted != value or abs(value) >= Decimal(10) ** (precision - scale):
        return format(_EXACT.normalize(value), "f")
    return format(fitted or abs(fitted), "f")


def _text(text: str) -> bytes:
    return _sized(text.encode())


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _body(kind: ColumnType, value: Value) -> bytes:  # noqa: PLR0911 - one line for each type
    match kind.kind, value:
        case Kind.INT, int() if not isinstance(value, bool):
            return struct.pack(">q", value)
        case Kind.BOOL, bool():
            return struct.pack(">?", value)
        case Kind.FLOAT, int() | float():
            return NAN if math.isnan(value) else struct.pack(">d", value + 0.0)
        case ((Kind.INSTANT | Kind.LOCAL), _):
            return _counted(">q", _micros(kind.kind, value), MICROS_TO_2000)
        case Kind.DATE, _:
            return _counted(">i", _days(value), DAYS_TO_2000)
        case Kind.TEXT, str():
            return _text(value)
        case Kind.BYTES, bytes():
            return _sized(value)
        case Kind.DECIMAL, Decimal() | int() | str():
            return _text(decimal_text(Decimal(value), kind.scale, kind.precision))
        case Kind.UUID, UUID():
            return value.bytes
        case _:
            raise TypeError(f"{type(value).__name__} is no {kind}")


def _counted(code: str, since_1970: float, offset: int) -> bytes:
    if isinstance(since_1970, float):
        largest = (1 << (8 * struct.calcsize(code) - 1)) - 1
        return struct.pack(code, largest if since_1970 > 0 else -largest - 1)
    return struct.pack(code, since_1970 - offset)


def _micros(kind: Kind, value: Value) -> float:
    if isinstance(value, datetime):
        if (value.tzinfo is None) != (kind is Kind.LOCAL):
            raise TypeError(f"{value!r} is no {kind}")
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return _count(kind, value)


def _days(value: Value) -> float:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.toordinal() - _EPOCH.toordinal()
    return _count(Kind.DATE, value)


def _count(kind: Kind, value: Value) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isinf(value):
        return value
    raise TypeError(f"{value!r} is no {kind}")


def _value(kind: ColumnType, body: bytes) -> Value:  # noqa: PLR0911 - one line for each type
    match kind.kind:
        case Kind.INT:
            return int.from_bytes(body, "big", signed=True)
        case Kind.BOOL:
            return body != b"\x00"
        case Kind.FLOAT:
            return float(struct.unpack(">d", body)[0])
        case Kind.INSTANT | Kind.LOCAL:
            return _uncounted(body, MICROS_TO_2000)
        case Kind.DATE:
            return _uncounted(body, DAYS_TO_2000)
        case Kind.TEXT:
            return body[4:].decode()
        case Kind.BYTES:
            return body[4:]
        case Kind.DECIMAL:
            return Decimal(body[4:].decode())
        case Kind.UUID:
            return UUID(bytes=body)


def _uncounted(body: bytes, offset: int) -> float:
    number = int.from_bytes(body, "big", signed=True)
    largest = (1 << (8 * len(body) - 1)) - 1
    if number == largest:
        return math.inf
    return -math.inf if number == -largest - 1 else number + offset


def shown(kind: ColumnType, column: bytes) -> str:
    """A value for people: times as ISO 8601, null as ``null``, text in quotes."""
    value = decode(kind, column)
    if value is None:
        return "null"
    if kind.kind in TEMPORAL and isinstance(value, int):
        return _shown_time(kind.kind, value)
    return repr(value) if isinstance(value, str | bytes) else str(value)


def _shown_time(kind: Kind, value: int) -> str:
    try:
        if kind is Kind.DATE:
            return date.fromordinal(value + _EPOCH.toordinal()).isoformat()
        moment = datetime.fromtimestamp(value // 1_000_000, UTC).replace(
            microsecond=value % 1_000_000
        )
    except (ValueError, OverflowError, OSError):
        return f"{value} since 1970-01-01"  # beyond the years that datetime knows
    return moment.isoformat().replace("+00:00", "Z" if kind is Kind.INSTANT else "")
