import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from orchestration.cli import main
from orchestration.commands.audit_order import read_rows

CAME = [1, 3, 5, 4, 2, 6, 8, 10, 7, 11, 9, 13, 15, 12, 14, 18, 16, 20, 17, 19, 23, 21, 22, 24]
JOBS = pl.DataFrame(
    {
        "id": range(1, 25),
        "entity": [f"e{job // 3 + 1}" for job in range(24)],
        "claimed": range(1, 25),
        "landed": [CAME.index(job) + 1 for job in range(1, 25)],
    }
)

WRITERS: dict[str, Callable[[Path], object]] = {
    "jobs.csv": JOBS.write_csv,
    "semicolons.csv": lambda path: JOBS.write_csv(path, separator=";"),
    "jobs.tsv": lambda path: JOBS.write_csv(path, separator="\t"),
    "jobs.ndjson": JOBS.write_ndjson,
    "jobs.jsonl": JOBS.write_ndjson,
    "jobs.parquet": JOBS.write_parquet,
    "jobs.csv.gz": lambda path: path.write_bytes(gzip.compress(JOBS.write_csv().encode())),
    "jobs.ndjson.zst": lambda path: path.write_bytes(
        zstandard.compress(JOBS.write_ndjson().encode())
    ),
    "2024.01.jobs.CSV": JOBS.write_csv,
}


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    JOBS.write_csv(tmp_path / "jobs.csv")
    return tmp_path / "jobs.csv"


def audit(file: Path, *options: str) -> int:
    return main(["audit-order", str(file), *options])


@pytest.mark.parametrize("name", WRITERS)
def test_any_kind_of_file_is_audited_alike(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS[name](tmp_path / name)
    code = audit(tmp_path / name, "--key", "entity", "--order", "claimed", "landed", "--json")
    found = json.loads(capsys.readouterr().out)
    claimed, landed = found["columns"]
    assert code == 1
    assert found["skew"]["keys"] == 8
    assert claimed["overall"] == {"pairs": 276, "inverted": 0, "tied": 0}
    assert landed["overall"] == {"pairs": 276, "inverted": 17, "tied": 0}
    assert landed["same_key"] == {"pairs": 24, "inverted": 8, "tied": 0}


def test_people_get_a_table_and_the_first_pair_of_the_worst_keys(
    jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit(jobs, "--key", "entity", "--order", "claimed", "landed")
    lines = capsys.readouterr().out.splitlines()
    assert "24 rows, 8 keys" in lines[0]
    assert [line.split() for line in lines if line.startswith("landed  ")] == [
        ["landed", "17", "276", "0", "8", "24", "7"]
    ]
    assert "landed: key e6: 2 of 3 pairs, e.g. row 17 has 19, row 18 has 16" in lines
    assert lines[-1] == "out of order: 8 same-key pairs are inverted (landed)"


def test_global_inversions_alone_are_no_failure(jobs: Path) -> None:
    assert audit(jobs, "--key", "id", "--order", "landed") == 0


def test_a_report_judges_nothing(jobs: Path) -> None:
    assert audit(jobs, "--key", "entity", "--order", "landed", "--report") == 0


def test_the_order_to_keep_may_be_a_column(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By text, job 10 would come before job 2."""
    assert audit(jobs, "--key", "entity", "--order", "id", "--by", "claimed") == 0
    assert audit(jobs, "--key", "entity", "--order", "id", "--by", "landed", "--json") == 1
    found = json.loads(capsys.readouterr().out.partition("no same-key pair is inverted")[2])
    assert found["columns"][0]["overall"]["inverted"] == 17


def test_the_skew_may_follow_a_weight(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit(jobs, "--key", "entity", "--order", "id", "--weight", "id", "--json")
    skew = json.loads(capsys.readouterr().out)["skew"]
    assert (skew["heaviest_key"], skew["heaviest_share"]) == ("e8", 69 / 300)


def test_text_that_stands_for_no_value_is_no_value_if_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("entity,landed\na,9\na,NA\na,10\n")
    # As text, 10 comes before 9.
    assert audit(file, "--key", "entity", "--order", "landed") == 1
    assert "landed: ordered as text" in capsys.readouterr().out
    assert audit(file, "--key", "entity", "--order", "landed", "--null", "NA") == 0
    said = capsys.readouterr().out
    assert "ordered as text" not in said
    assert "landed: 1 rows without a value form no pair" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--key", "entity", "--order", "begun"], "no column begun; there are id, entity"),
        (["--key", "entity"], "--order"),
        (["--order", "landed"], "--key"),
        (["--key", "id", "--order", "landed", "--weight", "entity"], "must hold numbers"),
    ],
)
def test_bad_usage_is_exit_code_2(
    options: list[str], said: str, jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(jobs, *options) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_kind_of_file_is_bad_usage(tmp_path: Path) -> None:
    assert audit(tmp_path / "jobs.xlsx", "--key", "k", "--order", "o") == 2


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.ndjson", "jobs.parquet"])
def test_a_file_out_of_reach_or_broken_is_exit_code_3(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    assert audit(file, "--key", "k", "--order", "o") == 3
    assert "cannot be read: No such file" in capsys.readouterr().err
    file.write_bytes(b"" if name == "jobs.csv" else b'{"a": \n')
    assert audit(file, "--key", "k", "--order", "o") == 3
    error = capsys.readouterr().err
    assert "is no well-formed" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
def test_the_one_file_is_read_whatever_is_in_its_name(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"key": ["a", "b"], "step": [1, 2]})
    for name in ("a", "[a]", "*", "?"):
        getattr(frame, f"write_{ending}")(tmp_path / f"{name}.{ending}")
        assert read_rows(tmp_path / f"{name}.{ending}", ["key", "step"]).height == 2
