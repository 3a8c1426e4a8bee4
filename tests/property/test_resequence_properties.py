"""Whatever the stages do, each item ends exactly once, in order, and nothing is left running."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import run_in_virtual_time

from transforms.resequence import SKIP, Kind, Stage, async_pipeline, thread_pipeline

TIMEOUT = 10.0
KEYS = 3


@dataclass(frozen=True)
class Plan:
    """What each item will do in each stage, and the shape of the pipeline."""

    acts: list[list[str]]
    delays: list[list[float]]
    workers: list[int]
    window: int | None
    keyed: bool
    source_breaks: bool = False
    leave_after: int | None = None


@dataclass
class Log:
    """What was seen while the plan ran."""

    pulled: int = 0
    emitted: int = 0
    ahead: int = 0
    running: set[int] = field(default_factory=set)
    overlaps: int = 0
    begun: list[int] = field(default_factory=list)


@st.composite
def plans(draw: st.DrawFn, acts: Sequence[str]) -> Plan:
    stages = draw(st.integers(1, 3))
    items = draw(st.integers(0, 25))
    row = st.lists(st.sampled_from(acts), min_size=stages, max_size=stages)
    delay = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=stages, max_size=stages)
    return Plan(
        acts=draw(st.lists(row, min_size=items, max_size=items)),
        delays=draw(st.lists(delay, min_size=items, max_size=items)),
        workers=draw(st.lists(st.integers(1, 4), min_size=stages, max_size=stages)),
        window=draw(st.none() | st.integers(1, 8)),
        keyed=draw(st.booleans()),
        source_breaks=draw(st.booleans()),
        leave_after=draw(st.none() | st.integers(0, 25)),
    )


ENDS = {
    "skip": Kind.SKIPPED,
    "fail": Kind.FAILED,
    "cancel": Kind.FAILED,
    "hang": Kind.TIMED_OUT,
    "swallow": Kind.TIMED_OUT,
}


def expected_kind(acts: list[str]) -> Kind:
    return next((ENDS[act] for act in acts if act in ENDS), Kind.VALUE)


def source(plan: Plan, log: Log) -> Iterator[int]:
    for item in range(len(plan.acts)):
        log.pulled += 1
        log.ahead = max(log.ahead, log.pulled - log.emitted)
        yield item
    if plan.source_breaks:
        raise OSError("the source broke")


def key_of(plan: Plan) -> Any:
    return (lambda item: item % KEYS) if plan.keyed else None


def check(plan: Plan, log: Log, kinds: list[Kind], seqs: list[int], *, broke: bool) -> None:
    """Hold what is true of every run, however its stages behaved."""
    left_early = plan.leave_after is not None and plan.leave_after < len(plan.acts)
    count = plan.leave_after if left_early and plan.leave_after is not None else len(plan.acts)
    assert seqs == list(range(count))
    assert kinds == [expected_kind(acts) for acts in plan.acts[:count]]
    assert broke == (plan.source_breaks and not left_early)
    if plan.window is not None:
        assert log.ahead <= plan.window
    if plan.keyed:
        assert log.overlaps == 0
        for key in range(KEYS):
            of_key = [item for item in log.begun if item % KEYS == key]
            assert of_key == sorted(of_key)


async def act(plan: Plan, log: Log, stage: int, item: int) -> Any:
    if stage == 0:
        log.begun.append(item)
    log.overlaps += item % KEYS in log.running
    log.running.add(item % KEYS)
    try:
        return await perform(plan.acts[item][stage], plan.delays[item][stage], item)
    finally:
        log.running.discard(item % KEYS)


async def perform(what: str, delay: float, item: int) -> Any:
    await asyncio.sleep(delay)
    if what == "fail":
        raise ValueError(item)
    if what == "cancel":
        raise asyncio.CancelledError
    if what == "hang":
        await asyncio.sleep(1_000)
    if what == "swallow":
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            await asyncio.sleep(delay)
    return SKIP if what == "skip" else item


def async_stage(plan: Plan, log: Log, number: int) -> Stage:
    async def fn(item: int) -> Any:
        return await act(plan, log, number, item)

    return Stage(fn, plan.workers[number], TIMEOUT)


async def run_async(plan: Plan) -> None:
    log, ended, broke = Log(), [], False
    stages = [async_stage(plan, log, number) for number in range(len(plan.workers))]
    results = async_pipeline(source(plan, log), stages, window=plan.window, key=key_of(plan))
    async with results:
        try:
            while plan.leave_after is None or len(ended) < plan.leave_after:
                ended.append(await anext(results))
                log.emitted += 1
        except StopAsyncIteration:
            assert not plan.source_breaks
        except OSError:
            broke = True
    seen = results.diagnostics()
    assert plan.window is None or seen.peak <= plan.window
    assert len(asyncio.all_tasks()) == 1
    at_the_end = plan.leave_after == len(plan.acts)
    check(
        plan,
        log,
        [envelope.kind for envelope in ended],
        [envelope.seq for envelope in ended],
        broke=broke or (at_the_end and plan.source_breaks),
    )


@settings(max_examples=200, deadline=None)
@given(plans(["value", "value", "skip", "fail", "cancel", "hang", "swallow"]))
def test_tasks_end_every_item_exactly_once_in_order(plan: Plan) -> None:
    run_in_virtual_time(run_async(plan))


@settings(max_examples=60, deadline=None)
@given(plans(["value", "hang"]), st.floats(0.0, 30.0))
def test_a_cancelled_consumer_leaves_no_task(plan: Plan, when: float) -> None:
    async def work() -> None:
        consumer = asyncio.create_task(run_async(plan))
        await asyncio.sleep(when)
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
        assert len(asyncio.all_tasks()) == 1

    # The task of `work` itself is one more than `run_async` counts, and it is not checked here.
    run_in_virtual_time(work())


def thread_stage(plan: Plan, log: Log, lock: threading.Lock, number: int) -> Stage:
    def fn(item: int) -> Any:
        with lock:
            if number == 0:
                log.begun.append(item)
            log.overlaps += item % KEYS in log.running
            log.running.add(item % KEYS)
        time.sleep(plan.delays[item][number] / 10_000)
        with lock:
            log.running.discard(item % KEYS)
        what = plan.acts[item][number]
        if what == "fail":
            raise ValueError(item)
        return SKIP if what == "skip" else item

    return Stage(fn, plan.workers[number])


@settings(max_examples=60, deadline=None)
@given(plans(["value", "value", "skip", "fail"]))
def test_threads_end_every_item_exactly_once_in_order(plan: Plan) -> None:
    log, lock, ended, broke = Log(), threading.Lock(), [], False
    stages = [thread_stage(plan, log, lock, number) for number in range(len(plan.workers))]
    before = set(threading.enumerate())
    results = thread_pipeline(
        source(plan, log), stages, window=plan.window, key=key_of(plan), clock=time.monotonic
    )
    with results:
        try:
            while plan.leave_after is None or len(ended) < plan.leave_after:
                ended.append(next(results))
                log.emitted += 1
        except StopIteration:
            assert not plan.source_breaks
        except OSError:
            broke = True
    assert set(threading.enumerate()) <= before
    assert plan.window is None or results.diagnostics().peak <= plan.window
    at_the_end = plan.leave_after == len(plan.acts)
    check(
        plan,
        log,
        [envelope.kind for envelope in ended],
        [envelope.seq for envelope in ended],
        broke=broke or (at_the_end and plan.source_breaks),
    )
