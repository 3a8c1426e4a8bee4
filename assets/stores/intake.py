"""The intake: the rows of the source files that belong to an arrival partition.

Here belongs which files must be read for which partitions, and keeping what was read until it is
staged: in memory, and beyond a bound in temporary Parquet files. How a file is read is in
``sources``; what the lake remembers of files is in ``source_files``.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from assets.stores import source_files
from assets.stores.lake import Lake
from assets.stores.source_files import SourceFile
from assets.stores.sources.files import FileRead, find_files, read_files
from assets.stores.sources.storage import Version, storage_of
from transforms.errors import SourceError
from transforms.schemas import ARRIVAL_US, SEQ
from transforms.spec import StreamSpec
from transforms.staging import fill_arrival_for_partition, first_seq, with_seq

ROWS_IN_MEMORY: Final = 2_000_000
_PLACE: Final = "_place"


class Piece(NamedTuple):
    """The rows of one file that belong to one partition, by arrival and ``seq``."""

    file: SourceFile
    staged: pl.DataFrame
    rejected: pl.DataFrame


@dataclass(frozen=True)
class _Kept:
    """A file that was read, its rows sorted by the arrival that decides their partition."""

    staged: pl.LazyFrame
    rejected: pl.LazyFrame
    rows: int


@dataclass
class Intake:
    """The source files of one stream; relative globs start at ``data_dir``.

    It knows what it has read already: what one survey reads, the next stage need not read again.
    """

    lake: Lake
    data_dir: Path
    spec: StreamSpec
    rows_in_memory: int = ROWS_IN_MEMORY
    _kept: dict[str, _Kept] = field(default_factory=dict, repr=False)
    _folder: Path | None = field(default=None, repr=False)

    def survey(self) -> list[SourceFile]:
        """Bring the register up to date, and return its files in source order.

        New files and files that changed are read. A file that is gone stays in the register: what
        was staged of it is kept. Raises SourceError.
        """
        known = source_files.load(self.lake, self.spec.name)
        names = find_files(self.spec, self.data_dir)
        versions = {name: self._version(name) for name in names}
        found = {name: replace(file, is_present=name in versions) for name, file in known.items()}
        fingerprint = self.spec.fingerprint()
        fresh = [
            name
            for name in names
            if name not in known or not known[name].is_version(versions[name], fingerprint)
        ]
        for name in (name for name in fresh if name in known):
            self._kept.pop(name, None)
        ordinals = {name: file.ordinal for name, file in known.items()}
        for name in fresh:
            ordinals.setdefault(name, len(ordinals))
        for read in read_files(self.spec, fresh, data_dir=self.data_dir):
            ordinal, version = ordinals[read.name], versions[read.name]
            found[read.name] = SourceFile.of(read, ordinal, version, fingerprint)
            self._keep(read, ordinal)
        if found != known:
            source_files.save(self.lake, self.spec.name, found.values())
        return source_files.in_order(found.values())

    def known(self) -> list[SourceFile]:
        """Return the files of the register in source order, as they were when last surveyed."""
        return source_files.in_order(source_files.load(self.lake, self.spec.name).values())

    def unread(self) -> dict[str, int]:
        """Return the files that are new or changed since, by name, and their sizes in bytes.

        Raises SourceError.
        """
        known = source_files.load(self.lake, self.spec.name)
        versions = {name: self._version(name) for name in find_files(self.spec, self.data_dir)}
        fingerprint = self.spec.fingerprint()
        return {
            name: version.size
            for name, version in versions.items()
            if name not in known or not known[name].is_version(version, fingerprint)
        }

    def load(self, files: Iterable[SourceFile]) -> None:
        """Read those of the files that are there and are not yet known, side by side."""
        wanted = {file.name: file for file in files if file.is_present}
        names = [name for name in wanted if name not in self._kept]
        for read in read_files(self.spec, names, data_dir=self.data_dir):
            file = wanted[read.name]
            if read.fingerprint != file.fingerprint:
                raise SourceError(f"{read.name}: the file changed since it was surveyed; run again")
            self._keep(read, file.ordinal)

    def piece(self, file: SourceFile, start_us: int, end_us: int) -> Piece:
        """Return the rows of a loaded file that arrived in [start, end)."""
        kept = self._kept[file.name]
        home = file.home_us
        place = pl.col(_PLACE).fill_null(home)
        inside = (place >= start_us) & (place < end_us)
        arrived = (pl.col(ARRIVAL_US) >= start_us) & (pl.col(ARRIVAL_US) < end_us)
        rejected = kept.rejected.filter(inside).drop(_PLACE)
        return Piece(file, kept.staged.filter(arrived).collect(), rejected.collect())

    def forget(self, files: Iterable[SourceFile]) -> None:
        """Let go of the rows of files that no further partition needs."""
        for file in files:
            self._kept.pop(file.name, None)

    def _version(self, name: str) -> Version:
        try:
            return storage_of(name, self.data_dir).version(name)
        except OSError as error:
            raise SourceError(f"{name}: cannot be read: {error.strerror or error}") from error

    def _keep(self, read: FileRead, ordinal: int) -> None:
        place = fill_arrival_for_partition(read.parsed).alias(_PLACE)
        parsed = with_seq(read.parsed, first_seq(ordinal))
        rejected = parsed.rejected.with_columns(place).sort(SEQ)
        staged = parsed.staged.sort(ARRIVAL_US, SEQ)
        in_memory = sum(kept.rows for kept in self._kept.values())
        if in_memory + parsed.height <= self.rows_in_memory:
            self._kept[read.name] = _Kept(staged.lazy(), rejected.lazy(), parsed.height)
        else:
            self._kept[read.name] = self._spilled(ordinal, staged, rejected)

    def _spilled(self, ordinal: int, *frames: pl.DataFrame) -> _Kept:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="lowwater-intake-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        paths = [self._folder / f"{ordinal}-{part}.parquet" for part in (0, 1)]
        for frame, path in zip(frames, paths, strict=True):
            frame.write_parquet(path, compression="lz4")
        return _Kept(pl.scan_parquet(paths[0]), pl.scan_parquet(paths[1]), 0)
