"""What a mark says: which spec and which input a partition was made from.

Here belong the text of a mark, the chain that makes a change upstream show in every partition after
it, and the errors for partitions that are missing or were made by another spec. When a mark is set
is in ``unit_of_work``.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from assets.stores.unit_of_work import UnitOfWork
from transforms.errors import LakeError
from transforms.spec import StreamSpec


@dataclass(frozen=True)
class Mark:
    """What a partition was made from.

    ``made_from`` names the input: for staged rows a digest of the rows themselves, for what comes
    after a digest of all input up to this partition. ``parts`` are the parts of the spec that the
    rows depend on; ``sources`` is a digest of the files that staged rows were read from.
    """

    made_from: str
    parts: Mapping[str, str]
    sources: str = ""

    @classmethod
    def of(cls, spec: StreamSpec, made_from: str, sources: str = "") -> Self:
        """Return the mark of a partition that is made now."""
        return cls(made_from, spec.fingerprint_parts(), sources)

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the text of a mark."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        """Return the text of the mark."""
        return json.dumps(asdict(self), sort_keys=True)


def digest_of(*texts: str) -> str:
    """Return a digest of a list of texts."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def chained(before: Mark | None, staged: Mark) -> str:
    """Return what a partition is made from: all that was staged up to it, under which spec."""
    parts = json.dumps(staged.parts, sort_keys=True)
    return digest_of(before.made_from if before else "", staged.made_from, parts)


def changes(spec: StreamSpec, mark: Mark) -> list[str]:
    """Return what differs between the spec and the one a mark names, a line for each part."""
    now = spec.fingerprint_parts()
    return [
        f"{part} was {mark.parts.get(part, 'absent')} and is {now.get(part, 'absent')}"
        for part in sorted({*now, *mark.parts})
        if now.get(part) != mark.parts.get(part)
    ]


def require_mark(unit: UnitOfWork, spec: StreamSpec, table: str, partition: str) -> Mark:
    """Return the mark of a partition that another one builds on.

    Raises LakeError if the partition is not there, or was made by another spec.
    """
    found = unit.marks(table, [partition]).get(partition)
    if found is None:
        raise LakeError(
            f"{spec.name}: partition {partition} of {table} is not there; run it first: "
            f"lowwater run {spec.staged_as} --from {partition}"
        )
    mark = Mark.read(found)
    refuse_other_spec(spec, mark, partition)
    return mark


def refuse_other_spec(spec: StreamSpec, mark: Mark, partition: str) -> None:
    """Raise LakeError if a partition was made by another spec; it says what to recompute."""
    differing = changes(spec, mark)
    if differing:
        raise LakeError(
            f"{spec.name}: partition {partition} was made by another spec: {'; '.join(differing)}. "
            f"Recompute all partitions: lowwater run {spec.staged_as} --from {spec.arrival.start}"
        )
