"""The commands of docs/operate.md for an upgrade, a backup and a restore do what it says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from postgres_server import fresh_database
from river import River, arrivals

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "operate.md").read_text()


def commands(title: str) -> str:
    """The commands of a section of the guide, as a script that stops where one fails."""
    [section] = re.findall(rf"^### {title}\n(.*?)(?=^##)", GUIDE, re.MULTILINE | re.DOTALL)
    [block] = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    lines = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    return "\n".join(["set -eu", *lines]).replace("STREAM", "river")


@pytest.fixture
def river(tmp_path: Path) -> River:
    river = River(tmp_path / "home")
    river.land(arrivals(rows=40))
    assert river.spec
    river.settings.dagster_home.mkdir()
    shutil.copy(ROOT / "orchestration/instance/dagster.yaml", river.settings.dagster_home)
    return river


@pytest.fixture
def environment(river: River, postgres: Any) -> dict[str, str]:
    dsn = fresh_database(postgres)
    programs = (Path(sys.executable).parent, postgres.process.bin_path, os.environ["PATH"])
    return {
        **os.environ,
        "PATH": os.pathsep.join(map(str, programs)),
        "LOWWATER_HOME": str(river.folder),
        "LOWWATER_STREAMS": str(river.settings.streams),
        "DAGSTER_HOME": str(river.settings.dagster_home),
        "LOWWATER_INSTANCE_DSN": dsn.replace("postgresql:", "postgresql+psycopg2:", 1),
    }


def shell(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_installation_comes_back_from_its_backup_and_its_target_is_proved(
    river: River, tmp_path: Path, environment: dict[str, str]
) -> None:
    shell("lowwater run river", tmp_path, environment)
    before = river.published()
    shell(commands("Upgrade"), tmp_path, environment)
    shell(commands("Back up"), tmp_path, environment)
    shutil.rmtree(river.folder)
    restore = commands("Restore")
    lost = restore.replace("lowwater run", "rm $LOWWATER_HOME/published.duckdb\nlowwater run")
    assert lost != restore
    said = shell(lost, tmp_path, environment)
    assert "river is up to date" in said
    assert said.splitlines()[-1] == "EQUAL: proved"
    assert river.published().equals(before)
