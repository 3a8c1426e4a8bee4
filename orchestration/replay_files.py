"""The directory that a replay writes: its files, their columns in order, and how they get there.

Everything is written to a temporary directory beside the wanted one and moved into place at the
end. A new directory appears whole. In one that is there the files of an earlier replay are replaced
and no other file is touched: ``books.json`` goes first and comes last, so a directory without it is
not a result. A directory with files of others alone is refused.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import polars as pl

from transforms.errors import TargetError, UsageError
from transforms.schemas import (
    ARRIVAL_US,
    DEAD_LETTER,
    DEAD_LETTERS,
    DETAIL,
    DUPLICATE,
    DUPLICATES,
    EVENT_US,
    HELD,
    HELD_EVENTS,
    KEY,
    ORDERED,
    ORDERED_EVENTS,
    ORIGINAL_EVENT_US,
    RAW,
    REASON,
    REJECTED,
    REJECTED_ROWS,
    REVISION,
    SEQ,
    WATERMARKS,
    WINDOW,
    WINDOW_HISTORY,
    WINDOW_START_US,
)

WINDOWS: Final = "windows"
BOOKS: Final = "books.json"
# The table of each state of a row.
TABLE_OF_STATE: Final[Mapping[str, str]] = {
    ORDERED: ORDERED_EVENTS,
    DEAD_LETTER: DEAD_LETTERS,
    DUPLICATE: DUPLICATES,
    REJECTED: REJECTED_ROWS,
    HELD: HELD_EVENTS,
}
_ROW_ORDER: Final = (KEY, EVENT_US, SEQ)
_WINDOW_ORDER: Final = (WINDOW, KEY, WINDOW_START_US)
ORDER_OF_TABLE: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys((ORDERED_EVENTS, DEAD_LETTERS, DUPLICATES, HELD_EVENTS), _ROW_ORDER),
    REJECTED_ROWS: (SEQ,),
    WATERMARKS: (KEY,),
    WINDOWS: _WINDOW_ORDER,
    WINDOW_HISTORY: (*_WINDOW_ORDER, REVISION),
}


def file_name(table: str) -> str:
    """Return the name of a table's file."""
    return f"{table}.parquet"


OUR_FILES: Final = frozenset({BOOKS, *(file_name(table) for table in ORDER_OF_TABLE)})


def arranged(table: str, frame: pl.DataFrame, key_parts: Sequence[str] = ()) -> pl.DataFrame:
    """Sort a table and put its columns in the order of the file; rows by key, time and ``seq``."""
    sorted_frame = frame.sort(ORDER_OF_TABLE[table])
    if table == REJECTED_ROWS:
        leading: tuple[str, ...] = (SEQ, REASON, DETAIL, RAW)
    elif EVENT_US in frame.columns:
        leading = (KEY, *key_parts, EVENT_US, ORIGINAL_EVENT_US, SEQ, ARRIVAL_US)
    else:
        return sorted_frame
    first = [name for name in leading if name in frame.columns]
    return sorted_frame.select(*first, pl.exclude(first))


def write_tables(
    folder: Path, tables: Mapping[str, pl.DataFrame], key_parts: Sequence[str] = ()
) -> None:
    """Write a Parquet file for each table."""
    for table, frame in tables.items():
        arranged(table, frame, key_parts).write_parquet(folder / file_name(table))


def read_table(folder: Path, table: str) -> pl.DataFrame:
    """Read a table back as it was written."""
    return pl.read_parquet(folder / file_name(table), glob=False)


def write_books(folder: Path, books: Mapping[str, Any]) -> None:
    """Write ``books.json``."""
    (folder / BOOKS).write_text(json.dumps(books, indent=2) + "\n", encoding="utf-8")


@contextmanager
def output_directory(out: Path) -> Iterator[Path]:
    """Hand over an empty directory; what is in it at the end is moved to ``out``, or nothing is."""
    try:
        _refuse_foreign(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name[:50]}.", dir=out.parent) as temporary:
            folder = Path(temporary, "new")
            folder.mkdir()
            yield folder
            _move(folder, out)
    except OSError as error:
        raise TargetError(f"{out} cannot be written: {error.strerror or error}") from error


def _refuse_foreign(out: Path) -> None:
    if out.is_dir():
        present = {path.name for path in out.iterdir()}
        if present and not present & OUR_FILES:
            raise UsageError(f"{out} holds other files; name a new directory with --out")
    elif out.exists():
        raise UsageError(f"{out} is a file; name a directory with --out")


def _move(folder: Path, out: Path) -> None:
    if not out.exists():
        folder.replace(out)
        return
    (out / BOOKS).unlink(missing_ok=True)
    for path in sorted(folder.iterdir(), key=lambda path: path.name == BOOKS):
        path.replace(out / path.name)
