"""A job queue in SQLite with real worker threads: what concurrency does to order, and a key's cure.

24 jobs, three in a row to an entity; each order is stamped by a counter inside the transaction that
makes it true. A single run proves nothing about a race, so each configuration runs ten times; the
jobs take 3 to 23 ms. What a lock guarantees is asserted in every run; what races do, over all runs.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from transforms.order_audit import ColumnOrder, OrderAudit, audit_order
from transforms.resequence import ordered_map

JOBS = 24
REPEATS = 10
ORDERS = ("claimed_n", "begun_n", "landed_n")

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE job (id INTEGER PRIMARY KEY, entity TEXT, state TEXT DEFAULT 'pending',
                  claimed_n INTEGER, begun_n INTEGER, landed_n INTEGER);
CREATE TABLE counter (name TEXT PRIMARY KEY, n INTEGER DEFAULT 0);
INSERT INTO counter (name) VALUES ('claimed_n'), ('begun_n'), ('landed_n');
"""
FIRST_PENDING = "SELECT id FROM job WHERE state = 'pending' ORDER BY id LIMIT ?"
FIRST_PENDING_OF_A_FREE_ENTITY = """
SELECT id FROM job WHERE state = 'pending' AND entity NOT IN
    (SELECT entity FROM job WHERE state IN ('claimed_n', 'begun_n')) ORDER BY id LIMIT ?
"""


@dataclass(frozen=True)
class Setup:
    workers: int
    prefetch: int = 1
    keyed: bool = False
    per_entity: int = 3


CONTROL = Setup(workers=1)
UNKEYED = Setup(workers=4)
BY_FOURS = Setup(workers=4, prefetch=4)
KEYED = Setup(workers=4, keyed=True)


def seconds_of(job: int) -> float:
    """Work takes a time that depends on the job alone, so that two runs can be compared."""
    return (15 + (job * 37) % 5 * 25) / 5_000


