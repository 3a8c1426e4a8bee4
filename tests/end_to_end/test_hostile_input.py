"""Names and types that nobody expects: a row, a line or a clear error, never a broken output."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from orchestration.cli import main

SPEC: dict[str, Any] = {
    "name": "gauges",
    "source": {"kind": "files", "path": "*", "format": "ndjson"},
    "columns": {
        "key": "k",
        "event_time": {"column": "t", "unit": "s"},
        "arrival_time": {"column": "a", "unit": "s"},
        "values": {"v": "float"},
        "carry": ["c"],
    },
    "arrival": {"grain": "day", "start": "1970-01-01"},
    "events": {"grain": "day"},
    "profiles": {
        "default": {"grace": "1s", "idle_timeout": "off", "capacity": 9, "future_skew": "1d"}
    },
    "windows": [{"name": "minute", "every": "1m"}],
    "aggregates": {"v": ["sum"]},
}
ROW = {"k": "a", "t": 1, "a": 2, "v": 1.5, "c": "x"}
# What ends a line for Python, moves a cursor, colours a terminal or hides the rest.
CONTROLS = ["a\nb", "a\rb", "a\x1b[31mb", "a\u2028b", "a\x85b", "a\x00b", "a\u202eb"]

Replay = Callable[..., int]


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    def run(spec: dict[str, Any], source: Path, out: str = "out", *more: str) -> int:
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
        words = ["replay", str(tmp_path / "spec.yaml"), "--input", str(source)]
        return main([*words, "--flush", "--out", str(tmp_path / out), *more])

    return run


@pytest.mark.parametrize("end", [-(2**63), -(2**63) + 1, 2**63 - 1], ids=str)
@pytest.mark.parametrize("column", ["t", "a", "both"])
def test_a_time_at_an_end_of_int64_stops_nothing(
    tmp_path: Path, replay: Replay, end: int, column: str
) -> None:
    # The lowest is what pandas makes of a time that is missing.
    wrong = {name: end for name in ("t", "a") if column in {name, "both"}}
    rows = [{**ROW, **wrong}, *({**ROW, "k": "b", "t": at, "a": at} for at in (5, 10**6, 10**9))]
    (tmp_path / "log").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = {"event_time": "t", "arrival_time": "a"}
    times = {field: {"column": name, "unit": "us"} for field, name in names.items()}
    spec = {**SPEC, "columns": {**SPEC["columns"], **times}}
    for cut in ("1", "2", "4"):
        assert replay(spec, tmp_path / "log", f"out {cut}", "--cut", cut) == 0
    ordered = [pl.read_parquet(tmp_path / f"out {cut}" / "ordered_events.parquet") for cut in "124"]
    assert all(each.equals(ordered[0]) for each in ordered)


def with_value(name: str) -> dict[str, Any]:
    columns = {**SPEC["columns"], "values": {name: "float"}}
    return {**SPEC, "columns": columns, "aggregates": {name: ["sum", "p95"]}}


@pytest.mark.parametrize(
    "name", ["v'\"; drop table x; --", "<img src=x>", "a/b.c", "🌊", "^a", "$"]
)
def test_a_column_may_have_any_name(tmp_path: Path, replay: Replay, name: str) -> None:
    row = {key: value for key, value in ROW.items() if key != "v"} | {name: 1.5}
    (tmp_path / "log").write_text(json.dumps(row) + "\n")
    assert replay(with_value(name), tmp_path / "log") == 0
    assert pl.read_parquet(tmp_path / "out" / "windows.parquet")[f"{name}_sum"].to_list() == [1.5]


@pytest.mark.parametrize("name", ["*", "^.*$", "^$"])
def test_a_column_may_not_be_named_like_a_pattern_of_columns(
    tmp_path: Path, replay: Replay, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert replay(with_value(name), tmp_path / "log") == 2
    assert f"columns.values.{name}: found '{name}'; allowed: a name" in capsys.readouterr().err


@pytest.mark.parametrize("name", CONTROLS)
def test_an_error_is_one_line_whatever_it_names(
    tmp_path: Path, replay: Replay, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert replay({**SPEC, "name": name}, tmp_path / "log") == 2
    # No file has a NUL in its name.
    assert replay(SPEC, tmp_path / name.replace("\x00", "\n")) == 3
    told, error = capsys.readouterr()
    assert (told, error.count("\n")) == ("", 2)
    assert error.replace("\n", "").isprintable()


@pytest.mark.parametrize("name", [name for name in CONTROLS if "\x00" not in name])
def test_a_result_is_shown_as_its_lines_whatever_it_names(
    tmp_path: Path, replay: Replay, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / name).write_text(json.dumps(ROW) + "\n{broken\n")
    assert replay(SPEC, tmp_path / name, f"out {name}") == 0
    told, error = capsys.readouterr()
    assert (told.count("\n"), error) == (8, "")
    assert told.replace("\n", "").isprintable()


def test_an_out_that_no_file_system_takes_is_told(
    tmp_path: Path, replay: Replay, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(json.dumps(ROW) + "\n")
    assert replay(SPEC, tmp_path / "log", "o" * 300) == 3
    assert "cannot be written: File name too long" in capsys.readouterr().err
    assert replay(SPEC, tmp_path / "log", "o" * 250) == 0


@pytest.mark.parametrize("column", ["k", "t", "a", "v", "c"])
@pytest.mark.parametrize(
    "value",
    [
        *([1.5], {"x": 1}, [{"x": b"\xff"}], b"\xff", True, None, [None]),
        *(date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), time(1), timedelta(days=1)),
    ],
    ids=str,
)
def test_a_parquet_column_of_any_type_is_read_or_told(
    tmp_path: Path,
    replay: Replay,
    capsys: pytest.CaptureFixture[str],
    column: str,
    value: Any,
) -> None:
    frame = pl.DataFrame([ROW]).with_columns(pl.Series(column, [value]))
    frame.write_parquet(tmp_path / "log.parquet")
    spec = {**SPEC, "source": {**SPEC["source"], "format": "parquet"}}
    code = replay(spec, tmp_path / "log.parquet")
    assert code in (0, 3)
    assert code == 0 or f"column '{column}'" in capsys.readouterr().err
