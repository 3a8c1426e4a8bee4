"""``lowwater run``: from files to published windows, recorded in the embedded instance."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from river import SPEC, River, arrivals

from orchestration.cli import main
from transforms.schemas import TARGET_PARITY

LOG = arrivals()


def lowwater(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"},
        "LOWWATER_HOME": str(folder),
        "LOWWATER_STREAMS": str(folder / "streams"),
    }
    command = Path(sys.executable).parent / "lowwater"
    return subprocess.run(
        [command, *words], env=environment, capture_output=True, text=True, check=False, cwd=folder
    )


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> River:
    river = River(tmp_path_factory.mktemp("river"))
    river.land(LOG, 2)
    assert river.spec.name == "river"
    return river


@pytest.fixture(scope="module")
def first(river: River) -> dict[str, Any]:
    done = lowwater(river.folder, "run", "river", "--json")
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_a_run_takes_all_that_arrived_and_balances_the_books(
    river: River, first: dict[str, Any]
) -> None:
    assert first["balanced"]
    assert first["counts"]["staged"] == len(LOG)
    assert first["run"]["arrival_partitions"] == list(river.keys[:-1])
    assert first["windows"]["amended"] > 0
    assert sum(first["dead_letters_by_outcome"].values()) == first["counts"]["dead_letters"]
    assert first["worst_hour"]["dead_letters"] > 0


def test_the_terminal_is_kept_for_the_result(river: River, first: dict[str, Any]) -> None:
    log = Path(first["run"]["log"]).read_text()
    assert "ASSET_MATERIALIZATION" in log
    done = lowwater(river.folder, "run", "river")
    assert done.returncode == 0
    assert done.stdout.startswith("river is up to date\n")
    assert f"{len(LOG):,} rows staged; the books are balanced" in done.stdout
    assert "ASSET_MATERIALIZATION" not in done.stderr


def test_a_bound_may_be_a_time_within_a_partition(river: River, first: dict[str, Any]) -> None:
    words = ("--from", "2024-01-02T13:00:00Z", "--to", "2024-01-02", "--json")
    done = lowwater(river.folder, "run", "river", *words)
    assert json.loads(done.stdout)["run"]["arrival_partitions"] == ["2024-01-02"]
    assert json.loads(done.stdout)["counts"] == first["counts"]


def test_a_proof_that_fails_is_told_after_the_summary_until_it_is_mended(
    river: River, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOWWATER_HOME", str(river.folder))
    monkeypatch.setenv("LOWWATER_STREAMS", str(river.settings.streams))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with duckdb.connect(str(river.settings.target)) as connection:
        connection.execute("update river.windows_current set stage_mean = 99 where key = 's2'")
    forget_proofs(river)
    assert main(["run", "river", "--json"]) == 1
    failed = capfd.readouterr()
    assert json.loads(failed.out)["parity"]["CHANGED"] > 0
    assert "the_target_equals_the_lake_to_the_bit" in failed.err
    assert failed.err.count("\n") == 1
    assert main(["run", "river"]) == 1  # a bad proof is not taken for good
    assert "what differs: lowwater parity river; with --repair" in capfd.readouterr().out
    assert main(["parity", "river", "--repair"]) == 0
    capfd.readouterr()
    assert main(["run", "river", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["parity"].keys() == {"EQUAL"}


def forget_proofs(river: River) -> None:
    partitions = river.lake.partitions("river", TARGET_PARITY)
    river.lake.delete_partitions("river", TARGET_PARITY, partitions)


def test_what_cannot_be_run_is_said_in_one_line(river: River) -> None:
    unknown = lowwater(river.folder, "run", "brook")
    assert unknown.returncode == 2
    assert unknown.stderr == "lowwater: there is no stream brook; known: river\n"
    text = SPEC.format(grain="day", events="day", shards=1).replace("grace: 40m, ", "")
    (river.settings.streams / "brook.yaml").write_text(text.replace("name: river", "name: brook"))
    broken = lowwater(river.folder, "run", "brook")
    assert broken.returncode == 2
    assert "profiles.default.grace" in broken.stderr
    (river.settings.streams / "brook.yaml").unlink()


def test_a_source_without_files_is_named(tmp_path: Path) -> None:
    assert River(tmp_path).spec.name == "river"
    done = lowwater(tmp_path, "run", "river")
    assert done.returncode == 3
    assert "river: no file matches landing/*.ndjson" in done.stderr


def test_what_is_not_complete_yet_is_left_for_later(tmp_path: Path) -> None:
    river = River(tmp_path)
    now_us = time.time_ns() // 1_000
    assert river.spec.name == "river"
    spec = river.settings.streams / "river.yaml"
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    spec.write_text(spec.read_text().replace("start: 2024-01-01", f"start: {today}"))
    river.land([{**LOG[0], "sampled": now_us, "received": now_us}])
    done = lowwater(tmp_path, "run", "river", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["staged"] == 0
