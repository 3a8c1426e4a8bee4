"""Reorder and windows of staged rows in the lake, all fates, state, books and digests.

``python -m benchmarks.headline stage HOME ROWS SHARDS`` fills a lake with staged rows;
``python -m benchmarks.headline run HOME SHARDS`` works on it and prints seconds by part as JSON.
The work is that of the assets, without Dagster around it.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from shutil import rmtree
from typing import Any

from assets import reorder, windows
from assets.partitions import Axis
from assets.stores.lake import Lake, Slot
from assets.stores.lake_files import TableLocation
from assets.stores.marks import Mark
from assets.stores.tables import EVENT_TABLES, by_shard, frame_schema, unit_of
from assets.stores.unit_of_work import UnitOfWork
from benchmarks.fleet import rows, spec_text
from transforms.books import entry
from transforms.schemas import (
    ARRIVAL_US,
    REJECTED_ROWS,
    SEQ,
    STAGED_EVENTS,
    STAGED_SOURCES,
)
from transforms.spec import StreamSpec, load_spec

PARTITION = "2024-01-01"
RESULTS = ("ordered_events", "dead_letters", "duplicates", "held_events", "watermarks")
PARTS = (
    ("read", UnitOfWork, "read"),
    ("write", TableLocation, "write"),
    ("earlier rows", reorder, "_earlier"),
    ("reorder", reorder, "advance"),
    ("books", reorder, "_verified_books"),
    ("windows", windows, "counted_rows"),
    ("windows", windows, "first_publications"),
    ("commit", UnitOfWork, "finish"),
)


def spec_of(shards: int) -> StreamSpec:
    """The stream of the benchmark."""
    return load_spec(spec_text(shards), file="fleet.yaml")


def lake_in(home: Path) -> Lake:
    """The lake of the benchmark."""
    return Lake(str(home / "lake"), event_tables=EVENT_TABLES)


def stage(home: Path, number: int, shards: int) -> None:
    """Fill the lake with staged rows and the mark that says they are complete."""
    spec, lake = spec_of(shards), lake_in(home)
    with unit_of(lake, spec, STAGED_SOURCES) as unit:
        for shard, part in enumerate(by_shard(spec, rows(number))):
            staged = part.sort(ARRIVAL_US, SEQ)
            slot = Slot(PARTITION, shard)
            note = ("made", 0, "made", staged.height, 0, str(entry(spec, staged)))
            sources = frame_schema(spec, STAGED_SOURCES).to_frame()
            noted = sources.vstack(
                type(sources)([note], schema=sources.schema, orient="row"),
            )
            unit.replace(STAGED_EVENTS, slot, staged)
            unit.replace(REJECTED_ROWS, slot, frame_schema(spec, REJECTED_ROWS).to_frame())
            unit.replace(STAGED_SOURCES, slot, noted, str(Mark.of(spec, "made")))


def run(home: Path, shards: int) -> dict[str, float]:
    """Work on the staged rows; seconds by part, ``the rest`` being marks and glue."""
    spec, lake = spec_of(shards), lake_in(home)
    axis = Axis.of_arrivals(spec)
    clock = Clock()
    for part, owner, name in PARTS:
        setattr(owner, name, clock.timed(getattr(owner, name), part))
    with clock.part("the rest"):
        list(reorder.reorder(spec, lake, axis, [PARTITION]))
        list(windows.close_windows(spec, lake, axis, [PARTITION]))
    return clock.seconds


class Clock:
    """Seconds by part; what is done for a part inside another counts for the inner one alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of a block."""
        outer, self._inner = self._inner, 0.0
        begun = time.perf_counter()
        try:
            yield
        finally:
            whole = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + whole - self._inner
            self._inner = outer + whole

    def timed(self, function: Callable[..., Any], part: str) -> Any:
        """Return the function, with its time counted."""

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.part(part):
                return function(*args, **kwargs)

        return wrapped


def clear_results(home: Path) -> None:
    """Take away what a run made, and keep the staged rows."""
    for table in (*RESULTS, "window_aggregates"):
        rmtree(home / "lake" / "fleet" / table, ignore_errors=True)


def main() -> None:
    """Stage or run, as the first argument says."""
    what, home, *numbers = sys.argv[1:]
    if what == "stage":
        stage(Path(home), *map(int, numbers))
        return
    clear_results(Path(home))
    print(json.dumps(run(Path(home), *map(int, numbers))))


if __name__ == "__main__":
    main()
