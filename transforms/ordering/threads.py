"""The ordered map for blocking work: concurrent stages on threads, one re-sequencer at the sink.

Belongs here: threads and their lock, nothing else; numbers, windows and keys are `ordering.core`.

* The source is pulled in the consumer's thread, lazily, at most one item between two results that
  are ready, so it may be infinite and need not be thread-safe. If it raises, everything admitted
  before is still given out in order, then the error is raised.
* A thread cannot be killed. A call that exceeds its stage's timeout leaves a tombstone in its slot
  and is given up: its result, when it comes, is discarded, and a fresh thread takes its place. In
  per-key mode the key stays closed until that call returns, because its effect may still land:
  items of the key meanwhile fail with `KeyBlockedError`, so that two writes never swap.
* Leaving early (`close`, `with`, `break`, an error) drops what has not begun and waits for the
  calls that have, at most until their timeout. Given-up calls are the only threads that can outlive
  the map: they are daemons, end as their call returns, and are counted in `Diagnostics.stuck`.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from transforms.ordering.core import (
    Clock,
    Diagnostics,
    Envelope,
    Intake,
    Job,
    Kind,
    Outcome,
    Stage,
    returned_value,
    timed_out,
)

T = TypeVar("T")
R = TypeVar("R")

STUCK_LIMIT = 64
"""How many given-up calls may run at once before the map itself gives up."""


class StuckWorkersError(RuntimeError):
    """So many calls have timed out and never returned that starting more threads is no help."""


class _StageState:
    """A stage at work: what waits for it, what it runs, and on which threads."""

    def __init__(self, stage: Stage, lock: threading.RLock) -> None:
        self.stage = stage
        self.queue: deque[Job[Any]] = deque()
        self.work = threading.Condition(lock)
        # In order of start, so that the first one is the first to be overdue.
        self.running: dict[int, tuple[Job[Any], threading.Thread]] = {}
        self.threads: set[threading.Thread] = set()


class _ThreadRun(Generic[T, R]):
    """The shared state of one map. Methods that begin with an underscore want the lock held."""

    def __init__(self, stages: Sequence[Stage], intake: Intake[T, R], clock: Clock) -> None:
        # Re-entrant: the collector may close a dropped map in one of its own workers.
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.states = [_StageState(stage, self.lock) for stage in stages]
        self.timed = [state for state in self.states if state.stage.timeout is not None]
        self.intake = intake
        self.clock = clock
        self.closed = False
        self.stuck = 0
        self.late = 0

    # The consumer's side.

    def admit(self, item: T) -> None:
        """Number an item and hand it to the first stage, or let it wait for its key."""
        with self.lock:
            job = self.intake.admit(item, self.clock())
            if job is not None:
                self._enqueue(job)

    def has_room(self) -> bool:
        """Whether one more item may be admitted."""
        return self.intake.buffer.has_room

    def take(self, *, wait: bool) -> Envelope[T, R] | None:
        """Give the awaited envelope; None if it is not there (`wait`: nothing is outstanding)."""
        buffer = self.intake.buffer
        with self.lock:
            self._give_up_overdue()
            while not buffer.ready and wait and buffer.outstanding:
                self.changed.wait(self._until_next_deadline())
                self._give_up_overdue()
            return buffer.take() if buffer.ready else None

    def diagnostics(self) -> Diagnostics:
        """Describe the map now; any thread may ask."""
        with self.lock:
            return self.intake.buffer.diagnostics(self.clock(), stuck=self.stuck, late=self.late)

    def close(self) -> None:
        """Drop what has not begun and wait for what has, at most until its timeout."""
        with self.lock:
            self.closed = True
            for state in self.states:
                state.queue.clear()
                state.work.notify_all()
        for state in self.states:
            for thread in tuple(state.threads):
                self._join(state, thread)

    def _join(self, state: _StageState, thread: threading.Thread) -> None:
        """Wait for one worker without the lock, giving its call up once it is overdue."""
        while thread in state.threads and thread is not threading.current_thread():
            with self.lock:
                deadline = self._until_next_deadline()
            thread.join(deadline)
            with self.lock:
                self._give_up_overdue()
                if not thread.is_alive():
                    state.threads.discard(thread)

    # The workers' side.

    def serve(self, state: _StageState) -> None:
        """Run a worker: call the stage's function on one item after another until closed."""
        while (job := self.next_job(state)) is not None:
            outcome = _attempt(state.stage, job)
            if not self.record(state, job, outcome):
                return
            del job, outcome  # an idle worker must not keep the last value alive

    def next_job(self, state: _StageState) -> Job[T] | None:
        """Wait for an item; None when the map is closed."""
        with self.lock:
            while not state.queue and not self.closed:
                state.work.wait()
            if self.closed:
                return None
            job = state.queue.popleft()
            self.intake.begin(job, self.clock())
            state.running[job.seq] = (job, threading.current_thread())
            if state.stage.timeout is not None and len(state.running) == 1:
                self.changed.notify()  # the consumer may wait without a deadline so far
            return job

    def record(self, state: _StageState, job: Job[T], outcome: Outcome[Any]) -> bool:
        """Pass an item on or settle it; False if the call had been given up."""
        with self.lock:
            if job.abandoned:
                self.stuck -= 1
                self.late += 1
                self.intake.returned(job)
                return False
            del state.running[job.seq]
            if self._is_overdue(state, job):
                outcome = _tombstone(state, job)
            self._advance(job, outcome)
            return True

    # Under the lock.

    def _advance(self, job: Job[T], outcome: Outcome[Any]) -> None:
        if outcome.kind is Kind.VALUE and job.stage + 1 < len(self.states):
            job.stage += 1
            job.value = outcome.value
            self._enqueue(job)
            return
        following = self.intake.settle(job, outcome)
        if following is not None:
            self._enqueue(following)
        if self.intake.buffer.ready:
            self.changed.notify()

    def _enqueue(self, job: Job[T]) -> None:
        if self.closed:
            return
        state = self.states[job.stage]
        state.queue.append(job)
        if len(state.threads) < state.stage.workers:
            self._start_worker(state)
        state.work.notify()

    def _start_worker(self, state: _StageState) -> None:
        thread = threading.Thread(target=self.serve, args=(state,), daemon=True)
        thread.name = f"ordered-map-stage-{self.states.index(state)}"
        thread.start()
        state.threads.add(thread)

    def _until_next_deadline(self) -> float | None:
        """Seconds until the first running call is overdue; None if none can be."""
        now = self.clock()
        waits = [
            max(0.0, job.started + (state.stage.timeout or 0.0) - now)
            for state in self.timed
            for job, _ in list(state.running.values())[:1]
        ]
        return min(waits, default=None)

    def _is_overdue(self, state: _StageState, job: Job[T]) -> bool:
        timeout = state.stage.timeout
        return timeout is not None and self.clock() - job.started >= timeout

    def _give_up_overdue(self) -> None:
        for state in self.timed:
            while state.running:
                job, thread = next(iter(state.running.values()))
                if not self._is_overdue(state, job):
                    break
                self._give_up(state, job, thread)

    def _give_up(self, state: _StageState, job: Job[T], thread: threading.Thread) -> None:
        """Leave a tombstone for a call that is overdue and replace its thread."""
        del state.running[job.seq]
        state.threads.discard(thread)
        self.stuck += 1
        self.intake.abandon(job, _tombstone(state, job))
        if self.stuck > STUCK_LIMIT and not self.closed:
            raise StuckWorkersError(f"{self.stuck} calls have timed out and have not returned")
        if state.queue:
            self._start_worker(state)


