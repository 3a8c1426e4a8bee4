"""Where the quotes of each line are: what a layout is held to.

Belongs here: the two ways to know it, from a table if all lines have the same signs in the same
order, as most files do, else by search. What stands between quotes is `ndjson_twins`.
"""

import numpy as np

from transforms.reading.text_lines import QUOTE, Ints, Lines


class Quotes:
    """Where the quotes of each line are."""

    def __init__(self, lines: Lines) -> None:
        self._is_regular = bool(lines.period)
        if self._is_regular:
            self._table = lines.signs.reshape(-1, lines.period)
            self._columns = np.flatnonzero(lines.kinds[: lines.period] == QUOTE)
        else:
            self._places = lines.signs[lines.kinds == QUOTE]
            self._first = np.searchsorted(self._places, lines.starts)

    def counts(self, numbers: Ints) -> Ints:
        """How many there are in each of some lines."""
        if self._is_regular:
            return np.full(len(numbers), len(self._columns))
        counts: Ints = self._first[numbers + 1] - self._first[numbers]
        return counts

    def places(self, numbers: Ints, count: int) -> Ints:
        """Where in each of some lines that one is which has so many before it in its line."""
        if not self._is_regular:
            places: Ints = self._places[self._first[numbers] + count]
            return places
        column: Ints = self._table[:, self._columns[count]]
        return column if len(numbers) == len(column) else column[numbers]
