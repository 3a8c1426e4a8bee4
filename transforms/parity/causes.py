"""Why two values of one column differ: the first cause that fits, in the order of ``Cause``.

Here belongs what can be told from the two values alone. Causes of a whole row (revisions, refusals)
are decided in ``parity.verdict``.
"""

import json
import math
import struct
import unicodedata
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from enum import StrEnum

from transforms.parity.canonical import NAN, NULL, PRESENT, ColumnType, Kind, Value, decode

_QUARTER_US = 15 * 60 * 1_000_000
_FARTHEST_ZONE_US = 14 * 3600 * 1_000_000
_LAST_BITS = 4
_FRACTIONS_US = tuple(10**digits for digits in range(1, 7))
_FLOAT_DIGITS = 12
_NOISE = 1e-9


class Cause(StrEnum):
    """In the order in which they are tried."""

    REVISION_BEHIND = "revision-behind"
    REVISION_AHEAD = "revision-ahead"
    FLOAT_LAST_BITS = "float-last-bits"
    NULL_NAN = "null-nan"
    NULL_EMPTY = "null-empty"
    WHOLE_HOURS = "whole-hours"
    FRACTION_CUT = "fraction-cut"
    SCALE = "scale"
    UNICODE_FORM = "unicode-form"
    TRAILING_BLANK = "trailing-blank"
    CASE = "case"
    JSON_FORM = "json-form"
    REFUSED_BY_TARGET = "refused-by-target"
    OTHER = "other"


def cause_of(kind: ColumnType, source: bytes, target: bytes) -> Cause:
    """Of two different columns of a frame."""
    if NULL in {source, target}:
        return _of_null(kind, target if source == NULL else source)
    before, after = decode(kind, source), decode(kind, target)
    if before is None or after is None:
        return Cause.OTHER
    tests = _TESTS.get(kind.kind, ())
    return next((cause for cause, fits in tests if fits(before, after)), Cause.OTHER)


def _of_null(kind: ColumnType, other: bytes) -> Cause:
    if kind.kind is Kind.FLOAT and other == PRESENT + NAN:
        return Cause.NULL_NAN
    if kind.kind in {Kind.TEXT, Kind.BYTES} and other[1:] == bytes(4):
        return Cause.NULL_EMPTY
    return Cause.OTHER


def _last_bits(source: Value, target: Value) -> bool:
    if not (isinstance(source, float) and isinstance(target, float)):
        return False
    if math.isnan(source) or math.isnan(target):
        return False
    return abs(_position(source) - _position(target)) <= _LAST_BITS


def _position(value: float) -> int:
    """Of a float among all floats, so that neighbours differ by one."""
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFF_FFFF_FFFF_FFFF)


def _whole_hours(source: Value, target: Value) -> bool:
    if not (isinstance(source, int) and isinstance(target, int)):
        return False
    apart = abs(source - target)
    return apart % _QUARTER_US == 0 and apart <= _FARTHEST_ZONE_US


def _fraction_cut(source: Value, target: Value) -> bool:
    if not (isinstance(source, int) and isinstance(target, int)):
        return False
    return _cut(source, target) or _cut(target, source)


def _cut(fine: int, coarse: int) -> bool:
    return any(
        coarse % unit == 0 and coarse - unit < fine < coarse + unit for unit in _FRACTIONS_US
    )


def _decimal_scale(source: Value, target: Value) -> bool:
    if not (isinstance(source, Decimal) and isinstance(target, Decimal)):
        return False
    if not (source.is_finite() and target.is_finite()):
        return False
    return _shortened(source, target) or _shortened(target, source)


def _shortened(fine: Decimal, coarse: Decimal) -> bool:
    digits = coarse.normalize().as_tuple().exponent
    roundings = (ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP)
    smallest = min(int(digits), 0)
    return any(fine.quantize(Decimal(1).scaleb(smallest), way) == coarse for way in roundings)


def _float_scale(source: Value, target: Value) -> bool:
    if not (isinstance(source, float) and isinstance(target, float)):
        return False
    return _rounds_to(source, target) or _rounds_to(target, source)


def _rounds_to(fine: float, coarse: float) -> bool:
    digits = len(repr(coarse).partition(".")[2])
    lost = abs(fine - coarse) > _NOISE * abs(fine)  # less is the noise of sums, not a rounding
    return lost and digits <= _FLOAT_DIGITS and round(fine, digits) == coarse


def _unicode_form(source: Value, target: Value) -> bool:
    return _nfc(source) == _nfc(target)


def _nfc(value: Value) -> str:
    return unicodedata.normalize("NFC", str(value))


def _trailing_blank(source: Value, target: Value) -> bool:
    return str(source).rstrip(" ") == str(target).rstrip(" ")


def _case(source: Value, target: Value) -> bool:
    return str(source).casefold() == str(target).casefold()


def _json_form(source: Value, target: Value) -> bool:
    try:
        left, right = (json.loads(str(value), parse_float=Decimal) for value in (source, target))
    except ValueError:
        return False
    return bool(left == right)


_Test = tuple[Cause, Callable[[Value, Value], bool]]
_OF_TIMES: tuple[_Test, ...] = (
    (Cause.WHOLE_HOURS, _whole_hours),
    (Cause.FRACTION_CUT, _fraction_cut),
)
_TESTS: dict[Kind, tuple[_Test, ...]] = {
    Kind.FLOAT: ((Cause.FLOAT_LAST_BITS, _last_bits), (Cause.SCALE, _float_scale)),
    Kind.INSTANT: _OF_TIMES,
    Kind.LOCAL: _OF_TIMES,
    Kind.DECIMAL: ((Cause.SCALE, _decimal_scale),),
    Kind.TEXT: (
        (Cause.UNICODE_FORM, _unicode_form),
        (Cause.TRAILING_BLANK, _trailing_blank),
        (Cause.CASE, _case),
        (Cause.JSON_FORM, _json_form),
    ),
}