def _attempt(stage: Stage, job: Job[Any]) -> Outcome[Any]:
    """Call the function; what it raises is the outcome of this item, not the end of a worker."""
    try:
        return returned_value(stage.fn(job.value))
    except BaseException as error:  # noqa: BLE001  # kept in the envelope, for the sink to judge
        return Outcome(Kind.FAILED, error=error)


def _tombstone(state: _StageState, job: Job[Any]) -> Outcome[Any]:
    return timed_out(job.seq, job.stage, state.stage.timeout or 0.0)


class OrderedResults(Generic[T, R]):
    """The envelopes of an ordered map, in source order; a context manager that ends its threads.

    No thread starts before the first `next`. Dropping the iterator closes it as well.
    """

    def __init__(self, run: _ThreadRun[T, R], source: Iterable[T]) -> None:
        self._run = run
        # The generator must not refer to this object: dropping it has to close the generator.
        self._envelopes = _envelopes(run, source)

    def __iter__(self) -> Iterator[Envelope[T, R]]:
        return self

    def __next__(self) -> Envelope[T, R]:
        return next(self._envelopes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop: drop what has not begun, wait for what has."""
        self._envelopes.close()

    def diagnostics(self) -> Diagnostics:
        """Describe the map now; any thread may ask, also while another waits in `next`."""
        return self._run.diagnostics()


def _envelopes(run: _ThreadRun[T, R], source: Iterable[T]) -> Generator[Envelope[T, R], None, None]:
    """Alternate between source and results, then drain, then raise what the source raised."""
    failure: Exception | None = None
    items = iter(source)
    is_open = True
    try:
        while True:
            if is_open and run.has_room():
                try:
                    run.admit(next(items))
                except StopIteration:
                    is_open = False
                except Exception as error:  # noqa: BLE001  # raised below, after what came before it
                    failure, is_open = error, False
            envelope = run.take(wait=not (is_open and run.has_room()))
            if envelope is not None:
                yield envelope
            elif not is_open:
                break
    finally:
        run.close()
        _close_source(items)
    if failure is not None:
        raise failure


def _close_source(items: Iterator[Any]) -> None:
    close = getattr(items, "close", None)
    if callable(close):
        close()


def pipeline(
    items: Iterable[T],
    stages: Sequence[Stage],
    *,
    window: int | None,
    clock: Clock,
    key: Callable[[T], Hashable] | None = None,
) -> OrderedResults[T, Any]:
    """Run items through concurrent stages; give exactly one envelope for each, in source order.

    `window` bounds how many items are between the source and the consumer (None: unbounded);
    `clock` is a monotonic clock in seconds; with `key`, items of one key run one after another,
    different keys side by side. Raises ValueError on sizes that cannot run, from the iterator
    whatever the source raises, and `StuckWorkersError`.
    """
    if not stages:
        raise ValueError("a pipeline needs at least one stage")
    intake: Intake[T, Any] = Intake(window, key)
    return OrderedResults(_ThreadRun(stages, intake, clock), items)
