import pytest
from parity_tables import STORES, TODAY, Tables, compared, counts

from assets.stores.parity.options import Options
from transforms.errors import UsageError
from transforms.parity.waivers import Waiver

COLUMNS = "k bigint, v text, f float8, i timestamptz, revision bigint"
EVERY = (
    "select i, 'n' || i, i / 7.0, '2024-01-01 00:00+00'::timestamptz + i * interval '1 second', 0"
    " from {series}"
)
SERIES = {
    "duckdb": "range(1, 501) t(i)",
    "postgres": "generate_series(1, 500) t(i)",
}


@pytest.fixture(params=STORES, ids="-".join)
def places(request: pytest.FixtureRequest, tables: Tables) -> tuple[str, str]:
    source, target = (
        tables.make(store, COLUMNS, EVERY.format(series=SERIES[store])) for store in request.param
    )
    return source, target


def test_a_repair_mends_every_kind_of_difference_and_proves_it(
    places: tuple[str, str], tables: Tables
) -> None:
    tables.change(
        places[1],
        "update {t} set v = 'x' where k <= 5",
        "update {t} set i = 'infinity', f = 'NaN' where k = 6",
        "delete from {t} where k in (10, 11)",
        "insert into {t} select * from {t} where k in (20, 21)",
        "insert into {t} (k) values (1000), (1001)",
    )
    before = compared(*places)
    assert counts(before) == {
        "EQUAL": 490,
        "CHANGED": 6,
        "MISSING": 2,
        "EXTRA": 2,
        "DUPLICATE": 2,
    }
    assert before.plan is not None
    assert (before.plan.upserts, before.plan.removals) == (8, 4)
    after = compared(*places, mend=True)
    assert after.holds()
    assert after.root("source") == after.root("target")
    assert counts(compared(*places)) == {"EQUAL": 500}


def test_what_is_removed_is_kept_beside_the_table(places: tuple[str, str], tables: Tables) -> None:
    tables.change(places[1], "insert into {t} (k, v) values (7777, 'surplus')")
    assert compared(*places, mend=True).holds()
    name = places[1].partition("?")[0].rpartition("/")[2]
    kept = tables.change(
        places[1],
        f"select content from parity_removed where table_name = '\"{name}\"'",
    )
    assert len(kept) == 1
    assert "surplus" in kept[0][0]


def test_a_newer_revision_stays(places: tuple[str, str], tables: Tables) -> None:
    tables.change(places[1], "update {t} set v = 'newer', revision = 3 where k = 9")
    after = compared(*places, mend=True)
    assert after.repaired is not None
    assert after.repaired.newer == 1
    assert [f["cause"] for f in after.findings()] == ["revision-ahead"]
    assert tables.change(places[1], "select v from {t} where k = 9") == [("newer",)]


def test_an_older_revision_is_brought_up(places: tuple[str, str], tables: Tables) -> None:
    tables.change(places[0], "update {t} set v = 'second', revision = 1 where k = 9")
    before = compared(*places)
    assert [f["cause"] for f in before.findings()] == ["revision-behind"]
    assert compared(*places, mend=True).holds()


def test_many_removals_must_be_approved_by_their_number(
    places: tuple[str, str], tables: Tables
) -> None:
    extra = ", ".join(f"({k})" for k in range(1000, 1101))
    tables.change(places[1], f"insert into {{t}} (k) values {extra}")
    for approved in (None, 100):
        with pytest.raises(UsageError, match="--approve-deletes 101"):
            compared(*places, mend=True, approved=approved)
    assert counts(compared(*places))["EXTRA"] == 101
    assert compared(*places, mend=True, approved=101).holds()


def test_a_key_that_the_source_holds_twice_is_left_alone(
    places: tuple[str, str], tables: Tables
) -> None:
    tables.change(places[0], "insert into {t} select * from {t} where k = 3")
    after = compared(*places, mend=True)
    assert counts(after) == {"EQUAL": 499, "DUPLICATE": 1}
    assert after.repaired is not None
    assert after.repaired.unrepairable == 1


def test_a_waived_difference_is_not_repaired(places: tuple[str, str], tables: Tables) -> None:
    tables.change(places[1], "update {t} set v = 'N4' where k = 4")
    waiver = Waiver(column="v", cause="case", limit=1, reason="the target shouts", until=TODAY)
    after = compared(*places, mend=True, options=Options(TODAY, waivers=(waiver,)))
    assert after.holds()
    assert tables.change(places[1], "select v from {t} where k = 4") == [("N4",)]


def test_text_that_postgresql_cannot_hold_is_said_to_be_unwritable(tables: Tables) -> None:
    source = tables.make("duckdb", "k bigint, v text", "(1, 'a' || chr(0)), (2, 'b')")
    target = tables.make("postgres", "k bigint, v text")
    after = compared(source, target, mend=True)
    assert counts(after) == {"EQUAL": 1, "MISSING": 1}
    assert after.repaired is not None
    assert after.repaired.unwritable == 1


def test_parquet_files_cannot_be_repaired(tables: Tables) -> None:
    source = tables.make("duckdb", "k bigint", "(1)")
    file = tables.folder / "part.parquet"
    tables.run("duckdb", f"copy (select 2::bigint as k) to '{file}'")
    with pytest.raises(UsageError, match="cannot be repaired"):
        compared(source, str(file), mend=True)


def test_a_refused_proof_repairs_nothing(tables: Tables) -> None:
    source = tables.make("duckdb", "k bigint, v text", "(null, 'a'), (2, 'b')")
    target = tables.make("duckdb", "k bigint, v text")
    assert compared(source, target, mend=True).refused
    assert tables.change(target, "select count(*) from {t}") == [(0,)]
