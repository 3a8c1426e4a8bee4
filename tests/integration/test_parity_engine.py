"""The engine over real stores: how it descends, what it moves, what happens when stores move."""

import os
from pathlib import Path

import psutil
import pytest
from parity_tables import STORES, TODAY, Tables, causes, compared, counts

from assets.stores.parity import engine
from assets.stores.parity.ledger import FileLedger
from assets.stores.parity.options import Options
from transforms.errors import TargetError
from transforms.parity.cells import Cells
from transforms.parity.contract import Contract
from transforms.parity.faults import Planted
from transforms.parity.proof import Partition

COLUMNS = "k bigint, v text, f float8"


def series(store: str, rows: int, value: str = "'n' || i") -> str:
    numbers = {"duckdb": f"range({rows}) t(i)", "postgres": f"generate_series(0, {rows - 1}) t(i)"}
    return f"select i, {value}, i / 7.0 from {numbers[store]}"


@pytest.fixture(params=STORES, ids="-".join)
def pair(request: pytest.FixtureRequest, tables: Tables) -> tuple[str, ...]:
    return tuple(tables.make(store, COLUMNS, series(store, 20_000)) for store in request.param)


def test_few_differences_move_few_bytes(pair: tuple[str, str], tables: Tables) -> None:
    tables.change(pair[1], "update {t} set v = 'x' where k in (77, 7777)")
    proof = compared(*pair)
    assert counts(proof) == {"EQUAL": 19_998, "CHANGED": 2}
    assert 0 < proof.moved_bytes < 0.02 * 20_000 * 8 * 3


@pytest.mark.parametrize("value", ["'other'", "v || ' '"])
def test_where_everything_differs_every_row_is_named(
    pair: tuple[str, str], tables: Tables, value: str
) -> None:
    tables.change(pair[1], f"update {{t}} set v = {value}")
    proof = compared(*pair)
    assert counts(proof) == {"CHANGED": 20_000}
    assert causes(proof) == {("v", "other" if value == "'other'" else "trailing-blank")}


def test_50_000_changed_rows_stay_within_the_budget(tables: Tables) -> None:
    source = tables.make("duckdb", COLUMNS, series("duckdb", 50_000))
    target = tables.make("postgres", COLUMNS, series("postgres", 50_000, "'m' || i"))
    compared(source, source)  # libraries are loaded, allocators warm
    process = psutil.Process(os.getpid())
    start = process.memory_info().rss
    proof = compared(source, target)
    assert counts(proof) == {"CHANGED": 50_000}
    assert process.memory_info().rss - start < 64 * 2**20


def test_a_moved_bucket_column_hides_nothing(tables: Tables) -> None:
    columns = "k bigint, v text, _bucket bigint"
    rows = ", ".join(f"({k}, 'same', {k})" for k in range(100))
    for store in ("duckdb", "postgres"):
        source, target = (tables.make(store, columns, rows) for _ in range(2))
        tables.change(target, "update {t} set v = 'tampered', _bucket = 4000 where k = 50")
        assert counts(compared(source, target)) == {"EQUAL": 99, "CHANGED": 1}


def test_a_second_look_decides_what_the_first_suspects(
    pair: tuple[str, str], tables: Tables
) -> None:
    tables.change(
        pair[1],
        "update {t} set v = 'late' where k = 1",
        "update {t} set v = 'moving' where k = 2",
        "update {t} set v = 'wrong' where k = 3",
    )

    def meanwhile(_seconds: float) -> None:
        if "postgresql" in pair[1]:  # a DuckDB file that is read cannot be written
            tables.change(
                pair[1],
                "update {t} set v = 'n1' where k = 1",
                "update {t} set v = 'moved on' where k = 2",
            )

    proof = compared(*pair, options=Options(TODAY, commit_lag_s=5.0, sleep=meanwhile))
    if "postgresql" in pair[1]:
        assert counts(proof) == {"EQUAL": 19_999, "CHANGED": 1, "SUSPECT": 1}
    else:
        assert counts(proof) == {"EQUAL": 19_997, "CHANGED": 3}


def test_rows_written_meanwhile_are_not_in_the_snapshot(tables: Tables) -> None:
    source = tables.make("duckdb", COLUMNS, series("duckdb", 100))
    target = tables.make("postgres", COLUMNS, series("postgres", 100))

    class Meanwhile:
        def recall(self, _contract: Contract, _partition: str) -> tuple[Cells, Cells] | None:
            return None

        def keep(self, _contract: Contract, _partition: Partition) -> None:
            tables.change(target, "delete from {t}")

    assert compared(source, target, options=Options(TODAY, ledger=Meanwhile())).holds()


