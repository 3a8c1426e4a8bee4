"""The files of a stream: found, read side by side, given in source order, staged.

Belongs here: which reader takes which format, what makes a read whole (a file that changes
meanwhile is read again), and the order of files. Bytes are `blocks`, places are `storage`,
meaning is `transforms.staging`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from assets.stores.sources.blocks import Block, HashingReader, blocks, unpacked
from assets.stores.sources.parquet import parquet_rows, raw_texts
from assets.stores.sources.storage import Storage, storage_of
from transforms.errors import SourceError
from transforms.reading.byte_slices import INLINE
from transforms.reading.csv_rows import csv_rows
from transforms.reading.ndjson import ndjson_rows
from transforms.reading.raw_rows import FAULT, raw_schema, source_columns
from transforms.reading.text_lines import split_lines, split_padded
from transforms.resequence import side_by_side
from transforms.schemas import LINE, RAW, SEQ, rejected_schema, staged_schema
from transforms.spec import StreamSpec
from transforms.staging import Parsed, parse, with_seq

ATTEMPTS = 3
"""How often a file that keeps changing is read."""

WORKERS = min(4, os.cpu_count() or 1)
"""How many files are read at once; a few large ones are taken apart by as many threads in all."""


@dataclass(frozen=True)
class FileRead:
    """One file, staged: its rows have `seq` 0, 1, ... in the order of the file.

    `name` is as in the glob, `fingerprint` a hash and the size of the bytes as they lie there.
    """

    name: str
    fingerprint: str
    parsed: Parsed

    @property
    def staged(self) -> pl.DataFrame:
        """Rows that could be read (`schemas.staged_schema`)."""
        return self.parsed.staged

    @property
    def rejected(self) -> pl.DataFrame:
        """Rows that could not (`schemas.rejected_schema`)."""
        return self.parsed.rejected


def find_files(spec: StreamSpec, data_dir: Path) -> list[str]:
    """The files of a stream by name, sorted; relative to `data_dir` if the glob is relative."""
    return storage_of(spec.source.path, data_dir).find(spec.source.path)


def read_files(
    spec: StreamSpec, names: Sequence[str], *, data_dir: Path, workers: int = WORKERS
) -> Iterator[FileRead]:
    """Read and stage files side by side; give them one after another, in the order of `names`.

    SourceError if one is out of reach, not as declared, or keeps changing.
    """
    share = max(workers // max(len(names), 1), 1)
    read = partial(read_file, spec, data_dir=data_dir, workers=share)
    return side_by_side(read, names, workers=workers)


def number_on(reads: Iterator[FileRead], first: int = 0) -> Iterator[FileRead]:
    """Count `seq` on over all files, as a replay does."""
    for read in reads:
        yield FileRead(read.name, read.fingerprint, with_seq(read.parsed, first))
        first += read.parsed.height


def read_file(spec: StreamSpec, name: str, *, data_dir: Path, workers: int = 1) -> FileRead:
    """Read one file as a whole and stage its rows, NDJSON by some workers at once."""
    storage = storage_of(name, data_dir)
    for _ in range(ATTEMPTS):
        try:
            before = storage.version(name)
            read = _read_once(spec, storage, name, workers)
            is_whole = storage.version(name) == before
        except OSError as error:
            raise SourceError(f"{name}: cannot be read: {error.strerror or error}") from error
        if is_whole:
            return read
    raise SourceError(
        f"{name}: the file changed while it was read, {ATTEMPTS} times; let its writer finish, "
        "best by writing elsewhere and moving it here"
    )


def _read_once(spec: StreamSpec, storage: Storage, name: str, workers: int) -> FileRead:
    with closing(storage.open(name)) as file:
        reader = HashingReader(file)
        if spec.source.format == "ndjson":
            parsed = _read_ndjson(spec, reader, name, workers)
        elif spec.source.format == "csv":
            parsed = _read_csv(spec, reader, name)
        else:
            parsed = _read_parquet(spec, reader, name)
        return FileRead(name, reader.fingerprint(), parsed)


def _read_ndjson(spec: StreamSpec, reader: HashingReader, name: str, workers: int) -> Parsed:
    """Block by block, some of them at once; no more than these are there as text."""
    content = blocks(unpacked(reader, name))
    parts: list[Parsed] = []
    line, seq = 0, 0
    read = partial(_read_block, spec, name)
    for parsed, lines in side_by_side(read, content, workers=workers):
        staged, rejected = with_seq(parsed, seq)
        parts.append(Parsed(staged, rejected.with_columns(pl.col(LINE) + line)))
        line, seq = line + lines, seq + parsed.height
    return _joined(spec, parts)


def _read_block(spec: StreamSpec, name: str, block: Block) -> tuple[Parsed, int]:
    """The rows of a block, counted from its beginning, and how many lines it has."""
    columns = source_columns(spec)
    if block.fault is not None:
        return parse(spec, _broken_off(block, 1, 0, columns), source=name), 1
    lines = split_padded(block.padded)
    staged, rejected = parse(spec, ndjson_rows(lines, columns), source=name)
    return Parsed(_with_own_texts(staged), _with_own_texts(rejected)), len(lines)


def _with_own_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame with copies of its longer texts, which do not keep those of a whole block."""
    texts = [column for column in frame.get_columns() if column.dtype == pl.String]
    filled = [text for text in texts if text.null_count() < len(text)]
    long = [text.name for text in filled if (text.str.len_bytes() > INLINE).any()]
    return frame.with_columns(pl.col(long) + "") if long else frame


def _read_csv(spec: StreamSpec, reader: HashingReader, name: str) -> Parsed:
    """As a whole, for a quoted field may hold any number of line ends."""
    columns = source_columns(spec)
    read = list(blocks(unpacked(reader, name)))
    lines = split_lines(b"".join(block.content for block in read if block.fault is None))
    separator, nulls = spec.source.separator, spec.source.nulls
    rows = csv_rows(lines, columns, separator=separator, nulls=nulls, name=name)
    for block in read:
        if block.fault is not None:
            broken = _broken_off(block, len(lines) + 1, rows.height, columns)
            rows = pl.concat([rows, broken])
    return parse(spec, rows, source=name)


def _read_parquet(spec: StreamSpec, reader: HashingReader, name: str) -> Parsed:
    data = b"".join(reader.chunks())
    if not data:
        return _joined(spec, [])
    rows = parquet_rows(spec, data, source_columns(spec), name=name)
    staged, rejected = parse(spec, rows, source=name)
    return Parsed(staged, rejected.with_columns(raw_texts(rows, rejected[SEQ]).alias(RAW)))


def _broken_off(block: Block, line: int, seq: int, columns: Sequence[str]) -> pl.DataFrame:
    """The one raw row that stands for all that broken data do not give."""
    raw = block.content.decode(errors="backslashreplace")
    row = {SEQ: [seq], LINE: [line], RAW: [raw], FAULT: [block.fault]}
    schema = raw_schema(columns)
    nothing = {name: [None] for name in schema.names() if name not in row}
    return pl.DataFrame({**row, **nothing}, schema=schema)


def _joined(spec: StreamSpec, parts: Sequence[Parsed]) -> Parsed:
    nothing = Parsed(
        pl.DataFrame(schema=staged_schema(spec)), pl.DataFrame(schema=rejected_schema())
    )
    parts = parts or [nothing]
    return Parsed(
        pl.concat([part.staged for part in parts]), pl.concat([part.rejected for part in parts])
    )
