"""Ranges of partitions: how one run is told to take many, and how many runs a set of them makes.

Here belong the tags of a range and the cutting of partitions into stretches without gaps. Which
partitions must be run is the business of ``assets.freshness`` and ``assets.touched``.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from assets.catalogue import RUN_PARTITIONS
from assets.partitions import Axis

FIRST: Final = "dagster/asset_partition_range_start"
LAST: Final = "dagster/asset_partition_range_end"
# Event partitions so near each other are reconciled in one run, with those between them.
NEAR: Final = 7
# Nothing between: a run takes exactly what was asked for.
ADJACENT: Final = 1


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags that make a run take all partitions from one to another."""
    return {FIRST: first, LAST: last}


def parts(partitions: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut a range of any length into runs that Dagster's bookkeeping likes."""
    for start in range(0, len(partitions), RUN_PARTITIONS):
        yield partitions[start : start + RUN_PARTITIONS]


def stretches(axis: Axis, partitions: Sequence[str], near: int = NEAR) -> Iterator[Sequence[str]]:
    """Join partitions that are near each other; yields ranges without gaps, oldest first."""
    stretch: list[str] = []
    for partition in partitions:
        if stretch and axis.position(partition) - axis.position(stretch[-1]) > near:
            yield axis.between(stretch[0], stretch[-1])
            stretch = []
        stretch.append(partition)
    if stretch:
        yield axis.between(stretch[0], stretch[-1])
