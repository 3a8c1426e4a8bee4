"""The register of source files: every file once seen, its ordinal, its fingerprint, its arrivals.

Here belongs what the lake remembers of the files of a stream. An ordinal is given when a file is
first seen and kept for ever, for it is part of the ``seq`` of its rows. Reading files is in
``sources``, what is done with their rows in ``intake``.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, Self

import polars as pl

from assets.stores.lake import Lake, Slot
from assets.stores.sources.files import FileRead
from assets.stores.sources.storage import Version
from transforms.judging.keyed import NEVER
from transforms.schemas import ARRIVAL_US, SEQ, SOURCE_FILES
from transforms.staging import fill_arrival_for_partition

# The register is no partition of anything; the lake wants a name all the same.
_SLOT: Final = Slot("all")


@dataclass(frozen=True)
class SourceFile:
    """A file as it was when it was last read.

    ``size`` and ``stamp`` tell without reading whether it changed since; ``is_present`` says
    whether it is still there. ``first_us`` and ``last_us`` bound the arrivals by which its rows
    are cut into partitions, ``home_us`` is that of its last row; all three are None for a file
    without any readable arrival, whose rows follow those of the file before it. ``spec`` is the
    fingerprint under which it was read.
    """

    name: str
    ordinal: int
    fingerprint: str
    spec: str
    size: int
    stamp: str
    rows: int
    first_us: int | None
    last_us: int | None
    home_us: int | None
    is_present: bool = True

    @classmethod
    def of(cls, read: FileRead, ordinal: int, version: Version, spec: str) -> Self:
        """Describe a file that was just read."""
        arrivals = pl.concat([read.staged[ARRIVAL_US], fill_arrival_for_partition(read.parsed)])
        seqs = pl.concat([read.staged[SEQ], read.rejected[SEQ]])
        last = seqs.arg_max()
        return cls(
            name=read.name,
            ordinal=ordinal,
            fingerprint=read.fingerprint,
            spec=spec,
            size=version.size,
            stamp=version.stamp,
            rows=read.parsed.height,
            first_us=arrivals.min(),  # type: ignore[arg-type]
            last_us=arrivals.max(),  # type: ignore[arg-type]
            home_us=None if last is None else arrivals[last],
        )

    def is_version(self, version: Version, spec: str) -> bool:
        """Whether the file is as it was read, and would be read the same way."""
        return (self.size, self.stamp, self.spec) == (*version, spec)

    def ends_before(self, instant_us: int) -> bool:
        """Whether no row of the file arrived at an instant or after it."""
        return self.last_us is None or self.last_us < instant_us


def in_order(files: Iterable[SourceFile]) -> list[SourceFile]:
    """Return files by ordinal; one without arrivals gets the place of the file before it.

    Where there is none before it, it belongs to the first partition.
    """
    placed: list[SourceFile] = []
    home: int = int(NEVER)
    for file in sorted(files, key=lambda file: file.ordinal):
        known = file
        if file.home_us is None:
            known = replace(file, first_us=home, last_us=home, home_us=home)
        placed.append(known)
        home = known.home_us if known.home_us is not None else home
    return placed


def load(lake: Lake, stream: str) -> dict[str, SourceFile]:
    """Return the register by name of file; empty for a stream never seen."""
    if lake.version(stream, SOURCE_FILES) is None:
        return {}
    rows = lake.scan(stream, SOURCE_FILES).collect()
    return {row["name"]: SourceFile(**row) for row in rows.to_dicts()}


def save(lake: Lake, stream: str, files: Iterable[SourceFile]) -> None:
    """Keep the register."""
    rows = [asdict(file) for file in sorted(files, key=lambda file: file.ordinal)]
    types = {str: pl.String(), int: pl.Int64(), bool: pl.Boolean(), int | None: pl.Int64()}
    schema = pl.Schema({field.name: types[field.type] for field in fields(SourceFile)})  # type: ignore[index]
    lake.replace(stream, SOURCE_FILES, {_SLOT: pl.DataFrame(rows, schema=schema)})
