"""What becomes of batches when a target is down, slow, or cannot hold a row; on DuckDB."""

import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import duckdb
import polars as pl
import pytest
from publishing_desk import FAST, SCHEMA, SPEC, Fixed, Moody, held, revisions, sink_of

from assets.stores.publishing.delivery import Sink, UnbalancedError
from assets.stores.publishing.offers import Offer
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.targets.faults import (
    TargetContentionError,
    TargetDataError,
    TargetOutageError,
)
from assets.stores.targets.writers import LANES, QUEUE, publish
from transforms.errors import TargetError
from transforms.parity.canonical import frame
from transforms.parity.stream import published_contract
from transforms.publishing.breaker import BreakerState
from transforms.publishing.ledger import Note
from transforms.schemas import EVENT_PARTITION

ROWS = revisions(40, hours=30)  # 1,200 windows on two days


@pytest.fixture
def target(tmp_path: Path) -> DuckDBTarget:
    return DuckDBTarget(tmp_path / "published.duckdb")


def calm(_rows: pl.DataFrame, _note: Note) -> None:
    """Nothing goes wrong."""


def as_published(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.drop(EVENT_PARTITION).sort("window", "key", "window_start_us")


def asked(target: DuckDBTarget, query: str) -> list[tuple]:
    with duckdb.connect(str(target.path)) as connection:
        return connection.execute(query).fetchall()


def test_everything_is_published_and_the_ledger_adds_up(target: DuckDBTarget) -> None:
    found = publish(sink_of(target, rows=100), SPEC, ROWS)
    assert held(target).equals(as_published(ROWS), null_equal=True)
    assert found.figures.batches == found.figures.committed >= 12
    assert found.stamps.height == ROWS.height
    by_day = asked(
        target, "select partition, sum(n) from gauges.publish_batches group by all order by 1"
    )
    assert by_day == [("2024-01-01", 960), ("2024-01-02", 240)]


def test_what_the_ledger_knows_is_not_offered_again(target: DuckDBTarget) -> None:
    publish(sink_of(target), SPEC, ROWS)
    moody = Moody(target, calm)
    again = publish(sink_of(moody), SPEC, ROWS)
    assert moody.asked == []
    assert again.figures.known_rows == ROWS.height


def test_a_run_that_was_killed_goes_on_with_the_rows_that_are_missing(target: DuckDBTarget) -> None:
    calls = count()

    def killed(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(sink_of(Moody(target, killed), rows=100), SPEC, ROWS)
    done = asked(target, "select sum(n) from gauges.publish_batches")[0][0]
    moody = Moody(target, calm)
    publish(sink_of(moody, rows=64), SPEC, ROWS)  # other batches than before
    assert sum(moody.asked) == ROWS.height - done < ROWS.height
    assert held(target).equals(as_published(ROWS), null_equal=True)
    assert asked(target, "select sum(n) from gauges.publish_batches") == [(ROWS.height,)]


def test_an_outage_is_waited_for(target: DuckDBTarget) -> None:
    calls = count()

    def down(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) < 2:
            raise TargetOutageError("no answer")

    found = publish(sink_of(Moody(target, down)), SPEC, ROWS)
    assert found.figures.attempts == 3
    assert held(target).height == ROWS.height


def test_a_batch_that_outlasts_its_retries_is_parked_and_offered_again(
    target: DuckDBTarget,
) -> None:
    calls = count()

    def down(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) < 9:
            raise TargetOutageError("no answer")

    found = publish(sink_of(Moody(target, down), rows=100), SPEC, ROWS)
    assert found.figures.parked > 0
    assert found.stamps.height == ROWS.height
    assert held(target).equals(as_published(ROWS), null_equal=True)


def test_a_target_that_stays_down_ends_the_run_and_loses_nothing(target: DuckDBTarget) -> None:
    def down(_rows: pl.DataFrame, _note: Note) -> None:
        raise TargetOutageError("no answer")

    moody = Moody(target, down)
    sink = sink_of(moody, rows=20)
    with pytest.raises(TargetOutageError, match=r"1200 revisions .* kept in the lake"):
        publish(sink, SPEC, ROWS)
    assert len(moody.asked) < 30  # of 540 attempts the breaker spared the target most
    assert sink.breaker.state is BreakerState.OPEN
    assert asked(target, "select count(*) from gauges.publish_dead_letters") == [(0,)]
    publish(sink_of(target), SPEC, ROWS)
    assert held(target).equals(as_published(ROWS), null_equal=True)


def test_two_writers_in_each_others_way_try_again_and_do_not_open_the_breaker(
    target: DuckDBTarget,
) -> None:
    calls = count()

    def busy(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) % 2 == 0:
            raise TargetContentionError("deadlock")

    sink = sink_of(Moody(target, busy), rows=100)
    publish(sink, SPEC, ROWS)
    assert sink.breaker.state is BreakerState.CLOSED
    assert held(target).height == ROWS.height


def test_an_answer_that_was_lost_is_looked_up_and_not_given_twice(target: DuckDBTarget) -> None:
    calls = count()

    def lost(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) == 0:
            raise TargetOutageError("connection lost after the commit")

    moody = Moody(target, calm, after=lost)
    found = publish(sink_of(moody), SPEC, ROWS)
    assert sum(moody.asked) == ROWS.height
    assert found.figures.attempts == 2
    assert asked(target, "select sum(n) from gauges.publish_batches") == [(ROWS.height,)]


def test_rows_that_cannot_be_held_are_isolated_and_the_others_are_published(
    target: DuckDBTarget,
) -> None:
    poison = {"k7", "k23"}

    def picky(rows: pl.DataFrame, _note: Note) -> None:
        if not poison.isdisjoint(rows["key"]):
            raise TargetDataError(
                "a value is out of range", reason="out-of-range", sqlstate="22003"
            )

    found = publish(sink_of(Moody(target, picky)), SPEC, revisions(40))
    good = revisions(40).filter(~pl.col("key").is_in(poison))
    assert held(target).equals(as_published(good), null_equal=True)
    assert found.figures.dead_lettered_rows == 2
    assert found.figures.alerts()
    dead = asked(
        target,
        'select reason, sqlstate, "partition", frame from gauges.publish_dead_letters order by 4',
    )
    assert [row[:3] for row in dead] == [("out-of-range", "22003", "2024-01-01")] * 2
    contract = published_contract(SPEC)
    [row] = revisions(40).filter(pl.col("key") == "k7").iter_rows(named=True)
    values = [row.get(c.name, row.get(f"{c.name}_us")) for c in contract.proven]
    assert frame([c.kind for c in contract.proven], values) in {bytes(row[3]) for row in dead}


def test_the_states_of_the_ledger_account_for_every_row(target: DuckDBTarget) -> None:
    def picky(rows: pl.DataFrame, _note: Note) -> None:
        if "k7" in rows["key"]:
            raise TargetDataError("no")

    publish(sink_of(Moody(target, picky)), SPEC, revisions(40))
    states = asked(target, "select state, sum(n) from gauges.publish_batches group by 1 order by 1")
    assert states == [("committed", 39), ("dead-lettered", 1)]
    moody = Moody(target, picky)
    publish(sink_of(moody), SPEC, revisions(40))
    assert moody.asked == []  # a row that cannot be held is not tried again and again


def test_more_digits_than_the_column_has_are_a_dead_letter(target: DuckDBTarget) -> None:
    wider = revisions(4).with_columns(price_sum=pl.lit("1.00001").cast(pl.Decimal(38, 5)))
    with target:
        target.prepare("gauges", SCHEMA)
        with pytest.raises(TargetDataError) as refused:
            target.publish("gauges", wider.drop(EVENT_PARTITION))
    assert refused.value.reason == "scale"


def test_nanoseconds_are_a_dead_letter(target: DuckDBTarget) -> None:
    known = pl.lit(1_709_164_800_123_456_789).cast(pl.Datetime("ns", "UTC"))
    odd = revisions(3).with_columns(
        known_at_us=pl.when(pl.col("key") == "k1").then(known).otherwise(None)
    )
    found = publish(sink_of(target), SPEC, odd)
    assert found.figures.dead_lettered_rows == 1
    assert asked(target, "select reason from gauges.publish_dead_letters") == [("precision-loss",)]
    assert held(target)["key"].to_list() == ["k0", "k2"]


def test_any_other_mistake_stops_the_run(target: DuckDBTarget) -> None:
    def forbidden(_rows: pl.DataFrame, _note: Note) -> None:
        raise TargetError("permission denied")

    moody = Moody(target, forbidden)
    with pytest.raises(TargetError, match="permission denied"):
        publish(sink_of(moody), SPEC, revisions(4))
    assert moody.asked == [4]


def test_a_row_that_gets_lost_between_batches_stops_the_run(
    target: DuckDBTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaky(offer: Offer) -> tuple[Offer, Offer]:
        middle = offer.height // 2
        return Offer(offer.work, offer.rows[:middle]), Offer(offer.work, offer.rows[middle + 1 :])

    def picky(rows: pl.DataFrame, _note: Note) -> None:
        if rows.height > 3:
            raise TargetDataError("no")

    monkeypatch.setattr(Offer, "halves", leaky)
    with pytest.raises(UnbalancedError, match="8 rows"):
        publish(sink_of(Moody(target, picky)), SPEC, revisions(8))


def test_an_older_revision_that_comes_later_stays_in_the_past(target: DuckDBTarget) -> None:
    newer, older = revisions(10, revision=1), revisions(10, revision=0)
    publish(sink_of(target), SPEC, newer)
    publish(sink_of(target), SPEC, older)
    assert held(target)["revision"].unique().to_list() == [1]


def test_a_slow_target_stalls_the_reader(target: DuckDBTarget) -> None:
    def slow(_rows: pl.DataFrame, _note: Note) -> None:
        time.sleep(0.005)

    found = publish(sink_of(Moody(target, slow), rows=20), SPEC, ROWS)
    assert found.figures.batches >= 60
    assert found.figures.queue_depth <= LANES + QUEUE


def test_a_target_that_was_down_before_a_restart_is_asked_by_one_call_first(
    target: DuckDBTarget, tmp_path: Path
) -> None:
    file = tmp_path / "breakers" / "default"

    def restarted(mood: Moody) -> Sink:
        known = Sink.remembered(mood, file)
        return replace(known, size=Fixed(100), retries=FAST, sleep=lambda _seconds: None)

    def down(_rows: pl.DataFrame, _note: Note) -> None:
        raise TargetOutageError("no answer")

    with pytest.raises(TargetOutageError):
        publish(restarted(Moody(target, down)), SPEC, ROWS)
    assert file.exists()
    sink = restarted(Moody(target, calm))
    assert sink.breaker.state is BreakerState.HALF_OPEN
    publish(sink, SPEC, ROWS)
    assert sink.breaker.state is BreakerState.CLOSED
    assert not file.exists()
    assert restarted(Moody(target, calm)).breaker.state is BreakerState.CLOSED


def test_rows_that_are_behind_a_publication_are_told(target: DuckDBTarget) -> None:
    told: list[tuple[str, int, int]] = []
    sink = replace(sink_of(target, rows=100), told=lambda *said: told.append(said))
    publish(sink, SPEC, ROWS)
    assert told[0] == ("publishing", 0, 1200)
    assert told[-1] == ("publishing", 1200, 1200)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_no_rows_are_no_error(target: DuckDBTarget) -> None:
    assert publish(sink_of(target), SPEC, revisions(0)).figures.batches == 0
