"""Order restored once: the bounded, concurrent, ordered map that all side-by-side work uses.

Reading, parsing and writing run concurrently; the results come out in source order, exactly one
envelope for each item: a value, a skip marker, a failure or a timeout. Nothing else in this code
base owns a pool.

    with ordered_map(paths, read, workers=4, window=8, clock=time.monotonic) as results:
        for frame in values(results):
            ...

Belongs here: the public doors. The rules are in `ordering.core`, the threads in
`ordering.threads`, the tasks in `ordering.coroutines`; several stages are `thread_pipeline` and
`async_pipeline`.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from transforms.ordering import coroutines as resequence_async
from transforms.ordering import threads as resequence_threads
from transforms.ordering.core import (
    SKIP,
    Clock,
    Diagnostics,
    Envelope,
    ItemSkippedError,
    ItemTimedOutError,
    KeyBlockedError,
    Kind,
    Skip,
    Stage,
)
from transforms.ordering.coroutines import AsyncOrderedResults
from transforms.ordering.coroutines import pipeline as async_pipeline
from transforms.ordering.threads import OrderedResults, StuckWorkersError
from transforms.ordering.threads import pipeline as thread_pipeline

__all__ = [
    "SKIP",
    "AsyncOrderedResults",
    "Diagnostics",
    "Envelope",
    "ItemSkippedError",
    "ItemTimedOutError",
    "KeyBlockedError",
    "Kind",
    "OrderedResults",
    "Skip",
    "Stage",
    "StuckWorkersError",
    "async_ordered_map",
    "async_pipeline",
    "ordered_map",
    "side_by_side",
    "thread_pipeline",
    "values",
]

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(
    items: Iterable[T],
    fn: Callable[[T], R | Skip],
    *,
    workers: int,
    window: int | None,
    clock: Clock,
    timeout: float | None = None,
    key: Callable[[T], Hashable] | None = None,
) -> OrderedResults[T, R]:
    """Call `fn` on each item on up to `workers` threads; give the envelopes in source order.

    At most `window` items are between the source and the consumer. `timeout` is seconds per call,
    measured by `clock`, any monotonic one. With `key`, items of one key run one after another.
    """
    stage = Stage(fn, workers, timeout)
    return resequence_threads.pipeline(items, (stage,), window=window, clock=clock, key=key)


def async_ordered_map(
    items: Iterable[T] | AsyncIterable[T],
    fn: Callable[[T], Awaitable[R | Skip]],
    *,
    workers: int,
    window: int | None,
    timeout: float | None = None,
    key: Callable[[T], Hashable] | None = None,
    clock: Clock | None = None,
) -> AsyncOrderedResults[T, R]:
    """Await `fn` on each item in up to `workers` tasks; give the envelopes in source order.

    As `ordered_map`, on the running event loop, whose clock is the default.
    """
    stage = Stage(fn, workers, timeout)
    return resequence_async.pipeline(items, (stage,), window=window, key=key, clock=clock)


def values(results: OrderedResults[T, R]) -> Iterator[R]:
    """Give the values in source order, leave out what was skipped, raise at the first that failed.

    The map is closed at the end, at a failure and when the consumer stops early.
    """
    with results:
        for envelope in results:
            if envelope.kind is not Kind.SKIPPED:
                yield envelope.unwrap()


def side_by_side(
    fn: Callable[[T], R], items: Iterable[T], *, workers: int, window: int | None = None
) -> Iterator[R]:
    """Give `fn` of each item in source order, from up to `workers` threads; raise the first error.

    For calls that must all succeed and need no timeout, so that no clock is asked. At most `window`
    items (twice the workers by default) are between the source and the consumer; one worker is the
    consumer's own thread.
    """
    if workers == 1:
        return map(fn, items)
    window = window or 2 * workers
    return values(ordered_map(items, fn, workers=workers, window=window, clock=_no_clock))


def _no_clock() -> float:
    return 0.0
