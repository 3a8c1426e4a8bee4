"""What every ordered map shares: envelopes, the re-sequencing buffer, the lanes of keys.

An item gets its number once, when it is admitted, and the number lives in the `Job` and the
`Envelope`, where a stage, which is handed the bare value, can neither drop nor change it.

Belongs here: state and rules that hold whether the work runs on threads or on an event loop.
Does not belong here: locks, threads, tasks, waiting (`ordering.threads`, `ordering.coroutines`).
Nothing here is thread-safe by itself and nothing reads a clock: `now` is always an argument, in
seconds of any monotonic clock.
"""

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from itertools import count
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Clock = Callable[[], float]
"""A monotonic clock in seconds."""


class Skip(Enum):
    """The type of `SKIP`, so that a stage can be annotated as returning `R | Skip`."""

    SKIP = "skip"


SKIP: Final = Skip.SKIP
"""What a stage returns to filter an item out; its slot is kept. None is a value."""


class Kind(StrEnum):
    """How an item ended; exactly one for each item admitted."""

    VALUE = "value"
    SKIPPED = "skipped"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


class ItemTimedOutError(TimeoutError):
    """The call on an item took longer than its stage allows; a later result is discarded."""


class ItemSkippedError(LookupError):
    """A value was asked of an item that a stage filtered out."""


class KeyBlockedError(RuntimeError):
    """An earlier item of the same key timed out on a thread that is still running."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What one call of a stage came to; a returned exception object is a value like any other."""

    kind: Kind
    value: R | None = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Envelope(Generic[T, R]):
    """One item at the sink: its number, the item as the source gave it and what became of it.

    `value` is set if `kind` is VALUE, `error` if it is FAILED or TIMED_OUT. `stage` is the number
    of the stage that ended the item, from 0.

    `handed_out`, `begun` and `landed` number all items in the order in which they became free to
    run, began their first call and ended; an order audit compares them. None: it never did.
    """

    seq: int
    item: T
    kind: Kind
    value: R | None = None
    error: BaseException | None = None
    stage: int = 0
    handed_out: int | None = None
    begun: int | None = None
    landed: int | None = None

    def unwrap(self) -> R:
        """Return the value, or raise what the item ended with (`ItemSkippedError` if filtered)."""
        if self.error is not None:
            raise self.error
        if self.kind is Kind.SKIPPED:
            raise ItemSkippedError(f"item {self.seq} was filtered out by stage {self.stage}")
        return self.value  # type: ignore[return-value]  # None only if R admits None


@dataclass(frozen=True, slots=True)
class Stage:
    """One concurrent step: `workers` calls of `fn` side by side, each at most `timeout` seconds.

    `fn` takes the bare value and returns the next one or `SKIP`; for the async map it is a
    coroutine function. The time an item waits for a worker does not count against `timeout`.
    """

    fn: Callable[[Any], Any]
    workers: int
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse sizes that could never run (ValueError)."""
        if self.workers < 1:
            raise ValueError(f"a stage needs at least 1 worker, got {self.workers}")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"a timeout must be above 0 seconds, got {self.timeout}")


@dataclass(slots=True)
class Job(Generic[T]):
    """An admitted item on its way through the stages. `started` is when its present call began."""

    seq: int
    item: T
    key: Hashable
    value: Any
    stage: int = 0
    started: float = 0.0
    handed_out: int | None = None
    begun: int | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The state of an ordered map at one moment.

    A growing `buffered` while `awaited` stays the same is a straggler; `awaited_age` (seconds since
    it was admitted) tells whether a timeout would have caught it. `peak` is the greatest `buffered`
    so far; with a window it never exceeds the window. `stuck` calls have timed out on a thread and
    still run; `late` ones have returned since, and their results were discarded.
    """

    buffered: int
    peak: int
    awaited: int | None
    awaited_age: float | None
    admitted: int
    emitted: int
    ended: dict[Kind, int]
    stuck: int = 0
    late: int = 0


class ReorderBuffer(Generic[T, R]):
    """Numbers items as they are admitted and gives their envelopes back in that order.

    `window` bounds how many items may be admitted and not yet taken; None leaves it open.
    """

    def __init__(self, window: int | None) -> None:
        if window is not None and window < 1:
            raise ValueError(f"a window must hold at least 1 item, got {window}")
        self._window = window
        self._held: dict[int, Envelope[T, R]] = {}
        self._admitted_at: deque[float] = deque()
        self._admitted = 0
        self._emitted = 0
        self._peak = 0
        self._ended = dict.fromkeys(Kind, 0)

    @property
    def outstanding(self) -> int:
        """How many items were admitted and not yet taken."""
        return self._admitted - self._emitted

    @property
    def has_room(self) -> bool:
        """Whether the source may be asked for one more item."""
        return self._window is None or self.outstanding < self._window

    @property
    def ready(self) -> bool:
        """Whether the awaited envelope has arrived."""
        return self._emitted in self._held

    def admit(self, now: float) -> int:
        """Give the next number."""
        seq = self._admitted
        self._admitted += 1
        self._admitted_at.append(now)
        return seq

    def settle(self, envelope: Envelope[T, R]) -> None:
        """Hold the one envelope of its number; a second or unknown one is a fault (ValueError)."""
        seq = envelope.seq
        if seq in self._held or not self._emitted <= seq < self._admitted:
            raise ValueError(f"item {seq} is not outstanding")
        self._held[seq] = envelope
        self._peak = max(self._peak, len(self._held))
        self._ended[envelope.kind] += 1

    def take(self) -> Envelope[T, R]:
        """Give the awaited envelope; only if `ready` (KeyError)."""
        envelope = self._held.pop(self._emitted)
        self._emitted += 1
        self._admitted_at.popleft()
        return envelope

    def diagnostics(self, now: float, *, stuck: int = 0, late: int = 0) -> Diagnostics:
        """Describe the buffer at `now`."""
        waiting = self.outstanding > 0
        return Diagnostics(
            buffered=len(self._held),
            peak=self._peak,
            awaited=self._emitted if waiting else None,
            awaited_age=now - self._admitted_at[0] if waiting else None,
            admitted=self._admitted,
            emitted=self._emitted,
            ended=dict(self._ended),
            stuck=stuck,
            late=late,
        )


