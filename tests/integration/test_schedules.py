"""Schedules by the clock: what is due is asked for once, in order, whatever ticks there were."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest
from dagster._core.definitions.schedule_definition import ScheduleExecutionData
from dagster._utils.schedules import schedule_execution_time_iterator
from river import DAYS, River, arrivals

from assets.partitions import Axis
from assets.stores.lock import StreamLock
from orchestration.definitions import build_defs
from orchestration.ranges import FIRST, LAST
from orchestration.schedules import arrivals_cron, arrivals_schedule, reconciliation_schedule
from transforms.spec import StreamSpec, load_spec

LOG = arrivals(rows=60)
START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass
class Clock:
    """The daemon, as far as one schedule goes: ticks at given times; its runs are done at once."""

    river: River
    instance: dg.DagsterInstance
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def schedule(self) -> dg.ScheduleDefinition:
        return arrivals_schedule(self.river.spec)

    def tick(self, now: datetime, *, runs: bool = True) -> str | None:
        """Evaluate the schedule; returns why it asked for nothing."""
        with dg.build_schedule_context(
            self.instance,
            scheduled_execution_time=now,
            resources={n: self.river.resources[n] for n in ("lake", "landing", "locks")},
        ) as context:
            data = self.schedule.evaluate_tick(context)
        for request in data.run_requests or ():
            first, last = request.tags[FIRST], request.tags[LAST]
            self.asked.append((first, last))
            if runs:
                self.river.take_in(self.river.axis.between(first, last))
        return data.skip_message


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def clock(tmp_path: Path, instance: dg.DagsterInstance) -> Clock:
    river = River(tmp_path)
    river.land(LOG, 2)
    return Clock(river, instance)


def partitions(clock: Clock) -> list[str]:
    """All partitions asked for, in the order in which they were."""
    axis = clock.river.axis
    return [key for first, last in clock.asked for key in axis.between(first, last)]


def test_a_partition_is_asked_for_once_when_it_is_complete(clock: Clock) -> None:
    assert clock.tick(START + timedelta(hours=23)) == (
        "all partitions that are complete have been run"
    )
    assert clock.tick(START + timedelta(days=1)) is None
    assert clock.asked == [("2024-01-01", "2024-01-01")]
    assert clock.tick(START + timedelta(days=1, hours=1)) is not None
    assert clock.tick(START + timedelta(days=2)) is None
    assert partitions(clock) == ["2024-01-01", "2024-01-02"]


def test_what_was_missed_is_caught_up_in_order_in_one_run(clock: Clock) -> None:
    clock.tick(START + timedelta(days=3, hours=5))
    assert clock.asked == [("2024-01-01", "2024-01-03")]
    assert clock.tick(START + timedelta(days=3, hours=5)) is not None


@pytest.mark.parametrize("seed", range(3))
def test_whichever_ticks_are_missed_every_partition_is_run_once_and_in_order(
    clock: Clock, seed: int
) -> None:
    rnd = random.Random(seed)  # noqa: S311 (which ticks are missed is no secret)
    for hour in range(24 * (DAYS + 2)):
        if rnd.random() < 0.1:
            clock.tick(START + timedelta(hours=hour))
    clock.tick(START + timedelta(days=DAYS + 2))
    assert partitions(clock) == list(clock.river.axis.keys[: DAYS + 2])


def test_silence_after_the_last_row_is_run_until_nothing_is_left_to_close(clock: Clock) -> None:
    """The longest window is two days at the most, and idle timeout and grace are hours."""
    clock.tick(START + timedelta(days=400))
    [(first, last)] = clock.asked
    assert first == "2024-01-01"
    assert "2024-01-03" < last < "2024-01-10"
    assert clock.tick(START + timedelta(days=401)) is not None


def test_a_stream_without_rows_is_left_alone(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    clock = Clock(River(tmp_path), instance)
    assert clock.tick(START + timedelta(days=9)) is not None
    assert clock.asked == []


def test_a_failed_run_is_asked_for_again_by_the_next_tick(clock: Clock) -> None:
    clock.tick(START + timedelta(days=1), runs=False)
    clock.tick(START + timedelta(days=1, hours=1))
    assert clock.asked == [("2024-01-01", "2024-01-01")] * 2


def test_nothing_is_asked_for_while_a_run_is_under_way(
    clock: Clock, instance: dg.DagsterInstance
) -> None:
    run = dg.DagsterRun("river_arrivals", status=dg.DagsterRunStatus.STARTED)
    instance.add_run(run)
    try:
        assert run.run_id in str(clock.tick(START + timedelta(days=1)))
    finally:
        instance.delete_run(run.run_id)
    assert clock.asked == []


def test_nothing_is_asked_for_while_somebody_writes(clock: Clock) -> None:
    with StreamLock(clock.river.settings.locks, "river")._taken():
        assert "is being written by" in str(clock.tick(START + timedelta(days=1)))
    assert clock.asked == []


def test_a_backlog_too_large_to_be_read_in_passing_is_left_to_the_run(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assets.outlook.BYTES_IN_PASSING", 10)
    for hour in range(3):
        clock.tick(START + timedelta(days=3, hours=hour))
    assert clock.asked == [("2024-01-01", "2024-01-01"), ("2024-01-02", "2024-01-03")]


def test_every_schedule_is_visible_and_stopped(clock: Clock) -> None:
    defs = build_defs(clock.river.settings, specs={"river": clock.river.spec})
    schedules = list(defs.schedules or ())
    names = {schedule.name for schedule in schedules}
    assert names >= {"river_arrivals_when_complete", "river_events_by_the_clock"}
    assert {s.default_status for s in schedules} == {dg.DefaultScheduleStatus.STOPPED}


def test_reconciliation_by_the_clock_asks_for_what_waits(clock: Clock) -> None:
    river = clock.river
    river.take_in(river.keys)
    schedule = reconciliation_schedule(river.spec)

    def tick() -> ScheduleExecutionData:
        with dg.build_schedule_context(
            clock.instance, START, resources={"lake": river.resources["lake"]}
        ) as context:
            return schedule.evaluate_tick(context)

    assert tick().run_requests
    river.amend()
    assert tick().skip_message == "no event partition waits"


DST = """
name: gauges
source: {{kind: files, path: '*.ndjson', format: ndjson}}
columns:
  key: station
  event_time: {{column: sampled_at, unit: iso8601}}
  arrival_time: {{column: received_at, unit: iso8601}}
  values: {{level: float}}
