"""Every path that makes frames makes the same ones: vectors, traps, random rows, lane sums."""

import struct
import time
from collections.abc import Iterator

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from parity_tables import TODAY, Tables, compared, counts

from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.frame_maker import Bulk, FrameMaker
from assets.stores.parity.options import Options
from assets.stores.parity.places import side_at
from assets.stores.parity.postgres_side import PostgresSide
from assets.stores.parity.side import Reading, Side, rows_of
from assets.stores.parity.sql_side import SQLSide
from transforms.parity import canonical_self_test
from transforms.parity.canonical import ColumnType, Kind
from transforms.parity.canonical_sql import Storage, duckdb_lane, postgres_lane
from transforms.parity.canonical_vectors import VECTORS, Vector
from transforms.parity.contract import Column, Contract, RefusedError, Role, Wish, agree
from transforms.parity.grid import Cut, Grid
from transforms.parity.sql import Relation

TYPES = "k bigint, f float8, i timestamptz, l timestamp, d date, n numeric(18,4), t text, b bytea"
PAYLOAD_NAN = struct.unpack("<d", (0xFFF8_0000_0000_0001).to_bytes(8, "little"))[0]


@pytest.fixture(params=["duckdb", "postgres"])
def side(request: pytest.FixtureRequest, tables: Tables) -> Iterator[Side]:
    place = tables.make(request.param, "k bigint")
    with side_at(place, {}, Reading(memory_mib=64)) as opened:
        yield opened


def test_rows_that_differ_in_any_type_have_another_print(side: Side) -> None:
    """Every vector that is not null is looked at: with a null in its place the print is another."""
    engine = "duckdb" if isinstance(side, DuckDBSide) else "postgres"
    whole = side.vector_print()
    for place, vector in enumerate(VECTORS):
        if vector.value is None:
            continue
        texts = [getattr(each, engine) for each in VECTORS]
        texts[place] = f"nullif({texts[place]}, {texts[place]})"
        literals = ", ".join(f"{text} as x{i}" for i, text in enumerate(texts))
        relation = Relation(f"(select {literals}) v")
        assert isinstance(side, SQLSide)
        [changed] = side._prints(canonical_self_test.VECTOR_CONTRACT, relation).values()
        assert changed != whole, vector


def test_a_column_that_ignores_case_hides_no_change_of_case(tables: Tables) -> None:
    left = tables.make("duckdb", "k bigint, v text collate nocase", "(1, 'a')")
    right = tables.make("duckdb", "k bigint, v text collate nocase", "(1, 'A')")
    assert counts(compared(left, right)) == {"CHANGED": 1}
    partitioned = Options(TODAY, "v")
    places = [
        tables.make("duckdb", "k bigint, v text collate nocase", "(1, 'a'), (2, 'A')")
        for _ in range(2)
    ]
    proof = compared(*places, options=partitioned)
    assert counts(proof) == {"EQUAL": 2}
    assert [p.name for p in proof.partitions] == ["A", "a"]


def test_the_self_test_runs_every_vector_on_every_path(side: Side) -> None:
    expected = {
        True: ["DuckDB"],
        False: ["PostgreSQL pushed down", "PostgreSQL bulk read"],
    }
    assert side.self_test() == expected[isinstance(side, DuckDBSide)]


