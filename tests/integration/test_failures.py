"""When something fails: what may pass is tried again, people are told once, nobody writes twice."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from river import DAYS, River, arrivals

from assets.catalogue import Locks
from assets.stores.lock import LockHeld, StreamLock
from assets.stores.targets.faults import TargetDataError, TargetOutageError
from orchestration.alerts import Told, alerts_sensor
from orchestration.definitions import build_defs
from orchestration.hooks import Alert, Command, Hook, Webhook, hooks_of
from orchestration.jobs import arrivals_job, parity_job
from orchestration.settings import Settings
from transforms.errors import CheckError, SourceError, UsageError
from transforms.spec import Alerts

ALERT = Alert("run_failed", "river", "run:1", "river_arrivals 2024-01-01 failed")


@dataclass
class Listener:
    """Somebody who is told, and may be deaf."""

    told: list[Alert] = field(default_factory=list)
    is_deaf: bool = False

    def tell(self, alert: Alert) -> None:
        if self.is_deaf:
            raise OSError("deaf")
        self.told.append(alert)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> River:
    river = River(tmp_path_factory.mktemp("river"))
    river.land(arrivals(rows=120))
    river.take_in(river.keys[:DAYS])
    return river


def look(
    river: River, instance: dg.DagsterInstance, hook: Hook, cursor: str | None = None, **levels: Any
) -> str:
    """One tick of the sensor of alerts; returns its cursor."""
    spec = river.spec.model_copy(update={"alerts": Alerts.model_validate(levels)})
    sensor = alerts_sensor([spec], [hook], "http://ui.example/")
    with dg.build_sensor_context(
        instance, cursor=cursor, resources={"lake": river.lake}
    ) as context:
        return str(sensor.evaluate_tick(context).cursor)


def failed_run(river: River, instance: dg.DagsterInstance) -> str:
    """A run that fails because the partition before it is not there."""
    with pytest.raises(Exception, match="is not there"):
        river.jobs(instance).run(arrivals_job("river"), river.axis.keys[5:6])
    [run] = instance.get_runs(limit=1)
    assert run.status == dg.DagsterRunStatus.FAILURE
    return run.run_id


def test_a_failed_run_is_told_of_once(river: River, instance: dg.DagsterInstance) -> None:
    listener = Listener()
    cursor = look(river, instance, listener)
    run_id = failed_run(river, instance)
    cursor = look(river, instance, listener, cursor)
    look(river, instance, listener, cursor)
    [alert] = listener.told
    assert (alert.kind, alert.stream) == ("run_failed", "river")
    assert alert.text == (f"river_arrivals 2024-01-06 failed http://ui.example/runs/{run_id}")


def test_an_alert_that_could_not_be_delivered_comes_with_the_next_tick(
    river: River, instance: dg.DagsterInstance
) -> None:
    listener = Listener(is_deaf=True)
    cursor = look(river, instance, listener)
    failed_run(river, instance)
    with pytest.raises(Exception, match="deaf"):
        look(river, instance, listener, cursor)
    listener.is_deaf = False
    look(river, instance, listener, cursor)
    assert len(listener.told) >= 1


def test_too_many_dead_letters_are_told_of_partition_by_partition(
    river: River, instance: dg.DagsterInstance
) -> None:
    listener = Listener()
    cursor = look(river, instance, listener, dead_letter_fraction=0)
    [alert] = listener.told
    assert alert.kind == "dead_letters_high"
    assert alert.text.startswith("river 2024-01-02: ")
    assert "the level is 0.0%" in alert.text
    look(river, instance, listener, cursor, dead_letter_fraction=0)
    assert len(listener.told) == 1


def test_a_level_that_is_kept_is_no_alert(river: River, instance: dg.DagsterInstance) -> None:
    listener = Listener()
    look(river, instance, listener, dead_letter_fraction=1)
    assert listener.told == []


def test_a_stream_that_is_stale_is_told_of_once(river: River, instance: dg.DagsterInstance) -> None:
    listener = Listener()
    cursor = look(river, instance, listener, stale_after="1d")
    look(river, instance, listener, cursor, stale_after="1d")
    [alert] = listener.told
    assert alert.kind == "stale_stream"
    assert "nothing has arrived since 2024-01-0" in alert.text


@pytest.fixture
def posted() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on this machine, and what it was sent."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(500 if self.path == "/broken" else 204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


def test_a_webhook_gets_json(posted: tuple[str, list[dict[str, Any]]]) -> None:
    url, bodies = posted
    Webhook(f"{url}/hook").tell(ALERT)
    assert bodies == [
        {
            "kind": "run_failed",
            "stream": "river",
            "key": "run:1",
            "text": "river_arrivals 2024-01-01 failed",
            "source": "lowwater",
        }
    ]


def change_a_number_in_the_target(river: River) -> None:
    with duckdb.connect(str(river.settings.target)) as target:
        target.execute("update river.windows_current set stage_mean = stage_mean + 1")


def test_each_kind_of_alert_reaches_a_webhook_once(
    river: River, instance: dg.DagsterInstance, posted: tuple[str, list[dict[str, Any]]]
) -> None:
    url, bodies = posted
    hook, levels = Webhook(url), {"dead_letter_fraction": 0, "stale_after": "1d"}
    cursor = str(Told(time.time()))
    failed_run(river, instance)
    change_a_number_in_the_target(river)
    with pytest.raises(CheckError):
        river.jobs(instance).run(parity_job("river"), ["2024-01-01"])
    for _ in range(2):
        cursor = look(river, instance, hook, cursor, **levels)
    kinds = {body["kind"]: body["text"] for body in bodies}
    assert sorted(kinds) == ["check_failed", "dead_letters_high", "run_failed", "stale_stream"]
    assert len({body["key"] for body in bodies}) == len(bodies)
    assert "the check the_target_equals_the_lake_to_the_bit failed" in kinds["check_failed"]


def test_a_webhook_that_fails_says_so_and_shows_no_address(
    posted: tuple[str, list[dict[str, Any]]],
) -> None:
    url, _ = posted
    with pytest.raises(OSError, match=r"^the alert webhook answers 500$"):
        Webhook(f"{url}/broken").tell(ALERT)
    with pytest.raises(OSError, match=r"^the alert webhook does not answer: \w+$"):
        Webhook("http://127.0.0.1:9/secret").tell(ALERT)


def test_a_command_reads_json_and_no_shell_reads_the_text(tmp_path: Path) -> None:
    kept, touched = tmp_path / "told.json", tmp_path / "touched"
    program = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read())"
    hostile = Alert("run_failed", "river", "k", f"$(touch {touched}); `touch {touched}`")
    Command((sys.executable, "-c", program)).tell(hostile)
    assert json.loads(kept.read_text())["text"] == hostile.text
    assert not touched.exists()


def test_a_command_that_fails_says_so() -> None:
    with pytest.raises(OSError, match="exit code 3"):
        Command((sys.executable, "-c", "raise SystemExit(3)")).tell(ALERT)


def test_hooks_come_from_the_environment_and_are_never_shown() -> None:
    environment = {
        "LOWWATER_ALERT_WEBHOOK": "https://chat.example/secret",
        "LOWWATER_ALERT_COMMAND": "mail -s 'low water' me",
    }
    settings = Settings.from_environment(environment)
    assert hooks_of(settings) == (
        Webhook("https://chat.example/secret"),
        Command(("mail", "-s", "low water", "me")),
    )
    assert "secret" not in repr(settings)
    with pytest.raises(UsageError, match="http or https"):
        hooks_of(Settings.from_environment({"LOWWATER_ALERT_WEBHOOK": "file:///etc/passwd"}))


def test_alerts_are_on_from_the_start_if_somebody_is_to_be_told() -> None:
    assert alerts_sensor([], [Listener()]).default_status == dg.DefaultSensorStatus.RUNNING
    assert alerts_sensor([], []).default_status == dg.DefaultSensorStatus.STOPPED


@pytest.mark.parametrize("error", [LockHeld("held"), TargetOutageError("out of reach")])
def test_what_may_pass_is_tried_again_in_a_run_of_the_daemon(
    tmp_path: Path, error: Exception
) -> None:
    with pytest.raises(dg.RetryRequested) as asked, Locks(tmp_path, retries=3).of("river")():
        raise error
    assert asked.value.max_retries == 3
    with pytest.raises(type(error)), Locks(tmp_path).of("river")():
        raise error


@pytest.mark.parametrize("error", [SourceError("broken"), TargetDataError("a NUL byte")])
def test_what_will_not_pass_fails_at_once(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(type(error)), Locks(tmp_path, retries=3).of("river")():
        raise error


def test_a_step_that_meets_another_writer_waits_and_then_goes_on(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    river = River(tmp_path)
    river.land(arrivals(rows=20))
    river.resources["locks"] = Locks(river.settings.locks, patience_s=0, retries=3, wait_s=1)
    holding, done = threading.Event(), threading.Timer(0.5, lambda: None)

    def hold() -> None:
        with StreamLock(river.settings.locks, "river")():
            holding.set()
            done.start()
            done.join()

    other = threading.Thread(target=hold)
    other.start()
    holding.wait(30)
    river.jobs(instance).run(arrivals_job("river"), river.keys[:1])
    other.join()
    [run] = instance.get_runs(limit=1)
    assert run.status == dg.DagsterRunStatus.SUCCESS


def test_every_step_that_writes_to_a_stream_is_in_its_pool(river: River) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec})
    graph = defs.resolve_asset_graph()
    writers = {node.key: node.assets_def for node in graph.asset_nodes if node.is_executable}
    assert writers
    assert {str(key): asset.op.pool for key, asset in writers.items()} == dict.fromkeys(
        map(str, writers), "river"
    )
