"""One writer per stream: a lock that the command line, the daemon and every step share.

Here belongs who may write to a stream now, and who is in the way. The operating system holds the
lock (``flock`` on a file beside the lake) and frees it when the process ends, however it ends. The
text in the file only tells people who holds it; a text left by a process that was killed bars
nobody.
"""

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

from transforms.errors import LakeError

PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.05


class LockHeld(LakeError):  # noqa: N818 (a state of the world, not a mistake)
    """Another process writes to the stream; the message names it."""

    may_pass = True


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, since when (ISO 8601, UTC)."""

    pid: int
    command: str
    host: str
    since: str

    @classmethod
    def here(cls) -> Self:
        """Return this process."""
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), " ".join(sys.argv)[:200], socket.gethostname(), since)

    def __str__(self) -> str:
        """Return one line for people."""
        return f"process {self.pid} on {self.host} since {self.since}: {self.command}"


@dataclass(frozen=True)
class StreamLock:
    """The right to write to one stream; ``folder`` holds the lock files.

    ``waiting`` is told once, whom it waits for.
    """

    folder: Path
    stream: str
    patience_s: float = PATIENCE_S
    waiting: Callable[[str], None] = lambda _: None

    @property
    def path(self) -> Path:
        """The lock file."""
        return self.folder / f"{self.stream}.lock"

    def holder(self) -> str:
        """Return who holds the lock, as far as the file says."""
        try:
            return str(Holder(**json.loads(self.path.read_text())))
        except (OSError, ValueError, TypeError):
            return "an unknown process"

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Hold the lock; a thread that holds it may take it again. Raises LockHeld."""
        depths = _depths()
        name = str(self.path.resolve())
        with contextlib.ExitStack() as stack:
            if not depths.get(name):
                stack.enter_context(self._taken())
            depths[name] = depths.get(name, 0) + 1
            try:
                yield
            finally:
                depths[name] -= 1

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        # Opened anew each time, for flock belongs to an opening: threads exclude each other too.
        with self.path.open("a+") as file:
            self._wait_for(file.fileno())
            file.truncate(0)
            file.write(json.dumps(asdict(Holder.here())))
            file.flush()
            yield

    def _wait_for(self, descriptor: int) -> None:
        deadline = time.monotonic() + self.patience_s
        told = False
        while not _is_taken(descriptor):
            if time.monotonic() >= deadline:
                raise LockHeld(
                    f"{self.stream} is being written by {self.holder()}; wait until it is done, "
                    "or stop it"
                )
            if not told:
                self.waiting(f"{self.stream} is being written by {self.holder()}; waiting")
                told = True
            time.sleep(_PAUSE_S)


_PER_THREAD = threading.local()


def _depths() -> dict[str, int]:
    """How often this thread holds each lock."""
    if not hasattr(_PER_THREAD, "depths"):
        _PER_THREAD.depths = {}
    depths: dict[str, int] = _PER_THREAD.depths
    return depths


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
