"""Publishing to a real PostgreSQL that is killed, cut off, full, busy, or given poison.

Nothing is lost, nothing there twice, no older revision over a newer one.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import polars as pl
import pytest
from postgres_server import Server, connected, fresh_database, running_server
from publishing_desk import SCHEMA, SPEC, Moody, held, revisions, sink_of

from assets.stores.publishing.delivery import Retries
from assets.stores.publishing.row_sums import K_LANES, S_LANES, row_lanes, sums_of
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.writers import publish
from transforms.errors import TargetError
from transforms.parity.stream import published_contract
from transforms.publishing.ledger import Note
from transforms.schemas import EVENT_PARTITION, to_stored

ROWS = revisions(40, hours=10)
PATIENT = Retries(attempts=8, timeout_s=20, first_wait_s=0.01, longest_wait_s=0.2, jitter_s=0.01)
TAKEN = (
    "select coalesce(sum(n), 0)::bigint, count(distinct (publication, lo))"
    " - count(*) from gauges.publish_batches"
)


@pytest.fixture
def dsn(postgres: Server) -> str:
    return fresh_database(postgres)


@pytest.fixture
def admin(dsn: str) -> Iterator[Server]:
    """A database in which the stream is prepared, and somebody who may do anything there."""
    with PostgresTarget(dsn) as target:
        target.prepare("gauges", SCHEMA)
    with connected(dsn) as server:
        yield server


def as_published(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.drop(EVENT_PARTITION).sort("window", "key", "window_start_us")


def calls(at: dict[int, Callable[[], object]]) -> Callable[[pl.DataFrame, Note], None]:
    """Does something before publications of these numbers, from 1."""
    lock, number = threading.Lock(), [0]

    def mood(_rows: pl.DataFrame, _note: Note) -> None:
        with lock:
            number[0] += 1
            at.get(number[0], lambda: None)()

    return mood


def test_a_server_that_is_killed_and_comes_back_has_everything(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        dsn = fresh_database(server)
        target = PostgresTarget(dsn)
        sink = sink_of(Moody(target, calls({3: server.kill})), rows=40)
        pauses: list[float] = []

        def sleep(seconds: float) -> None:
            sink.sleep(seconds)
            pauses.append(seconds)
            if len(pauses) == 2:
                server.start()

        found = publish(replace(sink, sleep=sleep), SPEC, ROWS)
        assert found.figures.parked
        assert pauses[:2] == [30, 30]  # the first probe finds nobody
        assert held(target).equals(as_published(ROWS), null_equal=True)
        with connected(dsn) as again:
            assert again.execute(TAKEN) == [(ROWS.height, 0)]


def test_connections_that_are_cut_are_opened_anew(dsn: str, admin: Server) -> None:
    cut = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        " where application_name = 'lowwater' and datname = current_database()"
    )
    mood = calls({number: lambda: admin.execute(cut) for number in (2, 5, 9)})
    target = PostgresTarget(dsn)
    publish(sink_of(Moody(target, mood), rows=40, retries=PATIENT), SPEC, ROWS)
    assert held(target).equals(as_published(ROWS), null_equal=True)
    assert admin.execute(TAKEN) == [(ROWS.height, 0)]


@pytest.mark.parametrize(
    "state",
    [
        "53100",  # disk full
        "53200",  # out of memory
        "57014",  # statement timeout
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # lock not available
    ],
)
def test_what_passes_is_tried_again_and_nothing_is_a_dead_letter(
    dsn: str, admin: Server, state: str
) -> None:
    # A sequence is not rolled back: the first three attempts fail, whatever becomes of them.
    admin.execute(
        "create sequence attempts",
        "create function fail() returns trigger language plpgsql as $$ begin"
        f" if nextval('attempts') <= 3 then raise exception 'no' using errcode = '{state}'; end if;"
        " return null; end $$",
        "create trigger fail after insert on gauges.windows_current"
        " for each statement execute function fail()",
    )
    target = PostgresTarget(dsn)
    publish(sink_of(target, rows=100, retries=PATIENT), SPEC, ROWS)
    assert held(target).equals(as_published(ROWS), null_equal=True)
    assert admin.execute(TAKEN) == [(ROWS.height, 0)]
    assert admin.execute("select count(*) from gauges.publish_dead_letters") == [(0,)]


def test_a_statement_that_waits_too_long_is_given_up_and_tried_again(
    dsn: str, admin: Server
) -> None:
    def hold() -> None:
        admin.execute("begin", "lock table gauges.windows_current in access exclusive mode")

    mood = calls({1: hold, 3: lambda: admin.execute("commit")})
    target = PostgresTarget(dsn, statement_timeout_s=0.3)
    found = publish(sink_of(Moody(target, mood), retries=PATIENT), SPEC, revisions(5))
    assert found.figures.attempts > 1
    assert held(target).height == 5


def test_a_right_that_is_missing_stops_the_run_and_costs_no_row(dsn: str, admin: Server) -> None:
    admin.execute(
        "create role may_read_only login",
        "grant usage on schema gauges to may_read_only",
        "grant select on all tables in schema gauges to may_read_only",
    )
    limited = PostgresTarget(dsn.replace("postgres:@", "may_read_only:@"))
    with pytest.raises(TargetError, match="permission denied"):
        publish(sink_of(limited), SPEC, ROWS)
    assert admin.execute("select count(*) from gauges.publish_dead_letters") == [(0,)]
    admin.execute("drop owned by may_read_only", "drop role may_read_only")


def test_poison_in_a_batch_is_a_dead_letter_and_the_rest_is_committed(
    dsn: str, admin: Server
) -> None:
    poison = (
        ROWS.with_row_index()
        .with_columns(
            key=pl.when(pl.col("index") == 77).then(pl.lit("nul\0byte")).otherwise("key"),
            known_at_us=pl.when(pl.col("index") == 155).then(-(2**62)),
        )
        .drop("index")
    )
    target = PostgresTarget(dsn)
    found = publish(sink_of(target), SPEC, poison)
    assert found.figures.dead_lettered_rows == 2
    assert held(target).height == ROWS.height - 2
    dead = admin.execute("select reason, sqlstate from gauges.publish_dead_letters order by 1")
    assert dead == [("nul-byte", "22021"), ("out-of-range", "22008")]
    assert admin.execute(TAKEN) == [(ROWS.height, 0)]


def test_of_250_000_rows_each_is_in_one_state_by_number_and_by_digest(
    dsn: str, admin: Server
) -> None:
    places = [7, 47_110, 249_999]
    poisoned = pl.int_range(pl.len()).is_in(places)
    many = revisions(25_000, hours=10).with_columns(
        key=pl.when(poisoned).then(pl.format("{}\0", "key")).otherwise("key")
    )
    publish(sink_of(PostgresTarget(dsn), rows=20_000), SPEC, many)
    lanes = row_lanes(published_contract(SPEC), to_stored(many.drop(EVENT_PARTITION)))
    everything = sums_of(lanes)
    names = ("n", *S_LANES, *K_LANES)
    columns = ", ".join(f"sum({lane})::bigint" for lane in names)
    ledger = f"select {columns} from gauges.publish_batches"  # noqa: S608 (names of lanes)
    assert admin.execute(ledger) == [(everything.n, *everything.s, *everything.k)]
    states = "select state, sum(n)::bigint from gauges.publish_batches group by 1 order by 1"
    assert admin.execute(states) == [("committed", 249_997), ("dead-lettered", 3)]
    assert admin.execute("select count(*) from gauges.windows_current") == [(249_997,)]
    assert admin.execute("select count(*) from gauges.publish_dead_letters") == [(3,)]


def test_two_publishers_at_once_leave_the_newest_revision(dsn: str, admin: Server) -> None:
    older, newer = revisions(30, hours=8), revisions(30, hours=8, revision=1)
    errors: list[BaseException] = []

    def give(rows: pl.DataFrame) -> None:
        try:
            publish(sink_of(PostgresTarget(dsn), rows=40, retries=PATIENT), SPEC, rows)
        except BaseException as error:  # noqa: BLE001 (shown below)
            errors.append(error)

    threads = [threading.Thread(target=give, args=(rows,)) for rows in (newer, older, newer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert held(PostgresTarget(dsn)).equals(as_published(newer), null_equal=True)
    assert admin.execute("select count(*) from gauges.windows_revisions") == [(480,)]


PROGRAM: Final = """
import os, signal, sys
from publishing_desk import SPEC, Moody, revisions, sink_of
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.writers import publish
from test_publishing_postgres import ROWS, calls

