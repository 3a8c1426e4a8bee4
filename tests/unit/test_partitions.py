"""A partition is a range of instants: no instant is in two of them, and none in no one."""

from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from assets.partitions import Axis, Bounds
from transforms.spec import StreamSpec, load_spec

HOUR_US = 3_600_000_000

SPEC = """
name: river
source: {{kind: files, path: "*.ndjson", format: ndjson}}
columns:
  key: k
  event_time: {{column: t, unit: us}}
  arrival_time: {{column: a, unit: us}}
arrival: {{grain: {grain}, start: "{start}", zone: {zone}}}
events: {{grain: day, start: 2024-01-01}}
profiles: {{default: {{grace: 1m, idle_timeout: off, capacity: 9, future_skew: 1m}}}}
windows: [{{name: hour, every: 1h}}]
"""


def spec_of(grain: str = "day", start: str = "2024-01-01", zone: str = "UTC") -> StreamSpec:
    return load_spec(SPEC.format(grain=grain, start=start, zone=zone), file="river.yaml")


def axis_of(grain: str = "day", start: str = "2024-01-01", zone: str = "UTC") -> Axis:
    return Axis.of_arrivals(spec_of(grain, start, zone))


def us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("zone", "start", "grain"),
    [
        ("UTC", "2024-01-01", "day"),
        ("Europe/Berlin", "2024-01-01", "day"),
        ("Europe/Berlin", "2024-03-30", "hour"),
        ("Europe/Berlin", "2024-10-26", "15m"),
        ("America/New_York", "2024-11-02", "hour"),
        ("Asia/Kolkata", "2024-01-01", "hour"),
        ("Asia/Beirut", "2024-01-01", "day"),
    ],
)
def test_partitions_follow_one_another_without_gap(zone: str, start: str, grain: str) -> None:
    axis = axis_of(grain, start, zone)
    keys = axis.keys[:150]
    bounds = [axis.bounds(key) for key in keys]
    assert bounds[0].start_us == spec_of(grain, start, zone).arrival.start_us
    assert all(before.end_us == after.start_us for before, after in pairwise(bounds))
    assert [axis.key_of(bound.start_us) for bound in bounds] == list(keys)
    assert [axis.key_of(bound.end_us - 1) for bound in bounds] == list(keys)


def test_a_local_day_may_have_23_or_25_hours() -> None:
    axis = axis_of("day", "2024-03-01", "Europe/Berlin")
    lengths = {
        key: (axis.bounds(key).end_us - axis.bounds(key).start_us) // HOUR_US
        for key in ("2024-03-30", "2024-03-31", "2024-10-27")
    }
    assert lengths == {"2024-03-30": 24, "2024-03-31": 23, "2024-10-27": 25}


def test_the_hour_that_comes_twice_is_two_partitions() -> None:
    axis = axis_of("hour", "2024-10-27", "Europe/Berlin")
    assert axis.keys[2:4] == ("2024-10-27-02:00", "2024-10-27-02:00+0100")
    assert axis.bounds(axis.keys[2]) == Bounds(us("2024-10-27T00:00"), us("2024-10-27T01:00"))
    assert axis.bounds(axis.keys[3]) == Bounds(us("2024-10-27T01:00"), us("2024-10-27T02:00"))
    assert axis.in_order(reversed(axis.keys[:5])) == list(axis.keys[:5])


def test_what_is_before_the_first_partition_belongs_to_it() -> None:
    axis = axis_of()
    assert axis.key_of(us("1999-01-01T00:00")) == "2024-01-01"
    instants = np.array([us("1999-01-01T00:00"), us("2024-01-02T00:00"), us("2024-01-05T00:00")])
    assert axis.cut(axis.keys[:3], instants).tolist() == [0, 1, 3]


def test_what_is_before_a_later_range_is_not_in_it() -> None:
    axis = axis_of()
    instants = np.array([us("2023-12-31T00:00"), us("2024-01-02T00:00"), us("2024-01-03T00:00")])
    assert axis.cut(axis.keys[2:4], instants).tolist() == [-1, -1, 0]


def test_a_partition_knows_its_neighbours() -> None:
    axis = axis_of()
    assert axis.previous("2024-01-01") is None
    assert axis.previous("2024-03-01") == "2024-02-29"
    assert axis.up_to("2024-01-03") == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert axis.between("2024-01-02", "2024-01-03") == ("2024-01-02", "2024-01-03")


def test_event_partitions_are_there_while_they_are_under_way() -> None:
    axis = Axis.of_events(spec_of())
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    assert today in axis.keys
    instants = [us("2024-01-02T23:59"), us("2024-01-02T00:00"), us("2023-01-01T00:00")]
    assert axis.keys_of(instants) == ["2024-01-01", "2024-01-02"]
