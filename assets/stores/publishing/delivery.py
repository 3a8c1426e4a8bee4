"""One batch on its way to a target: retried, halved, dead-lettered or parked, and accounted for.

batch -> retries (stamina) -> breaker -> attempt. Rows that the target cannot hold are isolated by
halving and kept as dead letters; a target that is out of reach costs no row: what could not be
written is parked, and stays in the lake. Here belongs what becomes of a batch; how many are on
their way at a time is ``assets.stores.targets.writers``.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

import psutil
import stamina
from stamina.instrumentation import set_on_retry_hooks

from assets.stores.counting import Told, nobody
from assets.stores.publishing.breaker_memory import BreakerMemory
from assets.stores.publishing.figures import Record
from assets.stores.publishing.offers import Offer
from assets.stores.publishing.traces import Trace, traced
from assets.stores.targets.faults import (
    TargetContentionError,
    TargetDataError,
    TargetOutageError,
)
from assets.stores.targets.target import Published, Target
from transforms.errors import TargetError
from transforms.publishing.batch_size import BatchSize
from transforms.publishing.breaker import Answer, Breaker, BreakerOpenError, BreakerState
from transforms.publishing.ledger import Note, State, Sums, together

LOG = logging.getLogger("lowwater.publishing")
# stamina would write its own lines to stdout, which belongs to results.
set_on_retry_hooks([])

R = TypeVar("R")
_PASSING: Final = (TargetOutageError, TargetContentionError)


@dataclass(frozen=True)
class Retries:
    """How often and how long a batch is tried again, before it is parked; seconds."""

    attempts: int = 5
    timeout_s: float = 60.0
    first_wait_s: float = 0.1
    longest_wait_s: float = 5.0
    jitter_s: float = 1.0


@dataclass(frozen=True)
class Sink:
    """A target, and what is known of how it has been doing."""

    target: Target
    breaker: Breaker = field(default_factory=lambda: Breaker(time.monotonic))
    size: BatchSize = field(
        default_factory=lambda: BatchSize(int(psutil.virtual_memory().total // 2))
    )
    retries: Retries = field(default_factory=Retries)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    rss_bytes: Callable[[], int] = lambda: int(psutil.Process().memory_info().rss)
    memory: BreakerMemory = field(default_factory=BreakerMemory)
    record: Record = field(default_factory=Record)
    told: Told = nobody

    @classmethod
    def remembered(cls, target: Target, file: Path | None, told: Told = nobody) -> Self:
        """Return a target with what an earlier process left in a file about it."""
        memory = BreakerMemory(file)
        breaker = Breaker(time.monotonic, was_down=memory.was_down())
        return cls(target, breaker, memory=memory, told=told)

    def call(self, action: Callable[[], R]) -> R:
        """Ask something of the target: retried, and through the breaker."""
        try:
            return self.tried(lambda _attempt: action())
        except BreakerOpenError as error:
            why = self.record.last_outage or f"{self.target.label}: out of reach"
            raise TargetOutageError(f"{why}; {error}") from error

    def tried(self, action: Callable[[int], R], trace: Trace | None = None) -> R:
        """Do the same with an action that is told which attempt it is, from 1."""
        plan = self.retries
        for attempt in stamina.retry_context(
            on=_PASSING,
            attempts=plan.attempts,
            timeout=plan.timeout_s,
            wait_initial=plan.first_wait_s,
            wait_max=plan.longest_wait_s,
            wait_jitter=plan.jitter_s,
        ):
            with attempt, self._guarded(trace):
                return action(attempt.num)
        raise AssertionError  # stamina raises the last error itself

    @contextmanager
    def _guarded(self, trace: Trace | None) -> Iterator[None]:
        call = self.breaker.admit()
        answer = Answer.NOTHING
        try:
            yield
            answer = Answer.ANSWERED
        except TargetError as error:
            answer = _answer(error)
            if answer is Answer.OUTAGE:
                self.record.last_outage = str(error)
            LOG.info("an attempt failed: %s", error)
            if trace is not None:
                trace.note(error)
            raise
        finally:
            self.breaker.settle(call, answer)
            self._remember(answer)

    def _remember(self, answer: Answer) -> None:
        """Leave to the next process what is known now; no answer says nothing of another's note."""
        is_down = self.breaker.state is not BreakerState.CLOSED
        if is_down or answer is Answer.ANSWERED:
            self.memory.keep(is_down=is_down)


