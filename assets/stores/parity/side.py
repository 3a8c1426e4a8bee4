"""One side of a proof, whatever store it is: what the engine may ask of it.

Here belong the interface and what every side does with the answers. The queries are made in
``transforms.parity.sql``; each kind of store has a module of its own.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import polars as pl
import pyarrow as pa

from assets.stores.counting import Passed, unheard
from assets.stores.parity.staging import Stage
from transforms.parity.canonical import Kind
from transforms.parity.canonical_sql import literal
from transforms.parity.canonical_types import Declared
from transforms.parity.cells import Cell, Cells, Print
from transforms.parity.contract import Contract
from transforms.parity.grid import Cut

BATCH_ROWS = 4_096
Frames = Generator[pl.DataFrame, None, None]


@dataclass(frozen=True)
class Scan:
    """One read of a whole partition: its cells, and how many rows have a null in their key."""

    cells: Cells
    null_keys: int


NO_ROWS = Scan({}, 0)
# By the number of a partition; one without rows is absent.
Scans = dict[int, Scan]
Prints = dict[int, Print]


@dataclass(frozen=True)
class Reading:
    """How a store is read: by sums that the server makes, with how much memory here, in MiB.

    With two sides of this size a proof of five million rows stays below 512 MiB.
    """

    push_down: bool = False
    memory_mib: int = 160


READING = Reading()


class Side(Protocol):
    """A table of some store, read in one snapshot. All methods raise ``TargetError``.

    ``where`` is SQL that picks rows, ``cut`` how these fall apart into partitions. Streams must be
    read to their end, or closed, before the side is asked anything else: it is one connection.
    """

    label: str
    takes_nul: bool  # whether a text may hold U+0000
    file: Path | None  # a file that nobody can write to while this side is open
    in_process: bool  # whether level one reads the rows into this process, so that it has prints

    def __enter__(self) -> Self:
        """Reach the store and take the snapshot."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of it."""
        ...

    def about(self) -> dict[str, str]:
        """Label and versions, as evidence keeps them; no password."""
        ...

    def columns(self) -> list[Declared]:
        """The columns of the table, in its order."""
        ...

    def self_test(self) -> list[str]:
        """Run the vectors on every path in use; the names of the paths. Raises ``RefusedError``."""
        ...

    def partitions(self, column: str) -> list[str]:
        """The distinct values of a column as text, in order. Raises ``RefusedError`` for a null."""
        ...

    def rows_about(self) -> int:
        """About how many rows there are, for a progress bar; 0: nobody knows."""
        ...

    def condition(self, column: str, value: str) -> str:
        """The SQL condition that picks one of them."""
        ...

    def cells(
        self, contract: Contract, where: str, cut: Cut | None = None, told: Passed = unheard
    ) -> Scans:
        """Read all rows once, and make cells of them; ``told`` hears of rows as they pass."""
        ...

    def prints(
        self, contract: Contract, where: str, cut: Cut | None = None, told: Passed = unheard
    ) -> Prints:
        """Read all rows once, and hash them in this process."""
        ...

    def vector_print(self) -> Print:
        """The print of the row of all vectors: the same on every side."""
        ...

    def sample(self, contract: Contract, where: str, most: int) -> tuple[pl.DataFrame, Cells]:
        """Some rows, as ``rows`` gives them, and their cells, as ``cells`` makes them."""
        ...

    def digests(
        self, contract: Contract, where: str, buckets: Collection[int], *, located: bool
    ) -> Frames:
        """``kd`` and ``d`` of bad buckets, in order; ``located`` finds them by ``_bucket``."""
        ...

    def rows(
        self,
        contract: Contract,
        where: str,
        buckets: Collection[int] | None,
        keys: Sequence[bytes] | None,
    ) -> Frames:
        """``kd``, ``d`` and the columns of the frame, in order of ``kd``."""
        ...

    def refresh(self) -> None:
        """Take a new snapshot."""
        ...

    def write(self, contract: Contract, stage: Stage) -> None:
        """Carry out a repair in one transaction, then take a new snapshot."""
        ...


def scans_of(rows: Iterable[Sequence[str]]) -> Scans:
    """From rows of ``cells_query``: numbers arrive as text, for they may pass any int."""
    cells: dict[int, Cells] = {}
    null_keys: dict[int, int] = {}
    for row in rows:
        number, bucket, n, *sums, dup, nulls = map(int, row)
        cells.setdefault(number, {})[bucket] = Cell(n, tuple(sums[:4]), tuple(sums[4:]), dup)
        null_keys[number] = null_keys.get(number, 0) + nulls
    return {
        number: Scan(dict(sorted(each.items())), null_keys[number])
        for number, each in cells.items()
    }


def rows_of(scans: Scans) -> int:
    """How many rows were read."""
    return sum(cell.n for scan in scans.values() for cell in scan.cells.values())


def prints_of(rows: Iterable[Sequence[str]]) -> Prints:
    """From rows of ``prints_query``."""
    numbers = (map(int, row) for row in rows)
    return {number: Print(*sums) for number, *sums in numbers}


def as_frames(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Arrow batches as frames; of a view type or a plain one, the bytes are the same."""
    for batch in batches:
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield frame


def condition(declared: Declared | None, name: str, value: str) -> str:
    """See ``Side.condition``; ``name`` is quoted already."""
    kind = declared.kind.kind if declared and declared.kind else Kind.TEXT
    if kind is Kind.TEXT:  # found by an index, and equal to the byte whatever the collation
        return f'({name} = {literal(value)} and {name} collate "C" = {literal(value)})'
    typed = {Kind.INT: "bigint", Kind.DATE: "date"}
    return f"{name} = {literal(value)}::{typed.get(kind, 'text')}"
