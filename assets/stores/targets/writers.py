"""Revisions on their way to a target: batches of them, written side by side, lane by lane in order.

Here belongs how many are written at once, what is offered again, and the stamps that tell
afterwards in which order that was: handed out, begun, landed. How batches are cut is in
``transforms.publication``, what becomes of one in ``assets.stores.publishing``; whether a target
writes several at the same time, or prepares them at the same time and writes one after another, is
its own business.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Generic, TypeVar

import polars as pl

from assets.stores.counting import RowCount
from assets.stores.publishing.delivery import Delivery, Sink, deliver
from assets.stores.publishing.figures import Figures
from assets.stores.publishing.offers import Work
from assets.stores.tables import BATCH, LANE, STAMPS
from assets.stores.targets.faults import TargetOutageError
from transforms.parity.stream import published_contract
from transforms.publication import Batch, take_turns
from transforms.publishing.batch_size import START
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
# Batches that wait; when they are so many, nobody reads on.
QUEUE: Final = 4
# How often what was parked is offered again in a run.
_ROUNDS: Final = 2
# How many reset periods of the breaker a run waits for a target that is down.
_PROBES: Final = 3

_REVISION: Final = (*WINDOW_IDENTITY, REVISION)
_PLACES: Final = (BATCH, LANE, *STAMPS)
_SCHEMA: Final = pl.Schema(
    {
        **dict.fromkeys((STREAM, WINDOW, KEY), pl.String()),
        **dict.fromkeys((WINDOW_START_US, REVISION, *_PLACES), pl.Int64()),
    }
)


R = TypeVar("R")


@dataclass(frozen=True)
class Landed(Generic[R]):
    """What came of batches, in their order; ``deepest`` is how many were on their way at once.

    ``stamps`` are ``WINDOW_IDENTITY`` and ``revision`` of each row, with the batch and lane that it
    was written in and the places of that batch in the orders ``STAMPS``.
    """

    stamps: pl.DataFrame
    results: list[tuple[Batch, R]]
    deepest: int


@dataclass(frozen=True)
class Publishing:
    """What a publication did: the stamps of its rows, and its figures."""

    stamps: pl.DataFrame
    figures: Figures


def publish(sink: Sink, spec: StreamSpec, revisions: pl.DataFrame) -> Publishing:
    """Give revisions, with their ``event_partition``, to the target.

    What the ledger of the target knows is not offered again: so a killed run goes on where it was.
    If a batch fails its error is raised; what has landed by then stays, and is no news to the next
    attempt. Raises TargetOutageError if something had to be parked: the lake still has it.
    """
    begun = sink.clock()
    work = Work.of(published_contract(spec), revisions, lanes=LANES, rows=START)
    digest_s = sink.clock() - begun
    target, given = sink.target, Given(sink, spec.name, Figures())
    try:
        with ExitStack() as stack:
            sink.call(lambda: stack.enter_context(target))
            sink.call(lambda: target.prepare(spec.name, window_history_schema(spec)))
            names = [publication.name for publication in work.publications]
            rest = work.without(sink.call(lambda: target.covered(spec.name, names)))
            known = revisions.height - rest.height
            given.figures = given.figures.with_known(known, digest_s)
            return Publishing(_through(given, rest), given.figures)
    finally:
        sink.record.add(given.figures.now(sink))


@dataclass
class Given:
    """What is under way to a target, and its figures so far."""

    sink: Sink
    stream: str
    figures: Figures

    def write(self, work: Work, batches: Iterable[Batch], count: RowCount) -> Landed[Delivery]:
        """Give batches, and take in what became of them."""

        def give(batch: Batch) -> Delivery:
            delivery = deliver(self.sink, self.stream, work.offer(batch.revisions))
            count.add(delivery.accepted.n + delivery.dead_lettered.n)
            return delivery

        landed = write(batches, give, first_batch=self.figures.batches)
        self.figures = self.figures.plus(Figures.of(self.sink, landed))
        return landed


def _through(given: Given, work: Work) -> pl.DataFrame:
    """Offer everything, then again what was parked; returns the stamps of what was taken."""
    sink = given.sink
    count = RowCount(sink.told, "publishing", work.height)
    landed = given.write(work, take_turns(work.lanes, lambda: sink.size.rows), count)
    stamps, parked = [_of_accepted(landed)], _parked(landed)
    for _ in range(_ROUNDS):
        if not parked:
            break
        _wait_for(given)
        landed = given.write(work, parked, count)
        stamps.append(_of_accepted(landed))
        parked = _parked(landed)
    _refuse_parked(given, parked)
    return pl.concat(stamps)


def _parked(landed: Landed[Delivery]) -> list[Batch]:
    return [Batch(batch.lane, offer.rows) for batch, one in landed.results for offer in one.parked]


def _of_accepted(landed: Landed[Delivery]) -> pl.DataFrame:
    parked = [offer.rows.select(*_REVISION) for _, one in landed.results for offer in one.parked]
    if not parked:
        return landed.stamps
    return landed.stamps.join(pl.concat(parked), on=_REVISION, how="anti")


def _wait_for(given: Given) -> None:
    """Wait until one call gets through: many at once would find the breaker at its probe."""
    sink, stream = given.sink, given.stream
    for probe in range(1, _PROBES + 1):
        sink.sleep(sink.breaker.opens_in())
        try:
            sink.call(lambda: sink.target.numbers(stream))
        except TargetOutageError as error:
            if probe == _PROBES:
                rows = given.figures.parked_rows
                raise TargetOutageError(_of_parked(sink, rows, str(error))) from error
        else:
            return


def _refuse_parked(given: Given, parked: Iterable[Batch]) -> None:
    rows = sum(batch.revisions.height for batch in parked)
    if rows:
        raise TargetOutageError(_of_parked(given.sink, rows, given.figures.why_parked))


def _of_parked(sink: Sink, rows: int, why: str) -> str:
    return (
        f"{sink.target.label}: {rows} revisions could not be written ({why}); they are kept in the"
        " lake: run again when the target answers"
    )


def write(work: Iterable[Batch], give: Callable[[Batch], R], *, first_batch: int = 0) -> Landed[R]:
    """Give batches to a target that is open and prepared. Raises the first error of any."""
    stamps, results, deepest = [pl.DataFrame(schema=_SCHEMA)], [], 0
    with ordered_map(
        work,
        give,
        workers=LANES,
        window=LANES + QUEUE,
        clock=time.monotonic,
        key=attrgetter("lane"),
    ) as landed:
        for envelope in landed:
            state = landed.diagnostics()
            deepest = max(deepest, state.admitted - state.emitted)
            results.append((envelope.item, envelope.unwrap()))
            stamps.append(_stamped(envelope, first_batch))
    return Landed(pl.concat(stamps), results, deepest)


def _stamped(envelope: Envelope[Batch, R], first: int) -> pl.DataFrame:
    """Return the revisions of a batch with its stamps."""
    orders = (envelope.handed_out or 0, envelope.begun or 0, envelope.landed or 0)
    places = (first + envelope.seq, envelope.item.lane, *(first + place for place in orders))
    stamps = zip(_PLACES, places, strict=True)
    return envelope.item.revisions.select(
        *_REVISION, *(pl.lit(place, pl.Int64).alias(name) for name, place in stamps)
    )
