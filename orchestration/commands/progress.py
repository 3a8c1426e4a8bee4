"""The progress bar: how a command goes, on a terminal and nowhere else.

Here belongs what is drawn; who tells is the command. It goes to stderr, which results never do.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from orchestration.watcher import Watcher

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def progress_bar() -> Iterator[Watcher]:
    """Show on stderr how a command goes; not at all where stderr is no terminal."""
    if not os.isatty(2):
        yield Watcher()
        return
    # Dagster catches what a step writes to stderr; the bar keeps a way of its own to the terminal.
    with os.fdopen(os.dup(2), "w") as terminal, bar(terminal) as progress:
        yield watcher_of(progress)


def bar(terminal: IO[str]) -> "Progress":
    """Return the columns: what, the bar, how many of how many, the time so far and to come."""
    from rich.console import Console  # noqa: PLC0415 (most commands draw nothing)
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description:<32}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        console=Console(file=terminal),
        transient=True,
    )


def watcher_of(progress: "Progress") -> Watcher:
    """Return who draws on a bar: a line for steps, and one for rows while there are any."""
    steps = progress.add_task("starting", total=None, count="")
    rows = progress.add_task("", total=None, visible=False, count="")

    def expect(title: str, number: int) -> None:
        progress.reset(steps, total=number, description=title, count=f"0/{number:,}")

    def step() -> None:
        progress.advance(steps)
        [task] = [task for task in progress.tasks if task.id == steps]
        progress.update(steps, count=f"{task.completed:,.0f}/{task.total or 0:,.0f}")

    def say(text: str) -> None:
        progress.reset(steps, total=None, description=text, count="")

    def count(what: str, done: int, of: int) -> None:
        total = f"/{of:,}" if of else ""
        if done == 0:
            progress.reset(rows, total=of or None, description=what)
        told = f"{done:,}{total} rows"
        is_running = not of or done < of
        progress.update(rows, completed=done, count=told, visible=is_running)

    return Watcher(expect, step, say, count)
