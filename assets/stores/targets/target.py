"""The one interface of every target, and what a publication reports.

Here belongs what a caller may rely on, whatever stands behind it; each kind of target has a module
of its own. The rules are written down as tests in ``test_target_conformance.py``, which run against
every kind.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Final, Protocol, Self

import polars as pl

# The target of a stream that names none; it is always declared.
DEFAULT_TARGET: Final = "default"


@dataclass(frozen=True)
class Published:
    """What one publication did: windows seen first, windows amended, other revisions."""

    inserted: int
    amended: int
    unchanged: int


class Target(Protocol):
    """Holds the published windows of many streams: the current revision of each, and all others.

    Frames have the columns of ``schemas.window_history_schema``, times as int64 microseconds.
    Streams never meet, whatever their names. A target is a context manager; what it holds open is
    released on exit. All methods raise ``TargetError``.
    """

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

    def publish(self, stream: str, revisions: pl.DataFrame) -> Published:
        """Take revisions, all or none; a newer one becomes current, an older one never does.

        Several threads may publish at once, each other windows of the stream.
        """
        ...

    def current(self, stream: str) -> pl.DataFrame:
        """The current revision of every window, tombstones too, sorted by window, key, start."""
        ...

    def revisions(self, stream: str) -> pl.DataFrame:
        """Every revision, sorted by window, key, start, revision."""
        ...

    def as_of(self, stream: str, instant_us: int) -> pl.DataFrame:
        """What people could read at an instant: the newest revisions by then, no tombstones."""
        ...
