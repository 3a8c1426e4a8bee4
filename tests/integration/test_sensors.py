"""Sensors: late rows and corrected files lead to exactly the runs they need, once each."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from river import DAY_US, START_US, River

from orchestration.ranges import FIRST, LAST
from orchestration.sensors import changed_sources_sensor, late_rows_sensor
from orchestration.ticks import WHY
from transforms import schemas

HOUR_US = DAY_US // 24
DAYS = tuple(f"2024-01-0{day}" for day in range(1, 6))


def row(event_h: float, arrival_h: float, stage: float = 1.0) -> dict[str, object]:
    """A reading at hours since the start."""
    return {
        "station": "s0",
        "sampled": START_US + round(event_h * HOUR_US),
        "received": START_US + round(arrival_h * HOUR_US),
        "stage": stage,
        "rain": "0.00",
        "link": "fast",
        "firmware": "1.0",
    }


def punctual(days: int) -> list[dict[str, object]]:
    return [row(hour, hour + 0.1) for hour in range(24 * days)]


@dataclass
class Daemon:
    """The sensor daemon for one sensor: keeps its cursor, starts what it asks for, once a key."""

    river: River
    instance: dg.DagsterInstance
    sensor: dg.SensorDefinition
    resources: Sequence[str]
    cursor: str | None = None
    keys: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    said: str = ""

    def tick(self) -> SensorExecutionData:
        with dg.build_sensor_context(
            self.instance,
            cursor=self.cursor,
            resources={name: self.river.resources[name] for name in self.resources},
        ) as context:
            data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        for request in data.run_requests or ():
            assert request.run_key
            if request.run_key not in self.keys:
                self.keys.add(request.run_key)
                self.asked.append((request.tags[FIRST], request.tags[LAST]))
                self.said = request.tags[WHY]
        self.said = data.skip_message or self.said
        return data


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def river(tmp_path: Path) -> River:
    river = River(tmp_path)
    river.land_file(0, punctual(4))
    river.take_in(DAYS[:4])
    return river


@pytest.fixture
def late_rows(river: River, instance: dg.DagsterInstance) -> Daemon:
    return Daemon(river, instance, late_rows_sensor(river.spec), ["lake"])


@pytest.fixture
def changed_sources(river: River, instance: dg.DagsterInstance) -> Daemon:
    names = ["lake", "landing", "locks"]
    return Daemon(river, instance, changed_sources_sensor(river.spec), names)


def come_back(river: River, *events_h: float) -> None:
    """On the fifth day a device delivers old readings, after a new one."""
    river.land_file(1, [row(97, 97.1), *(row(h, 98 + n / 10) for n, h in enumerate(events_h))])
    river.take_in(DAYS[4:])


def test_nothing_late_asks_for_nothing_and_says_so(late_rows: Daemon) -> None:
    late_rows.tick()
    assert late_rows.asked == []
    assert late_rows.said == (
        "0 dead letters, +0 since the last look; "
        "they touch no event partition that is not reconciled"
    )
    late_rows.tick()
    assert late_rows.said == "nothing new: 0 dead letters, as before"


def test_late_rows_ask_for_exactly_the_event_partitions_they_touch(late_rows: Daemon) -> None:
    late_rows.tick()
    come_back(late_rows.river, 12.5, 84.5)
    late_rows.tick()
    # The local day of the second row began on the evening before, in UTC.
    assert late_rows.asked == [("2024-01-01", "2024-01-01"), ("2024-01-03", "2024-01-04")]
    assert late_rows.said == (
        "2 dead letters, +2 since the last look; they touch 3 event partitions: "
        "2024-01-01, 2024-01-03, 2024-01-04"
    )


def test_partitions_next_to_each_other_share_a_run(late_rows: Daemon) -> None:
    come_back(late_rows.river, 12.5, 36.5)
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-02")]


def test_what_was_asked_for_is_not_asked_for_again(late_rows: Daemon) -> None:
    come_back(late_rows.river, 12.5)
    late_rows.tick()
    assert not late_rows.tick().run_requests
    late_rows.river.amend()
    assert not late_rows.tick().run_requests
    assert late_rows.asked == [("2024-01-01", "2024-01-01")]


def test_a_tick_that_was_lost_asks_under_the_same_key(late_rows: Daemon) -> None:
    come_back(late_rows.river, 12.5)
    late_rows.tick()
    late_rows.cursor = None
    assert late_rows.tick().run_requests
    assert late_rows.asked == [("2024-01-01", "2024-01-01")]


def test_more_late_rows_of_the_same_partition_are_asked_for_anew(late_rows: Daemon) -> None:
    come_back(late_rows.river, 12.5)
    late_rows.tick()
    late_rows.river.amend()
    come_back(late_rows.river, 12.5, 13.5)
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-01")] * 2


def test_rows_that_a_correction_takes_back_are_reconciled_too(late_rows: Daemon) -> None:
    come_back(late_rows.river, 12.5)
    late_rows.tick()
    late_rows.river.amend()
    come_back(late_rows.river)
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-01")] * 2


def test_a_run_that_takes_rows_in_is_waited_for(
    late_rows: Daemon, instance: dg.DagsterInstance
) -> None:
    come_back(late_rows.river, 12.5)
    run = dg.DagsterRun("river_arrivals", status=dg.DagsterRunStatus.STARTED)
    instance.add_run(run)
    try:
        late_rows.tick()
    finally:
        instance.delete_run(run.run_id)
    assert late_rows.asked == []
    assert run.run_id in late_rows.said
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-01")]


def test_too_many_runs_are_asked_for_over_several_ticks(
    late_rows: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestration.sensors.RUNS_PER_TICK", 1)
    come_back(late_rows.river, 12.5, 84.5)
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-01")]
    late_rows.river.amend()
    late_rows.tick()
    assert late_rows.asked == [("2024-01-01", "2024-01-01")]


def test_files_as_staged_ask_for_nothing(changed_sources: Daemon) -> None:
    changed_sources.tick()
    assert changed_sources.asked == []
    assert changed_sources.said == "1 files, as they were staged"


def test_a_file_that_changed_asks_for_its_partition_and_those_after_it(
    changed_sources: Daemon,
) -> None:
    rows = punctual(4)
    rows[30]["stage"] = 5.0
    changed_sources.river.land_file(0, rows)
    changed_sources.tick()
    assert changed_sources.asked == [("2024-01-01", "2024-01-04")]
    assert "other files than there are now" in changed_sources.said
    changed_sources.tick()
    assert len(changed_sources.asked) == 1
    changed_sources.river.take_in(DAYS[:4])
    changed_sources.tick()
    assert changed_sources.said == "1 files, as they were staged"


def test_a_new_file_with_old_arrivals_asks_for_the_partition_they_belong_to(
    changed_sources: Daemon,
) -> None:
    changed_sources.river.land_file(1, [row(25, 26.5, 7.0)])
    changed_sources.tick()
    assert changed_sources.asked == [("2024-01-02", "2024-01-04")]


def test_a_new_file_of_a_partition_still_to_come_asks_for_nothing(changed_sources: Daemon) -> None:
    changed_sources.river.land_file(1, [row(120, 120.5)])
    changed_sources.tick()
    assert changed_sources.asked == []


def test_a_file_changed_back_is_asked_for_again(changed_sources: Daemon) -> None:
    other = punctual(4)
    other[0]["stage"] = 5.0
    for rows in (other, punctual(4), other):
        changed_sources.river.land_file(0, rows)
        changed_sources.tick()
        changed_sources.river.take_in(DAYS[:4])
    assert changed_sources.asked == [("2024-01-01", "2024-01-04")] * 3


def test_a_cursor_is_json_that_names_what_was_seen(late_rows: Daemon) -> None:
    late_rows.tick()
    assert late_rows.cursor
    seen = json.loads(late_rows.cursor)
    assert seen["windows"] == [late_rows.river.lake.version("river", schemas.WINDOW_AGGREGATES)]
