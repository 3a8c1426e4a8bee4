"""One side of a proof, whatever store it is: what the engine may ask of it.

Here belong the interface and what every side does with the answers. The queries are made in
``transforms.parity_sql``; each kind of store has a module of its own.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import polars as pl
import pyarrow as pa

from assets.stores.parity.staging import Stage
from transforms.canonical_types import Declared
from transforms.parity_cells import Cell, Cells
from transforms.parity_contract import Contract

BATCH_ROWS = 4_096
Frames = Generator[pl.DataFrame, None, None]


@dataclass(frozen=True)
class Scan:
    """One read of a whole partition: its cells, and how many rows have a null in their key."""

    cells: Cells
    null_keys: int


class Side(Protocol):
    """A table of some store, read in one snapshot. All methods raise ``TargetError``.

    ``where`` is a condition from ``condition``. Streams must be read to their end, or closed,
    before the side is asked anything else: it is one connection.
    """

    label: str
    takes_nul: bool  # whether a text may hold U+0000
    file: Path | None  # a file that nobody can write to while this side is open

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

    def condition(self, column: str, value: str) -> str:
        """The SQL condition that picks one of them."""
        ...

    def cells(self, contract: Contract, where: str) -> Scan:
        """Read everything once."""
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


def scan_of(rows: Iterable[Mapping[str, str]]) -> Scan:
    """From rows of ``cells_query``: numbers arrive as text, for they may pass any int."""
    cells: Cells = {}
    null_keys = 0
    for row in rows:
        number = {name: int(text) for name, text in row.items()}
        s, k = (tuple(number[f"{name}{lane}"] for lane in range(4)) for name in "sk")
        cells[number["bucket"]] = Cell(number["n"], s, k, number["dup"])
        null_keys += number["null_keys"]
    return Scan(dict(sorted(cells.items())), null_keys)


def as_frames(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Arrow batches as frames; of a view type or a plain one, the bytes are the same."""
    for batch in batches:
        frame = pl.from_arrow(batch)
        if isinstance(frame, pl.DataFrame) and frame.height:
            yield frame


def literal(text: str) -> str:
    """A text literal of either engine."""
    return "'" + text.replace("'", "''") + "'"


def condition(declared: Declared | None, name: str, value: str) -> str:
    """See ``Side.condition``; ``name`` is quoted already."""
    kind = declared.kind.kind.value if declared and declared.kind else "text"
    typed = {"int": f"{literal(value)}::bigint", "date": f"{literal(value)}::date"}
    return f"{name} = {typed.get(kind, literal(value))}"
