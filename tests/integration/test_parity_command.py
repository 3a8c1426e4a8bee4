import json
import subprocess
import sys
from pathlib import Path

import pytest
from parity_tables import STORES, Tables

from orchestration.cli import main

COLUMNS = "k bigint, v text, amount numeric(18,4)"
ROWS = "(1, 'a', 1.5), (2, null, 2.25), (3, 'c', -0.5)"
CHECKER = Path(__file__).parents[2] / "samples" / "check_evidence.py"


@pytest.fixture(params=STORES, ids="-".join)
def places(request: pytest.FixtureRequest, tables: Tables) -> tuple[str, str]:
    source, target = (tables.make(store, COLUMNS, ROWS) for store in request.param)
    return source, target


def parity(places: tuple[str, str], *more: str) -> int:
    return main(["parity", "--source", places[0], "--target", places[1], "--key", "k", *more])


def test_equal_tables_give_exit_code_0(
    places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parity(places) == 0
    shown = capsys.readouterr().out
    assert "EQUAL 3" in shown
    assert shown.splitlines()[-1] == "EQUAL: proved"


def test_a_difference_gives_exit_code_1_and_is_explained(
    places: tuple[str, str], tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.change(places[1], "update {t} set v = 'A' where k = 1", "delete from {t} where k = 3")
    assert parity(places) == 1
    shown = capsys.readouterr().out
    assert "CHANGED v case: 1" in shown
    assert "key k=1; source v='a'; target v='A'" in shown
    assert "{column: v, cause: case, limit: 1, reason: ..., until: YYYY-MM-DD}" in shown
    assert "a repair would do: 2 upserts" in shown


def test_json_and_evidence_say_the_same(
    places: tuple[str, str],
    tables: Tables,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tables.change(places[1], "insert into {t} (k) values (8), (9)")
    file = tmp_path / "evidence.json"
    assert parity(places, "--json", "--evidence", str(file)) == 1
    said = json.loads(capsys.readouterr().out)
    evidence = json.loads(file.read_text())
    assert said["counts"]["EXTRA"] == evidence["counts"]["EXTRA"] == 2
    assert evidence["contract"][0] == ["k", "int", "key"]
    assert {fault[0] for fault in evidence["planted"] if fault[1]} >= {"row dropped", "p,p for q,q"}
    assert evidence["blindness"]["normalised"]["amount"]


EVERY_TYPE = (
    "k bigint, v text, f float8, g float8, i timestamptz, l timestamp, d date, e date, b bytea,"
    " u uuid, o boolean, n numeric(18,4), q numeric(4,4), z int"
)
ONE_OF_EACH = (
    "(1, 'é', 'NaN', '-0.0', 'infinity', '-infinity', '2024-02-29', '-infinity', 'x',"
    " 'f23e4567-e89b-12d3-a456-426614174000', true, 1.5, -0.5, null),"
    " (2, '', 0.1, 1e300, '1969-12-31 23:59:59.999999+00', '2024-03-31 02:30:00', '1999-12-31',"
    " 'infinity', '', null, false, -0.25, 0.25, -7)"
)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_program_of_50_lines_checks_the_evidence_against_either_store(
    tables: Tables, tmp_path: Path, side: str
) -> None:
    file = tmp_path / "evidence.json"
    stores = ("duckdb", "postgres")
    places = [tables.make(store, EVERY_TYPE, ONE_OF_EACH) for store in stores]
    assert parity((places[0], places[1]), "--evidence", str(file)) == 0
    place = places[("source", "target").index(side)]

    def check() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-W", "ignore", str(CHECKER), str(file), side, place]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert check().stdout.startswith("the store holds what the evidence says"), check().stderr
    tables.change(place, "update {t} set v = 'b' where k = 2")
    assert check().returncode == 1
    assert CHECKER.read_text().count("\n") <= 50


def test_a_repair_by_the_command_line(
    places: tuple[str, str], tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.change(places[1], "delete from {t}")
    assert parity(places, "--repair") == 0
    assert "repaired: 3 upserts" in capsys.readouterr().out
    assert parity(places) == 0


def test_a_waiver_from_a_file(places: tuple[str, str], tables: Tables, tmp_path: Path) -> None:
    tables.change(places[1], "update {t} set v = 'A' where k = 1")
    file = tmp_path / "waivers.yaml"
    line = "- {column: v, cause: case, limit: 1, reason: shouting, until: 2999-01-01}\n"
    file.write_text(line)
    assert parity(places, "--waivers", str(file)) == 0
    file.write_text(line.replace("2999", "1999"))
    assert parity(places, "--waivers", str(file)) == 1
    file.write_text(line.replace("limit: 1", "limit: 0"))
    assert parity(places, "--waivers", str(file)) == 1


def test_a_mistake_in_a_waiver_is_named(
    places: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "waivers.yaml"
    file.write_text("- {column: v, cause: case, limit: -1, until: soon}\n")
    assert parity(places, "--waivers", str(file)) == 2
    said = capsys.readouterr().err
    assert "0.limit" in said
    assert "0.reason" in said
    assert "0.until" in said


def test_a_server_out_of_reach_gives_exit_code_3_and_no_password(
    tables: Tables, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    there = "postgresql://me:s3cret@127.0.0.1:1/db"
    assert parity((here, f"{there}/public.t")) == 3
    monkeypatch.setenv("TARGET_DSN", there)
    assert parity((here, "env:TARGET_DSN/public.t")) == 3
    said = capsys.readouterr()
    assert "postgresql://127.0.0.1:1/db" in said.err
    assert "s3cret" not in said.err + said.out


def test_a_table_that_is_not_there_gives_exit_code_3(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    for there in (tables.place("postgres", "nowhere"), tables.place("duckdb", "nowhere")):
        assert parity((here, there)) == 3
        assert "nowhere" in capsys.readouterr().err
    assert parity((here, f"{tables.folder}/none.parquet")) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--type", "amount=money"], "found money; allowed: int, bool"),
        (["--waivers", "/nowhere.yaml"], "cannot be read"),
        (["--push-down"], "--push-down: no table is in PostgreSQL"),
        (["--approve-deletes", "3"], "--approve-deletes is for --repair"),
    ],
)
def test_a_wrong_call_gives_exit_code_2(
    tables: Tables, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    assert parity((here, here), *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "place",
    [
        *("somewhere", "postgresql://host/db", "env:NOT_SET/t", "env:HOME", "env:HOME/"),
        *("postgres+driver://me:s3cret@host/db/t", "mysql://me:s3cret@host/db/t"),
    ],
)
def test_a_place_that_is_none_gives_exit_code_2_and_shows_no_password(
    tables: Tables, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    assert parity((here, place)) == 2
    assert "s3cret" not in capsys.readouterr().err


def test_an_unknown_key_is_refused(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    words = ["parity", "--source", here, "--target", here, "--key", "id", "--key", "part?"]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "REFUSED: key column id is not in the source" in said
    assert "REFUSED: key column part is not in the source" in said


def test_a_key_part_that_may_be_null_by_the_command_line(tables: Tables) -> None:
    here, there = (
        tables.make(store, "k bigint, part text", "(1, null), (1, '')")
        for store in ("duckdb", "postgres")
    )
    words = ["parity", "--source", here, "--target", there, "--key", "k", "--key"]
    assert main([*words, "part?"]) == 0
    assert main([*words, "part"]) == 1


def test_a_resumed_proof_by_the_command_line(places: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    for _ in range(2):
        assert parity(places, "--partition", "k", "--resume", str(file)) == 0
    assert file.read_text().count("\n") == 3


@pytest.mark.parametrize("text", ["no ledger\n", "no ledger", '{"columns": []}\n', '{"of": 1}\n'])
def test_a_file_that_is_no_ledger_is_named_and_not_touched(
    tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    here = tables.make("duckdb", COLUMNS, ROWS)
    file = tmp_path / "precious.json"
    file.write_text(text)
    assert parity((here, here), "--resume", str(file)) == 2
    assert "precious.json: is no ledger of a proof" in capsys.readouterr().err
    assert file.read_text() == text
    assert parity((here, here), "--resume", str(tmp_path / "nowhere" / "file")) == 2


def test_an_address_in_words_is_taken_from_a_variable(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (tables.make(store, COLUMNS, ROWS) for store in ("duckdb", "postgres"))
    base, _, options = tables.server.dsn.partition("?host=")
    monkeypatch.setenv("WORDS", f"host={options} dbname=postgres user=postgres password='a b'")
    name = there.partition("?")[0].rpartition("/")[2]
    assert base.startswith("postgresql://")
    assert parity((here, f"env:WORDS/public.{name}")) == 0
