import pytest

from transforms.parity.canonical import ColumnType
from transforms.parity.canonical_self_test import EXAMPLE_CONTRACT
from transforms.parity.canonical_types import Declared, duckdb_column_type, postgres_column_type
from transforms.parity.contract import RefusedError, Role, Wish, agree, only_in_target

SOURCE = [
    duckdb_column_type(name, kind)
    for name, kind in [("v", "DOUBLE"), ("k", "INTEGER"), ("n", "DECIMAL(18,4)"), ("t", "VARCHAR")]
]
TARGET = [
    postgres_column_type(name, kind)
    for name, kind in [
        ("k", "bigint"),
        ("t", "character varying(20)"),
        ("n", "numeric"),
        ("v", "double precision"),
        ("seen", "date"),
        ("_bucket", "integer"),
    ]
]


def test_the_key_comes_first_and_the_rest_as_in_the_source() -> None:
    contract = agree(SOURCE, TARGET, Wish(["t", "k"], nullable=["t"]))
    assert contract.as_rows() == [
        ["t", "text", "key?"],
        ["k", "int", "key"],
        ["v", "float", "value"],
        ["n", "decimal(18,4)", "value"],
    ]
    assert [column.name for column in contract.values] == ["v", "n"]
    assert contract.position("n") == 3
    assert contract.position("seen") is None


def test_the_fingerprint_is_of_names_types_and_roles() -> None:
    assert EXAMPLE_CONTRACT.fingerprint.startswith("a6ff51e59c23")
    prints = {
        agree(SOURCE, TARGET, wish).fingerprint
        for wish in (Wish(["k"]), Wish(["k"], ["k"]), Wish(["k"], left_out=["v"]), Wish(["t"]))
    }
    assert len(prints) == 4


def test_columns_of_the_target_alone_are_told_locators_apart() -> None:
    contract = agree(SOURCE, TARGET, Wish(["k"]))
    assert only_in_target(TARGET, contract, Wish(["k"])) == ["seen"]
    assert only_in_target(TARGET, contract, Wish(["k"], left_out=["seen"])) == []


def test_all_reasons_are_given_at_once() -> None:
    source = [*SOURCE, duckdb_column_type("j", "JSON"), duckdb_column_type("only", "DATE")]
    target = [
        *(column for column in TARGET if column.name != "v"),
        postgres_column_type("v", "timestamp without time zone"),
        postgres_column_type("j", "jsonb"),
    ]
    with pytest.raises(RefusedError) as refused:
        agree(source, target, Wish(["id"], nullable=["v"]))
    assert len(refused.value.reasons) == 5
    text = str(refused.value)
    for word in ("key column id", "column v may be null", "DOUBLE in the source", "jsonb", "only"):
        assert word in text


def test_what_is_said_of_columns_without_effect_is_a_reason_too() -> None:
    types = {"v": ColumnType.parse("decimal(9,2)"), "w": ColumnType.parse("int")}
    with pytest.raises(RefusedError) as refused:
        agree(SOURCE, TARGET, Wish(["k"], left_out=["seen", "sen"], types=types))
    assert set(refused.value.reasons) == {
        "column sen is left out, and is on no side",
        "column v is given a type, and has one of its own",
        "column w is given a type, and is on no side",
    }


def test_a_key_is_needed() -> None:
    with pytest.raises(RefusedError, match="a key is needed"):
        agree(SOURCE, TARGET, Wish([]))


@pytest.mark.parametrize(
    ("left", "right", "said", "agreed"),
    [
        ("numeric", "numeric(10,2)", None, "decimal(10,2)"),
        ("numeric(10,2)", "numeric(10,3)", None, None),
        ("numeric", "numeric", None, None),
        ("numeric", "numeric", "decimal(9,1)", "decimal(9,1)"),
        ("numeric", "numeric", "text", None),
        ("numeric", "bigint", None, None),
        ("smallint", "bigint", None, "int"),
        ("text", "character varying(3)", None, "text"),
    ],
)
def test_when_two_declared_types_agree(
    left: str, right: str, said: str | None, agreed: str | None
) -> None:
    sides = [[postgres_column_type("k", declared)] for declared in (left, right)]
    wish = Wish(["k"], types={"k": ColumnType.parse(said)} if said else None)
    if agreed is None:
        with pytest.raises(RefusedError):
            agree(*sides, wish)
    else:
        assert str(agree(*sides, wish).columns[0].kind) == agreed


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("real", "another number"),
        ("character(5)", "blanks"),
        ("jsonb", "keep the text"),
        ("time without time zone", "microsecond"),
        ("text[]", "nested"),
        ("numeric(2,4)", "beyond its digits"),
        ("money", "no canonical frame"),
    ],
)
def test_a_type_of_postgresql_that_is_refused_says_why(declared: str, why: str) -> None:
    assert why in postgres_column_type("x", declared).why


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("FLOAT", "another number"),
        ("JSON", "keep the text"),
        ("UBIGINT", "int64"),
        ("HUGEINT", "int64"),
        ("TIMESTAMP_NS", "microsecond"),
        ("TIME", "microsecond"),
        ("INTEGER[]", "nested"),
        ("STRUCT(a INTEGER)", "nested"),
        ("ENUM('a', 'b')", "no canonical frame"),
    ],
)
def test_a_type_of_duckdb_that_is_refused_says_why(declared: str, why: str) -> None:
    assert why in duckdb_column_type("x", declared).why


def test_roles_are_the_words_of_the_contract() -> None:
    assert {str(role) for role in Role} == {"key", "key?", "value", "unproven"}
    assert Declared("x", "bigint", None).why == ""
