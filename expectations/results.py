"""What checks found: verdicts, kept as one small JSON file per stage and partition.

Here belong the verdict and its file. How evidence becomes a verdict is in ``run``; what people see
of it is in ``report``.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from expectations.invariants import BY_NAME, Invariant

_FOLDER: Final = "verdicts"


def counted(number: int, word: str) -> str:
    """Return a number with its word, in the plural where it is not one."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


@dataclass(frozen=True)
class Fault:
    """One subject (a key, a file) with violations, and what is wrong with it."""

    subject: str
    violations: int
    detail: str


@dataclass(frozen=True)
class Verdict:
    """Whether an invariant holds of a partition, and where it fails worst.

    ``evidence_is_missing`` says that there are rows but nothing was found to judge them by.
    ``faults`` is how many subjects fail, ``worst`` the first few; ``judged_at`` is ISO 8601.
    """

    invariant: str
    partition: str
    passed: bool
    examined: int
    violations: int
    evidence_is_missing: bool = False
    faults: int = 0
    worst: tuple[Fault, ...] = ()
    judged_at: str = ""
    run_id: str = ""

    @property
    def about(self) -> Invariant:
        """The invariant that is judged."""
        return BY_NAME[self.invariant]

    @property
    def words(self) -> str:
        """What was found, in a line; the sentence of the invariant if it holds."""
        if self.evidence_is_missing:
            return "there are rows, but no evidence of them: the check looked at nothing"
        if self.passed:
            return f"{self.about.sentence} ({self.examined:,} looked at)"
        worst = "".join(f", worst: {fault.subject}: {fault.detail}" for fault in self.worst[:1])
        return f"{counted(self.violations, 'violation')} of {self.examined:,} looked at{worst}"

    @classmethod
    def of_json(cls, written: dict[str, Any]) -> Self:
        """Read a verdict as it was written."""
        worst = tuple(Fault(**fault) for fault in written["worst"])
        return cls(**{**written, "worst": worst})


@dataclass(frozen=True)
class Results:
    """The verdicts of a stream, in a folder."""

    folder: Path
    _name: str = field(default=_FOLDER, repr=False)

    def keep(self, stage: str, verdicts: Iterable[Verdict]) -> None:
        """Keep the verdicts of a stage, instead of older ones of the same partitions."""
        by_partition: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            by_partition.setdefault(verdict.partition, []).append(verdict)
        for partition, listed in by_partition.items():
            _write(self._file(stage, partition), [asdict(verdict) for verdict in listed])

    def all(self) -> list[Verdict]:
        """Return every verdict that is kept, by partition; those of old checks are left out."""
        found = [
            Verdict.of_json(written)
            for path in self._files()
            for written in json.loads(path.read_text(encoding="utf-8"))
            if written["invariant"] in BY_NAME
        ]
        return sorted(found, key=lambda verdict: (verdict.partition, verdict.invariant))

    def _file(self, stage: str, partition: str) -> Path:
        return self.folder / self._name / stage / f"{quote(partition, safe='')}.json"

    def _files(self) -> Iterator[Path]:
        return (self.folder / self._name).glob("*/*.json")


def _write(path: Path, content: Sequence[dict[str, Any]]) -> None:
    """Replace a file whole, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.replace(path)
