"""The history of published windows in the lake, and the targets that repeat it.

Here belongs how revisions are kept: append only, by event partition and shard. The lake has them
first, then the target (``stores.targets.writers``), which takes again whatever it has not got.
Which revisions are needed is the business of ``transforms.publication`` and
``transforms.reconcile``.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from assets.partitions import Axis
from assets.stores.counting import Told, nobody
from assets.stores.lake import Lake, Slot
from assets.stores.publishing.delivery import Sink
from assets.stores.tables import by_shard, unit_of
from assets.stores.targets.target import Target
from transforms.errors import UsageError
from transforms.publication import stamped
from transforms.schemas import (
    AMENDED_WINDOWS,
    EVENT_PARTITION,
    REVISION,
    WINDOW_HISTORY,
    WINDOW_IDENTITY,
    WINDOW_START_US,
    window_history_schema,
)
from transforms.spec import StreamSpec
from transforms.spec.partitions import GRAIN_US

# So many revisions are read at a time.
CHUNK_ROWS: Final = 200_000


@dataclass(frozen=True)
class Targets:
    """The resource ``targets``: the stores that people read, by the name a spec gives."""

    named: Mapping[str, Target]
    breakers: Path | None = None  # the folder that says which of them were down
    told: Told = nobody
    _sinks: dict[str, Sink] = field(default_factory=dict, repr=False)

    def of(self, spec: StreamSpec) -> Target:
        """Return the target of a stream. Raises UsageError for one that is not declared."""
        if spec.target not in self.named:
            known = ", ".join(sorted(self.named))
            raise UsageError(f"{spec.name}: target {spec.target} is not declared; known: {known}")
        return self.named[spec.target]

    def sink_of(self, spec: StreamSpec) -> Sink:
        """Return the target of a stream with what this process knows of it, always the same."""
        if spec.target not in self._sinks:
            file = self.breakers and self.breakers / spec.target
            self._sinks[spec.target] = Sink.remembered(self.of(spec), file, self.told)
        return self._sinks[spec.target]


@dataclass(frozen=True)
class History:
    """All revisions of a stream; ``events`` are its event partitions."""

    lake: Lake
    spec: StreamSpec
    events: Axis

    def read(self, partitions: Collection[str], shard: int | None = None) -> pl.DataFrame:
        """Return the revisions of the windows of event partitions."""
        if self.lake.version(self.spec.name, WINDOW_HISTORY) is None:
            return window_history_schema(self.spec).to_frame()
        rows = self.lake.scan(self.spec.name, WINDOW_HISTORY, partitions=partitions, shard=shard)
        return rows.collect()

    def chunks(self, partitions: Collection[str]) -> Iterator[pl.DataFrame]:
        """Yield the revisions of event partitions, whole ones, so many at a time as memory likes.

        The files of the lake are listed once, however many partitions there are.
        """
        unit = unit_of(self.lake, self.spec, AMENDED_WINDOWS)
        rows, chunk, size = unit.rows(WINDOW_HISTORY), list[str](), 0
        for partition in self.events.in_order(partitions):
            chunk.append(partition)
            size += rows.get(partition, 0)
            if size >= CHUNK_ROWS:
                yield unit.read(WINDOW_HISTORY, partitions=chunk)
                chunk, size = [], 0
        yield unit.read(WINDOW_HISTORY, partitions=chunk)

    def append(self, revisions: pl.DataFrame, run_id: str) -> pl.DataFrame:
        """Keep revisions, as said now by this run; returns them as they are kept."""
        said = stamped(revisions, published_at_us=time.time_ns() // 1_000, run_id=run_id)
        said = said.sort(*WINDOW_IDENTITY, REVISION)
        frames = {
            Slot(partition, shard): part
            for partition, rows in self.by_partition(said).items()
            for shard, part in enumerate(by_shard(self.spec, rows))
            if part.height
        }
        self.lake.append(self.spec.name, WINDOW_HISTORY, frames)
        return said

    def by_partition(self, windows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Return windows by the event partition that their start lies in."""
        parts = self.with_partition(windows).partition_by(
            EVENT_PARTITION, as_dict=True, include_key=False
        )
        return {str(name): rows for (name,), rows in parts.items()}

    def with_partition(self, windows: pl.DataFrame) -> pl.DataFrame:
        """Add the event partition that the start of each window lies in."""
        grain_us = GRAIN_US[self.spec.events.grain]
        # Event partitions lie on the grid of their grain in UTC: a name for each cell is enough.
        cell = pl.col(WINDOW_START_US) // grain_us * grain_us
        cells = windows.select(cell.unique()).to_series().to_list()
        names = {start_us: self.events.key_of(start_us) for start_us in cells}
        partition = cell.replace_strict(names, return_dtype=pl.String).alias(EVENT_PARTITION)
        return windows.with_columns(partition)
