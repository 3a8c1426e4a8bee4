"""The command line of a replay: what it prints, its exit codes, and the directory it writes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_stream import MINUTES, SPEC_TEXT

from orchestration.cli import main

ROWS = [
    {"station": "a", "sampled_at": "1970-01-01T00:00:08Z", "received_at": "1970-01-01T00:00:09Z"},
    {"station": "a", "sampled_at": "1970-01-01T00:01:22Z", "received_at": "1970-01-01T00:01:23Z"},
    {"station": "a", "sampled_at": "1970-01-01T00:00:41Z", "received_at": "1970-01-01T00:01:24Z"},
    {"sampled_at": "1970-01-01T00:00:41Z", "received_at": "1970-01-01T00:01:24Z"},
]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC_TEXT.replace("WINDOWS", MINUTES))
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return written(tmp_path / "log.ndjson", ROWS)


@pytest.fixture
def call(spec: Path, log: Path, tmp_path: Path) -> list[str]:
    return words(spec, tmp_path / "out", log)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row | {"level": 1.5}) + "\n" for row in rows))
    return path


def words(spec: Path, out: Path, *inputs: Path) -> list[str]:
    return ["replay", str(spec), "--input", *map(str, inputs), "--out", str(out)]


def test_a_replay_tells_people_what_came_out(
    spec: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(spec, tmp_path / "out", log)) == 0
    shown = capsys.readouterr()
    assert "4 rows read; the books are balanced" in shown.out
    assert "(late_closed_window 1)" in shown.out
    assert "1 windows; 1 amended" in shown.out
    assert shown.err == ""


def test_json_is_the_books_and_nothing_else(
    spec: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words(spec, tmp_path / "out", log), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["balanced"] is True
    assert result["counts"] == {
        "staged": 4,
        "ordered": 1,
        "dead_letters": 1,
        "duplicates": 0,
        "rejected": 1,
        "held": 1,
    }
    assert result["dead_letters_by_reason"] == {"late_closed_window": 1}
    assert result["rejected_by_reason"] == {"missing_key": 1}
    assert result["windows"] == {"current": 1, "amended": 1, "withdrawn": 0, "revisions": 2}
    books = json.loads((tmp_path / "out" / "books.json").read_text())
    assert books.items() <= result.items()
    assert set(books["digests"]) == set(books["counts"])


def test_the_directory_has_the_promised_files_sorted_with_times_as_int64(
    spec: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    assert main([*words(spec, out, log), "--flush"]) == 0
    tables = {path.stem: pl.read_parquet(path) for path in out.glob("*.parquet")}
    assert sorted(tables) == [
        *("dead_letters", "duplicates", "held_events", "ordered_events"),
        *("rejected_rows", "watermarks", "window_history", "windows"),
    ]
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"]
    assert tables["ordered_events"].columns[:4] == ["key", "event_us", "seq", "arrival_us"]
    assert tables["rejected_rows"].columns[:4] == ["seq", "reason", "detail", "raw"]
    for table, frame in tables.items():
        times = [name for name in frame.columns if name.endswith("_us")]
        assert {frame.schema[name] for name in times} <= {pl.Int64()}, table
    history = tables["window_history"]
    assert history.equals(history.sort("window", "key", "window_start_us", "revision"))


def test_several_files_follow_one_flag_or_repeat_it(spec: Path, tmp_path: Path) -> None:
    halves = [written(tmp_path / f"{n}.ndjson", ROWS[2 * n : 2 * n + 2]) for n in range(2)]
    assert main(words(spec, tmp_path / "one", *halves)) == 0
    repeated = ["--out", str(tmp_path / "two")]
    for half in halves:
        repeated += ["--input", str(half)]
    assert main(["replay", str(spec), *repeated]) == 0
    one, two = (json.loads((tmp_path / name / "books.json").read_text()) for name in ("one", "two"))
    assert one == two
    assert one["counts"]["staged"] == 4


def test_the_same_replay_again_replaces_its_files_and_touches_no_other(
    spec: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(words(spec, out, log)) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / "notes.txt").write_text("mine")
    (out / "windows.parquet").write_text("old")
    assert main(words(spec, out, log)) == 0
    after = {path.name: path.read_bytes() for path in out.iterdir()}
    assert after.pop("notes.txt") == b"mine"
    # The history alone says when it was made.
    assert {name for name in before if before[name] != after[name]} <= {"window_history.parquet"}
    assert before.keys() == after.keys()


def test_a_directory_of_others_is_refused(
    spec: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.doc").touch()
    assert main(words(spec, tmp_path / "out", log)) == 2
    assert "holds other files" in capsys.readouterr().err
    assert main(words(spec, log, log)) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_replay_that_fails_leaves_the_earlier_result_alone(
    spec: Path, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(words(spec, out, log)) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert main(words(spec, out, log, tmp_path / "missing.ndjson")) == 3
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.ndjson", "out", "spec.yaml"]


def test_a_spec_with_mistakes_tells_all_of_them(
    spec: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = spec.read_text().replace("grace: 10s, ", "").replace("level: float", "level: flaot")
    spec.write_text(text)
    assert main(words(spec, tmp_path / "out", log)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) == 2
    assert any("profiles.default.grace" in line for line in lines)
    assert any("columns.values.level" in line for line in lines)
    assert not (tmp_path / "out").exists()


def test_session_windows_are_not_supported_yet(
    spec: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = spec.read_text().replace(MINUTES, "  - {name: burst, session_gap: 5s}")
    spec.write_text(text)
    assert main(words(spec, tmp_path / "out", log)) == 2
    assert "session" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (["--until", "yesterday"], 2, "--until yesterday"),
        (["--cut", "0"], 2, "--cut"),
        (["--cut", "two"], 2, "--cut"),
        (["--bogus"], 2, "--bogus"),
        (["--input", "missing.ndjson"], 3, "missing.ndjson"),
    ],
)
def test_what_cannot_work_says_so_in_one_line(
    call: list[str],
    capsys: pytest.CaptureFixture[str],
    change: list[str],
    code: int,
    message: str,
) -> None:
    assert main([*call, *change]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert message in shown.err
    assert not Path(call[-1]).exists()


def test_a_missing_spec_is_bad_usage(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words(tmp_path / "none.yaml", tmp_path / "out", log)) == 2
    assert "none.yaml" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_a_target_out_of_reach(spec: Path, log: Path) -> None:
    assert main(words(spec, log / "below" / "a-file", log)) == 3


def test_a_failure_in_the_middle_is_exit_code_4_and_debug_shows_where(
    spec: Path,
    log: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of all things\nand more")

    monkeypatch.setattr("orchestration.replay.reconcile", broken)
    assert main(words(spec, tmp_path / "out", log)) == 4
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 1
    assert "ZeroDivisionError: of all things" in shown.err
    assert main([*words(spec, tmp_path / "out", log), "--debug"]) == 4
    assert "Traceback" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_books_that_do_not_balance_are_exit_code_1(
    spec: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestration import replay as module  # noqa: PLC0415

    honest = module.write_tables

    def losing(folder: Path, tables: dict[str, pl.DataFrame], *rest: Any) -> None:
        honest(folder, {**tables, "held_events": tables["held_events"].clear()}, *rest)

    monkeypatch.setattr(module, "write_tables", losing)
    assert main(words(spec, tmp_path / "out", log)) == 1
    assert json.loads((tmp_path / "out" / "books.json").read_text())["balanced"] is False


def test_an_empty_log_is_a_result(spec: Path, tmp_path: Path) -> None:
    empty = written(tmp_path / "empty.ndjson", [])
    assert main([*words(spec, tmp_path / "out", empty), "--cut", "3", "--flush"]) == 0
    books = json.loads((tmp_path / "out" / "books.json").read_text())
    assert books["balanced"] is True
    assert set(books["counts"].values()) == {0}


def test_more_parts_than_rows_change_nothing(spec: Path, log: Path, tmp_path: Path) -> None:
    assert main(words(spec, tmp_path / "one", log)) == 0
    assert main([*words(spec, tmp_path / "many", log), "--cut", "9"]) == 0
    one, many = (pl.read_parquet(tmp_path / name / "windows.parquet") for name in ("one", "many"))
    assert one.equals(many)


def test_a_replay_needs_no_dagster(spec: Path, log: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from orchestration.cli import main; code = main(sys.argv[1:]);"
        " heavy = {'dagster', 'great_expectations', 'deltalake', 'pandas'} & set(sys.modules);"
        " sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code, *words(spec, tmp_path / "out", log)], check=True)
