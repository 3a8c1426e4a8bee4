"""Batches are written side by side, and no two revisions of a window ever swap."""

import random
import threading
import time
from collections.abc import Iterable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.stores.tables import BATCH, LANDED, LANE, STAMPS
from assets.stores.targets.target import Published
from assets.stores.targets.writers import LANES, write
from transforms.errors import TargetError
from transforms.order_audit import audit_order
from transforms.publication import Batch, batches
from transforms.schemas import REVISION, WINDOW_IDENTITY

SCHEMA = pl.Schema(
    {
        **dict.fromkeys(("stream", "window", "key"), pl.String()),
        **dict.fromkeys(("window_start_us", "revision"), pl.Int64()),
    }
)


class SlowTarget:
    """Takes several batches at a time, each for a while of its own; notes the order of landing."""

    def __init__(self, seed: int, broken: str | None = None, longest_s: float = 0.002) -> None:
        self.random, self.lock = random.Random(seed), threading.Lock()  # noqa: S311
        self.broken, self.longest_s = broken, longest_s
        self.landed: list[tuple[str, int]] = []
        self.at_once, self.most_at_once = 0, 0

    def publish(self, _stream: str, revisions: pl.DataFrame) -> Published:
        with self.lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            service_s = self.random.random() * self.longest_s
        time.sleep(service_s)
        with self.lock:
            self.at_once -= 1
            if self.broken in revisions["key"]:
                raise TargetError("out of reach")
            self.landed += revisions.select("key", "revision").iter_rows()
        return Published(revisions.height, 0, 0)


def written(target: SlowTarget, work: Iterable[Batch]) -> pl.DataFrame:
    return write(work, lambda batch: target.publish("s", batch.revisions)).stamps


def frame(keys: list[int], seed: int) -> pl.DataFrame:
    """As many revisions of a window as its number stands in the list, all of them shuffled."""
    seen: dict[int, int] = {}
    rows = []
    for key in keys:
        seen[key] = seen.get(key, -1) + 1
        rows.append(("s", "w", f"k{key}", 0, seen[key]))
    random.Random(seed).shuffle(rows)  # noqa: S311
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@settings(max_examples=40)
@given(
    keys=st.lists(st.integers(0, 12), max_size=60),
    rows=st.integers(1, 9),
    lanes=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_no_revision_lands_after_a_newer_one_and_none_is_lost(
    keys: list[int], rows: int, lanes: int, seed: int
) -> None:
    revisions, target = frame(keys, seed), SlowTarget(seed)
    stamps = written(target, batches(revisions, lanes=lanes, rows=rows))
    landed = pl.DataFrame(
        target.landed, schema={"key": pl.String, "revision": pl.Int64}, orient="row"
    )
    assert audit_order(landed, key=["key"], order=["revision"]).same_key_inverted == 0
    assert sorted(target.landed) == sorted(revisions.select("key", "revision").iter_rows())
    assert sorted(stamps["key"]) == sorted(revisions["key"])


@settings(max_examples=40)
@given(keys=st.lists(st.integers(0, 12), min_size=1, max_size=60), seed=st.integers(0, 99))
def test_the_stamps_of_a_lane_and_of_a_window_rise(keys: list[int], seed: int) -> None:
    target = SlowTarget(seed)
    stamps = written(target, batches(frame(keys, seed), lanes=3, rows=2))
    of_batches = stamps.unique(BATCH).sort(BATCH)
    assert audit_order(of_batches, key=[LANE], order=STAMPS).same_key_inverted == 0
    of_windows = stamps.sort(*WINDOW_IDENTITY, REVISION)
    assert audit_order(of_windows, key=["key"], order=[LANDED]).same_key_inverted == 0


def test_lanes_are_written_at_the_same_time_by_a_target_that_can() -> None:
    target = SlowTarget(1, longest_s=0.05)
    stamps = written(target, batches(frame([*range(40)], 1), lanes=LANES, rows=2))
    assert target.most_at_once > 1
    by_batch = stamps.unique(BATCH).sort(BATCH)
    assert not by_batch[LANDED].is_sorted()  # it lands in another order, and no lane is out of it


def test_a_batch_that_fails_raises_and_what_landed_before_it_stays() -> None:
    revisions = frame([*range(40)], 1)
    work = list(batches(revisions, lanes=1, rows=5))
    broken = work[2].revisions["key"][0]
    target = SlowTarget(1, broken=broken)
    before = set(threading.enumerate())
    with pytest.raises(TargetError, match="out of reach"):
        written(target, work)
    assert set(threading.enumerate()) <= before
    landed = {key for key, _ in target.landed}
    assert landed >= set(work[0].revisions["key"]) | set(work[1].revisions["key"])
    assert broken not in landed
