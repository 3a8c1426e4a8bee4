"""The files of deploy/, which cannot be started here: they are whole, and name what exists."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PROGRAMS = Path(sys.executable).parent
KNOWN = set(
    re.findall(r'"(LOWWATER_\w+|DAGSTER_HOME)"', (ROOT / "orchestration/settings.py").read_text())
)
KNOWN |= set(re.findall(r"env: (\w+)", (ROOT / "orchestration/instance/dagster.yaml").read_text()))


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return parser


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_a_program_that_exists_and_not_as_root(path: Path) -> None:
    service = unit(path)["Service"]
    assert service["User"] == "lowwater"
    program = Path(service["ExecStart"].split()[0])
    assert str(program.parent) == "/opt/lowwater/.venv/bin"
    assert (PROGRAMS / program.name).exists()


def test_there_is_a_unit_for_each_process() -> None:
    assert [path.stem for path in UNITS] == [
        "lowwater-code",
        "lowwater-daemon",
        "lowwater-reports",
        "lowwater-webserver",
    ]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_finds_no_mistake_in_a_unit(path: Path, tmp_path: Path) -> None:
    """The program is one that exists: that of the release may not be installed here."""
    checked = tmp_path / path.name
    checked.write_text(path.read_text().replace("/opt/lowwater/.venv/bin", str(PROGRAMS)))
    command = ["systemd-analyze", "verify", "--man=no", str(checked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # Units that it comes after are not installed here.
    found = [line for line in done.stderr.splitlines() if str(checked) in line]
    assert found == []


def test_the_webserver_listens_on_the_loopback() -> None:
    command = unit(DEPLOY / "systemd" / "lowwater-webserver.service")["Service"]["ExecStart"]
    assert "-h 127.0.0.1 " in command
    services = compose()["services"]
    assert services["webserver"]["ports"] == ["127.0.0.1:3000:3000"]
    assert services["reports"]["ports"] == ["127.0.0.1:3001:3001"]
    assert not any("ports" in services[name] for name in ("postgres", "code", "daemon"))


def test_containers_have_a_health_check_and_no_rights() -> None:
    services = compose()["services"]
    assert {*services} == {"postgres", "code", "webserver", "daemon", "reports"}
    for name, service in services.items():
        assert service["healthcheck"]["test"], name
        if name != "postgres":
            assert service["user"] != "0"
            assert service["cap_drop"] == ["ALL"]
            assert (PROGRAMS / service["command"][0]).exists()


def test_no_secret_is_written_down() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert "${POSTGRES_PASSWORD:?}" in text
    assert not re.search(r"PASSWORD: \w", text)


def test_the_environment_names_settings_that_are_read() -> None:
    text = (DEPLOY / "env.example").read_text() + (DEPLOY / "compose.yaml").read_text()
    named = set(re.findall(r"^\s*#?(LOWWATER_\w+|DAGSTER_HOME)[=:]", text, re.MULTILINE))
    assert named
    assert named <= KNOWN


def test_the_image_holds_every_package() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    for package in ("orchestration", "assets", "transforms", "expectations"):
        assert f"COPY {package} {package}\n" in text
    assert "\nUSER lowwater\n" in text


@pytest.mark.parametrize("name", ["workspace.yaml", "compose-workspace.yaml"])
def test_a_workspace_names_the_port_of_the_code_server(name: str) -> None:
    [location] = yaml.safe_load((DEPLOY / name).read_text())["load_from"]
    assert location["grpc_server"]["port"] == 4266