def die():
    os.kill(os.getpid(), signal.SIGKILL)

point, before = int(sys.argv[2]), sys.argv[3] == "before"
quiet = lambda rows, note: None
deadly = calls({point: die})
target = Moody(PostgresTarget(sys.argv[1]), *((deadly, quiet) if before else (quiet, deadly)))
publish(sink_of(target, rows=40), SPEC, ROWS)
"""


def test_a_publisher_that_is_killed_anywhere_goes_on_where_it_was(dsn: str, admin: Server) -> None:
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(map(str, (tests.parent, tests, tests / "integration")))
    taken = [0]
    for point, when in ((2, "before"), (2, "after")):
        program = [sys.executable, "-c", PROGRAM, dsn, str(point), when]
        ended = subprocess.run(
            program, env={**os.environ, "PYTHONPATH": path}, check=False, capture_output=True
        )
        assert ended.returncode == -9, ended.stderr.decode()
        [(rows, doubled)] = admin.execute(TAKEN)
        assert not doubled
        taken.append(rows)
    assert taken == sorted(taken)
    assert 0 < taken[-1] < ROWS.height
    moody = Moody(PostgresTarget(dsn), lambda _rows, _note: None)
    publish(sink_of(moody, rows=64), SPEC, ROWS)
    assert sum(moody.asked) == ROWS.height - taken[-1]
    assert held(moody).equals(as_published(ROWS), null_equal=True)
    assert admin.execute(TAKEN) == [(ROWS.height, 0)]
