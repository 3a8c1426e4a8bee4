"""The small inputs of the contract, each with the verdict that is right, in every store."""

from typing import Any

import pytest
from parity_tables import STORES, TODAY, Tables, causes, compared, counts

from assets.stores.parity.duckdb_side import DuckDBSide
from assets.stores.parity.options import Options
from assets.stores.parity.postgres_side import PostgresSide
from transforms.parity.canonical import ColumnType
from transforms.parity.proof import Proof
from transforms.parity.waivers import Waiver


@pytest.fixture(params=STORES, ids="-".join)
def stores(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


class Pair:
    """Both tables of a case; ``of(columns, source rows, target rows)`` proves them."""

    def __init__(self, tables: Tables, stores: tuple[str, str]) -> None:
        self.tables, self.stores = tables, stores

    def of(
        self, columns: str, source: str, target: str, key: tuple[str, ...] = ("k",), **more: object
    ) -> Proof:
        places = self.places(columns, columns, source, target)
        return compared(*places, key, **more)  # type: ignore[arg-type]

    def places(self, left: str, right: str, source: str = "", target: str = "") -> tuple[str, str]:
        return (
            self.tables.make(self.stores[0], left, source),
            self.tables.make(self.stores[1], right, target),
        )


@pytest.fixture
def pair(tables: Tables, stores: tuple[str, str]) -> Pair:
    return Pair(tables, stores)


FLOATS = "k bigint, v double precision"
TEXTS = "k bigint, v text"


def test_a_float_that_is_shown_rounded_is_equal(pair: Pair) -> None:
    proof = pair.of(FLOATS, "(1, 1.005)", "(1, 1.005)")
    assert proof.holds()
    assert counts(proof) == {"EQUAL": 1}


def test_a_sum_and_its_rounding_differ_in_the_last_bits_until_that_is_waived(pair: Pair) -> None:
    rows = (
        "(1, cast(0.1 as double precision) + cast(0.2 as double precision))",
        "(1, cast(0.3 as double precision))",
    )
    proof = pair.of(FLOATS, *rows)
    assert counts(proof) == {"CHANGED": 1}
    assert causes(proof) == {("v", "float-last-bits")}
    waiver = Waiver(
        column="v", cause="float-last-bits", limit=1, reason="summed elsewhere", until=TODAY
    )
    waived = pair.of(FLOATS, *rows, options=Options(TODAY, waivers=(waiver,)))
    assert waived.holds()
    assert counts(waived) == {"EQUAL": 1}
    assert waived.waived_keys() == 1
    assert waived.findings()[0]["waived"]


def test_nan_is_nan_and_is_not_null(pair: Pair) -> None:
    assert pair.of(FLOATS, "(1, 'NaN')", "(1, 'NaN')").holds()
    proof = pair.of(FLOATS, "(1, 'NaN')", "(1, null)")
    assert causes(proof) == {("v", "null-nan")}


def test_zeros_of_either_sign_are_equal(pair: Pair) -> None:
    assert pair.of(FLOATS, "(1, '-0.0')", "(1, '0.0')").holds()


def test_the_digits_that_a_timestamp_is_shown_with_do_not_count(tables: Tables) -> None:
    row = "(1, '2024-05-01 12:00:05.120+00')"
    left = tables.make("postgres", "k bigint, v timestamptz(3)", row)
    right = tables.make("postgres", "k bigint, v timestamptz(6)", row)
    assert compared(left, right).holds()


def test_a_date_and_its_midnight_cannot_be_judged(pair: Pair) -> None:
    places = pair.places("k bigint, v date", "k bigint, v timestamp", "(1, '2024-02-29')")
    proof = compared(*places)
    assert counts(proof) == {"REFUSED": 1}
    assert not proof.holds()
    assert "column v is" in proof.refused[0]


def test_an_instant_is_the_same_in_every_zone(pair: Pair) -> None:
    columns = "k bigint, v timestamptz"
    proof = pair.of(columns, "(1, '2024-05-01 00:00+00')", "(1, '2024-05-01 05:30+05:30')")
    assert proof.holds()


def test_the_zone_of_the_session_does_not_matter(tables: Tables) -> None:
    columns, row = "k bigint, v timestamptz", "(1, '2024-05-01 00:00+00')"
    left, right = (tables.make(store, columns, row) for store in ("duckdb", "postgres"))
    assert compared(left, f"{right}&options=-c%20timezone%3DAsia/Kolkata").holds()


def test_infinite_times_are_equal_and_differ_from_finite_ones(pair: Pair) -> None:
    columns = "k bigint, i timestamptz, l timestamp, d date"
    far = "(1, 'infinity', '-infinity', 'infinity')"
    assert pair.of(columns, far, far).holds()
    near = "(1, '1969-01-01 00:00+00', '-infinity', '2024-01-01')"
    assert causes(pair.of(columns, far, near)) == {("i", "other"), ("d", "other")}


def test_equal_duplicates_on_both_sides_are_no_green(pair: Pair) -> None:
    proof = pair.of(TEXTS, "(1, 'a'), (1, 'a')", "(1, 'a'), (1, 'a')")
    assert counts(proof) == {"DUPLICATE": 1}
    assert {f["cause"] for f in proof.findings()} == {"2 in source", "2 in target"}


def test_a_duplicate_in_the_source_leaves_a_row_unmatched(pair: Pair) -> None:
    proof = pair.of(TEXTS, "(1, 'a'), (1, 'b')", "(1, 'a')")
    assert counts(proof) == {"DUPLICATE": 1}
    found = {f["cause"]: f["samples"][0] for f in proof.findings()}
    assert found.keys() == {"2 in source", "unmatched in source"}
    assert found["unmatched in source"]["source"] == "v='b'"


def test_pairs_that_an_xor_would_cancel_are_seen(pair: Pair) -> None:
    proof = pair.of(TEXTS, "(1, 'a'), (1, 'a'), (2, 'z')", "(1, 'b'), (1, 'b'), (2, 'z')")
    assert counts(proof) == {"EQUAL": 1, "CHANGED": 1, "DUPLICATE": 1}


def test_a_separator_in_a_value_moves_nothing(pair: Pair) -> None:
    columns = "k bigint, v text, w text"
    proof = pair.of(columns, "(1, 'a|', 'b')", "(1, 'a', '|b')")
    assert causes(proof) == {("v", "other"), ("w", "other")}


def test_a_text_that_says_null_is_not_null(pair: Pair) -> None:
    assert causes(pair.of(TEXTS, "(1, null)", "(1, '<null>')")) == {("v", "other")}
    assert causes(pair.of(TEXTS, "(1, null)", "(1, '')")) == {("v", "null-empty")}


def test_a_null_in_a_key_cannot_be_judged_and_is_counted(pair: Pair) -> None:
    proof = pair.of(TEXTS, "(null, 'a'), (null, 'b'), (2, 'c')", "(2, 'c')")
    assert counts(proof) == {"REFUSED": 1}
    assert "2 rows have a null in their key" in proof.refused[0]


def test_a_key_part_that_may_be_null_is_not_the_empty_text(pair: Pair) -> None:
    columns = "k bigint, part text, v text"
    proof = pair.of(columns, "(1, null, 'a')", "(1, '', 'a')", ("k", "part"), nullable=("part",))
    assert counts(proof) == {"MISSING": 1, "EXTRA": 1}
    same = pair.of(columns, "(1, null, 'a')", "(1, null, 'a')", ("k", "part"), nullable=("part",))
    assert same.holds()


def test_a_row_of_nulls_can_be_missing(pair: Pair) -> None:
    assert counts(pair.of(TEXTS, "(1, null)", "")) == {"MISSING": 1}


def test_no_rows_are_equal_and_said_to_be_none(pair: Pair) -> None:
    proof = pair.of(TEXTS, "", "")
    assert proof.holds()
    assert proof.summary()["rows"] == {"source": 0, "target": 0}
    assert counts(pair.of(TEXTS, "", "(1, 'a')")) == {"EXTRA": 1}


def test_the_order_in_which_a_store_sorts_does_not_matter(pair: Pair) -> None:
    keys = ["A", "Z", "a", "a-b", "ab", "é"]
    source = ", ".join(f"('{key}', 1)" for key in keys)
    target = ", ".join(f"('{key}', 1)" for key in reversed(keys))
    proof = pair.of("k text, v bigint", source, target)
    assert proof.holds()
    assert counts(proof) == {"EQUAL": 6}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The side and the kind of every query that is asked of a store, in the order of asking."""
    found: list[str] = []
    for side in (DuckDBSide, PostgresSide):
        for name in ("_query", "_stream", "_cells", "_prints"):
            ask = getattr(side, name)

            def noted(self: object, *words: object, ask: Any = ask, name: str = name) -> object:
                found.append(f"{type(self).__name__} {name}")
                return ask(self, *words)

            monkeypatch.setattr(side, name, noted)
    return found


def test_a_key_of_six_parts_takes_no_more_queries_than_a_key_of_one(
    pair: Pair, asked: list[str]
) -> None:
    def compared_by_key_of(parts: int) -> list[str]:
        names = [f"k{i}" for i in range(parts)]
        columns = ", ".join([*(f"{name} bigint" for name in names), "v text"])
        base = round(64 ** (1 / parts))

        def rows(changed: str) -> str:
            digits = ([number // base**i % base for i in range(parts)] for number in range(64))
            return ", ".join(
                f"({', '.join(map(str, part))}, '{changed if number == 37 else 'same'}')"
                for number, part in enumerate(digits)
            )

        asked.clear()
        proof = pair.of(columns, rows("same"), rows("other"), tuple(names))
        assert counts(proof) == {"EQUAL": 63, "CHANGED": 1}
        return sorted(asked)

    of_one = compared_by_key_of(1)
    assert len(of_one) > 8
    assert compared_by_key_of(6) == of_one


def test_the_last_of_120_columns(pair: Pair) -> None:
    columns = ", ".join(["k bigint", *(f"v{i} double precision" for i in range(119))])

    def rows(last: str) -> str:
        return ", ".join(f"({k}{', 1.5' * 118}, {last if k == 3 else '2'})" for k in (1, 2, 3))

    proof = pair.of(columns, rows("2"), rows("3"))
    assert counts(proof) == {"EQUAL": 2, "CHANGED": 1}
    assert causes(proof) == {("v118", "other")}


def test_digits_of_a_decimal_are_its_value_not_its_look(pair: Pair) -> None:
    declared = "k bigint, v numeric(18,4)"
    loose = "k bigint, v numeric" if pair.stores[1] == "postgres" else declared
    places = pair.places(declared, loose, "(1, 1.1)", "(1, 1.10)")
    assert compared(*places).holds()


def test_a_decimal_that_does_not_fit_is_never_rounded_into_place(tables: Tables) -> None:
    left = tables.make("duckdb", "k bigint, v decimal(18,4)", "(1, 1.0000)")
    right = tables.make("postgres", "k bigint, v numeric", "(1, 1.00001)")
    assert causes(compared(left, right)) == {("v", "scale")}
    assert causes(compared(left, right, pushdown=True)) == {("v", "scale")}


def test_two_columns_without_declared_digits_need_a_word(tables: Tables) -> None:
    places = [tables.make("postgres", "k bigint, v numeric", "(1, 1.5)") for _ in range(2)]
    assert "numeric in the source" in compared(*places).refused[0]
    digits = {"v": ColumnType.parse("decimal(10,2)")}
    assert compared(*places, types=digits).holds()


def test_json_text_in_another_form_is_named(pair: Pair) -> None:
    proof = pair.of(TEXTS, """(1, '{"a":2,"b":1}')""", """(1, '{"a": 2, "b": 1}')""")
    assert causes(proof) == {("v", "json-form")}


@pytest.mark.parametrize("kind", ["jsonb", "char(5)", "real", "text[]", "numeric(5,-2)"])
def test_types_that_cannot_be_proved_are_refused(tables: Tables, kind: str) -> None:
    left = tables.make("duckdb", TEXTS)
    right = tables.make("postgres", f"k bigint, v {kind}")
    assert compared(left, right).refused


@pytest.mark.parametrize("kind", ["json", "float", "ubigint", "hugeint", "timestamp_ns", "int[]"])
def test_types_of_duckdb_that_cannot_be_proved_are_refused(tables: Tables, kind: str) -> None:
    left = tables.make("duckdb", f"k bigint, v {kind}")
    right = tables.make("duckdb", f"k bigint, v {kind}")
    assert compared(left, right).refused


@pytest.mark.parametrize(
    ("source", "target", "cause"),
    [
        ("ab", "ab ", "trailing-blank"),
        ("ab", "AB", "case"),
        ("é", "e\u0301", "unicode-form"),
        ("ab", "cd", "other"),
    ],
)
def test_forms_of_a_text_are_named(pair: Pair, source: str, target: str, cause: str) -> None:
    proof = pair.of(TEXTS, f"(1, '{source}')", f"(1, '{target}')")
    assert causes(proof) == {("v", cause)}


def test_three_rows_beside_two_more(pair: Pair) -> None:
    proof = pair.of(
        TEXTS, "(1,'a'), (2,'b'), (3,'c')", "(1,'a'), (2,'b'), (3,'c'), (4,'d'), (5,'e')"
    )
    assert counts(proof) == {"EQUAL": 3, "EXTRA": 2}
    assert proof.summary()["counts"]["EXTRA"] == 2
    assert proof.evidence()["counts"]["EXTRA"] == 2


def test_what_is_missing_and_what_is_equal_is_counted(pair: Pair) -> None:
    every = ", ".join(f"({k}, 'x')" for k in range(12))
    some = ", ".join(f"({k}, 'x')" for k in range(12) if k not in {0, 2})
    assert counts(pair.of(TEXTS, every, some)) == {"EQUAL": 10, "MISSING": 2}


def test_a_column_that_the_target_lacks_cannot_be_judged(pair: Pair) -> None:
    proof = compared(*pair.places("k bigint, v text", "k bigint"))
    assert proof.refused == ("column v is missing in the target",)


def test_a_column_that_nobody_looks_at_is_amber_until_it_is_left_out(pair: Pair) -> None:
    places = pair.places("k bigint", "k bigint, loaded timestamp", "(1)", "(1, null)")
    proof = compared(*places)
    assert not proof.holds()
    assert proof.amber() == ["column loaded of the target is not compared"]
    assert compared(*places, left_out=("loaded",)).holds()


def test_a_table_that_is_all_key(pair: Pair) -> None:
    assert counts(pair.of("k bigint", "(1), (2)", "(2), (3)")) == {
        "EQUAL": 1,
        "MISSING": 1,
        "EXTRA": 1,
    }


def test_names_that_need_quoting(pair: Pair) -> None:
    columns = '"the ""key""" bigint, "select" text, "Ünïcode" double precision'
    rows = "(1, 'a', 1.5), (2, 'b', 2.5)"
    assert pair.of(columns, rows, rows, ('the "key"',)).holds()
