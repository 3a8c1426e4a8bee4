"""The order audit of a million rows, against `np.sort` of the same array and a Fenwick tree.

    python -m benchmarks.order_audit

Medians of several rounds, taken in turns so that a busy machine slows all alike; the tree, which
takes seconds, runs once. A ratio counts, not a time: how many sorts of the same array it costs.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.machine import facts
from benchmarks.measure import run_apart
from transforms.order_audit import KeyGroups, audit_order
from transforms.ordering.inversions import Ints, inverted_pairs, stable_order

ROWS = 1_000_000
KEYS = 10_000
ROUNDS = 7


def shuffled(seed: int = 1) -> tuple[Ints, Ints]:
    """Values in no order at all, the hardest case, and a key for each."""
    random = np.random.default_rng(seed)
    return random.integers(0, 10**12, ROWS), random.integers(0, KEYS, ROWS)


def globally(values: Ints) -> int:
    """Count the inverted pairs of the whole array."""
    return inverted_pairs(stable_order(values))


def per_key(values: Ints, codes: Ints) -> int:
    """Count those of one key, for each key."""
    return int(KeyGroups.of(values, stable_order(values), codes).inverted.sum())


def fenwick(values: Ints) -> int:
    """Count with a binary indexed tree in plain Python."""
    ranks = (np.argsort(np.argsort(values, kind="stable"), kind="stable") + 1).tolist()
    tree = [0] * (len(ranks) + 1)
    inverted = 0
    for seen, rank in enumerate(ranks):
        not_greater, place = 0, rank
        while place:
            not_greater += tree[place]
            place &= place - 1
        inverted += seen - not_greater
        place = rank
        while place < len(tree):
            tree[place] += 1
            place += place & -place
    return inverted


def as_frame(values: Ints, codes: Ints) -> pl.DataFrame:
    """Make rows with a text key, as a log has them."""
    key = pl.Series(codes).cast(pl.String) + "-sensor"
    return pl.DataFrame({"key": key, "landed": values})


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def medians(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time each in turn, round after round."""
    rounds = [{name: seconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
    return {name: statistics.median(times[name] for times in rounds) for name in works}


def audit_alone() -> None:
    """Run one whole audit, for the measurement of its memory; prints seconds as JSON."""
    frame = as_frame(*shuffled())
    print(json.dumps({"audit": seconds(lambda: audit_order(frame, key=["key"], order=["landed"]))}))


def rows_alone() -> None:
    """Make the rows and nothing else, the floor of that memory."""
    print(json.dumps({"rows": seconds(lambda: as_frame(*shuffled()))}))


def measure() -> None:
    """Print the table."""
    values, codes = shuffled()
    frame = as_frame(values, codes)
    times = medians(
        {
            "np.sort of the array": lambda: np.sort(values),
            "inverted pairs, globally": lambda: globally(values),
            "inverted pairs, per key": lambda: per_key(values, codes),
            "whole audit, text keys": lambda: audit_order(frame, key=["key"], order=["landed"]),
        }
    )
    counts: list[int] = []
    times["Fenwick tree in Python"] = seconds(lambda: counts.append(fenwick(values)))
    if counts != [globally(values)]:
        sys.exit("the tree counts otherwise")
    print(f"{ROWS:,} rows, {KEYS:,} keys; {facts()}\n")
    print("| what | ms | x np.sort |\n|---|---:|---:|")
    for name, took in times.items():
        print(f"| {name} | {took * 1e3:,.0f} | {took / times['np.sort of the array']:,.1f} |")
    whole, floor = (run_apart("benchmarks.order_audit", part).peak_mib for part in ALONE)
    print(f"\nPeak memory of a process that audits: {whole:.0f} MiB, of which rows and imports")
    print(f"take {floor:.0f} MiB.")


ALONE = {"audit": audit_alone, "rows": rows_alone}

if __name__ == "__main__":
    ALONE.get(sys.argv[-1], measure)()
