"""The installation as people run it: webserver, daemon, code server, PostgreSQL, a browser.

Run by `make test-ui`. The tests follow one another on one installation, as days do: what takes time
is begun by one and looked at by a later one. Pictures are in `data/pictures`, or where
LOWWATER_PICTURES says; those of docs/operate.md are made here.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from chromium import picture
from dagster_server import LOCATION, REPOSITORY, Server, running, until
from river import DAY_US, START_US, River

from orchestration.ranges import FIRST, LAST
from orchestration.run import Runner
from orchestration.settings import Settings
from orchestration.specs import load_specs

pytestmark = [pytest.mark.ui, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

HOUR_US = DAY_US // 24
# From the start of the code server to the tick of the schedule, at the least.
STARTS_WITHIN_S = 110
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
UNDER_WAY = {"STARTING", "STARTED", "CANCELING"}
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
CHECK = "the_target_equals_the_lake_to_the_bit"


def row(event_h: float, arrival_h: float) -> dict[str, object]:
    return {
        "station": "s0",
        "sampled": START_US + round(event_h * HOUR_US),
        "received": START_US + round(arrival_h * HOUR_US),
        "stage": 1.0,
        "rain": "0.00",
        "link": "fast",
        "firmware": "1.0",
    }


def land(home: Path, stream: str, number: int, rows: list[dict[str, object]]) -> None:
    """Move a finished file into the landing folder of a stream."""
    folder = home / stream
    folder.mkdir(exist_ok=True)
    written = home / "written"
    written.write_text("".join(json.dumps(found) + "\n" for found in rows))
    written.rename(folder / f"{number}.ndjson")


def declare(home: Path, stream: str, *changes: tuple[str, str]) -> None:
    """Declare a stream like the river, with changes to the text of its spec."""
    text = River(home).spec and (home / "streams" / "river.yaml").read_text()
    for old, new in (("name: river", f"name: {stream}"), ("landing/", f"{stream}/"), *changes):
        text = text.replace(old, new, 1)
    (home / "streams" / f"{stream}.yaml").write_text(text)


def settles_in(seconds: int) -> str:
    """How long partitions take to settle, so that the schedule ticks in so many seconds or more."""
    minute = time.gmtime(time.time() + seconds + 60).tm_min % 15
    return f"start: 2024-01-01, settle: {minute}m}}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three streams: a mill and a creek by day, a brook by hour."""
    home = tmp_path_factory.mktemp("installation")
    declare(home, "creek", ("columns:", f"description: {json.dumps(HOSTILE)}\ncolumns:"))
    declare(home, "brook", ("grain: day", "grain: hour"))
    declare(home, "mill", ("start: 2024-01-01}", settles_in(STARTS_WITHIN_S)))
    (home / "streams" / "river.yaml").unlink()
    for stream in ("creek", "mill"):
        land(home, stream, 0, [row(hour, hour + 0.1) for hour in range(24 * 4)])
    land(home, "brook", 0, [row(hour / 2, hour / 2 + 0.1) for hour in range(48 * 16)])
    return home


@pytest.fixture(scope="module")
def server(home: Path, postgres: Any) -> Iterator[Server]:
    """The installation, with the creek taken in; somebody has changed a number in its target."""
    from postgres_server import fresh_database  # noqa: PLC0415

    def take_in() -> None:
        settings = Settings.from_environment()
        Runner.of(settings, load_specs(settings.streams).stream("creek")).run()
        with duckdb.connect(str(settings.target)) as target:
            target.execute(
                "update creek.windows_current set stage_mean = stage_mean + 1"
                " where \"window\" = 'hour' and window_start = '2024-01-03 05:00:00+00'"
            )

    with running(home, fresh_database(postgres), take_in) as server:
        yield server


@pytest.fixture
def tab(browser: Any, server: Server) -> Iterator[Any]:
    tab = browser.new_page(viewport={"width": 1280, "height": 800}, base_url=server.url)
    tab.set_default_timeout(60_000)
    yield tab
    tab.close()


