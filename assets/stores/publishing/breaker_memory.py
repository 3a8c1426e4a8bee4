"""What a process leaves to the next one: that a target was down when it last heard of it.

A breaker that starts from there is half-open: one call finds out before others are let through. A
file stands for a breaker that is not closed. Here belongs that file.
"""

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path


@dataclass
class BreakerMemory:
    """Of one target; without a file nothing is remembered."""

    file: Path | None = None
    _kept: bool | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def was_down(self) -> bool:
        """Whether an earlier process left the target as out of reach."""
        return self.file is not None and self.file.exists()

    def keep(self, *, is_down: bool) -> None:
        """Remember how the target does now; nothing is written where nothing has changed."""
        with self._lock:
            if self.file is None or is_down == self._kept:
                return
            if is_down:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self.file.write_text(f"down since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n")
            else:
                self.file.unlink(missing_ok=True)
            self._kept = is_down
