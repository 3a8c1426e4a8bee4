"""One table as a unit of work sees it: what is committed, and what it will be.

Here belongs the bookkeeping of files: which are there, which are new, which go. When they are
committed, and in which order of tables, is the business of ``unit_of_work``.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

import polars as pl

from assets.stores.lake import Change, Slot
from assets.stores.lake_files import DataFile

Shards = dict[int, list[DataFile]]


@dataclass
class TableView:
    """The files of one table by partition and shard; ``schema`` is that of its frames.

    ``marks`` are those texts of marks that are known already, by partition.
    """

    schema: pl.Schema
    present: dict[str, Shards] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    _added: dict[Slot, DataFile] = field(default_factory=dict)
    _removed: list[DataFile] = field(default_factory=list)
    _replaced: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, schema: pl.Schema, files: Iterable[DataFile]) -> Self:
        """Return the view of a table as it is committed."""
        view = cls(schema)
        for file in files:
            view.present.setdefault(file.partition, {}).setdefault(file.shard, []).append(file)
        return view

    def files(
        self, partitions: Collection[str] | None = None, shard: int | None = None
    ) -> Iterator[DataFile]:
        """Yield the files of partitions and a shard (None: all), by partition and shard."""
        chosen = self.present if partitions is None else partitions
        for partition in sorted(chosen):
            shards = self.present.get(partition, {})
            for number in sorted(shards) if shard is None else (shard,):
                yield from shards.get(number, ())

    def of_slot(self, slot: Slot) -> list[DataFile]:
        """Return the files of one shard of a partition."""
        return self.present.get(slot.partition, {}).get(slot.shard, [])

    def put(self, slot: Slot, file: DataFile | None) -> None:
        """Let a slot consist of one file, or of none."""
        self._take_out(slot)
        if file is not None:
            self._added[slot] = file
            self.present.setdefault(slot.partition, {})[slot.shard] = [file]

    def touch(self, partition: str) -> None:
        """Say that a partition is made anew, even if it turns out to be the same."""
        self._replaced.add(partition)

    def change(self, shards: int) -> Change:
        """Return what has to be committed.

        Files of shards that a stream no longer has go with the partitions that are made anew.
        """
        for partition in self._replaced:
            for shard in [s for s in self.present.get(partition, {}) if s >= shards]:
                self._take_out(Slot(partition, shard))
        return Change(list(self._added.values()), list(self._removed))

    @property
    def news(self) -> int:
        """How many rows wait for the next commit."""
        return sum(file.rows for file in self._added.values())

    @property
    def slots(self) -> int:
        """How many slots wait for the next commit."""
        return len(self._added)

    def _take_out(self, slot: Slot) -> None:
        new = self._added.pop(slot, None)
        old = self.present.get(slot.partition, {}).pop(slot.shard, [])
        self._removed += [file for file in old if file != new]
