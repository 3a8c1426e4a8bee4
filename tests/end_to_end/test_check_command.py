"""What `lowwater check` finds and how it tells it; it changes nothing."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_stream import MINUTES, SPEC_TEXT

from orchestration.cli import main

ROW = {"station": "a", "sampled_at": "1970-01-01T00:00:08Z", "received_at": "1970-01-01T00:00:09Z"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with one stream and one landing file."""
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "gauges.yaml").write_text(SPEC_TEXT.replace("WINDOWS", MINUTES))
    (tmp_path / "a.ndjson").write_text(json.dumps(ROW | {"level": 1.0}) + "\n")
    monkeypatch.setenv("LOWWATER_HOME", str(tmp_path))
    monkeypatch.setenv("LOWWATER_STREAMS", str(tmp_path / "streams"))
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["check", *words, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is (code == 0)
    return code, result["findings"]


def problems(findings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["about"], each["message"]) for each in findings if each["level"] == "problem"]


def test_all_is_well_and_nothing_was_made(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(home.rglob("*"))
    code, findings = found(capsys)
    assert code == 0
    assert {each["about"] for each in findings} == {"spec", "source", "target"}
    assert {each["level"] for each in findings} == {"ok"}
    assert sorted(home.rglob("*")) == before
    assert main(["check", "gauges"]) == 0
    assert "a.ndjson, is read" in capsys.readouterr().out


def test_a_spec_with_mistakes_is_exit_code_2_and_the_others_are_looked_at(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (home / "streams" / "gauges.yaml").read_text()
    broken = text.replace("name: gauges", "name: rivers").replace("grace: 10s, ", "")
    (home / "streams" / "rivers.yaml").write_text(broken)
    code, findings = found(capsys)
    assert code == 2
    [(about, message)] = problems(findings)
    assert (about, "profiles.default.grace" in message) == ("spec", True)
    assert {each["stream"] for each in findings} == {"gauges", "rivers"}
    assert main(["check", "rivers"]) == 2
    assert "profiles.default.grace" in capsys.readouterr().err


def test_a_source_without_a_file_is_exit_code_3(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "a.ndjson").unlink()
    code, findings = found(capsys, "gauges")
    assert code == 3
    [(about, message)] = problems(findings)
    assert (about, "no file matches *.ndjson" in message) == ("source", True)


def test_a_file_of_which_no_row_can_be_read_is_a_problem_and_one_with_some_a_warning(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (home / "a.ndjson").open("a") as file:
        file.write("{broken\n")
    code, findings = found(capsys)
    [warning] = [each for each in findings if each["level"] == "warning"]
    assert code == 0
    assert "1 of 2 rows of a.ndjson are rejected" in warning["message"]
    assert "line 2: malformed_record" in warning["message"]
    (home / "a.ndjson").write_text("{broken\n")
    code, findings = found(capsys)
    assert code == 3
    assert problems(findings)[0][0] == "source"


def test_a_target_that_another_holds_or_nobody_declared_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "published.duckdb").write_text("no database at all" * 1_000)
    code, findings = found(capsys)
    assert (code, problems(findings)[0][0]) == (3, "target")
    (home / "published.duckdb").unlink()
    duckdb.connect(home / "published.duckdb").close()
    assert found(capsys)[0] == 0
    spec = home / "streams" / "gauges.yaml"
    spec.write_text(spec.read_text().replace("target: default", "target: warehouse"))
    code, findings = found(capsys)
    assert code == 2
    assert "target warehouse is not declared" in problems(findings)[0][1]


@pytest.mark.parametrize(
    ("identity", "warned"),
    [("", True), ("  event_id: [sampled_at]\n", True), ("  event_id: [n, sampled_at]\n", False)],
)
def test_resolution_with_the_default_identity_is_warned_of(
    home: Path, capsys: pytest.CaptureFixture[str], identity: str, *, warned: bool
) -> None:
    spec = home / "streams" / "gauges.yaml"
    text = spec.read_text().replace("  values:", f"{identity}  values:")
    spec.write_text(text + "resolution: 1s\n")
    code, findings = found(capsys)
    warnings = [each for each in findings if each["level"] == "warning"]
    assert code == 0
    assert [each["about"] for each in warnings if "resolution" in each["message"]] == (
        ["spec"] if warned else []
    )


def test_an_unknown_stream_and_an_empty_folder_are_bad_usage(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "rivers"]) == 2
    assert "known: gauges" in capsys.readouterr().err
    (home / "streams" / "gauges.yaml").unlink()
    assert main(["check"]) == 2
    assert "holds no spec" in capsys.readouterr().err
