"""What spells a number, and its exact digits.

Belongs here: the one grammar of numbers in text (SEMANTICS 10: text that spells a number is that
number, in every format) and arithmetic on digits as written, with no float and no limit of length.
Whether a number fits a column is `values`, what instant it is `number_times`.
"""

import re
from typing import NamedTuple

NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A decimal number; blanks around it do not count."""

BLANKS = " \t"

# The same grammar in parts; the lookahead asks for a digit somewhere before the exponent.
_PARTS = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)\.?([0-9]*)(?:[eE]([+-]?)([0-9]+))?")
_MOST_EXPONENT_DIGITS = 18
"""No text is long enough for its digits to make up for an exponent beyond these."""


class Numeral(NamedTuple):
    """The number `digits` x 10^`exponent`; its first and last digit are not 0, zero has none."""

    negative: bool
    digits: str
    exponent: int

    @property
    def whole_digits(self) -> int:
        """How many digits stand before the point; zero or less: none but zeros."""
        return len(self.digits) + self.exponent if self.digits else 0

    @property
    def scale(self) -> int:
        """How many digits the number needs after the point."""
        return max(-self.exponent, 0)

    def floor_scaled(self, power: int, most_digits: int) -> int | None:
        """The floor of the number x 10^`power`; None if that has more than `most_digits` digits."""
        point = self.whole_digits + power
        if not self.digits:
            return 0
        if point > most_digits:
            return None
        whole = int(self.digits[:point].ljust(point, "0")) if point > 0 else 0
        is_exact = point >= len(self.digits)
        return whole if not self.negative else -whole - (not is_exact)


def numeral(text: str) -> Numeral | None:
    """Read a number exactly; None if the text spells none."""
    parts = _PARTS.fullmatch(text.strip(BLANKS))
    if parts is None:
        return None
    sign, whole, fraction, exponent_sign, exponent = parts.groups(default="")
    digits = (whole + fraction).lstrip("0")
    bare = digits.rstrip("0")
    power = _power(exponent_sign, exponent) - len(fraction) + len(digits) - len(bare)
    return Numeral(sign == "-", bare, power if bare else 0)


def _power(sign: str, digits: str) -> int:
    bare = digits.lstrip("0") or "0"
    size = int(bare) if len(bare) <= _MOST_EXPONENT_DIGITS else 10**_MOST_EXPONENT_DIGITS
    return -size if sign == "-" else size