def finished(server: Server, run_id: str) -> str:
    """Wait for a run; returns how it ended."""

    def ended() -> str | None:
        [status] = [run["status"] for run in server.runs() if run["runId"] == run_id]
        return status if status in ENDED else None

    return str(until(ended, f"run {run_id}"))


def tags_of(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["tags"]}


def switch_sensor(server: Server, name: str) -> None:
    query = "mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) { __typename } }"
    selector = {
        "repositoryLocationName": LOCATION,
        "repositoryName": REPOSITORY,
        "sensorName": name,
    }
    assert server.ask(query, s=selector)["startSensor"]["__typename"] == "Sensor"


def backfills(server: Server) -> list[dict[str, Any]]:
    query = "{ partitionBackfillsOrError { ... on PartitionBackfills { results { id status } } } }"
    found: list[dict[str, Any]] = server.ask(query)["partitionBackfillsOrError"]["results"]
    return found


def test_a_schedule_is_switched_on_in_the_ui(tab: Any) -> None:
    tab.goto("/locations/lowwater/schedules/mill_arrivals_when_complete")
    tab.locator("label:has(input[type=checkbox])").first.click()
    tab.get_by_text("Next tick").wait_for()
    picture(tab, "schedule")


def test_sensors_are_switched_on_and_late_data_lands(server: Server, home: Path) -> None:
    """And the proof of the target is run: its check turns red."""
    for name in ("creek_changed_sources", "creek_late_rows"):
        switch_sensor(server, name)
    land(home, "creek", 1, [row(95.5, 95.6), row(36.5, 95.7), row(37.5, 95.8)])
    server.launch("creek_parity", {FIRST: "2024-01-01", LAST: "2024-01-04"})


def test_the_asset_graph_loads(tab: Any) -> None:
    tab.goto("/locations/lowwater/asset-groups/creek/lineage")
    for asset in ("dead_letters", "amended_windows", "quality_report"):
        tab.get_by_text(asset).first.wait_for(state="attached")
    picture(tab, "graph")


def test_a_hostile_description_is_text_in_the_ui(tab: Any) -> None:
    tab.goto("/assets/creek/dead_letters")
    tab.get_by_text("<b>bold</b>").first.wait_for()
    assert tab.title() != "owned"


def test_a_report_opens_from_the_ui(tab: Any) -> None:
    tab.goto("/assets/creek/quality_report")
    link = tab.get_by_role("link", name="quality.html").first
    with tab.context.expect_page() as opened:
        link.click()
    page = opened.value
    page.get_by_text("creek").first.wait_for()
    assert page.url.endswith("/creek/quality.html")
    picture(page, "report")
    page.close()


def test_a_red_check_is_found_in_three_clicks(server: Server, tab: Any) -> None:
    [run, *_] = (run for run in server.runs("creek_parity") if FIRST in tags_of(run))
    assert finished(server, run["runId"]) == "FAILURE"
    tab.goto("/")
    tab.get_by_role("link", name="Runs").first.click()
    failed = tab.locator("[class*=RunsFeedRow_row]").filter(has_text="Failure").first
    failed.locator("a[href^='/runs/']").first.click()
    tab.get_by_role("link", name=CHECK).last.click()
    said = re.compile(r"2024-01-03: 1 violation of [\d,]+ looked at, worst: CHANGED stage_mean")
    tab.get_by_text(said).first.wait_for()
    tab.get_by_text("lowwater parity creek").first.wait_for()
    picture(tab, "red_check")


def test_a_check_is_told_of_each_partition_of_a_run_over_a_range(tab: Any) -> None:
    tab.goto(f"/assets/creek/target_parity?view=checks&checkDetail={CHECK}")
    tab.get_by_text("This is a").first.wait_for()
    tab.get_by_role("tab", name="Partitions").last.click()
    counts = tab.get_by_text(re.compile(r"^(Failed|Passed|Missing) \(\d+\)$"))
    counts.first.wait_for()
    assert {"Failed (1)", "Passed (3)"} <= set(counts.all_inner_texts())
    tab.get_by_text("2024-01-03").locator("visible=true").first.click()
    tab.get_by_text("lowwater parity creek").first.wait_for()
    picture(tab, "check_partitions")


