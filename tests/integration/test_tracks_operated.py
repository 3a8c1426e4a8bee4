"""A stream with tracks is operated as one: one pool, one sensor that sees every track."""

import json
from collections.abc import Iterator

import dagster as dg
import pytest
from river import DAYS, SPEC, River, arrivals

from assets.freshness import closes_within_us
from assets.outlook import Outlook
from orchestration.alerts import alerts_sensor
from orchestration.definitions import build_defs
from orchestration.jobs import arrivals_job
from orchestration.maintenance import maintenance_job
from orchestration.sensors import Seen, late_rows_sensor
from transforms.durations import HOUR_US
from transforms.spec import StreamSpec, load_spec

TRACKS = ("river_fast", "river_authoritative")
PROFILES = """
profiles: {by: link}
tracks:
  fast: {default: {grace: 2m, idle_timeout: 5h, capacity: 3, future_skew: 5m}}
  authoritative: {default: {grace: 40m, idle_timeout: 9h, capacity: 50, future_skew: 5m}}
alerts: {dead_letter_fraction: 0}
windows:"""


class Tracked(River):
    """The river with two tracks."""

    @property
    def spec(self) -> StreamSpec:  # type: ignore[override]
        text = SPEC.format(grain="day", events="day", shards=1)
        before, rest = text.split("profiles:")
        text = before + PROFILES + rest.split("windows:")[1]
        self.settings.streams.mkdir(parents=True, exist_ok=True)
        (self.settings.streams / "river.yaml").write_text(text)
        return load_spec(text, file="river.yaml")


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory, instance: dg.DagsterInstance) -> River:
    """Two days of both tracks taken in, nothing reconciled."""
    river = Tracked(tmp_path_factory.mktemp("tracked"))
    river.land(arrivals(rows=80))
    river.jobs(instance).run(arrivals_job("river"), river.keys[:DAYS])
    return river


def test_all_tracks_are_in_the_pool_of_the_stream(river: River) -> None:
    graph = build_defs(river.settings, specs={"river": river.spec}).resolve_asset_graph()
    pools = {node.assets_def.op.pool for node in graph.asset_nodes if node.is_executable}
    assert pools == {"river"}


def test_late_rows_of_any_track_ask_for_one_run_over_all(
    river: River, instance: dg.DagsterInstance
) -> None:
    with dg.build_sensor_context(instance, resources={"lake": river.lake}) as context:
        tick = late_rows_sensor(river.spec).evaluate_tick(context)
    assert tick.cursor
    assert tick.run_requests
    assert {request.job_name for request in tick.run_requests} == {"river_events"}
    seen = json.loads(tick.cursor)
    assert len(seen["dead_letters"]) == len(seen["windows"]) == len(TRACKS)
    assert Seen.read(tick.cursor) == Seen.now(river.lake, river.spec)


def test_every_track_has_its_own_level_of_dead_letters(
    river: River, instance: dg.DagsterInstance
) -> None:
    with dg.build_sensor_context(instance, resources={"lake": river.lake}) as context:
        tick = alerts_sensor([river.spec], []).evaluate_tick(context)
    for track in TRACKS:
        assert f"{track} 2024-01-02: " in str(tick.skip_message)
        assert f"See lowwater dead-letters {track}" in str(tick.skip_message)


def test_a_partition_is_due_until_every_track_has_it(river: River) -> None:
    resources = river.resources
    outlook = Outlook.of(river.spec, river.lake, resources["landing"], resources["locks"])
    now_us = river.axis.bounds(river.keys[DAYS - 1]).end_us
    assert outlook.due(now_us) is None
    numbers = {**river.spec.tracks, "third": river.spec.tracks["fast"]}
    spec = river.spec.model_copy(update={"tracks": numbers})
    due = Outlook(spec, river.lake, river.axis, outlook.files).due(now_us)
    assert due
    assert (due.first, due.last) == (river.keys[0], river.keys[DAYS - 1])


def test_silence_is_run_as_long_as_the_most_patient_track_needs(river: River) -> None:
    of_tracks = [closes_within_us(part) for part in river.spec.computed]
    assert closes_within_us(river.spec) == max(of_tracks) > min(of_tracks) + 4 * HOUR_US - 1


def test_every_track_is_maintained_and_compared_by_the_clock(river: River) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec})
    assert defs.resolve_job_def(maintenance_job("river"))
    names = {schedule.name for schedule in defs.schedules or ()}
    assert "river_tracks_by_the_clock" in names
    assert not any(name.startswith(TRACKS) for name in names)