@contextmanager
def transaction(queue: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    queue.execute("BEGIN IMMEDIATE")
    yield queue
    queue.execute("COMMIT")


def connect(path: Path) -> "closing[sqlite3.Connection]":
    queue = sqlite3.connect(path, isolation_level=None, timeout=30)
    queue.execute("PRAGMA synchronous = OFF")
    return closing(queue)


def stamp(queue: sqlite3.Connection, job: int, order: str) -> None:
    """Advance the counter of an order, give it to the job and make it the job's state."""
    queue.execute("UPDATE counter SET n = n + 1 WHERE name = ?", [order])
    (number,) = queue.execute("SELECT n FROM counter WHERE name = ?", [order]).fetchone()
    queue.execute(f"UPDATE job SET state = ?, {order} = ? WHERE id = ?", [order, number, job])  # noqa: S608


def claim(queue: sqlite3.Connection, setup: Setup) -> list[int]:
    query = FIRST_PENDING_OF_A_FREE_ENTITY if setup.keyed else FIRST_PENDING
    with transaction(queue):
        jobs = [job for (job,) in queue.execute(query, [setup.prefetch]).fetchall()]
        for job in jobs:
            stamp(queue, job, "claimed_n")
    return jobs


def is_drained(queue: sqlite3.Connection) -> bool:
    (pending,) = queue.execute("SELECT count(*) FROM job WHERE state = 'pending'").fetchone()
    return pending == 0


def serve(path: Path, setup: Setup) -> None:
    with connect(path) as queue:
        while (jobs := claim(queue, setup)) or not is_drained(queue):
            for job in jobs:
                with transaction(queue):
                    stamp(queue, job, "begun_n")
                time.sleep(seconds_of(job))
                with transaction(queue):
                    stamp(queue, job, "landed_n")
            if not jobs:
                time.sleep(0.001)


def run_once(setup: Setup, folder: Path) -> OrderAudit:
    path = folder / "queue.db"
    with connect(path) as queue:
        queue.executescript(SCHEMA)
        entities = [(f"e{number // setup.per_entity + 1}",) for number in range(JOBS)]
        queue.executemany("INSERT INTO job (entity) VALUES (?)", entities)
        workers = [threading.Thread(target=serve, args=(path, setup)) for _ in range(setup.workers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        rows = queue.execute(f"SELECT entity, {', '.join(ORDERS)} FROM job ORDER BY id").fetchall()  # noqa: S608
    frame = pl.DataFrame(rows, schema=["entity", *ORDERS], orient="row")
    return audit_order(frame, key=["entity"], order=ORDERS)


@cache
def ten_runs(setup: Setup) -> list[dict[str, ColumnOrder]]:
    audits = []
    for _ in range(REPEATS):
        with TemporaryDirectory() as folder:
            audits.append(run_once(setup, Path(folder)))
    return [{column.column: column for column in audit.columns} for audit in audits]


def overall(setup: Setup, order: str) -> list[int]:
    return [run[order].overall.inverted for run in ten_runs(setup)]


def same_key(setup: Setup, order: str) -> list[int]:
    return [run[order].same_key.inverted for run in ten_runs(setup)]


@pytest.mark.parametrize("order", ORDERS)
def test_one_worker_keeps_every_order(order: str) -> None:
    assert overall(CONTROL, order) == [0] * REPEATS


@pytest.mark.parametrize("setup", [CONTROL, UNKEYED, BY_FOURS], ids=repr)
def test_a_queue_hands_jobs_out_in_order_whatever_the_workers_do(setup: Setup) -> None:
    assert overall(setup, "claimed_n") == [0] * REPEATS


def test_jobs_handed_out_in_order_do_not_land_in_order() -> None:
    landed = overall(UNKEYED, "landed_n")
    assert sum(count > 0 for count in landed) > REPEATS / 2
    assert sum(same_key(UNKEYED, "landed_n")) > 0


def test_claiming_by_fours_begins_out_of_order_before_anything_has_landed() -> None:
    assert sum(overall(BY_FOURS, "begun_n")) > sum(overall(UNKEYED, "begun_n"))
    assert min(overall(BY_FOURS, "begun_n")) > 0


@pytest.mark.parametrize("order", ORDERS)
def test_a_keyed_claim_never_swaps_two_jobs_of_an_entity(order: str) -> None:
    assert same_key(KEYED, order) == [0] * REPEATS
    assert [run[order].same_key.pairs for run in ten_runs(KEYED)] == [24] * REPEATS


def test_a_keyed_claim_is_out_of_order_globally_and_right() -> None:
    """A global assertion would fail this system and may pass the one that swaps jobs."""
    assert sum(overall(KEYED, "claimed_n")) > sum(overall(UNKEYED, "claimed_n"))


def test_with_one_key_four_workers_are_one(tmp_path: Path) -> None:
    audit = run_once(Setup(workers=4, keyed=True, per_entity=JOBS), tmp_path)
    assert [column.overall.inverted for column in audit.columns] == [0, 0, 0]
    assert audit.skew.speed_up(workers=4) == 1.0


@pytest.mark.parametrize("keyed", [True, False])
def test_the_ordered_map_keeps_the_order_of_a_key_where_it_is_asked_to(keyed: bool) -> None:  # noqa: FBT001
    def work(job: int) -> None:
        time.sleep(seconds_of(job))

    def entity_of(job: int) -> int:
        return (job - 1) // 3

    swapped = []
    for _ in range(REPEATS):
        key = entity_of if keyed else None
        jobs = range(1, JOBS + 1)
        results = list(
            ordered_map(jobs, work, workers=4, window=JOBS, key=key, clock=time.monotonic)
        )
        assert [envelope.item for envelope in results] == list(jobs)
        rows = pl.DataFrame({"key": map(entity_of, jobs), "landed": [e.landed for e in results]})
        swapped.append(audit_order(rows, key=["key"], order=["landed"]).same_key_inverted)
    assert (sum(swapped) == 0) == keyed
