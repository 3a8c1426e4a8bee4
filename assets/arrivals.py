"""The stored arrivals of a stream, all of them, as the log that lateness and grace are read off.

Here belongs which partitions of the lake count. What is made of the log is in ``assets.lateness``
and ``assets.grace``.
"""

from dataclasses import dataclass

from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.tables import unit_of
from transforms.arrival_log import Log, joined, read_log
from transforms.errors import LakeError
from transforms.schemas import ARRIVAL_US, SEQ, STAGED_EVENTS, STAGED_SOURCES
from transforms.spec import StreamSpec


@dataclass(frozen=True)
class Arrivals:
    """The log of all complete partitions; arrivals are known complete up to ``until_us``."""

    log: Log
    partitions: tuple[str, ...]
    until_us: int


def stored_arrivals(spec: StreamSpec, lake: Lake, axis: Axis) -> Arrivals:
    """Read the staged rows of a stream, shard by shard; LakeError where none are there.

    It takes the memory of the staged rows of one shard, and 40 bytes for every row of the stream.
    """
    unit = unit_of(lake, spec, STAGED_SOURCES)
    complete = axis.in_order(unit.partitions(STAGED_SOURCES))
    if not complete:
        raise LakeError(
            f"{spec.name}: no arrivals are stored yet; run it: lowwater run {spec.staged_as}"
        )
    logs = []
    for shard in range(spec.shards):
        staged = unit.read(STAGED_EVENTS, partitions=complete, shard=shard)
        logs.append(read_log(spec, staged.sort(ARRIVAL_US, SEQ)))
    return Arrivals(joined(logs), tuple(complete), axis.bounds(complete[-1]).end_us)
