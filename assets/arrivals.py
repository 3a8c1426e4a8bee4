"""The stored arrivals of a stream as the log that lateness and grace are read off.

Here belongs which partitions of the lake count: the newest, so that what is made of them costs the
same however long the stream has been running. What that is is in ``assets.lateness`` and
``assets.grace``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.tables import unit_of
from transforms.errors import LakeError
from transforms.lateness.arrival_log import Log, joined, read_log
from transforms.schemas import ARRIVAL_US, SEQ, STAGED_EVENTS, STAGED_SOURCES
from transforms.spec import StreamSpec

# Unless told otherwise, the newest partitions that hold so many rows are looked at.
LATEST_ROWS: Final = 5_000_000


@dataclass(frozen=True)
class Arrivals:
    """The log of complete partitions; arrivals are known complete up to ``until_us``.

    ``left_out`` is the number of partitions before them.
    """

    log: Log
    partitions: tuple[str, ...]
    until_us: int
    left_out: int


def stored_arrivals(spec: StreamSpec, lake: Lake, axis: Axis, first: str | None = None) -> Arrivals:
    """Read staged rows of a stream, shard by shard: the newest, or all from a partition on.

    Every key begins without a watermark, so where partitions are left out the first rows of a key
    may count as on time. It takes the memory of the rows of one shard, and 40 bytes for every row.
    Raises LakeError where there are none.
    """
    unit = unit_of(lake, spec, STAGED_SOURCES)
    complete = axis.in_order(unit.partitions(STAGED_SOURCES))
    if not complete:
        raise LakeError(
            f"{spec.name}: no arrivals are stored yet; run it: lowwater run {spec.staged_as}"
        )
    chosen = from_on(axis, complete, first) if first else newest(complete, unit.rows(STAGED_EVENTS))
    if not chosen:
        raise LakeError(f"{spec.name}: the last partition is {complete[-1]}, before {first}")
    logs = []
    for shard in range(spec.shards):
        staged = unit.read(STAGED_EVENTS, partitions=chosen, shard=shard)
        logs.append(read_log(spec, staged.sort(ARRIVAL_US, SEQ)))
    left_out = len(complete) - len(chosen)
    return Arrivals(joined(logs), tuple(chosen), axis.bounds(chosen[-1]).end_us, left_out)


def from_on(axis: Axis, complete: Sequence[str], first: str) -> Sequence[str]:
    """Return the partitions from one on."""
    return [key for key in complete if axis.position(key) >= axis.position(first)]


def newest(complete: Sequence[str], rows: Mapping[str, int]) -> Sequence[str]:
    """Return as many of the newest partitions as hold ``LATEST_ROWS`` together; one at least."""
    total = 0
    for place, key in enumerate(reversed(complete)):
        total += rows.get(key, 0)
        if total > LATEST_ROWS and place:
            return complete[-place:]
    return complete