@dataclass(slots=True)
class _Lane(Generic[T]):
    """The items of one key: one runs, the others wait; blocked while a given-up call still runs."""

    waiting: deque[Job[T]] = field(default_factory=deque)
    blocked: bool = False


class KeyLanes(Generic[T]):
    """Lets one item of a key run at a time, from its first stage to its end, in source order."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane[T]] = {}

    def enter(self, job: Job[T]) -> bool:
        """Whether the item may start now; if not, it waits in its lane (or finds it blocked)."""
        lane = self._lanes.get(job.key)
        if lane is None:
            self._lanes[job.key] = _Lane()
            return True
        if not lane.blocked:
            lane.waiting.append(job)
        return False

    def is_blocked(self, key: Hashable) -> bool:
        """Whether a given-up call of this key is still running."""
        lane = self._lanes.get(key)
        return lane is not None and lane.blocked

    def leave(self, key: Hashable) -> Job[T] | None:
        """End the running item of a key, or its block; give the next one, which may start now."""
        lane = self._lanes[key]
        if lane.waiting:
            return lane.waiting.popleft()
        del self._lanes[key]
        return None

    def block(self, key: Hashable) -> list[Job[T]]:
        """Close a lane until `leave`, as its call was given up; give back those that waited."""
        lane = self._lanes[key]
        lane.blocked = True
        waiting = list(lane.waiting)
        lane.waiting.clear()
        return waiting


class Intake(Generic[T, R]):
    """Admission and settlement of items: the buffer, and the lanes if there is a `key`."""

    def __init__(self, window: int | None, key: Callable[[T], Hashable] | None) -> None:
        self.buffer: ReorderBuffer[T, R] = ReorderBuffer(window)
        self._key = key
        self._lanes: KeyLanes[T] = KeyLanes()
        self._handed_out, self._begun, self._landed = count(), count(), count()

    def admit(self, item: T, now: float) -> Job[T] | None:
        """Number an item; give its job if it may start now. An item without a key has failed."""
        job = Job(self.buffer.admit(now), item, None, item)
        if self._key is None:
            return self._hand_out(job)
        try:
            job.key = self._key(item)
            may_start = self._lanes.enter(job)
        except Exception as error:  # noqa: BLE001  # the slot is kept, the error is in the envelope
            self._hold(job, Outcome(Kind.FAILED, error=error))
            return None
        if not may_start and self._lanes.is_blocked(job.key):
            self._hold(job, _blocked(job))
        return self._hand_out(job) if may_start else None

    def begin(self, job: Job[T], now: float) -> None:
        """Note that a call on an item begins."""
        job.started = now
        if job.begun is None:
            job.begun = next(self._begun)

    def settle(self, job: Job[T], outcome: Outcome[R]) -> Job[T] | None:
        """End an item whose call is over; give the next item of its key if one waited."""
        self._hold(job, outcome)
        following = None if self._key is None else self._lanes.leave(job.key)
        return None if following is None else self._hand_out(following)

    def abandon(self, job: Job[T], outcome: Outcome[R]) -> None:
        """End an item whose call still runs; the next ones of its key fail until `returned`."""
        job.abandoned = True
        self._hold(job, outcome)
        if self._key is not None:
            for waiting in self._lanes.block(job.key):
                self._hold(waiting, _blocked(waiting))

    def returned(self, job: Job[T]) -> None:
        """Note that the call of an abandoned item is over: its key is free again."""
        if self._key is not None:
            self._lanes.leave(job.key)

    def _hand_out(self, job: Job[T]) -> Job[T]:
        job.handed_out = next(self._handed_out)
        return job

    def _hold(self, job: Job[T], outcome: Outcome[R]) -> None:
        self.buffer.settle(
            Envelope(
                seq=job.seq,
                item=job.item,
                kind=outcome.kind,
                value=outcome.value,
                error=outcome.error,
                stage=job.stage,
                handed_out=job.handed_out,
                begun=job.begun,
                landed=next(self._landed),
            )
        )


def _blocked(job: Job[Any]) -> Outcome[Any]:
    message = f"item {job.seq}: an earlier item of key {job.key!r} timed out and is still running"
    return Outcome(Kind.FAILED, error=KeyBlockedError(message))


def timed_out(seq: int, stage: int, timeout: float) -> Outcome[Any]:
    """Make the tombstone of an item that took longer than `timeout` seconds."""
    message = f"item {seq} took longer than {timeout} s in stage {stage}"
    return Outcome(Kind.TIMED_OUT, error=ItemTimedOutError(message))


def returned_value(value: Any) -> Outcome[Any]:
    """Tell a value from the skip marker."""
    return Outcome(Kind.SKIPPED) if value is SKIP else Outcome(Kind.VALUE, value)