arrival: {{grain: {grain}, start: 2024-01-01, zone: {zone}, settle: {settle}}}
profiles:
  default: {{grace: 10s, idle_timeout: 1d, capacity: 1000, future_skew: 1d}}
windows: [{{name: hour, every: 1h}}]
aggregates: {{level: [sum]}}
"""


def dst_spec(grain: str, zone: str, settle: str) -> StreamSpec:
    return load_spec(DST.format(grain=grain, zone=zone, settle=settle), file="dst.yaml")


def ticks(spec: StreamSpec, first: datetime, last: datetime) -> list[datetime]:
    """When Dagster's scheduler evaluates the schedule."""
    times = schedule_execution_time_iterator(
        first.timestamp(), arrivals_cron(spec), "UTC", ascending=True
    )
    return list(itertools.takewhile(lambda at: at <= last, times))


@pytest.mark.parametrize("settle", ["0s", "10m", "3h", "26h"])
@pytest.mark.parametrize("grain", ["15m", "hour", "day"])
@pytest.mark.parametrize(
    ("zone", "changes"),
    [
        ("Europe/Berlin", (date(2024, 3, 31), date(2024, 10, 27))),
        ("America/Havana", (date(2024, 3, 10), date(2024, 11, 3))),  # at midnight
        ("Australia/Lord_Howe", (date(2024, 4, 7), date(2024, 10, 6))),  # half an hour
    ],
)
def test_a_tick_comes_on_the_minute_a_partition_settles_when_clocks_change_too(
    zone: str, changes: tuple[date, ...], grain: str, settle: str
) -> None:
    spec = dst_spec(grain, zone, settle)
    axis = Axis.of_arrivals(spec)
    for change in changes:
        day = datetime.combine(change, time(), ZoneInfo(zone))
        first, last = day - timedelta(days=1), day + timedelta(days=3)
        at = {round(tick.timestamp() * 1_000_000) for tick in ticks(spec, first, last)}
        window = dg.TimeWindow(first - timedelta(days=2), last)
        keys = axis.definition.get_partition_keys_in_time_window(window)
        settled = [axis.bounds(key).end_us + spec.arrival.settle_us for key in keys]
        low, high = (round(end.timestamp() * 1_000_000) for end in (first, last))
        missing = [due for due in settled if low < due <= high and due not in at]
        assert settled
        assert missing == []