def _answer(error: TargetError) -> Answer:
    if isinstance(error, TargetOutageError):
        return Answer.OUTAGE
    return Answer.NOTHING if isinstance(error, TargetContentionError) else Answer.ANSWERED


class UnbalancedError(RuntimeError):
    """Rows of a batch that were neither accepted nor refused nor parked: a mistake of ours."""


@dataclass(frozen=True)
class Delivery:
    """What became of a batch. Rows that were parked are offered again, or by the next run."""

    published: Published = field(default_factory=lambda: Published(0, 0, 0))
    accepted: Sums = field(default_factory=Sums)
    dead_lettered: Sums = field(default_factory=Sums)
    parked: tuple[Offer, ...] = ()
    why_parked: str = ""
    seconds: float = 0.0
    attempts: int = 1

    def plus(self, other: "Delivery") -> "Delivery":
        """Return both together."""
        mine, its = self.published, other.published
        return Delivery(
            Published(
                mine.inserted + its.inserted,
                mine.amended + its.amended,
                mine.unchanged + its.unchanged,
                mine.seconds + its.seconds,
            ),
            self.accepted.plus(other.accepted),
            self.dead_lettered.plus(other.dead_lettered),
            self.parked + other.parked,
            self.why_parked or other.why_parked,
            self.seconds + other.seconds,
            max(self.attempts, other.attempts),
        )


def deliver(sink: Sink, stream: str, offer: Offer) -> Delivery:
    """Give a batch to the target. Raises only what no retry and no halving can help."""
    begun = sink.clock()
    with traced(stream, sink.target.label, offer) as trace:
        delivery = _taken(sink, stream, offer, trace)
        _balance(offer, delivery)
        trace.end(delivery.accepted.n, delivery.dead_lettered.n, delivery.why_parked)
    seconds = sink.clock() - begun
    # A store that takes one batch at a time lets the others wait: that is no reason to shrink.
    sink.size.learn(seconds=delivery.published.seconds, rss_bytes=sink.rss_bytes())
    return delivery.plus(Delivery(seconds=seconds))


def _taken(sink: Sink, stream: str, offer: Offer, trace: Trace) -> Delivery:
    try:
        published, attempts = sink.tried(partial(_publish, sink.target, stream, offer), trace)
    except TargetDataError as error:
        if offer.height == 1:
            return _buried(sink, stream, offer, error)
        first, second = (_taken(sink, stream, half, trace) for half in offer.halves())
        return first.plus(second)
    except (*_PASSING, BreakerOpenError) as error:
        return Delivery(parked=(offer,), why_parked=str(error))
    return Delivery(published, accepted=offer.sums(), attempts=attempts)


def _publish(target: Target, stream: str, offer: Offer, attempt: int) -> tuple[Published, int]:
    entries = offer.entries(State.COMMITTED, attempt)
    if attempt > 1 and _is_covered(target, stream, offer):
        # The answer to an earlier attempt was lost, its commit was not.
        return Published(0, 0, offer.height), attempt
    return target.publish(stream, offer.revisions, Note(entries)), attempt


def _is_covered(target: Target, stream: str, offer: Offer) -> bool:
    entries = offer.entries(State.COMMITTED, 1)
    known = target.covered(stream, {entry.publication.name for entry in entries})
    ranges = {(entry.publication, entry.lo, entry.hi) for entry in known}
    return all((entry.publication.name, entry.lo, entry.hi) in ranges for entry in entries)


def _buried(sink: Sink, stream: str, offer: Offer, error: TargetDataError) -> Delivery:
    """Keep the one row of an offer as a dead letter, in the target's own books."""
    dead = offer.dead_letter(error.reason, error.sqlstate, str(error))
    note = Note(offer.entries(State.DEAD_LETTERED, 1), (dead,))
    nothing = offer.revisions.clear()
    try:
        sink.call(lambda: sink.target.publish(stream, nothing, note))
    except _PASSING as outage:
        return Delivery(parked=(offer,), why_parked=str(outage))
    return Delivery(dead_lettered=offer.sums())


def _balance(offer: Offer, delivery: Delivery) -> None:
    parked = together(each.sums() for each in delivery.parked)
    found = delivery.accepted.plus(delivery.dead_lettered).plus(parked)
    if found != offer.sums():
        raise UnbalancedError(
            f"a batch of {offer.height} rows came to {delivery.accepted.n} accepted,"
            f" {delivery.dead_lettered.n} refused, {parked.n} parked, or to other rows"
        )
