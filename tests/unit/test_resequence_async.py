"""All of it in virtual time: exact, instant, and a stall is an error instead of a hang."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from virtual_time import run_in_virtual_time

from transforms.resequence import (
    SKIP,
    Diagnostics,
    Envelope,
    Kind,
    Stage,
    async_ordered_map,
    async_pipeline,
)

WORKERS = 8
ITEMS = 1_000
SLOW = 0.2
FIRST, SECOND = 0.0075, 0.005


async def other_tasks() -> int:
    await asyncio.sleep(0)
    return len(asyncio.all_tasks()) - 1


def collect(items: Any, fn: Callable[[int], Awaitable[Any]], **options: Any) -> list[Envelope]:
    async def work() -> list[Envelope]:
        sizes = {"workers": 4, "window": 8} | options
        async with async_ordered_map(items, fn, **sizes) as results:
            envelopes = [envelope async for envelope in results]
        assert await other_tasks() == 0
        return envelopes

    return run_in_virtual_time(work())


async def instantly(item: int) -> int:
    return item


def is_slow(item: int) -> bool:
    return item % 100 == 50


async def first_stage(item: int) -> int:
    await asyncio.sleep(SLOW if is_slow(item) else FIRST)
    return item


async def second_stage(item: int) -> int:
    await asyncio.sleep(SECOND)
    return item


def run_two_stages(window: int | None) -> tuple[float, Diagnostics]:
    """Run 1,000 items through two stages of 8 workers, 1 % of the items taking 200 ms."""

    async def work() -> tuple[float, Diagnostics]:
        stages = [Stage(first_stage, WORKERS), Stage(second_stage, WORKERS)]
        async with async_pipeline(range(ITEMS), stages, window=window) as results:
            assert [e.value async for e in results] == list(range(ITEMS))
            return asyncio.get_running_loop().time(), results.diagnostics()

    return run_in_virtual_time(work())


def finish_times(ready: list[float], lengths: list[float]) -> list[float]:
    """Schedule items on workers of which none ever waits while an item does; give their ends."""
    free = [0.0] * WORKERS
    ends = []
    for begin, length in zip(ready, lengths, strict=True):
        ends.append(max(begin, heapq.heappop(free)) + length)
        heapq.heappush(free, ends[-1])
    return ends


def test_two_stages_take_what_their_sleeps_take() -> None:
    ends = finish_times([0.0] * ITEMS, [SLOW if is_slow(item) else FIRST for item in range(ITEMS)])
    optimum = max(finish_times(sorted(ends), [SECOND] * ITEMS))
    seconds, _ = run_two_stages(window=None)
    assert seconds == pytest.approx(optimum, rel=1e-6)


def test_the_buffer_holds_what_passes_a_straggler() -> None:
    _, seen = run_two_stages(window=None)
    passing = (WORKERS - 1) / FIRST * SLOW
    assert seen.peak == pytest.approx(passing, rel=0.1)


@pytest.mark.parametrize("window", [2, 16, 64, 99])
def test_the_peak_is_exactly_the_window_when_bounded(window: int) -> None:
    """As long as the window spans one straggler at a time, which is one in 100 here."""
    _, seen = run_two_stages(window)
    assert seen.peak == window


def test_a_window_wide_enough_for_the_straggler_costs_no_time() -> None:
    unbounded, _ = run_two_stages(window=None)
    assert run_two_stages(window=256)[0] == unbounded
    assert run_two_stages(window=32)[0] > unbounded


def test_each_item_has_one_envelope_whatever_became_of_it() -> None:
    async def work(item: int) -> Any:
        await asyncio.sleep(1.0 / (item + 1))
        if item % 4 == 1:
            return SKIP
        if item % 4 == 2:
            raise ValueError(item)
        if item % 4 == 3:
            await asyncio.sleep(60)
        return item

    envelopes = collect(range(12), work, timeout=2.0)
    assert [e.seq for e in envelopes] == list(range(12))
    kinds = [Kind.VALUE, Kind.SKIPPED, Kind.FAILED, Kind.TIMED_OUT]
    assert [e.kind for e in envelopes] == kinds * 3


def test_a_timeout_error_that_the_work_raises_is_a_failure() -> None:
    async def work(_: int) -> None:
        raise TimeoutError("the server was slow")

    assert [e.kind for e in collect([1], work, timeout=60.0)] == [Kind.FAILED]


def test_a_cancellation_that_the_work_raises_by_itself_is_a_failure() -> None:
    async def work(item: int) -> int:
        if item == 1:
            raise asyncio.CancelledError
        return item

    assert [e.kind for e in collect(range(3), work)] == [Kind.VALUE, Kind.FAILED, Kind.VALUE]


def test_a_coroutine_that_swallows_its_cancellation_has_timed_out_all_the_same() -> None:
    async def work(item: int) -> int:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return item

    assert [e.kind for e in collect(range(3), work, timeout=1.0)] == [Kind.TIMED_OUT] * 3


def test_an_asynchronous_source_need_not_end_before_the_first_result() -> None:
    async def source() -> AsyncIterator[int]:
        for item in itertools.count():
            yield item
            await asyncio.sleep(1)

    async def work() -> float:
        async with async_ordered_map(source(), instantly, workers=2, window=100) as results:
            async for envelope in results:
                if envelope.seq == 3:
                    break
        assert await other_tasks() == 0
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(work()) == 3.0


def test_an_endless_source_cannot_starve_the_loop_though_the_window_is_open() -> None:
    async def work() -> None:
        async with async_ordered_map(itertools.count(), instantly, workers=1, window=None) as map_:
            assert (await anext(map_)).seq == 0

    run_in_virtual_time(work())


def test_the_source_is_pulled_only_when_the_window_has_room() -> None:
    pulled = 0

    def source() -> Iterator[int]:
        nonlocal pulled
        for item in range(100):
            pulled += 1
            yield item

    async def work() -> None:
        async with async_ordered_map(source(), instantly, workers=2, window=5) as results:
            async for envelope in results:
                await asyncio.sleep(1)
                assert pulled - envelope.seq <= 5 + 1

    run_in_virtual_time(work())
    assert pulled == 100


def test_a_source_that_breaks_is_raised_after_all_that_came_before_it() -> None:
    def source() -> Iterator[int]:
        yield from range(5)
        raise OSError("the wire is cut")

    seen = []

    async def work() -> None:
        async for envelope in async_ordered_map(source(), instantly, workers=2, window=8):
            seen.append(envelope.value)  # noqa: PERF401  # a comprehension would be lost

    with pytest.raises(OSError, match="the wire is cut"):
        run_in_virtual_time(work())
    assert seen == [0, 1, 2, 3, 4]


def test_a_consumer_that_is_cancelled_leaves_no_task_and_closes_the_source() -> None:
    ended = []

    async def source() -> AsyncIterator[int]:
        try:
            for item in itertools.count():
                yield item
        finally:
            ended.append("source")

    async def forever(_: int) -> None:
        try:
            await asyncio.sleep(1e9)
        finally:
            ended.append("work")

    numbers = source()  # held here, so that only the map can close it

    async def consume() -> None:
        async with async_ordered_map(numbers, forever, workers=3, window=4) as results:
            async for _ in results:
                raise AssertionError

    async def work() -> None:
        consumer = asyncio.create_task(consume())
        await asyncio.sleep(1)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        assert await other_tasks() == 0
        assert sorted(ended) == ["source", "work", "work", "work"]

    run_in_virtual_time(work())


def test_work_that_swallows_its_cancellation_does_not_hold_up_the_end() -> None:
    async def work(item: int) -> int:
        try:
            await asyncio.sleep(0 if item == 0 else 1_000)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return item

    async def leave_early() -> float:
        async with async_ordered_map(itertools.count(), work, workers=3, window=9) as results:
            await anext(results)
        assert await other_tasks() == 0
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(leave_early()) == 1.0


def test_a_loop_that_ends_with_a_map_still_open_ends_its_tasks() -> None:
    held = []

    async def first_alone(item: int) -> None:
        await asyncio.sleep(0 if item == 0 else 1e9)

    async def work() -> None:
        results = async_ordered_map(range(9), first_alone, workers=2, window=4)
        await anext(results)
        held.append(results)

    run_in_virtual_time(work())
    assert len(held) == 1


def test_a_bare_loop_that_is_left_is_cleaned_up_with_its_iterator() -> None:
    async def work() -> None:
        async for envelope in async_ordered_map(itertools.count(), instantly, workers=2, window=4):
            if envelope.seq == 2:
                break
        for _ in range(5):
            await asyncio.sleep(0)
        assert await other_tasks() == 0

    run_in_virtual_time(work())


def test_items_of_one_key_take_turns_and_different_keys_do_not() -> None:
    async def seconds(keys: str) -> float:
        async def work(_: str) -> None:
            await asyncio.sleep(1)

        start = asyncio.get_running_loop().time()
        sizes = {"workers": len(keys), "window": len(keys)}
        async with async_ordered_map(keys, work, key=str, **sizes) as results:
            assert len([e async for e in results]) == len(keys)
        return asyncio.get_running_loop().time() - start

    assert run_in_virtual_time(seconds("abcdef")) == 1.0
    assert run_in_virtual_time(seconds("aabbcc")) == 2.0
    assert run_in_virtual_time(seconds("aaaaaa")) == 6.0


def test_a_key_is_free_again_after_a_timeout_because_the_call_was_cancelled() -> None:
    async def work(item: int) -> int:
        await asyncio.sleep(10 if item == 0 else 0.5)
        return item

    envelopes = collect(range(3), work, timeout=1.0, key=lambda _: "same")
    assert [e.kind for e in envelopes] == [Kind.TIMED_OUT, Kind.VALUE, Kind.VALUE]


def test_stamps_tell_the_three_orders_apart() -> None:
    """Handed out in order, begun in order, landed by how long each took."""

    async def work(item: int) -> None:
        await asyncio.sleep([4, 2, 3, 1][item])

    envelopes = collect(range(4), work)
    assert [e.handed_out for e in envelopes] == [0, 1, 2, 3]
    assert [e.begun for e in envelopes] == [0, 1, 2, 3]
    assert [e.landed for e in envelopes] == [3, 1, 2, 0]


def test_a_stateful_step_after_the_map_matches_the_sequential_reference() -> None:
    async def amount(item: int) -> int:
        await asyncio.sleep((item * 37) % 5)
        return item * item

    amounts = [e.unwrap() for e in collect(range(50), amount, window=16)]
    expected = list(itertools.accumulate(item * item for item in range(50)))
    assert list(itertools.accumulate(amounts)) == expected


def test_a_pipeline_without_a_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        async_pipeline([1], [], window=1)
