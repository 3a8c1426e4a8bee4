"""What became of the dead letters of a stream, read from the lake.

Here belongs which rows and revisions are read for it. The outcomes and their wording are in
``transforms.reconciling.outcomes``.
"""

from collections.abc import Iterator, Sequence

import polars as pl

from assets.history import History
from assets.partitions import Axis
from assets.stores.lake_files import Span
from assets.stores.tables import unit_of
from assets.stores.unit_of_work import UnitOfWork
from transforms.reconciling.outcomes import outcomes
from transforms.schemas import (
    COUNTED_DEAD_LETTER_REASONS,
    DEAD_LETTERS,
    EVENT_US,
    ORDERED_EVENTS,
    REASON,
    SEQ,
    WATERMARKS,
)
from transforms.spec import StreamSpec
from transforms.windows import counted_rows


def dead_letter_outcomes(history: History) -> Iterator[pl.DataFrame]:
    """Give dead letters with ``outcome`` and ``why``, shard by shard; none before the first run.

    Of the ordered rows those near dead letters are read; a stream with dead letters at all times
    takes as much memory as a shard of it has rows.
    """
    lake, spec = history.lake, history.spec
    unit = unit_of(lake, spec, WATERMARKS)
    complete = Axis.of_arrivals(spec).in_order(unit.partitions(WATERMARKS))
    for shard in range(spec.shards) if complete else ():
        yield _of_shard(history, unit, complete, shard)


def _of_shard(
    history: History, unit: UnitOfWork, complete: Sequence[str], shard: int
) -> pl.DataFrame:
    spec = history.spec
    dead_letters = unit.read(DEAD_LETTERS, partitions=complete, shard=shard)
    ordered = unit.read(
        ORDERED_EVENTS, partitions=complete, shard=shard, spans=[_near(spec, dead_letters)]
    )
    found = outcomes(
        spec,
        dead_letters,
        counted_rows(ordered, dead_letters),
        history.read(history.events.keys, shard),
        unit.read(WATERMARKS, partitions=complete[-1:], shard=shard),
    )
    return dead_letters.join(found.drop("key", REASON), on=SEQ, how="left")


def _near(spec: StreamSpec, dead_letters: pl.DataFrame) -> Span:
    """Return the event times of the rows that share a window with a counted dead letter."""
    counted = dead_letters.filter(pl.col(REASON).is_in(COUNTED_DEAD_LETTER_REASONS))[EVENT_US]
    if counted.is_empty():
        return Span(EVENT_US, 0, -1)
    longest = max(window.max_length_us for window in spec.windows)
    first, last = counted.to_numpy().min(), counted.to_numpy().max()
    return Span(EVENT_US, int(first) - longest, int(last) + longest)
