"""Every case under tests/cases, through the command line, must give the answer worked out by hand.

A case is a YAML file: a whole stream spec, the rows in source order (NDJSON, several files if a row
names one), options of the replay, and what is expected. A case says only what it is about; whatever
it does not mention is free. On every case that runs, each row is in exactly one of the five tables
of rows and the books are balanced.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import copysign, isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from orchestration.cli import main

CASES = sorted((Path(__file__).parents[1] / "cases").glob("*.yaml"))
ROW_TABLES = {
    "ordered_events": "ordered",
    "held_events": "held",
    "duplicates": "duplicate",
    "dead_letters": "dead_letter",
    "rejected_rows": "rejected",
}
RENAMED = {
    "start": "window_start_us",
    "end": "window_end_us",
    "known_at": "known_at_us",
    "event": "event_us",
    "watermark": "watermark_us",
    "duplicate_of": "duplicate_of_seq",
}
NAMES_A_ROW = ("window", "key", "window_start_us")


@dataclass(frozen=True)
class Replayed:
    """The files that a replay wrote, and which row id is which ``seq``."""

    tables: dict[str, pl.DataFrame]
    books: dict[str, Any]
    seq: dict[str, int]

    def fates(self) -> dict[int, list[tuple[str, dict[str, Any]]]]:
        """Of each ``seq`` the tables that hold it, with its row there."""
        found: dict[int, list[tuple[str, dict[str, Any]]]] = {}
        for table, state in ROW_TABLES.items():
            for row in self.tables[table].iter_rows(named=True):
                fate = f"{state}/{row['reason']}" if "reason" in row else state
                found.setdefault(row["seq"], []).append((fate, row))
        return found


def microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime.fromisoformat("1970-01-01T00:00:00Z")) // (
        timedelta(microseconds=1)
    )


def expected_columns(row: dict[str, Any], seq: dict[str, int]) -> dict[str, Any]:
    """The row by the names and in the units of the files."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        column = RENAMED.get(name, name)
        if name == "duplicate_of":
            columns[column] = seq[value]
        elif name in RENAMED:
            columns[column] = microseconds(value)
        else:
            columns[column] = value
    return columns


def same(found: object, wanted: object) -> bool:
    """Exact, but for fractions: 1e-9 relative, and never a negative zero."""
    if isinstance(found, float) and isinstance(wanted, int | float):
        return isclose(found, wanted, rel_tol=1e-9) and (found != 0 or copysign(1, found) > 0)
    return type(found) is type(wanted) and found == wanted


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {found.get(name, 'no such column')!r}, expected {value!r}"
        for name, value in wanted.items()
        if name not in found or not same(found[name], value)
    ]


def write_inputs(case: dict[str, Any], folder: Path) -> tuple[list[Path], dict[str, int]]:
    """An NDJSON file for each file number; the ``seq`` of each row id, file after file."""
    rows = sorted(case["rows"], key=lambda row: row.get("file", 1))
    lines: dict[int, list[str]] = {}
    for row in rows:
        line = row["text"] if "text" in row else json.dumps(row["json"])
        lines.setdefault(row.get("file", 1), []).append(line)
    paths = [folder / f"rows-{number}.ndjson" for number in lines]
    for path, texts in zip(paths, lines.values(), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths, {row["id"]: seq for seq, row in enumerate(rows)}


def arguments(case: dict[str, Any], folder: Path, inputs: list[Path], cut: int | None) -> list[str]:
    spec = folder / "spec.yaml"
    spec.write_text(yaml.safe_dump(case["spec"], sort_keys=False), encoding="utf-8")
    options = case["options"]
    words = ["replay", str(spec), "--input", *map(str, inputs), "--out", str(folder / "out")]
    words += ["--cut", str(cut)] if cut is not None else []
    words += ["--until", options["until"]] if "until" in options else []
    return words + (["--flush"] if options.get("flush") else [])


def read_output(folder: Path, seq: dict[str, int]) -> Replayed:
    tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
    return Replayed(tables, json.loads((folder / "books.json").read_text("utf-8")), seq)


def check_fates(out: Replayed, expect: dict[str, Any]) -> None:
    fates = out.fates()
    assert {seq: len(places) for seq, places in fates.items()} == dict.fromkeys(
        out.seq.values(), 1
    ), "each row is in exactly one table"
    for name, wanted in expect.get("fates", {}).items():
        fate, row = fates[out.seq[name]][0]
        rest = dict(wanted) if isinstance(wanted, dict) else {"fate": wanted}
        assert fate == rest.pop("fate", fate), name
        assert not differences(row, expected_columns(rest, out.seq)), name


def check_windows(
    frame: pl.DataFrame, wanted: list[Any], key: tuple[str, ...], *, all_of: bool
) -> None:
    found = {tuple(row[name] for name in key): row for row in frame.iter_rows(named=True)}
    rows = [expected_columns(row, {}) for row in wanted]
    names = [tuple(row[name] for name in key) for row in rows]
    for name, row in zip(names, rows, strict=True):
        assert name in found
        assert not differences(found[name], row), name
    assert not all_of or set(found) == set(names)


def check_absent(frame: pl.DataFrame, absent: list[dict[str, Any]]) -> None:
    for row in absent:
        columns = expected_columns(row, {})
        there = frame.filter(*[pl.col(name) == columns[name] for name in NAMES_A_ROW])
        assert there["event_count"].to_list() in ([], [0])


def check_state(out: Replayed, expect: dict[str, Any]) -> None:
    watermarks = dict(out.tables["watermarks"].select("key", "watermark_us").iter_rows())
    for key, text in expect.get("watermarks", {}).items():
        assert watermarks[key] == microseconds(text), key
    for key, names in expect.get("release_order", {}).items():
        ordered = out.tables["ordered_events"].filter(pl.col("key") == key)
        assert ordered["seq"].to_list() == [out.seq[name] for name in names], key
    assert out.books["balanced"] is True
    assert not differences(out.books["counts"], expect.get("books", {}))


def cuts() -> list[Any]:
    found = []
    for path in CASES:
        cut = yaml.safe_load(path.read_text("utf-8"))["options"].get("cut")
        numbers = cut if isinstance(cut, list) else [cut]
        found += [pytest.param(path, n, id=f"{path.stem}-{n}" if n else path.stem) for n in numbers]
    return found


@pytest.mark.parametrize(("path", "cut"), cuts())
def test_the_replay_gives_the_answer_worked_out_by_hand(
    path: Path, cut: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = yaml.safe_load(path.read_text("utf-8"))
    inputs, seq = write_inputs(case, tmp_path)
    expect = case["expect"]

    code = main(arguments(case, tmp_path, inputs, cut))

    message = capsys.readouterr().err
    assert code == expect.get("exit_code", 0), message
    for word in expect.get("stderr_mentions", []):
        assert word in message
    if code == 0:
        out = read_output(tmp_path / "out", seq)
        check_fates(out, expect)
        check_state(out, expect)
        windows, history = out.tables["windows"], out.tables["window_history"]
        complete = expect.get("no_other_windows", False)
        check_windows(windows, expect.get("windows", []), NAMES_A_ROW, all_of=complete)
        revision, complete = (*NAMES_A_ROW, "revision"), expect.get("no_other_revisions", False)
        check_windows(history, expect.get("history", []), revision, all_of=complete)
        check_absent(windows, expect.get("absent", []))
