"""The command `grace`: over files before there is a lake, over the lake; and the assets."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from assets import arrivals, grace, lateness
from assets.partitions import Axis
from assets.staging import stage
from assets.stores.intake import Intake
from assets.stores.lake import Lake, Slot
from assets.stores.tables import EVENT_TABLES, WHOLE, frame_schema
from orchestration.cli import main
from orchestration.definitions import build_defs
from orchestration.jobs import advice_job
from orchestration.specs import load_specs
from samples import fleet
from transforms.grace.report import with_graces
from transforms.schemas import GRACE_ADVICE, LATENESS_PROFILE, PROFILE
from transforms.spec import StreamSpec

LAST = "2024-05-02-00:00"
SPEC = Path(__file__).parents[2] / "streams" / "fleet.yaml"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation with the landing files of a small fleet: all kinds on all links, a day."""
    folder = tmp_path_factory.mktemp("home")
    fleet.write(fleet.fleet_of(sensors=16, seed=3), days=1, home=folder)
    (folder / "streams").mkdir()
    (folder / "streams" / "fleet.yaml").write_text(SPEC.read_text())
    return folder


@pytest.fixture
def files(home: Path) -> list[str]:
    return sorted(map(str, (home / "landing" / "fleet").glob("*.gz")))


@pytest.fixture
def installed(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOWWATER_HOME", str(home))
    monkeypatch.setenv("LOWWATER_STREAMS", str(home / "streams"))
    return home


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["grace", *words, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def of_files(files: Sequence[str]) -> list[str]:
    return [str(SPEC), "--input", *files]


def test_files_are_enough_to_ask(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grace", *of_files(files)]) == 0
    shown = capsys.readouterr().out
    for profile in ("wired", "cellular", "lorawan", "satellite"):
        assert f"profile {profile}: " in shown
    assert "profile default: no row uses it" in shown
    assert "in force" in shown
    assert "advised" in shown


def test_the_figures_are_those_of_a_replay(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_force = [profile["in_force"] for profile in told(capsys, *of_files(files))["profiles"]]
    assert main(["replay", *of_files(files), "--out", str(tmp_path / "out")]) == 0
    dead_letters = pl.read_parquet(tmp_path / "out" / "dead_letters.parquet")
    assert dead_letters.height == sum(point["dead_letters"] for point in in_force)
    windows = pl.read_parquet(tmp_path / "out" / "window_history.parquet")
    late = windows.filter(reason="late_rows")
    amended = late.filter(pl.col("revision") > 0).height
    assert amended == sum(point["windows_amended"] for point in in_force)
    assert late.height - amended == sum(p["windows_first_by_late_rows"] for p in in_force)


def test_a_what_if_shows_old_and_new(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [*of_files(files), "--set", "satellite=10m", "--set", "lorawan=5m"]
    profiles = {p["profile"]: p for p in told(capsys, *words)["profiles"]}
    assert profiles["satellite"]["tried"]["grace_us"] == 600_000_000
    assert profiles["wired"]["tried"] is None
    old, new = (profiles["satellite"][which]["dead_letters"] for which in ("in_force", "tried"))
    assert new > old


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "sattelite=10m"], "no profile sattelite; known: default, wired"),
        (["--set", "satellite=soon"], "--set satellite=soon: allowed is profile=a duration"),
        (["--set", "satellite"], "allowed is profile=a duration"),
    ],
)
def test_a_what_if_that_cannot_be_read_is_told(
    files: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grace", *of_files(files), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_spec_wants_files_and_a_name_wants_none(
    installed: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert installed.is_dir()
    assert main(["grace", str(SPEC)]) == 2
    assert "say which files to read" in capsys.readouterr().err
    assert main(["grace", "fleet", "--input", files[0]]) == 2
    assert "goes with SPEC.yaml" in capsys.readouterr().err
    assert main(["grace", "no/such.yaml", "--input", files[0]]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_lake_is_read_once_it_is_filled(
    installed: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grace", "fleet"]) == 3
    assert "no arrivals are stored yet" in capsys.readouterr().err
    keep_advice(installed)
    of_lake = told(capsys, "fleet")
    of_log = told(capsys, *of_files(files))
    same = ("profile", "keys", "knee_us", "needed_p999_us", "capacity")
    for one, other in zip(of_lake["profiles"], of_log["profiles"], strict=True):
        assert [one[name] for name in same] == [other[name] for name in same]


def staged(home: Path, last: str) -> tuple[StreamSpec, Lake, Axis]:
    """Stage the stream up to a partition."""
    spec = load_specs(home / "streams").stream("fleet")
    lake, axis = Lake(str(home / "lake"), event_tables=EVENT_TABLES), Axis.of_arrivals(spec)
    list(stage(spec, lake, Intake(lake, home, spec), axis, axis.up_to(last)))
    return spec, lake, axis


def keep_advice(home: Path) -> None:
    """Stage the stream, and keep both tables as the assets do."""
    spec, lake, axis = staged(home, LAST)
    found = grace.advise_on_grace(spec, lake, axis)
    table = lateness.profile_lateness(spec, lake, axis)
    stored = {name: lake.scan("fleet", name).collect() for name in (GRACE_ADVICE, LATENESS_PROFILE)}
    assert stored[GRACE_ADVICE].equals(found.as_table())
    assert stored[LATENESS_PROFILE].equals(table)
    assert {"profile_satellite", "arrivals"} <= set(found.figures())
    assert {"delays", "keys_to_look_at"} <= set(lateness.figures(table))


def test_of_a_long_stream_the_newest_partitions_are_looked_at_unless_one_says_from_where(
    installed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    staged(installed, LAST)
    every = told(capsys, "fleet")
    assert (every["first_partition"], every["partitions_left_out"]) == ("2024-05-01-00:00", 0)
    monkeypatch.setattr(arrivals, "LATEST_ROWS", every["rows"] // 3)
    some = told(capsys, "fleet")
    assert every["rows"] // 4 < some["rows"] <= every["rows"] // 3
    assert (some["last_partition"], some["partitions_left_out"] > 15) == (LAST, True)
    assert told(capsys, "fleet", "--from", "2024-05-01") == every
    assert told(capsys, "fleet", "--from", LAST)["first_partition"] == LAST
    assert main(["grace", "fleet"]) == 0
    left_out = f"{some['partitions_left_out']} partitions before that are left out (--from)"
    assert left_out in capsys.readouterr().out.splitlines()[0]


def test_from_is_about_what_is_stored(
    installed: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    staged(installed, LAST)
    assert main(["grace", "fleet", "--from", "2024-06-01"]) == 3
    assert f"the last partition is {LAST}, before 2024-06-01-00:00" in capsys.readouterr().err
    assert main(["grace", *of_files(files), "--from", LAST]) == 2
    assert "of files all rows are looked at" in capsys.readouterr().err


def test_a_partition_larger_than_all_that_is_looked_at_is_looked_at() -> None:
    rows = {"a": 10, "b": arrivals.LATEST_ROWS + 1}
    assert arrivals.newest(["a", "b"], rows) == ["b"]
    assert arrivals.newest(["a"], rows) == ["a"]
    assert arrivals.newest([], rows) == []


def test_advice_is_due_where_there_is_none_where_much_has_come_since_and_where_a_grace_changed(
    home: Path, tmp_path: Path
) -> None:
    for folder in ("landing", "streams"):
        shutil.copytree(home / folder, tmp_path / folder)
    spec, lake, axis = staged(tmp_path, "2024-05-01-05:00")
    assert grace.is_due(spec, lake, axis)
    grace.advise_on_grace(spec, lake, axis)
    assert not grace.is_due(spec, lake, axis)
    staged(tmp_path, "2024-05-01-06:00")
    assert not grace.is_due(spec, lake, axis)
    staged(tmp_path, "2024-05-01-09:00")
    assert grace.is_due(spec, lake, axis)
    grace.advise_on_grace(spec, lake, axis)
    assert not grace.is_due(spec, lake, axis)
    assert grace.is_due(with_graces(spec, {"lorawan": 1}), lake, axis)
    # No row uses it, so there is no curve that could be of another grace.
    assert not grace.is_due(with_graces(spec, {"default": 1}), lake, axis)


@pytest.mark.parametrize("table", [GRACE_ADVICE, LATENESS_PROFILE])
def test_what_another_version_advised_is_made_anew(home: Path, tmp_path: Path, table: str) -> None:
    for folder in ("landing", "streams"):
        shutil.copytree(home / folder, tmp_path / folder)
    spec, lake, axis = staged(tmp_path, "2024-05-01-00:00")
    older = pl.DataFrame({PROFILE: ["wired"], "of_old": [1]})
    lake.replace("fleet", table, {Slot(WHOLE): older})
    lateness.profile_lateness(spec, lake, axis)
    if table == GRACE_ADVICE:
        assert grace.is_due(spec, lake, axis)
    grace.advise_on_grace(spec, lake, axis)
    assert not grace.is_due(spec, lake, axis)
    assert lake.scan("fleet", table).collect_schema() == frame_schema(spec, table)
    fresh = Lake(str(tmp_path / "lake"), event_tables=EVENT_TABLES)
    assert fresh.scan("fleet", table).collect().height > 3


def test_of_a_stream_that_nothing_came_of_no_advice_is_due(home: Path, tmp_path: Path) -> None:
    spec = load_specs(home / "streams").stream("fleet")
    lake = Lake(str(tmp_path), event_tables=EVENT_TABLES)
    assert not grace.is_due(spec, lake, Axis.of_arrivals(spec))


def test_the_assets_have_a_job_of_their_own() -> None:
    spec = load_specs(SPEC.parent).stream("fleet")
    job = build_defs(specs={"fleet": spec}).resolve_job_def(advice_job("fleet"))
    keys = {dg.AssetKey(["fleet", name]) for name in (GRACE_ADVICE, LATENESS_PROFILE)}
    assert set(job.asset_layer.executable_asset_keys) == keys


def test_the_guide_leads_from_a_log_to_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (SPEC.parents[1] / "docs" / "choose-a-grace.md").read_text(encoding="utf-8")
    section = guide.split("## From a log to advice")[1].split("\n## ")[0]
    log, text = re.findall(r"```(?:csv|yaml)\n(.*?)```", section, re.DOTALL)
    (tmp_path / "arrivals.csv").write_text(log)
    (tmp_path / "my_stream.yaml").write_text(text)
    words = ["grace", str(tmp_path / "my_stream.yaml"), "--input", str(tmp_path / "arrivals.csv")]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "4 rows of 2 keys over an hour at most" in shown
    assert "choose a grace of " in shown
