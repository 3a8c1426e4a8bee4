"""Partitions that lie on the grid of a time column, so that one read takes many of them.

Here belong their numbers, their names, and the conditions that pick them on either side. What lies
in none of them can be looked at as well: as one partition more, of which nothing is expected.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from transforms.parity.canonical_sql import quoted
from transforms.spec.fields import format_instant


@dataclass(frozen=True)
class Cut:
    """Where a time column is cut: cells of ``length_us``, number 0 begins at ``origin_us``.

    What is before the origin belongs to number 0. Only rows with a finite time may be asked for.
    """

    column: str
    origin_us: int
    length_us: int


@dataclass(frozen=True)
class Grid:
    """The partitions that are wanted, by number; ``rest`` names what is in none (empty: ignored).

    Conditions are SQL of either engine. Number 0 holds every finite time before it, too.
    """

    cut: Cut
    names: Mapping[int, str]
    rest: str = ""

    def shares(self, size: int) -> Iterator[tuple[int, ...]]:
        """Yield numbers in order, so many at a time."""
        numbers = iter(sorted(self.names))
        while share := tuple(islice(numbers, size)):
            yield share

    def condition(self, numbers: Iterable[int]) -> str:
        """Return what picks the rows of partitions."""
        ranges = [self._range(first, last) for first, last in stretches(sorted(numbers))]
        return " or ".join(f"({each})" for each in ranges) or "false"

    def elsewhere(self) -> str:
        """Return what picks the rows of no partition that is wanted."""
        return f"{quoted(self.cut.column)} is null or not ({self.condition(self.names)})"

    def _range(self, first: int, last: int) -> str:
        column, cut = quoted(self.cut.column), self.cut
        start = _instant(cut.origin_us + first * cut.length_us)
        begun = f">= {start}" if first else "> timestamptz '-infinity'"
        end = _instant(cut.origin_us + (last + 1) * cut.length_us)
        return f"{column} {begun} and {column} < {end}"


def stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Join numbers that follow one another: yields the first and the last of each stretch."""
    start: int | None = None
    for number, following in zip(numbers, [*numbers[1:], None], strict=True):
        start = number if start is None else start
        if following != number + 1:
            yield start, number
            start = None


def _instant(us: int) -> str:
    return f"timestamptz '{format_instant(us)}'"
