"""Revisions on their way to a target: batches of them, written side by side, lane by lane in order.

Here belongs how many are written at once, and the stamps that tell afterwards in which order that
was: handed out, begun, landed. How batches are cut is in ``transforms.publication``; whether a
target writes several at the same time, or prepares them at the same time and writes one after
another, is its own business.
"""

import time
from collections.abc import Iterable
from functools import partial
from operator import attrgetter
from typing import Final

import polars as pl

from assets.stores.tables import BATCH, LANE, STAMPS
from assets.stores.targets.target import Published, Target
from transforms.publication import Batch, batches
from transforms.resequence import Envelope, ordered_map
from transforms.schemas import (
    KEY,
    REVISION,
    STREAM,
    WINDOW,
    WINDOW_IDENTITY,
    WINDOW_START_US,
    window_history_schema,
)
from transforms.spec import StreamSpec

LANES: Final = 4
BATCH_ROWS: Final = 20_000

_REVISION: Final = (*WINDOW_IDENTITY, REVISION)
_PLACES: Final = (BATCH, LANE, *STAMPS)
_SCHEMA: Final = pl.Schema(
    {
        **dict.fromkeys((STREAM, WINDOW, KEY), pl.String()),
        **dict.fromkeys((WINDOW_START_US, REVISION, *_PLACES), pl.Int64()),
    }
)


def publish(target: Target, spec: StreamSpec, revisions: pl.DataFrame) -> pl.DataFrame:
    """Give revisions to the target; those that it has already change nothing.

    Returns ``WINDOW_IDENTITY`` and ``revision`` of each, with the batch and lane that it was
    written in and the places of that batch in the orders ``STAMPS``. If a batch fails its error is
    raised; what has landed by then stays, and is no news to the next attempt.
    """
    with target:
        target.prepare(spec.name, window_history_schema(spec))
        return write(target, spec.name, batches(revisions, lanes=LANES, rows=BATCH_ROWS))


def write(target: Target, stream: str, work: Iterable[Batch]) -> pl.DataFrame:
    """Write batches to a target that is open and prepared; returns what ``publish`` does."""
    with ordered_map(
        work,
        partial(_write, target, stream),
        workers=LANES,
        window=2 * LANES,
        clock=time.monotonic,
        key=attrgetter("lane"),
    ) as landed:
        return pl.concat([pl.DataFrame(schema=_SCHEMA), *map(_stamped, landed)])


def _write(target: Target, stream: str, batch: Batch) -> Published:
    return target.publish(stream, batch.revisions)


def _stamped(envelope: Envelope[Batch, Published]) -> pl.DataFrame:
    """Return the revisions of a batch with its stamps, or raise what it failed with."""
    envelope.unwrap()
    batch = envelope.item
    places = (envelope.seq, batch.lane, envelope.handed_out, envelope.begun, envelope.landed)
    stamps = zip(_PLACES, places, strict=True)
    return batch.revisions.select(
        *_REVISION, *(pl.lit(place, pl.Int64).alias(name) for name, place in stamps)
    )
