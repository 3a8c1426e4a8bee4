"""Whether the webserver answers, and the daemon stays small, while 365 partitions are run.

Run by hand: `python tests/ui/load_while_running.py`, about ten minutes. It prints JSON; the
figures that were measured are in docs/benchmarks/operate.md.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

sys.path[:0] = [str(Path(__file__).parents[1])]

from dagster_server import LOCATION, REPOSITORY, Server, running, until  # noqa: E402
from postgres_server import fresh_database, running_server  # noqa: E402
from test_operating import HOUR_US, START_US, declare, land, row  # noqa: E402

PARTITIONS = 365
LAUNCH = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
# What the pages ask for that a person has open: the runs, and the figures of the assets.
QUERIES = (
    "{ runsOrError(limit: 25) { ... on Runs { results { runId status } } } }",
    "{ assetNodes { assetKey { path } assetMaterializations(limit: 1) { runId } } }",
)


@contextmanager
def installation() -> Iterator[Server]:
    """A brook of 365 hours, landed and not taken in."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        declare(home, "brook", ("grain: day", "grain: hour"))
        (home / "streams" / "river.yaml").unlink()
        land(home, "brook", 0, [row(hour / 4, hour / 4 + 0.1) for hour in range(4 * PARTITIONS)])
        with (
            running_server(home / "postgres") as postgres,
            running(home, fresh_database(postgres), lambda: None) as server,
        ):
            yield server


def launch(server: Server) -> str:
    """Launch a backfill of the job over arrival partitions, as its page does; returns its id."""
    hours = (START_US + hour * HOUR_US for hour in range(PARTITIONS))
    repository = {"repositoryLocationName": LOCATION, "repositoryName": REPOSITORY}
    params = {
        "selector": {
            "partitionSetName": "brook_arrivals_partition_set",
            "repositorySelector": repository,
        },
        "partitionNames": [
            time.strftime("%Y-%m-%d-%H:00", time.gmtime(at // 1_000_000)) for at in hours
        ],
    }
    answer = server.ask(LAUNCH, p=params)["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    return str(answer["backfillId"])


def measure(server: Server) -> dict[str, Any]:
    """Run the backfill, and ask all the time."""
    daemon = psutil.Process(server.processes["daemon"].pid)
    time.sleep(60)  # its threads have all ticked
    sizes, waits = [daemon.memory_info().rss], list[float]()
    backfill, started = launch(server), time.perf_counter()

    def ended() -> bool:
        for query in QUERIES:
            asked = time.perf_counter()
            server.ask(query)
            waits.append(time.perf_counter() - asked)
        sizes.append(daemon.memory_info().rss)
        found = server.ask(STATUS, id=backfill)["partitionBackfillOrError"]["status"]
        assert found not in {"COMPLETED_FAILED", "FAILED"}, found
        return str(found) == "COMPLETED_SUCCESS"

    until(ended, "the backfill", 1_500)
    return {
        "partitions": PARTITIONS,
        "runs": len(server.runs()),
        "seconds": round(time.perf_counter() - started, 1),
        "answers": len(waits),
        "median_s": round(statistics.median(waits), 2),
        "p95_s": round(statistics.quantiles(waits, n=20)[-1], 2),
        "slowest_s": round(max(waits), 2),
        "daemon_mb_before_largest_after": [
            round(size / 2**20) for size in (sizes[0], max(sizes), sizes[-1])
        ],
    }


STATUS = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status } } }"""

if __name__ == "__main__":
    with installation() as running_one:
        print(json.dumps(measure(running_one), indent=2))  # noqa: T201
