"""Which arrival partitions must be run: those never made, and those made from other input.

Here belongs the comparison of marks, stage by stage, with what the source holds now. A change of
one partition makes all after it stale, for their state comes from it.
"""

from collections.abc import Iterable, Sequence

from assets.partitions import Axis
from assets.staging import digest_of_sources, feeding
from assets.stores.lake import Lake
from assets.stores.marks import Mark, chained, refuse_other_spec
from assets.stores.source_files import SourceFile
from assets.stores.tables import unit_of
from transforms.schemas import (
    ORDER_AUDIT,
    PUBLISHED_WINDOWS,
    STAGED_SOURCES,
    WATERMARKS,
    WINDOW_AGGREGATES,
)
from transforms.spec import StreamSpec

_AFTER_STAGING = (WATERMARKS, WINDOW_AGGREGATES, PUBLISHED_WINDOWS, ORDER_AUDIT)


def with_data(
    spec: StreamSpec, axis: Axis, files: Iterable[SourceFile], now_us: int
) -> Sequence[str]:
    """Return the partitions from the first to the last that has data and is complete."""
    lasts = [file.last_us for file in files if file.last_us is not None and file.rows]
    if not lasts or not axis.keys:
        return ()
    upto = axis.up_to(axis.key_of(max(lasts)))
    settled_us = now_us - spec.arrival.settle_us
    return [key for key in upto if axis.bounds(key).end_us <= settled_us]


def complete(
    spec: StreamSpec, axis: Axis, files: Iterable[SourceFile], now_us: int
) -> Sequence[str]:
    """Return the partitions that are complete and may say something, oldest first.

    Silent ones count, for silence closes windows, too; but only until the last row is so long ago
    that nothing is left to close. Nothing is complete before the first row.
    """
    lasts = [file.last_us for file in files if file.last_us is not None and file.rows]
    if not lasts:
        return ()
    settled_us, silent_us = now_us - spec.arrival.settle_us, max(lasts) + closes_within_us(spec)
    bounds = ((key, axis.bounds(key)) for key in axis.keys)
    return [key for key, b in bounds if b.end_us <= settled_us and b.start_us <= silent_us]


def closes_within_us(spec: StreamSpec) -> int:
    """Return how long after the last row silence may still close a window, at the most."""
    numbers = [p for part in spec.computed for p in part.profiles.named.values()]
    latest = max(p.grace_us + p.future_skew_us + (p.idle_timeout_us or 0) for p in numbers)
    return latest + max(window.max_length_us for window in spec.windows)


def first_unfinished_of_any(
    spec: StreamSpec,
    lake: Lake,
    axis: Axis,
    files: Iterable[SourceFile],
    partitions: Sequence[str],
) -> str | None:
    """Return the first partition that is unfinished in any track of a stream as declared."""
    listed = list(files)
    firsts = (first_unfinished(part, lake, axis, listed, partitions) for part in spec.computed)
    return next(iter(axis.in_order(filter(None, firsts))), None)


def first_unfinished(
    spec: StreamSpec,
    lake: Lake,
    axis: Axis,
    files: Iterable[SourceFile],
    partitions: Sequence[str],
) -> str | None:
    """Return the first partition that is not what the source and the partitions before it make.

    None if all are. Raises LakeError if a partition was made by another spec.
    """
    unit = unit_of(lake, spec, WATERMARKS)
    staged = unit.marks(STAGED_SOURCES)
    later = [unit.marks(table) for table in _AFTER_STAGING]
    fed = feeding(files, axis, partitions)
    before: Mark | None = None
    for partition in partitions:
        if partition not in staged:
            return partition
        mark = Mark.read(staged[partition])
        refuse_other_spec(spec, mark, partition)
        made_from = chained(before, mark)
        found = [Mark.read(marks[partition]) for marks in later if partition in marks]
        is_whole = len(found) == len(later) and all(m.made_from == made_from for m in found)
        if not is_whole or mark.sources != digest_of_sources(fed[partition]):
            return partition
        before = Mark.of(spec, made_from)
    return None
