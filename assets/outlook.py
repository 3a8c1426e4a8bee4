"""What is to be done for a stream now, looked at from outside of any run.

Here belongs a look that schedules and sensors share: the source is surveyed as a run would do it,
unless somebody writes to the stream or too much is new to be read in passing. What follows from the
look is in ``freshness`` and ``touched``; when to look is the business of ``orchestration``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assets.catalogue import RUN_PARTITIONS, Landing, Locks
from assets.freshness import complete, first_unfinished_of_any
from assets.partitions import Axis
from assets.staging import digest_of_sources, feeding
from assets.stores.lake import Lake
from assets.stores.lock import StreamLock
from assets.stores.marks import digest_of
from assets.stores.source_files import SourceFile
from transforms.schemas import STAGED_SOURCES
from transforms.spec import StreamSpec

# More is left to a run: a look must be over in seconds.
BYTES_IN_PASSING: Final = 256 << 20


@dataclass(frozen=True)
class Due:
    """Arrival partitions for one run, from one to another; a digest of the files they come from."""

    first: str
    last: str
    sources: str


@dataclass(frozen=True)
class Outlook:
    """A stream as it was found: its partitions, and its source files as far as they are known.

    ``unread_bytes`` are new and left to the next run.
    """

    spec: StreamSpec
    lake: Lake
    axis: Axis
    files: Sequence[SourceFile]
    unread_bytes: int = 0

    @classmethod
    def of(cls, spec: StreamSpec, lake: Lake, landing: Landing, locks: Locks) -> "Outlook":
        """Look at a stream. Raises LockHeld at once if somebody writes to it, else SourceError."""
        intake = landing.of(spec)
        with StreamLock(locks.folder, spec.name, patience_s=0)():
            unread = intake.unread()
            in_passing = sum(unread.values()) <= BYTES_IN_PASSING
            files = intake.survey() if in_passing else intake.known()
            intake.forget(files)
        left = 0 if in_passing else sum(unread.values())
        return cls(spec, lake, Axis.of_arrivals(spec), files, left)

    def due(self, now_us: int) -> Due | None:
        """Return the partitions from the first unfinished to the last that is complete.

        Where too much is unread, only the first: the run that takes it reads all files.
        """
        partitions = complete(self.spec, self.axis, self.files, now_us)
        if self.unread_bytes:
            partitions = partitions or self.axis.keys[:1]
        due = self._from_first_unfinished(partitions)
        if due is not None and self.unread_bytes:
            return Due(due.first, due.first, due.sources)
        return due

    def changed(self) -> Due | None:
        """Return the staged partitions from the first that its source would make otherwise."""
        staged = self.axis.in_order(self.lake.partitions(self.spec.name, STAGED_SOURCES))
        return self._from_first_unfinished(self.axis.up_to(staged[-1])) if staged else None

    def _from_first_unfinished(self, partitions: Sequence[str]) -> Due | None:
        first = first_unfinished_of_any(self.spec, self.lake, self.axis, self.files, partitions)
        if first is None:
            return None
        chosen = self.axis.between(first, partitions[-1])[:RUN_PARTITIONS]
        fed = feeding(self.files, self.axis, chosen)
        digest = digest_of(*(digest_of_sources(files) for files in fed.values()))
        return Due(first, chosen[-1], digest)
