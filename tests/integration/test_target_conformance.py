"""What every target must do, against the interface alone; a new kind joins ``open_target``."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres_server import fresh_database

from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.target import Published, Starts, Target
from transforms.errors import TargetError
from transforms.publishing.ledger import Covered, DeadLetter, Entry, Note, Publication, State, Sums
from transforms.resequence import ordered_map

STREAM = "gauges"
SCHEMA = pl.Schema(
    {
        "stream": pl.String(),
        "window": pl.String(),
        "key": pl.String(),
        "window_start_us": pl.Int64(),
        "window_end_us": pl.Int64(),
        "event_count": pl.Int64(),
        "level_count": pl.Int64(),
        "level_sum": pl.Float64(),
        "paid_sum": pl.Decimal(38, 4),
        "revision": pl.Int64(),
        "reason": pl.String(),
        "known_at_us": pl.Int64(),
        "published_at_us": pl.Int64(),
        "run_id": pl.String(),
    }
)
MINUTE = 60_000_000
FRESH = count()
OpenTarget = Callable[[], Target]


@pytest.fixture(params=["duckdb", "postgres"])
def open_target(request: pytest.FixtureRequest, tmp_path: Path) -> OpenTarget:
    """Opens the same target each time it is called, empty at the start of a test."""
    if request.param == "duckdb":
        return lambda: DuckDBTarget(tmp_path / "target.duckdb")
    dsn = fresh_database(request.getfixturevalue("postgres"))
    return lambda: PostgresTarget(dsn)


@pytest.fixture
def target(open_target: OpenTarget) -> Iterator[Target]:
    with open_target() as opened:
        opened.prepare(STREAM, SCHEMA)
        yield opened


def revision(number: int, *, key: str = "a", start: int = 0, **columns: Any) -> dict[str, Any]:
    return {
        "stream": STREAM,
        "window": "minute",
        "key": key,
        "window_start_us": start,
        "window_end_us": start + MINUTE,
        "event_count": 3,
        "level_count": 3,
        "level_sum": 1.5 + number,
        "paid_sum": None,
        "revision": number,
        "reason": "closed" if number == 0 else "late_rows",
        "known_at_us": 7,
        "published_at_us": 1_000 + number,
        "run_id": f"run-{number}",
    } | columns


def frame(*rows: dict[str, Any], schema: pl.Schema = SCHEMA) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=schema)


def test_what_is_published_is_read_back_as_it_was(target: Target) -> None:
    rows = frame(
        revision(0, key="a", start=-MINUTE, paid_sum="12345678901234567890.1234"),
        revision(0, key="b", level_sum=0.1 + 0.2, known_at_us=None),
    )
    assert target.publish(STREAM, rows) == Published(inserted=2, amended=0, unchanged=0)
    assert target.current(STREAM).equals(rows, null_equal=True)
    assert target.revisions(STREAM).equals(rows, null_equal=True)


def test_the_windows_that_start_in_a_range_are_read_alone(target: Target) -> None:
    starts = (-MINUTE, 0, MINUTE, 2 * MINUTE)
    target.publish(STREAM, frame(*(revision(0, start=start) for start in starts)))

    def read(first_us: int | None, until_us: int | None) -> list[int]:
        found = target.current(STREAM, Starts(first_us, until_us))
        return found["window_start_us"].to_list()

    assert read(0, 2 * MINUTE) == [0, MINUTE]
    assert read(None, 0) == [-MINUTE]
    assert read(MINUTE, None) == [MINUTE, 2 * MINUTE]


def test_a_newer_revision_becomes_current_and_the_older_one_is_kept(target: Target) -> None:
    target.publish(STREAM, frame(revision(0)))
    assert target.publish(STREAM, frame(revision(1))) == Published(0, 1, 0)
    assert target.current(STREAM).equals(frame(revision(1)))
    assert target.revisions(STREAM).equals(frame(revision(0), revision(1)))


def test_an_older_revision_never_becomes_current_again(target: Target) -> None:
    target.publish(STREAM, frame(revision(2)))
    assert target.publish(STREAM, frame(revision(1))) == Published(0, 0, 1)
    assert target.current(STREAM)["revision"].to_list() == [2]
    assert target.revisions(STREAM)["revision"].to_list() == [1, 2]


def test_the_same_publication_again_changes_nothing(target: Target) -> None:
    target.publish(STREAM, frame(revision(0)))
    again = frame(revision(0, published_at_us=9_999, run_id="again"))
    assert target.publish(STREAM, again) == Published(0, 0, 1)
    assert target.current(STREAM).equals(frame(revision(0)))
    assert target.revisions(STREAM).equals(frame(revision(0)))


def test_several_revisions_of_a_window_may_come_at_once(target: Target) -> None:
    target.publish(STREAM, frame(revision(1), revision(0)))
    assert target.current(STREAM)["revision"].to_list() == [1]
    assert target.revisions(STREAM)["revision"].to_list() == [0, 1]


def test_nothing_to_publish_is_no_error(target: Target) -> None:
    assert target.publish(STREAM, frame()) == Published(0, 0, 0)


def test_a_tombstone_is_kept_and_guards_but_nobody_reads_it(target: Target) -> None:
    target.publish(STREAM, frame(revision(0), revision(1, event_count=0, level_sum=None)))
    assert target.publish(STREAM, frame(revision(0))) == Published(0, 0, 1)
    assert target.current(STREAM)["event_count"].to_list() == [0]
    assert target.as_of(STREAM, 1_001).is_empty()


def test_what_did_we_say_at_time_t_goes_by_the_time_of_publication(target: Target) -> None:
    target.publish(STREAM, frame(revision(0), revision(1), revision(0, key="b")))
    assert target.as_of(STREAM, 999).is_empty()
    assert target.as_of(STREAM, 1_000)["revision"].to_list() == [0, 0]
    assert target.as_of(STREAM, 1_001).rows_by_key("key", named=True)["a"][0]["revision"] == 1


def test_all_of_a_publication_or_nothing(target: Target) -> None:
    target.publish(STREAM, frame(revision(0)))
    broken = frame(revision(1), revision(0, key="b")).with_columns(
        level_count=pl.lit("many", pl.String())
    )
    with pytest.raises(TargetError):
        target.publish(STREAM, broken)
    assert target.revisions(STREAM).equals(frame(revision(0)))


def test_a_new_statistic_is_a_new_column_and_old_rows_have_none(target: Target) -> None:
    target.publish(STREAM, frame(revision(0)))
    wider = pl.Schema({**SCHEMA, "level_p95": pl.Float64()})
    target.prepare(STREAM, wider)
    target.publish(STREAM, frame(revision(0, key="b", level_p95=2.5), schema=wider))
    assert target.current(STREAM)["level_p95"].to_list() == [None, 2.5]
    assert target.as_of(STREAM, 1_000)["level_p95"].to_list() == [None, 2.5]


def test_a_statistic_no_longer_declared_does_not_outlive_its_revision(target: Target) -> None:
    target.publish(STREAM, frame(revision(0)))
    narrower = pl.Schema({name: kind for name, kind in SCHEMA.items() if name != "level_sum"})
    target.prepare(STREAM, narrower)
    target.publish(STREAM, frame(revision(1), schema=SCHEMA).drop("level_sum"))
    assert target.current(STREAM)["level_sum"].to_list() == [None]
    assert target.revisions(STREAM)["level_sum"].to_list() == [1.5, None]


def test_a_column_of_another_type_is_refused_by_name(target: Target) -> None:
    other = pl.Schema({**SCHEMA, "level_sum": pl.Int64()})
    with pytest.raises(TargetError, match="column level_sum of stream gauges"):
        target.prepare(STREAM, other)


def test_prepare_keeps_what_is_there(open_target: OpenTarget) -> None:
    for _ in range(2):
        with open_target() as target:
            target.prepare(STREAM, SCHEMA)
            target.publish(STREAM, frame(revision(0)))
            assert target.current(STREAM).height == 1


@pytest.mark.parametrize(
    "name", ['a"b', "x; drop schema gauges", "../up", "main", "Ünïcode", "select"]
)
def test_a_hostile_stream_name_is_a_name(target: Target, name: str) -> None:
    target.publish(STREAM, frame(revision(0)))
    target.prepare(name, SCHEMA)
    target.publish(name, frame(revision(0, key="b", stream=name)))
    assert target.current(name)["key"].to_list() == ["b"]
    assert target.current(STREAM)["key"].to_list() == ["a"]


def test_a_hostile_value_name_and_key_are_text(target: Target) -> None:
    hostile = 'l"; drop table x; --'
    wider = pl.Schema({**SCHEMA, hostile: pl.Float64()})
    target.prepare(STREAM, wider)
    target.publish(STREAM, frame(revision(0, key="'; --", **{hostile: 1.0}), schema=wider))
    assert target.current(STREAM)[hostile].to_list() == [1.0]
    assert target.as_of(STREAM, 1_000)["key"].to_list() == ["'; --"]


def entry(lo: int, hi: int, *, partition: str = "2024-01-01") -> Entry:
    return Entry(Publication("fp", partition, Sums(9)), lo, hi, Sums(hi - lo, (1, 2, 3, 4)))


def test_the_ledger_is_written_with_the_rows_and_says_what_was_taken(target: Target) -> None:
    taken = entry(0, 1)
    target.publish(STREAM, frame(revision(0)), Note((taken,)))
    name = taken.publication.name
    assert target.covered(STREAM, [name, "another"]) == [Covered(name, 0, 1, State.COMMITTED)]
    target.publish(STREAM, frame(revision(0)), Note((taken,)))
    assert len(target.covered(STREAM, [name])) == 1


def test_the_number_of_an_event_partition_is_raised_when_its_rows_change(target: Target) -> None:
    assert target.numbers(STREAM) == {}
    target.publish(STREAM, frame(revision(0)), Note((entry(0, 1),)))
    target.publish(STREAM, frame(revision(0)), Note((entry(0, 1),)))
    other = entry(0, 1, partition="2024-01-02")
    target.publish(STREAM, frame(revision(1)), Note((entry(1, 2), other)))
    assert target.numbers(STREAM) == {"2024-01-01": 2, "2024-01-02": 1}


def test_a_publication_that_fails_leaves_nothing_in_the_ledger(target: Target) -> None:
    broken = frame(revision(0)).with_columns(level_count=pl.lit("many", pl.String()))
    with pytest.raises(TargetError):
        target.publish(STREAM, broken, Note((entry(0, 1),)))
    assert target.covered(STREAM, [entry(0, 1).publication.name]) == []
    assert target.numbers(STREAM) == {}


def test_rows_that_cannot_be_held_are_kept_beside_the_others(target: Target) -> None:
    refused = entry(1, 2)
    dead = DeadLetter(refused.publication, 1, "nul-byte", "22021", "a\0b", b"\x00\x01")
    note = Note((entry(0, 1), replace(refused, state=State.DEAD_LETTERED)), (dead,))
    target.publish(STREAM, frame(revision(0)), note)
    covered = target.covered(STREAM, [refused.publication.name])
    assert sorted(covered)[1] == Covered(refused.publication.name, 1, 2, State.DEAD_LETTERED)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(numbers=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=5))
def test_whatever_the_order_of_writers_the_newest_revision_is_current(
    open_target: OpenTarget, numbers: list[list[int]]
) -> None:
    stream = f"stream_{next(FRESH)}"
    with open_target() as target:
        target.prepare(stream, SCHEMA)
        seen: set[int] = set()
        for batch in numbers:
            target.publish(stream, frame(*(revision(n, stream=stream) for n in batch)))
            seen.update(batch)
            assert target.current(stream)["revision"].to_list() == sorted(seen)[-1:]
        assert target.revisions(stream)["revision"].to_list() == sorted(seen)


def test_several_threads_may_publish_at_once_each_its_own_windows(target: Target) -> None:
    batches = [
        frame(*(revision(number, key=f"k{key}", start=start) for start in range(20)))
        for number in range(3)
        for key in range(6)
    ]
    with ordered_map(
        batches,
        lambda batch: target.publish(STREAM, batch),
        workers=4,
        window=8,
        clock=time.monotonic,
        key=lambda batch: batch["key"][0],
    ) as results:
        told = [envelope.unwrap() for envelope in results]
    assert told == [Published(20, 0, 0)] * 6 + [Published(0, 20, 0)] * 12
    assert target.current(STREAM)["revision"].to_list() == [2] * 120
    assert target.revisions(STREAM).height == 360