def test_a_backfill_over_a_range_is_launched_from_the_ui(server: Server, tab: Any) -> None:
    tab.goto("/assets/creek/amended_windows?view=partitions")
    tab.get_by_role("button", name="Materialize").first.click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("Show all partitions").click()
    box = dialog.locator("input[type=text]").first
    box.fill("[2024-01-03...2024-01-04]")
    box.press("Enter")
    dialog.get_by_text("2 partitions", exact=True).wait_for()
    tab.wait_for_timeout(1_500)  # the options are fetched
    picture(tab, "backfill_range")
    dialog.get_by_role("button", name="Launch backfill").click()
    tab.get_by_text("Created backfill").wait_for()
    until(lambda: backfills(server), "the backfill")


def test_the_sensors_republish_what_came_late(server: Server, tab: Any, home: Path) -> None:
    [run] = until(lambda: server.runs("creek_events"), "the sensor of late rows")
    assert finished(server, run["runId"]) == "SUCCESS"
    tags = tags_of(run)
    # The local day of those rows began on the evening before, in UTC.
    assert (tags[FIRST], tags[LAST]) == ("2024-01-01", "2024-01-02")
    assert tags["lowwater/why"].startswith("2 dead letters, +2 since the last look")
    with duckdb.connect(str(home / "published.duckdb"), read_only=True) as target:
        query = "select count(*) from creek.windows_current where revision = 1 and reason = ?"
        assert target.execute(query, ["late_rows"]).fetchall()[0][0] > 0
    tab.goto("/locations/lowwater/sensors/creek_late_rows")
    tab.get_by_text("Next tick").wait_for()
    tab.get_by_text("1 run requested").first.wait_for()
    picture(tab, "late_rows")


def test_the_backfill_completes(server: Server, tab: Any) -> None:
    [backfill] = backfills(server)
    until(lambda: backfills(server)[0]["status"] == "COMPLETED_SUCCESS", "the end of the backfill")
    tab.goto(f"/runs/b/{backfill['id']}?tab=runs")
    tab.get_by_text("Success").first.wait_for()
    picture(tab, "backfill_done")


def test_runs_of_a_stream_wait_for_each_other_and_a_cancelled_one_frees_its_place(
    server: Server,
) -> None:
    tags = {FIRST: "2024-01-01-00:00", LAST: "2024-01-16-04:00"}
    first, second = (server.launch("brook_arrivals", tags) for _ in range(2))
    seen: set[tuple[str, ...]] = set()

    def statuses() -> dict[str, str]:
        found = {run["runId"]: run["status"] for run in server.runs("brook_arrivals")}
        seen.add(tuple(sorted(i for i, status in found.items() if status in UNDER_WAY)))
        return found

    until(lambda: statuses()[first] == "STARTED", "the first run")
    assert statuses()[second] == "QUEUED"
    terminate = "mutation($r: String!) { terminateRun(runId: $r) { __typename } }"
    assert server.ask(terminate, r=first)["terminateRun"]["__typename"] == "TerminateRunSuccess"
    until(lambda: statuses()[first] == "CANCELED", "the first run to end")
    until(lambda: statuses()[second] == "STARTED", "the second run")
    server.ask(terminate, r=second)
    until(lambda: statuses()[second] == "CANCELED", "the second run to end")
    assert all(len(runs) <= 1 for runs in seen)


def test_the_schedule_has_run_what_was_complete(server: Server) -> None:
    [run] = until(lambda: server.runs("mill_arrivals"), "the schedule", 2 * STARTS_WITHIN_S)
    assert finished(server, run["runId"]) == "SUCCESS"
    tags = tags_of(run)
    assert tags[FIRST] == "2024-01-01"
    assert tags[LAST] > "2024-01-04"
    assert tags["dagster/schedule_name"] == "mill_arrivals_when_complete"
