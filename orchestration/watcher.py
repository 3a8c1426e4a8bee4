"""Who is told how a command goes. Nothing is shown here, and nothing of Dagster is needed."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Watcher:
    """A title and a number of steps, then each step; within a step, rows that are behind it.

    ``rows`` is told what is done, how many rows of it, and of how many (0: nobody knows).
    """

    expect: Callable[[str, int], None] = lambda _title, _steps: None
    step: Callable[[], None] = lambda: None
    say: Callable[[str], None] = lambda _text: None
    rows: Callable[[str, int, int], None] = lambda _what, _done, _of: None