def test_a_path_that_differs_in_one_byte_must_not_judge(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = VECTORS[1]
    wrong = Vector(first.kind, first.value, first.postgres, first.duckdb, "01fffffffffffffffe")
    monkeypatch.setattr(canonical_self_test, "VECTORS", (VECTORS[0], wrong, *VECTORS[2:]))
    with pytest.raises(RefusedError, match=r"self-test of .*int -1 is 01ffffffffffffffff"):
        side.self_test()


def test_every_payload_of_nan_is_one_nan(tables: Tables) -> None:
    floats = pa.table({"k": [1], "v": pa.array([PAYLOAD_NAN], pa.float64())})
    left = tables.make("duckdb", "k bigint, v float8", "(1, 'NaN')")
    right = tables.make("postgres", "k bigint, v float8")
    name = right.partition("?")[0].rpartition("/")[2]
    with tables.server.connection.cursor() as cursor:
        cursor.adbc_ingest(name, floats, "append")
    sent = tables.change(right, "select encode(float8send(v), 'hex') from {t}")
    assert sent == [("fff8000000000001",)]  # the server kept it
    for pushdown in (False, True):
        assert compared(left, right, pushdown=pushdown).holds()


@pytest.mark.parametrize("pushdown", [False, True])
def test_random_rows_are_equal_on_all_paths(tables: Tables, pushdown: bool) -> None:  # noqa: FBT001
    left = tables.make(
        "postgres",
        TYPES,
        "select i, case when i % 7 > 0 then (random() - 0.5) * power(10, i % 60 - 30) end,"
        " '2024-01-01'::timestamptz + (random() * 1e9 - 5e8) * interval '1 s',"
        " '2024-01-01'::timestamp - random() * 1e6 * interval '1 ms', date '2000-01-01' - i,"
        " (random() - 0.5) * 1e6, case when i % 5 > 0 then repeat(chr(i + 100), i % 9) end,"
        " decode(md5(i::text), 'hex') from generate_series(1, 3000) i",
    )
    right = tables.make("duckdb", TYPES)
    proof = compared(left, right, mend=True, pushdown=pushdown)
    assert proof.repaired is not None
    assert proof.repaired.upserts == 3000
    assert counts(compared(right, left, pushdown=not pushdown)) == {"EQUAL": 3000}


def test_sums_of_full_lanes_are_exact_in_both_engines(tables: Tables) -> None:
    full = "ff" * 16
    rows = f"(select decode('{full}', 'hex') as d from generate_series(1, 3)) x"
    in_postgres = f"select sum({postgres_lane('d', 3)})::text from {rows}"
    assert tables.run("postgres", in_postgres) == [("12884901885",)]
    number = f"{2**128 - 1}::UHUGEINT"
    in_duckdb = f"select sum({duckdb_lane(number, 3)})::text from range(3)"
    assert tables.run("duckdb", in_duckdb) == [("12884901885",)]


def test_the_traps_of_the_engines_are_still_there() -> None:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        answers = connection.execute(
            "select (-0.5)::decimal(4,4)::varchar, epoch_us('infinity'::timestamptz),"
            " typeof(0.1), typeof(concat('\\x01'::blob, null))"
        ).fetchall()[0]
    assert answers == ("-.5000", None, "DECIMAL(2,1)", "VARCHAR")


def test_a_bulk_read_starts_at_once_and_holds_little(tables: Tables) -> None:
    place = tables.make(
        "postgres", "k bigint, v text", "select i, md5(i::text) from generate_series(1, 50000) i"
    )
    with side_at(place, {}, Reading(memory_mib=64)) as side:
        frames = side.rows(_contract(side), "true", None, None)
        first = next(frames)
        frames.close()
    assert 0 < first.height < 50_000


def test_the_first_batch_of_a_million_rows_without_an_index_comes_in_two_seconds(
    tables: Tables,
) -> None:
    series = "select i, 'n' || i, i / 7.0 from generate_series(1, 1000000) i"
    place = tables.make("postgres", "k bigint, v text, f float8", series)
    waited, first = [], 0
    with side_at(place, {}, Reading(memory_mib=64)) as side:
        assert isinstance(side, PostgresSide)
        relation = Relation(side._source)
        for _ in range(3):  # of a machine that does other things, too
            begun = time.monotonic()
            with side._bulk(_contract(side), relation) as bulk:
                first = next(iter(bulk.reader)).num_rows
            waited.append(time.monotonic() - begun)
    assert 0 < first < 1_000_000
    assert min(waited) < 2


TIMES = (
    *("2023-06-01 00:00+00", "2024-01-01 00:00+00", "2024-01-01 23:59:59.999999+00"),  # 0
    *("2024-01-02 00:00+00", "2024-01-02 12:00+00"),  # 1
    "2024-01-04 23:59:59.999999+00",  # 3, which is wanted though 2 is not
    *("2024-01-03 07:00+00", "2024-01-05 00:00+00", "2300-01-01 00:00+00"),
    *("infinity", "-infinity"),
)
GRID = Grid(Cut("seen", 1_704_067_200_000_000, 86_400_000_000), {0: "a", 1: "b", 3: "d"}, "rest")


@pytest.mark.parametrize(
    ("store", "push_down"), [("duckdb", False), ("postgres", False), ("postgres", True)]
)
def test_rows_fall_apart_into_the_partitions_of_a_grid(
    tables: Tables,
    store: str,
    push_down: bool,  # noqa: FBT001 (an example)
) -> None:
    rows = ", ".join(f"({k}, '{at}')" for k, at in enumerate(TIMES))
    place = tables.make(store, "k bigint, seen timestamptz", f"{rows}, (99, null)")
    with side_at(place, {}, Reading(push_down, 64)) as side:
        contract = _contract(side)

        def counted(where: str, cut: Cut | None = None) -> dict[int, int]:
            scans = side.cells(contract, where, cut)
            return {number: rows_of({number: scan}) for number, scan in scans.items()}

        at_once = counted(GRID.condition(GRID.names), GRID.cut)
        one_by_one = {number: counted(GRID.condition([number]))[0] for number in GRID.names}
        assert at_once == one_by_one == {0: 3, 1: 2, 3: 1}
        assert counted(GRID.elsewhere()) == {0: 6}
        if side.in_process:
            prints = side.prints(contract, GRID.condition(GRID.names), GRID.cut)
            assert {number: each.n for number, each in prints.items()} == at_once


def _contract(side: Side) -> Contract:
    return agree(side.columns(), side.columns(), Wish(["k"]))


def test_the_lakes_microseconds_are_the_instants_of_the_target() -> None:
    contract = Contract((Column("at", ColumnType(Kind.INSTANT), Role.KEY),))
    micros = pl.DataFrame({"at": [-1, 0, 946_684_800_000_001]})
    instants = micros.select(pl.col("at").cast(pl.Datetime("us", "UTC")))
    maker = FrameMaker(64)
    by_storage = [
        maker.cells(contract, Bulk(frame.to_arrow().to_reader(), {"at": storage}))[0].cells
        for frame, storage in ((micros, Storage.MICROS), (instants, Storage.NATIVE))
    ]
    maker.close()
    assert by_storage[0] == by_storage[1]
    assert sum(cell.n for cell in by_storage[0].values()) == 3
