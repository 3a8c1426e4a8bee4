import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from transforms.ordering.threads import STUCK_LIMIT
from transforms.resequence import (
    SKIP,
    ItemTimedOutError,
    KeyBlockedError,
    Kind,
    OrderedResults,
    Stage,
    StuckWorkersError,
    ordered_map,
    side_by_side,
    thread_pipeline,
    values,
)


class SteeredClock:
    """Stands still until the test puts it forward, so that a slow machine times nothing out."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def put_forward_when(self, condition: Callable[[], bool], seconds: float) -> threading.Thread:
        def steer() -> None:
            wait_until(condition)
            self.now += seconds

        thread = threading.Thread(target=steer)
        thread.start()
        return thread


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def start(items: object, fn: Callable[[int], object], **options: object) -> OrderedResults:
    defaults = {"workers": 4, "window": 8, "clock": time.monotonic}
    return ordered_map(items, fn, **(defaults | options))


def test_results_come_in_source_order_whoever_is_first() -> None:
    second_is_done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            second_is_done.wait()
        if item == 1:
            second_is_done.set()
        return item * 10

    with start(range(20), work) as results:
        assert [envelope.value for envelope in results] == [item * 10 for item in range(20)]


def test_each_item_has_one_envelope_whatever_became_of_it() -> None:
    def work(item: int) -> object:
        if item % 3 == 1:
            return SKIP
        if item % 3 == 2:
            raise ValueError(item)
        return None

    envelopes = list(start(range(9), work))
    assert [envelope.seq for envelope in envelopes] == list(range(9))
    assert [envelope.item for envelope in envelopes] == list(range(9))
    assert [e.kind for e in envelopes] == [Kind.VALUE, Kind.SKIPPED, Kind.FAILED] * 3
    assert [e.error.args for e in envelopes if e.error] == [(2,), (5,), (8,)]


def test_even_system_exit_in_a_worker_keeps_its_slot() -> None:
    def leave(_: int) -> None:
        raise SystemExit(3)

    assert [type(e.error) for e in start(range(3), leave)] == [SystemExit] * 3


def test_stages_run_one_after_another_and_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=10)

    def meet(item: int) -> int:
        if item in {3, 0}:
            meeting.wait()  # item 0 in the second stage, item 3 in the first
        return item

    stages = [
        Stage(lambda item: meet(item) if item == 3 else item, workers=2),
        Stage(lambda item: meet(item) if item == 0 else item, workers=2),
        Stage(str, workers=3),
    ]
    results = thread_pipeline(range(10), stages, window=10, clock=time.monotonic)
    assert list(values(results)) == [str(item) for item in range(10)]


def test_a_filtered_item_visits_no_further_stage() -> None:
    visited = []
    stages = [Stage(lambda item: SKIP if item == 1 else item, 1), Stage(visited.append, 1)]
    results = thread_pipeline(range(3), stages, window=3, clock=time.monotonic)
    assert [(e.kind, e.stage) for e in results] == [
        (Kind.VALUE, 1),
        (Kind.SKIPPED, 0),
        (Kind.VALUE, 1),
    ]
    assert visited == [0, 2]


def test_the_source_runs_ahead_by_the_window_and_no_further() -> None:
    pulled = itertools.count()
    with start((next(pulled) for _ in itertools.count()), abs, window=5) as results:
        ahead = [results.diagnostics().admitted - next(results).seq for _ in range(50)]
    assert max(ahead) <= 5
    assert next(pulled) <= 50 + 5


def test_the_peak_is_exactly_the_window_when_the_first_item_is_last() -> None:
    others = threading.Semaphore(0)

    def work(item: int) -> int:
        if item == 0:
            for _ in range(6):
                others.acquire()
            while results.diagnostics().buffered < 6:
                time.sleep(0.001)
        else:
            others.release()
        return item

    with start(itertools.count(), work, window=7) as results:
        next(results)
        assert results.diagnostics().peak == 7


def test_an_endless_source_gives_results_though_the_window_is_open() -> None:
    results = start(itertools.count(), str, window=None)
    assert [next(results).value for _ in range(3)] == ["0", "1", "2"]
    results.close()


def test_a_source_that_breaks_is_raised_after_all_that_came_before_it() -> None:
    def source() -> Iterator[int]:
        yield from range(5)
        raise OSError("the wire is cut")

    results = start(source(), abs)
    assert [next(results).value for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(OSError, match="the wire is cut"):
        next(results)


def test_a_consumer_that_leaves_early_ends_the_threads_and_the_source() -> None:
    closed = []

    def source() -> Iterator[int]:
        try:
            yield from itertools.count()
        finally:
            closed.append(True)

    numbers = source()  # held here, so that only the map can close it
    for envelope in start(numbers, abs):
        if envelope.seq == 3:
            break
    gc.collect()
    assert closed == [True]


def test_leaving_waits_for_the_calls_that_have_begun() -> None:
    begun, finished = threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item == 0:
            begun.wait()
        if item == 1:
            begun.set()
            time.sleep(0.05)
            finished.set()
        return item

    with start(range(5), work, workers=2) as results:
        next(results)
    assert finished.is_set()
    assert list(results) == []


def test_nothing_starts_before_the_first_next() -> None:
    results = start(range(5), abs)
    assert results.diagnostics().admitted == 0
    results.close()


def test_a_call_that_hangs_leaves_a_tombstone_and_its_late_result_is_discarded() -> None:
    clock, release = SteeredClock(), threading.Event()

    def work(item: int) -> int:
        if item == 2:
            release.wait()
        return item

    with start(range(8), work, workers=2, timeout=0.01, clock=clock) as results:
        steer = clock.put_forward_when(lambda: results.diagnostics().buffered == 5, 1.0)
        envelopes = list(results)
        assert [e.value for e in envelopes] == [0, 1, None, 3, 4, 5, 6, 7]
        assert envelopes[2].kind is Kind.TIMED_OUT
        assert isinstance(envelopes[2].error, ItemTimedOutError)
        assert results.diagnostics().stuck == 1
        release.set()
        steer.join()
        while results.diagnostics().stuck:
            time.sleep(0.001)
        assert results.diagnostics().late == 1
    wait_for_the_end_of_stuck_threads()


def test_a_result_that_comes_after_its_time_is_discarded_though_nobody_watched() -> None:
    clock = SteeredClock()

    def work(item: int) -> int:
        clock.now += 5.0
        return item

    (envelope,) = start([7], work, timeout=1.0, clock=clock)
    assert (envelope.kind, envelope.value) == (Kind.TIMED_OUT, None)


def test_a_timeout_error_that_the_work_raises_is_a_failure() -> None:
    def work(_: int) -> None:
        raise TimeoutError("the server was slow")

    (envelope,) = start([1], work, timeout=60.0)
    assert envelope.kind is Kind.FAILED


def test_hung_workers_are_replaced_until_too_many_are_stuck() -> None:
    release = threading.Event()

    def work(_: int) -> None:
        release.wait()

    ticks = itertools.count()
    try:
        results = start(itertools.count(), work, timeout=0.5, clock=lambda: float(next(ticks)))
        with pytest.raises(StuckWorkersError, match=f"{STUCK_LIMIT + 1} calls have timed out"):
            list(results)
    finally:
        release.set()
        wait_for_the_end_of_stuck_threads()


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.001)


def wait_for_the_end_of_stuck_threads() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("ordered-map"):
            thread.join()


def test_items_of_one_key_run_one_after_another_in_order() -> None:
    running: set[str] = set()
    overlaps, order = [], []

    def work(item: tuple[str, int]) -> None:
        name = item[0]
        overlaps.append(name in running)
        running.add(name)
        order.append(item)
        time.sleep(0.0005)
        running.discard(name)

    items = [(name, number) for number in range(10) for name in "abc"]
    list(start(items, work, window=30, key=lambda item: item[0]))
    assert not any(overlaps)
    for name in "abc":
        assert [n for key, n in order if key == name] == list(range(10))


def test_different_keys_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=10)
    list(start(["a", "b"], lambda _: meeting.wait(), key=lambda item: item))


def test_a_key_stays_closed_while_a_call_that_timed_out_still_runs() -> None:
    """Its write may still land, so a later write of the key must not begin before."""
    clock, release = SteeredClock(), threading.Event()
    begun = []

    def work(item: str) -> str:
        begun.append(item)
        if item == "a1":
            release.wait()
        return item

    items = ["a1", "b1", "a2", "b2"]
    with start(items, work, timeout=0.01, clock=clock, key=lambda item: item[0]) as results:
        steer = clock.put_forward_when(lambda: results.diagnostics().buffered == 2, 1.0)
        ended = list(results)
        steer.join()
    assert [e.kind for e in ended] == [Kind.TIMED_OUT, Kind.VALUE, Kind.FAILED, Kind.VALUE]
    assert isinstance(ended[2].error, KeyBlockedError)
    assert "a2" not in begun
    release.set()
    wait_for_the_end_of_stuck_threads()


def test_a_key_is_free_again_when_the_call_that_timed_out_has_returned() -> None:
    clock, release = SteeredClock(), threading.Event()

    def source() -> Iterator[str]:
        yield from ("a1", "b1")
        clock.put_forward_when(lambda: results.diagnostics().buffered == 1, 1.0).join()
        while not results.diagnostics().stuck:
            yield "b"
        yield "a2"
        release.set()
        wait_until(lambda: not results.diagnostics().stuck)
        yield "a3"

    def work(item: str) -> str:
        if item == "a1":
            release.wait()
        return item

    with start(source(), work, timeout=0.5, clock=clock, key=lambda item: item[0]) as results:
        kinds = {envelope.item: envelope.kind for envelope in results}
    assert [kinds[item] for item in ("a1", "a2", "a3")] == [Kind.TIMED_OUT, Kind.FAILED, Kind.VALUE]


def test_a_hung_worker_is_replaced_for_those_that_wait() -> None:
    clock, begun, release = SteeredClock(), threading.Event(), threading.Event()

    def work(item: int) -> int:
        if item == 0:
            begun.set()
            release.wait()
        return item

    with start(range(2), work, workers=1, timeout=0.01, clock=clock) as results:
        steer = clock.put_forward_when(begun.is_set, 1.0)
        # Item 1 begins after the clock was put forward, so that it has all its time.
        assert [e.kind for e in results] == [Kind.TIMED_OUT, Kind.VALUE]
        steer.join()
    release.set()
    wait_for_the_end_of_stuck_threads()


def test_a_call_that_begins_while_the_consumer_waits_is_watched_too() -> None:
    release = threading.Event()
    stages = [
        Stage(lambda _: time.sleep(0.05), workers=1),  # without a timeout: nothing to watch
        Stage(lambda _: release.wait(), workers=1, timeout=0.02),
    ]
    with thread_pipeline([1], stages, window=1, clock=time.monotonic) as results:
        assert [(e.kind, e.stage) for e in results] == [(Kind.TIMED_OUT, 1)]
    release.set()
    wait_for_the_end_of_stuck_threads()


def test_values_leaves_out_what_was_skipped_and_raises_the_first_failure() -> None:
    def work(item: int) -> object:
        if item == 3:
            raise ValueError("row 3")
        return SKIP if item == 1 else item

    given = values(start(range(6), work))
    assert [next(given), next(given)] == [0, 2]
    with pytest.raises(ValueError, match="row 3"):
        next(given)


def test_a_pipeline_without_a_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        thread_pipeline([1], [], window=1, clock=time.monotonic)


def test_results_that_must_all_be_there_come_in_order_from_several_threads() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def meet(item: int) -> int:
        meeting.wait()  # breaks unless three calls run at once
        return item * item

    assert list(side_by_side(meet, range(9), workers=3)) == [item * item for item in range(9)]


def test_one_worker_is_the_consumer_itself() -> None:
    here = threading.current_thread()
    assert (
        list(side_by_side(lambda _: threading.current_thread(), range(3), workers=1)) == [here] * 3
    )


def test_the_first_failure_in_source_order_is_raised_and_its_threads_are_gone() -> None:
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda item: 1 // (item - 2), range(9), workers=2))
    assert set(threading.enumerate()) <= before
