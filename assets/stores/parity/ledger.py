"""The cells of partitions that were read, kept in a file, so that a killed proof can go on.

One JSON line a partition, written at once and flushed; a line that was cut off by the kill is no
line. Here belongs that file; whether a partition has to be read is the engine.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from transforms.errors import UsageError
from transforms.parity.cells import Cells
from transforms.parity.contract import Contract
from transforms.parity.proof import Partition, flat, from_flat

Line = dict[str, Any]
Name = tuple[str, ...]
_BEGIN: Final = '{"of": ['


class FileLedger:
    """Of one pair of tables; cells of another pair or contract are not taken for theirs."""

    def __init__(self, path: Path, *sides: str) -> None:
        self._path = path
        self._sides = list(sides)
        self._lines = _lines(path)

    def recall(self, contract: Contract, partition: str) -> tuple[Cells, Cells] | None:
        """See ``CellLedger``."""
        line = self._lines.get(tuple(self._name(contract, partition)))
        return None if line is None else (from_flat(line["source"]), from_flat(line["target"]))

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


@dataclass(frozen=True)
class VersionedLedger:
    """A ledger of partitions that change: one counts as read only as it was then.

    ``versions`` tell the states of partitions; one that has none is always read.
    """

    ledger: FileLedger
    versions: Mapping[str, str]

    def recall(self, contract: Contract, partition: str) -> tuple[Cells, Cells] | None:
        """See ``CellLedger``."""
        if partition not in self.versions:
            return None
        return self.ledger.recall(contract, self._name(partition))

    def keep(self, contract: Contract, partition: Partition) -> None:
        """See ``CellLedger``."""
        if partition.name in self.versions:
            self.ledger.keep(contract, replace(partition, name=self._name(partition.name)))

    def _name(self, partition: str) -> str:
        return f"{partition} {self.versions[partition]}"


def _lines(path: Path) -> dict[Name, Line]:
    """What a file knows; a file that is none of ours is named and not touched."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole, _, cut_off = text.rpartition("\n")
        known = {tuple(line["of"]): line for line in map(_line, whole.splitlines())}
        _refuse_other_rest(cut_off)
        with path.open("a", encoding="utf-8") as file:
            if cut_off:
                file.truncate(len(text.encode()) - len(cut_off.encode()))
    except ValueError as error:
        raise UsageError(f"{path}: is no ledger of a proof ({error}); name another file") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read and written: {error.strerror}") from error
    return known


def _refuse_other_rest(cut_off: str) -> None:
    if not (cut_off.startswith(_BEGIN) or _BEGIN.startswith(cut_off)):
        raise ValueError("its last line is cut off and was none")


def _line(text: str) -> Line:
    line = json.loads(text)
    if not isinstance(line, dict) or line.keys() != {"of", "source", "target"}:
        raise ValueError("a line of it is of another kind")
    return line
