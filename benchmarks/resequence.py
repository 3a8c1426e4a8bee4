"""What the ordered map costs per item, and how near it comes to what its sleeps allow.

    python -m benchmarks.resequence

Per item: work that does nothing, against `ThreadPoolExecutor.map` and `asyncio.gather`, which bound
nothing, name no failure and cannot be left early. Then two stages of 8 workers over 1,000 items, of
which 1 in 100 takes 200 ms in the first stage, in real time, against the best schedule of sleeps as
long as they really were: the timer of an event loop is late by a millisecond.
"""

import asyncio
import heapq
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.machine import facts
from transforms.resequence import (
    Diagnostics,
    Stage,
    async_ordered_map,
    async_pipeline,
    ordered_map,
    thread_pipeline,
)

ITEMS = 20_000
ROUNDS = 7
WORKERS = 8
WINDOW = 256

PIPELINE_ITEMS = 1_000
FIRST, SECOND, SLOW = 0.0075, 0.005, 0.2
HUNDRED, STRAGGLER = 100, 50
SLEPT: tuple[list[float], list[float]] = ([0.0] * PIPELINE_ITEMS, [0.0] * PIPELINE_ITEMS)


def same(item: int) -> int:
    """Do nothing."""
    return item


async def same_later(item: int) -> int:
    """Do nothing, on the loop."""
    return item


def map_in_threads() -> None:
    """Use the ordered map."""
    for _ in ordered_map(range(ITEMS), same, workers=WORKERS, window=WINDOW, clock=time.monotonic):
        pass


def map_in_executor() -> None:
    """Use the standard library's pool."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(same, range(ITEMS)):
            pass


async def map_in_tasks() -> None:
    """Use the ordered map on the loop."""
    async for _ in async_ordered_map(range(ITEMS), same_later, workers=WORKERS, window=WINDOW):
        pass


async def gather() -> None:
    """Start a task for each item at once."""
    await asyncio.gather(*(same_later(item) for item in range(ITEMS)))


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def per_item() -> None:
    """Print the cost per item, medians of rounds taken in turns."""
    works: dict[str, Callable[[], object]] = {
        "ordered_map, 8 threads": map_in_threads,
        "ThreadPoolExecutor.map, 8 threads": map_in_executor,
        "async_ordered_map, 8 tasks": lambda: asyncio.run(map_in_tasks()),
        "asyncio.gather": lambda: asyncio.run(gather()),
    }
    rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
    print("| per item | microseconds |\n|---|---:|")
    for name in works:
        print(f"| {name} | {statistics.median(r[name] for r in rounds) / ITEMS * 1e6:.1f} |")


def first_length(item: int) -> float:
    """One item in a hundred is slow."""
    return SLOW if item % HUNDRED == STRAGGLER else FIRST


def first(item: int) -> int:
    """Sleep in the first stage."""
    begun = time.perf_counter()
    time.sleep(first_length(item))
    SLEPT[0][item] = time.perf_counter() - begun
    return item


def second(item: int) -> int:
    """Sleep in the second stage."""
    begun = time.perf_counter()
    time.sleep(SECOND)
    SLEPT[1][item] = time.perf_counter() - begun
    return item


async def first_async(item: int) -> int:
    """Sleep in the first stage, on the loop."""
    begun = time.perf_counter()
    await asyncio.sleep(first_length(item))
    SLEPT[0][item] = time.perf_counter() - begun
    return item


async def second_async(item: int) -> int:
    """Sleep in the second stage, on the loop."""
    begun = time.perf_counter()
    await asyncio.sleep(SECOND)
    SLEPT[1][item] = time.perf_counter() - begun
    return item


def schedule(ready: Sequence[float], lengths: Sequence[float]) -> list[float]:
    """Give the ends of items on workers of which none ever waits while an item does."""
    free = [0.0] * WORKERS
    ends = []
    for begin, length in zip(ready, lengths, strict=True):
        ends.append(max(begin, heapq.heappop(free)) + length)
        heapq.heappush(free, ends[-1])
    return ends


def optimum() -> float:
    """Seconds that the sleeps of the last run took, as long as they really were."""
    ends = schedule([0.0] * PIPELINE_ITEMS, SLEPT[0])
    order = sorted(range(PIPELINE_ITEMS), key=ends.__getitem__)
    return max(schedule([ends[item] for item in order], [SLEPT[1][item] for item in order]))


def require_order(values: list[int]) -> None:
    """A fast wrong answer is no figure."""
    if values != list(range(PIPELINE_ITEMS)):
        sys.exit("out of order")


def threads(window: int | None) -> Diagnostics:
    """Run both stages on threads."""
    stages = [Stage(first, WORKERS), Stage(second, WORKERS)]
    with thread_pipeline(
        range(PIPELINE_ITEMS), stages, window=window, clock=time.monotonic
    ) as results:
        require_order([envelope.value for envelope in results])
        return results.diagnostics()


async def tasks(window: int | None) -> Diagnostics:
    """Run both stages on the loop."""
    stages = [Stage(first_async, WORKERS), Stage(second_async, WORKERS)]
    async with async_pipeline(range(PIPELINE_ITEMS), stages, window=window) as results:
        require_order([envelope.value async for envelope in results])
        return results.diagnostics()


def two_stages() -> None:
    """Print time and peak buffer, bounded and not."""
    print("\n| two stages | s | the sleeps alone | ratio | peak buffer |")
    print("|---|---:|---:|---:|---:|")
    for window in (None, 256, 64):
        runs: dict[str, Callable[[], Diagnostics]] = {
            "threads": lambda window=window: threads(window),
            "tasks": lambda window=window: asyncio.run(tasks(window)),
        }
        for name, run in runs.items():
            begun = time.perf_counter()
            peak = run().peak
            took = time.perf_counter() - begun
            best = optimum()
            label = f"{name}, window {window or 'open'}"
            print(f"| {label} | {took:.3f} | {best:.3f} | {took / best:.3f} | {peak} |")


if __name__ == "__main__":
    print(f"{facts()}\n")
    per_item()
    two_stages()
