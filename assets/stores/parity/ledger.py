"""The cells of partitions that were read, kept in a file, so that a killed proof can go on.

One JSON line a partition, written at once and flushed; a line that was cut off by the kill is no
line. Here belongs that file; whether a partition has to be read is the engine.
"""

import json
import os
from pathlib import Path
from typing import Any

from transforms.errors import UsageError
from transforms.parity_cells import Cells
from transforms.parity_contract import Contract
from transforms.parity_proof import Partition, flat, from_flat


class FileLedger:
    """Of one pair of tables; cells of another pair or contract are not taken for theirs."""

    def __init__(self, path: Path, *sides: str) -> None:
        self._path = path
        self._sides = list(sides)
        self._lines = _lines(path)

    def recall(self, contract: Contract, partition: str) -> tuple[Cells, Cells] | None:
        """See ``CellLedger``."""
        for line in reversed(self._lines):
            if self._name(contract, partition) == line["of"]:
                return from_flat(line["source"]), from_flat(line["target"])
        return None

    def keep(self, contract: Contract, partition: Partition) -> None:
        """See ``CellLedger``."""
        line = {
            "of": self._name(contract, partition.name),
            "source": flat(partition.source),
            "target": flat(partition.target),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _name(self, contract: Contract, partition: str) -> list[str]:
        return [*self._sides, contract.fingerprint, partition]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole, _, cut_off = text.rpartition("\n")
    if cut_off:
        path.write_text(whole + "\n" if whole else "", encoding="utf-8")
    try:
        return [json.loads(line) for line in whole.splitlines()]
    except ValueError as error:
        raise UsageError(f"{path}: is no ledger of a proof ({error}); name another file") from error
