"""The books of an arrival partition: every row that came in is somewhere, unchanged.

    staged + held_before = ordered + dead_letters + duplicates + rejected + held

holds by count and by exact digest sums: a row lost, doubled or altered on the way shows, a wrong
state does not. Here belongs what of a row is entered and when books balance; which rows are in
which state is decided in ``reorder``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from transforms.digest import DigestSum
from transforms.schemas import (
    DEAD_LETTER,
    DUPLICATE,
    HELD,
    ORDERED,
    RAW,
    REJECTED,
    SEQ,
    STAGED,
    UNREADABLE,
    row_schema,
)
from transforms.spec import StreamSpec

ENDS = (ORDERED, DEAD_LETTER, DUPLICATE, REJECTED, HELD)


def book_schema(spec: StreamSpec) -> pl.Schema:
    """Return what is entered of a row: the row, the texts that could not be read, the raw text."""
    return pl.Schema({**row_schema(spec), UNREADABLE: pl.String(), RAW: pl.String()})


def entry(spec: StreamSpec, rows: pl.DataFrame) -> DigestSum:
    """Enter rows of any state; a column that the state does not keep is null."""
    return _entered(rows, book_schema(spec), set(rows.columns))


def rejected_entry(spec: StreamSpec, rejected: pl.DataFrame) -> DigestSum:
    """Enter rejected rows: of them only ``seq`` and the raw text."""
    return _entered(rejected, book_schema(spec), {SEQ, RAW})


def _entered(rows: pl.DataFrame, schema: pl.Schema, kept: set[str]) -> DigestSum:
    columns = [
        (pl.col(name) if name in kept else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema.items()
    ]
    return DigestSum.of(rows.select(columns), tuple(schema))


@dataclass(frozen=True)
class Books:
    """Both sides of the equation. ``staged`` counts the rejected rows too; ``ends`` by ``ENDS``."""

    staged: DigestSum
    held_before: DigestSum
    ends: Mapping[str, DigestSum]

    @property
    def balanced(self) -> bool:
        """Whether both sides agree in count and in both lanes."""
        return self.staged + self.held_before == sum(self.ends.values(), DigestSum())

    @property
    def counts(self) -> dict[str, int]:
        """Rows staged and rows in each state."""
        return {STAGED: self.staged.count} | {state: end.count for state, end in self.ends.items()}

    def as_json(self) -> dict[str, Any]:
        """Return counts, digests and the verdict as JSON holds them."""
        ends = {state: str(end) for state, end in self.ends.items()}
        before = {"held_before": str(self.held_before)} if self.held_before.count else {}
        return {
            "balanced": self.balanced,
            "counts": self.counts,
            "digests": {STAGED: str(self.staged), **before, **ends},
        }