def test_a_connection_that_is_cut_while_rows_are_read_is_a_store_out_of_reach(
    tables: Tables,
) -> None:
    wide = "select i, repeat(md5(i::text), 8), i / 7.0 from generate_series(1, 200000) i"
    target = tables.make("postgres", COLUMNS, wide)
    cut = (
        "select count(pg_terminate_backend(pid)) from pg_stat_activity where state = 'active'"
        " and pid <> pg_backend_pid() and query like 'COPY%'"
    )

    def told(_rows: int) -> None:
        tables.run("postgres", cut)

    source = tables.make("duckdb", COLUMNS, series("duckdb", 10))
    with pytest.raises(TargetError, match=r"server closed the connection|terminating connection"):
        compared(source, target, options=Options(TODAY, told=told))


class KilledError(Exception):
    pass


class KilledAfter(FileLedger):
    """A ledger whose process dies once so many partitions are kept."""

    left = 5

    def keep(self, contract: Contract, partition: Partition) -> None:
        super().keep(contract, partition)
        self.left -= 1
        if not self.left:
            raise KilledError


@pytest.mark.parametrize("stores", STORES, ids="-".join)
def test_a_killed_proof_goes_on_where_it_was(
    tables: Tables, stores: tuple[str, str], tmp_path: Path
) -> None:
    rows = ", ".join(f"({k}, 'v', 'p{k % 16:02}')" for k in range(160))
    places = [tables.make(store, "k bigint, v text, part text", rows) for store in stores]
    file = tmp_path / "ledger.jsonl"
    with pytest.raises(KilledError):
        compared(*places, options=Options(TODAY, "part", ledger=KilledAfter(file, *places)))
    with file.open("a") as torn:
        torn.write('{"of": ["cut')
    resumed = compared(*places, options=Options(TODAY, "part", ledger=FileLedger(file, *places)))
    whole = compared(*places, options=Options(TODAY, "part"))
    assert [p.resumed for p in resumed.partitions].count(False) == 11
    assert resumed.root("source") == whole.root("source") == whole.root("target")
    assert resumed.holds()


def test_a_partition_of_one_side_alone_is_read_too(tables: Tables) -> None:
    columns = "k bigint, day date"
    source = tables.make("duckdb", columns, "(1, '2024-01-01'), (2, '2024-01-02')")
    target = tables.make("postgres", columns, "(2, '2024-01-02'), (3, '2024-01-03')")
    proof = compared(source, target, options=Options(TODAY, "day"))
    assert counts(proof) == {"EQUAL": 1, "MISSING": 1, "EXTRA": 1}
    assert [p.name for p in proof.partitions] == ["2024-01-01", "2024-01-02", "2024-01-03"]


@pytest.mark.parametrize("column", ["f", "nowhere"])
def test_a_partition_has_to_be_of_a_kind_that_both_stores_write_alike(
    tables: Tables, column: str
) -> None:
    place = tables.make("duckdb", COLUMNS, series("duckdb", 10))
    (reason,) = compared(place, place, options=Options(TODAY, column)).refused
    assert "allowed: date, int, text" in reason


def test_cells_of_a_table_that_changed_since_are_not_believed(
    tables: Tables, tmp_path: Path
) -> None:
    places = [tables.make(store, COLUMNS, series(store, 100)) for store in ("duckdb", "postgres")]
    tables.change(places[1], "delete from {t} where k = 5")
    for _ in range(2):
        ledger = FileLedger(tmp_path / "ledger.jsonl", *places)
        proof = compared(*places, options=Options(TODAY, ledger=ledger))
        tables.change(places[1], "insert into {t} values (5, 'n5', 0)")
    assert "rows changed after their cells were read" in proof.refused[0]


def test_a_server_that_is_not_in_utf8_cannot_be_judged(tables: Tables) -> None:
    tables.run(
        "postgres",
        "create database old template template0 encoding 'SQL_ASCII' locale 'C'",
    )
    source = tables.make("duckdb", "k bigint", "(1)")
    there = tables.place("postgres", "pg_class").replace("/postgres/", "/old/")
    (reason,) = compared(source, there).refused
    assert "encoding is SQL_ASCII, not UTF8" in reason


def test_two_tables_of_one_server(tables: Tables) -> None:
    source, target = (tables.make("postgres", COLUMNS, series("postgres", 1000)) for _ in range(2))
    tables.change(target, "delete from {t} where k = 5")
    for pushdown in (False, True):
        assert counts(compared(source, target, pushdown=pushdown)) == {"EQUAL": 999, "MISSING": 1}


def test_a_table_against_its_export(tables: Tables) -> None:
    source = tables.make("duckdb", COLUMNS, series("duckdb", 1000))
    name = source.rpartition("/")[2]
    for part in (0, 1):
        file = tables.folder / f"part-{part}.parquet"
        tables.run("duckdb", f"copy (from {name} where k % 2 = {part}) to '{file}'")
    assert compared(source, f"{tables.folder}/part-*.parquet").holds()


def test_a_proof_that_does_not_see_a_planted_fault_is_refused(
    pair: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "plant", lambda *_: [Planted("float bit", seen=False)])
    assert compared(*pair).refused == ("planted fault not recognised: float bit, said nothing",)
