"""The one interface of every target, and what a publication reports.

Here belongs what a caller may rely on, whatever stands behind it; each kind of target has a module
of its own. The rules are written down as tests in ``test_target_conformance.py``, which run against
every kind.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

import polars as pl

from assets.stores.parity.side import READING, Reading, Side
from transforms.publishing.ledger import NO_NOTE, Covered, Note

# The target of a stream that names none; it is always declared.
DEFAULT_TARGET: Final = "default"

# What every kind of target calls its tables and the readers of them.
CURRENT: Final = "windows_current"
REVISIONS: Final = "windows_revisions"
READABLE: Final = "windows"
AS_OF: Final = "windows_as_of"
KEY: Final = ("window", "key", "window_start")


@dataclass(frozen=True)
class Published:
    """What one publication did: windows seen first, windows amended, other revisions.

    ``seconds`` is how long the store worked at it, without waiting for its turn.
    """

    inserted: int
    amended: int
    unchanged: int
    seconds: float = field(default=0.0, compare=False)


class Starts(NamedTuple):
    """Which windows are read: those that start in [first, until), microseconds UTC; None: open."""

    first_us: int | None = None
    until_us: int | None = None

    def condition(self, instant: Callable[[int], str]) -> str:
        """Return it in SQL; ``instant`` spells a time."""
        ends = ((">=", self.first_us), ("<", self.until_us))
        tests = [f"window_start {sign} {instant(us)}" for sign, us in ends if us is not None]
        return " and ".join(tests) or "true"


EVER: Final = Starts()


class Target(Protocol):
    """Holds the published windows of many streams: the current revision of each, and all others.

    Frames have the columns of ``schemas.window_history_schema``, times as int64 microseconds.
    Streams never meet, whatever their names. A target is a context manager; what it holds open is
    released on exit. All methods raise ``TargetError``.
    """

    @property
    def label(self) -> str:
        """What people call it; no password."""
        ...

    def __enter__(self) -> Self:
        """Reach the target."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of it."""
        ...

    def prepare(self, stream: str, schema: pl.Schema) -> None:
        """Create what the stream needs, or add the columns that are new; again: nothing.

        A column that changed its type is an error: published numbers are never converted silently.
        """
        ...

    def publish(self, stream: str, revisions: pl.DataFrame, note: Note = NO_NOTE) -> Published:
        """Take revisions, all or none; a newer one becomes current, an older one never does.

        Several threads may publish at once, each other windows of the stream. The note is written
        in the same transaction. Raises the errors of ``faults``.
        """
        ...

    def covered(self, stream: str, publications: Iterable[str]) -> list[Covered]:
        """What of some publications was taken before."""
        ...

    def numbers(self, stream: str) -> dict[str, int]:
        """The publication number of each event partition: it is raised when rows change."""
        ...

    def refused(self, stream: str) -> frozenset[bytes]:
        """The row frames of what it could not hold, as they were kept."""
        ...

    def side(self, stream: str, how: Reading = READING) -> Side:
        """The current windows as one side of a proof; this target must be closed meanwhile.

        Raises UsageError for a way of reading that it does not have.
        """
        ...

    def current(self, stream: str, starts: Starts = EVER) -> pl.DataFrame:
        """The current revision of every window, tombstones too, sorted by window, key, start."""
        ...

    def revisions(self, stream: str) -> pl.DataFrame:
        """Every revision, sorted by window, key, start, revision."""
        ...

    def as_of(self, stream: str, instant_us: int) -> pl.DataFrame:
        """What people could read at an instant: the newest revisions by then, no tombstones."""
        ...
