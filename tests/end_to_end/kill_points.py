"""Where a process can be killed: before, after and amid the steps that leave something behind.

`arm` wraps these steps in this process. They count, and at a chosen number the process sends itself
SIGKILL: no handler runs, no buffer is flushed, no lock is given back by us.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assets import publication, reconcile, reorder, staging, windows
from assets.stores import source_files, unit_of_work
from assets.stores.lake import Lake
from assets.stores.lake_files import TableLocation
from assets.stores.lock import StreamLock
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.unit_of_work import UnitOfWork

# Where the generator of a stage is looked up by the assets and by a run without Dagster.
STAGES = (
    (staging, "stage"),
    (reorder, "reorder"),
    (windows, "close_windows"),
    (publication, "publish_windows"),
    (reconcile, "amend"),
)
# What is wrapped, and which argument (if any) says more about the call.
STEPS: tuple[tuple[Any, str, int | None], ...] = (
    (Lake, "write", 2),
    (Lake, "commit", 2),
    (Lake, "_create", 2),
    (UnitOfWork, "replace", 1),
    (UnitOfWork, "flush", None),
    (source_files, "save", None),
    (StreamLock, "_wait_for", None),
    (DuckDBTarget, "prepare", None),
    (DuckDBTarget, "publish", None),
    (DuckDBTarget, "_keep_revisions", None),
    (DuckDBTarget, "_make_current", None),
    (DuckDBTarget, "__exit__", None),
)


class Fuse:
    """Counts the points that are passed; burns out at one of them."""

    def __init__(self, burns_at: int | None, noted: Path | None = None) -> None:
        self.burns_at, self.noted = burns_at, noted
        self.passed = 0
        self.stage = "before"

    def point(self, label: str, wreck: Callable[[], None] = lambda: None) -> None:
        """Pass a point; `wreck` is what the process would still have done half."""
        if self.noted is not None:
            with self.noted.open("a") as file:
                file.write(f"{self.stage}: {label}\n")
        if self.passed == self.burns_at:
            wreck()
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    def around(self, owner: Any, name: str, told: int | None) -> None:
        """Make a step pass a point before and after it."""
        step = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            label = f"{name} {arguments[told]}" if told is not None else name
            self.point(f"before {label}")
            result = step(*arguments, **named)
            self.point(f"after {label}")
            return result

        setattr(owner, name, wrapped)

    def amid_writing(self) -> None:
        """Make half a data file stay behind."""
        write = TableLocation._write_parquet

        def wrapped(location: TableLocation, path: str, stored: Any) -> int:
            size = write(location, path, stored)
            self.point("amid a data file", lambda: os.truncate(location.uri(path), size // 2))
            return size

        setattr(TableLocation, "_write_parquet", wrapped)  # noqa: B010 (mypy: a method)

    def amid_stage(self, module: Any, name: str) -> None:
        """Know the stage, and pass a point after each of its partitions."""
        run = getattr(module, name)

        def wrapped(*arguments: Any, **named: Any) -> Iterator[Any]:
            self.stage = name
            for partition in run(*arguments, **named):
                self.point("after a partition")
                yield partition

        setattr(module, name, wrapped)


def arm(burns_at: int | None, *, slots: int | None = None, noted: Path | None = None) -> None:
    """Wrap the steps of this process; `slots` makes for small chunks, so more commits."""
    fuse = Fuse(burns_at, noted)
    for module, name in STAGES:
        fuse.amid_stage(module, name)
    for owner, name, told in STEPS:
        fuse.around(owner, name, told)
    fuse.amid_writing()
    if slots is not None:
        unit_of_work.CHUNK_SLOTS = slots  # type: ignore[misc]
        publication.CHUNK_ROWS = reconcile.CHUNK_ROWS = slots  # type: ignore[misc]
