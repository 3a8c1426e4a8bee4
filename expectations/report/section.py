"""What a section of the quality page is: a finding, a picture, the numbers.

Here belongs their form. What is said of which figures is in ``sections`` and ``audits``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from expectations.report.drawing import HALF, WIDE, Picture, picture
from expectations.report.words import text

_ROWS: Final = 60
_SHORT: Final = 20
_FEW: Final = 12

Rows = Iterable[tuple[object, ...]]
# The names of columns, and rows.
Table = tuple[tuple[str, ...], Rows]


@dataclass(frozen=True)
class Cell:
    """What stands in a table, and whether it is a number."""

    text: str
    is_number: bool

    @property
    def is_short(self) -> bool:
        """Whether it is kept in one line."""
        return len(self.text) <= _SHORT


@dataclass(frozen=True)
class Section:
    """A part of the page. ``half``: two of them stand side by side where there is room."""

    anchor: str
    short: str
    title: str
    finding: str
    words: str
    picture: Picture | None
    columns: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int
    half: bool

    @property
    def is_open(self) -> bool:
        """Whether its numbers are shown at once: where there are few of them and no picture."""
        return self.picture is None and not self.half and len(self.rows) <= _FEW


@dataclass(frozen=True)
class Heading:
    """What a section is called: its anchor, its name in the list of sections, its title."""

    anchor: str
    short: str
    title: str
    half: bool = False


def section(
    heading: Heading, finding: str, words: str, draw: Callable[[int], Any] | None, table: Table
) -> Section:
    """Return a section; there is no picture where there are no rows."""
    names, rows = table
    listed_rows = [tuple(_cell(value) for value in row) for row in rows]
    shown = tuple(islice(listed_rows, _ROWS))
    width = HALF if heading.half else WIDE
    image = picture(draw, width) if draw is not None and listed_rows else None
    numbers = [cell.is_number for cell in shown[0]] if shown else [False] * len(names)
    return Section(
        heading.anchor,
        heading.short,
        heading.title,
        finding,
        words,
        image,
        tuple(Cell(name, is_number) for name, is_number in zip(names, numbers, strict=True)),
        shown,
        len(listed_rows) - len(shown),
        heading.half,
    )


def _cell(value: object) -> Cell:
    shown = text(value)
    return Cell(shown, isinstance(value, int | float) or shown.endswith("%"))
