"""Rows that are behind a piece of work, told as they pass: for a bar, never for a result."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

# What is done, how many rows of it, of how many; 0: nobody knows.
Told = Callable[[str, int, int], None]


def nobody(_what: str, _done: int, _of: int) -> None:
    """Is told, and does nothing."""


# So many rows more are done.
Passed = Callable[[int], None]


def unheard(_rows: int) -> None:
    """Hear of rows that passed, and do nothing."""


@dataclass
class RowCount:
    """So many rows of a piece of work are done; any thread adds to them."""

    told: Told
    what: str
    of: int
    done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        """Tell that it begins."""
        self.add(0)

    def add(self, rows: int) -> None:
        """Tell that so many more are done."""
        with self._lock:
            self.done += rows
            self.told(self.what, self.done, self.of)
