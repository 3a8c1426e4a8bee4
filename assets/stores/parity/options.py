"""How a proof is run: partitions, waivers, the second look, what is remembered, who is told.

Here belong the choices of a caller. What is done with them is the engine.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from assets.stores.counting import Passed, unheard
from assets.stores.parity.side import READING, Reading
from transforms.parity.cells import Cells
from transforms.parity.contract import Contract
from transforms.parity.grid import Grid
from transforms.parity.proof import Partition
from transforms.parity.verdict import Row, never_refused
from transforms.parity.waivers import Waiver


class CellLedger(Protocol):
    """Remembers the cells of partitions, so that a killed run goes on where it was."""

    def recall(self, contract: Contract, partition: str) -> tuple[Cells, Cells] | None:
        """Cells of source and target, if both were read."""
        ...

    def keep(self, contract: Contract, partition: Partition) -> None:
        """Called once both sides of a partition were read."""
        ...


@dataclass(frozen=True)
class Options:
    """``commit_lag_s`` above 0: a second look decides what is suspected.

    Partitions are the values of a column, or lie on a grid. ``refused`` knows the rows that the
    target could not hold; ``told`` hears of rows as level one reads them, from any thread.
    """

    today: date
    partition: str | None = None
    waivers: tuple[Waiver, ...] = ()
    commit_lag_s: float = 0.0
    ledger: CellLedger | None = None
    sleep: Callable[[float], None] = time.sleep
    grid: Grid | None = None
    refused: Callable[[Row], bool] = never_refused
    told: Passed = unheard


@dataclass(frozen=True)
class Wanted:
    """How all of a stream is proved, what of it is remembered in a file, whether it is repaired.

    ``approved`` removals are made by a repair, exactly so many.
    """

    options: Options
    how: Reading = READING
    resume: Path | None = None
    mend: bool = False
    approved: int | None = None
