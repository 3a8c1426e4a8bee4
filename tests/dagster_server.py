"""An installation for tests: webserver, daemon, code server and reports, on a PostgreSQL.

They are processes of their own, as in production, on free ports of the loopback. Belongs here:
starting and stopping them, and asking the webserver over GraphQL.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

ROOT = Path(__file__).parents[1]
PATIENCE_S = 240
LOCATION, REPOSITORY = "lowwater", "__repository__"


@dataclass(frozen=True)
class Server:
    """A running installation; ``home`` is its data directory, ``url`` that of the UI."""

    home: Path
    url: str
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the data of a GraphQL query."""
        request = urllib.request.Request(  # noqa: S310 (our own server)
            f"{self.url}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 (the same)
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        assert not found.get("errors"), found
        data: dict[str, Any] = found["data"]
        return data

    def runs(self, job: str | None = None) -> list[dict[str, Any]]:
        """Return runs, newest first."""
        query = """query($job: String) { runsOrError(filter: {pipelineName: $job}) {
            ... on Runs { results { runId status pipelineName tags { key value } } } } }"""
        found: list[dict[str, Any]] = self.ask(query, job=job)["runsOrError"]["results"]
        return found

    def launch(self, job: str, tags: Mapping[str, str]) -> str:
        """Launch a run of a job; returns its id."""
        query = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
            __typename ... on LaunchRunSuccess { run { runId } } } }"""
        selector = {
            "repositoryLocationName": LOCATION,
            "repositoryName": REPOSITORY,
            "jobName": job,
        }
        pairs = [{"key": key, "value": value} for key, value in tags.items()]
        answer = self.ask(
            query,
            p={"selector": selector, "runConfigData": {}, "executionMetadata": {"tags": pairs}},
        )["launchRun"]
        return str(answer["run"]["runId"])

    def log(self, name: str) -> str:
        """Return what a process printed."""
        return (self.home / f"{name}.log").read_text(errors="replace")


def until(ask: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """Ask until the answer is true; returns it."""
    deadline = time.monotonic() + patience_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.5)
    return answer


@contextmanager
def running(home: Path, dsn: str, meanwhile: Callable[[], None]) -> Iterator[Server]:
    """Run all processes on a data directory and an empty database, until the block ends.

    What is done meanwhile, while they start, finds the instance in the environment.
    """
    code, web, reports = free_ports(3)
    server = Server(home, f"http://127.0.0.1:{web}", environment_of(home, dsn, reports))
    dagster_home = Path(server.environment["DAGSTER_HOME"])
    dagster_home.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "orchestration" / "instance" / "dagster.yaml", dagster_home)
    workspace = home / "workspace.yaml"
    workspace.write_text(
        f"load_from:\n  - grpc_server: {{host: localhost, port: {code}, location_name: lowwater}}\n"
    )
    at = ["-w", str(workspace)]
    with ExitStack() as stack, _as_environment(server.environment):
        with dg.DagsterInstance.from_config(str(dagster_home)):
            pass  # its tables are made once, before anybody else would
        grpc = ["dagster", "api", "grpc", "-h", "localhost", "-p", str(code)]
        start(stack, server, "code", [*grpc, "-m", "orchestration.definitions"])
        meanwhile()
        until(lambda: is_open(code), "the code server")
        start(stack, server, "web", ["dagster-webserver", "-h", "127.0.0.1", "-p", str(web), *at])
        start(stack, server, "daemon", ["dagster-daemon", "run", *at])
        main = "from orchestration.cli import main; raise SystemExit(main())"
        start(stack, server, "reports", ["python", "-c", main, "reports", "--port", str(reports)])
        until(lambda: is_open(web) and is_open(reports), "the webserver and the reports")
        yield server


def environment_of(home: Path, dsn: str, reports: int) -> dict[str, str]:
    """Return the environment of an installation whose instance is at a DSN."""
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("LOWWATER")},
        "PYTHONPATH": str(ROOT),
        "LOWWATER_HOME": str(home),
        "LOWWATER_STREAMS": str(home / "streams"),
        "LOWWATER_REPORTS_URL": f"http://127.0.0.1:{reports}",
        "DAGSTER_HOME": str(home / "dagster"),
        "LOWWATER_INSTANCE_DSN": dsn.replace("postgresql:", "postgresql+psycopg2:", 1),
    }


@contextmanager
def _as_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Make an environment that of this process, and hide what the instance warns of."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def start(stack: ExitStack, server: Server, name: str, words: list[str]) -> None:
    """Start a program of this environment; it ends with the stack."""
    program = str(Path(sys.executable).parent / words[0])
    log = stack.enter_context((server.home / f"{name}.log").open("wb"))
    process = subprocess.Popen(
        [program, *words[1:]],
        env=dict(server.environment),
        cwd=server.home,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    server.processes[name] = process
    stack.callback(stop, process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it has started; the code server would wait for runs under way."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]


def is_open(port: int) -> bool:
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0
