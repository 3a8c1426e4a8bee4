"""The ordered map for coroutines: concurrent stages on one loop, one re-sequencer at the sink.

Belongs here: tasks and their queues, nothing else; numbers, windows and keys are `ordering.core`.

* One task pulls the source (an iterable or an asynchronous one) and only when the window has room.
  If it raises, everything admitted before is still given out in order, then the error is raised.
* A call that exceeds its stage's timeout is cancelled, and its slot holds a tombstone. A coroutine
  that swallows its cancellation keeps its worker until it returns; its result is discarded.
  One that never returns holds up its slot, and the end of the map.
* Leaving early (`aclose`, `async with`, a cancelled consumer) cancels every task and waits for
  their ends. A bare `async for` that is left by `break` is closed when the iterator is collected,
  as any asynchronous generator is; `async with` closes at once.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Sequence,
)
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


class _StageState:
    """A stage at work: what waits for it and how many workers serve it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.queue: asyncio.Queue[Job[Any]] = asyncio.Queue()
        self.workers = 0


class _AsyncRun(Generic[T, R]):
    """The shared state of one map; one loop runs it, so nothing is locked."""

    def __init__(self, stages: Sequence[Stage], intake: Intake[T, R], clock: Clock | None) -> None:
        self.states = [_StageState(stage) for stage in stages]
        self.intake = intake
        self.clock = clock
        self.tasks: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Event()
        self.taken = asyncio.Event()
        self.exhausted = False
        self.closed = False
        self.failure: BaseException | None = None

    def now(self) -> float:
        """Read the clock that was handed in, else the loop's."""
        return asyncio.get_running_loop().time() if self.clock is None else self.clock()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that `close` ends."""
        self.tasks.add(asyncio.create_task(work))

    async def close(self) -> None:
        """Cancel every task and wait for its end."""
        self.closed = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def feed(self, source: Iterable[T] | AsyncIterable[T]) -> None:
        """Admit items while there is room; note the end of the source or what it raised."""
        items = _as_async(source)
        try:
            await self.room()
            async for item in items:
                if self.closed:
                    break
                self.admit(item)
                await self.room()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # raised at the end
            self.failure = error
        finally:
            self.exhausted = True
            self.arrived.set()
            await _close_source(items)

    async def room(self) -> None:
        """Wait until the window has room."""
        while not self.intake.buffer.has_room:
            self.taken.clear()
            await self.taken.wait()

    def admit(self, item: T) -> None:
        """Number an item and hand it to the first stage, or let it wait for its key."""
        job = self.intake.admit(item, self.now())
        if job is not None:
            self.enqueue(job)
        elif self.intake.buffer.ready:  # its key could not be told: it ended at once
            self.arrived.set()

    def enqueue(self, job: Job[T]) -> None:
        """Hand an item to its stage, which gets its workers as the first items come."""
        if self.closed:
            return
        state = self.states[job.stage]
        state.queue.put_nowait(job)
        if state.workers < state.stage.workers:
            state.workers += 1
            self.start(self.serve(state))

    async def serve(self, state: _StageState) -> None:
        """Run a worker: one item after another, until cancelled."""
        while not self.closed:  # the work may swallow the cancellation that was meant for us
            job = await state.queue.get()
            self.intake.begin(job, self.now())
            outcome = await _attempt(state.stage, job)
            self.advance(job, outcome)
            del job, outcome  # an idle worker must not keep the last value alive

    def advance(self, job: Job[T], outcome: Outcome[Any]) -> None:
        """Pass an item on to the next stage, or settle it."""
        if outcome.kind is Kind.VALUE and job.stage + 1 < len(self.states):
            job.stage += 1
            job.value = outcome.value
            self.enqueue(job)
            return
        following = self.intake.settle(job, outcome)
        if following is not None:
            self.enqueue(following)
        if self.intake.buffer.ready:
            self.arrived.set()


async def _attempt(stage: Stage, job: Job[Any]) -> Outcome[Any]:
    """Await the function, as long as its stage allows."""
    if stage.timeout is None:
        return await _outcome(stage, job)
    limit = asyncio.timeout(stage.timeout)
    try:
        async with limit:
            outcome = await _outcome(stage, job)
    except TimeoutError:
        return timed_out(job.seq, job.stage, stage.timeout)
    # The function may have swallowed its cancellation, or failed in its wake.
    return timed_out(job.seq, job.stage, stage.timeout) if limit.expired() else outcome


async def _outcome(stage: Stage, job: Job[Any]) -> Outcome[Any]:
    """Await the function; what it raises is the outcome of this item, not the end of a worker."""
    try:
        return returned_value(await stage.fn(job.value))
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        return Outcome(Kind.FAILED, error=error)  # the function raised it by itself
    except Exception as error:  # noqa: BLE001  # kept in the envelope, for the sink to judge
        return Outcome(Kind.FAILED, error=error)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _as_async(source: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(source, AsyncIterable):
        return aiter(source)
    return _stepwise(source)


async def _stepwise(source: Iterable[T]) -> AsyncGenerator[T, None]:
    """Give the loop a turn after each item, so that an endless source cannot starve it."""
    for item in source:
        yield item
        await asyncio.sleep(0)


async def _close_source(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if callable(close):
        await close()


class AsyncOrderedResults(Generic[T, R]):
    """The envelopes of an ordered map, in source order; an asynchronous context manager.

    No task starts before the first `anext`.
    """

    def __init__(self, run: _AsyncRun[T, R], source: Iterable[T] | AsyncIterable[T]) -> None:
        self._run = run
        # The generator must not refer to this object: dropping it has to close the generator.
        self._envelopes = _envelopes(run, source)

    def __aiter__(self) -> AsyncIterator[Envelope[T, R]]:
        return self

    async def __anext__(self) -> Envelope[T, R]:
        return await anext(self._envelopes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop: cancel every task and wait for its end."""
        await self._envelopes.aclose()

    def diagnostics(self) -> Diagnostics:
        """Describe the map now; called on its loop."""
        return self._run.intake.buffer.diagnostics(self._run.now())


async def _envelopes(
    run: _AsyncRun[T, R], source: Iterable[T] | AsyncIterable[T]
) -> AsyncGenerator[Envelope[T, R], None]:
    """Give out what has arrived in order, to the end; then raise what the source raised."""
    buffer = run.intake.buffer
    run.start(run.feed(source))
    try:
        while True:
            if buffer.ready:
                run.taken.set()
                yield buffer.take()
            elif run.exhausted and not buffer.outstanding:
                break
            else:
                run.arrived.clear()
                await run.arrived.wait()
    finally:
        await run.close()
    if run.failure is not None:
        raise run.failure


def pipeline(
    items: Iterable[T] | AsyncIterable[T],
    stages: Sequence[Stage],
    *,
    window: int | None,
    key: Callable[[T], Hashable] | None = None,
    clock: Clock | None = None,
) -> AsyncOrderedResults[T, Any]:
    """Run items through concurrent stages; give exactly one envelope for each, in source order.

    `window` bounds how many items are between the source and the consumer (None: unbounded); with
    `key`, items of one key run one after another, different keys side by side. `clock`, in seconds,
    dates the diagnostics; timeouts follow the loop's own. Raises ValueError on sizes that cannot
    run, and from the iterator whatever the source raises.
    """
    if not stages:
        raise ValueError("a pipeline needs at least one stage")
    intake: Intake[T, Any] = Intake(window, key)
    return AsyncOrderedResults(_AsyncRun(stages, intake, clock), items)
