"""Fast paths make the bytes of the oracle, whatever the values; the descent finds what differs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from hashlib import md5 as md5_of

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.parity.canonical import ColumnType, Kind, frame
from transforms.parity.canonical_frames import frames_of
from transforms.parity.cells import Digests, cells_of
from transforms.parity.contract import Column, Contract, Role
from transforms.parity.descent import DIGESTS, aligned, differing, summed
from transforms.parity.sql import DuckDBDialect, Relation, rows_query

md5 = partial(md5_of, usedforsecurity=False)
TIMES = st.datetimes(datetime(1000, 1, 1), datetime(9999, 1, 1))  # noqa: DTZ001 - given a zone below
COLUMNS: dict[str, tuple[str, pl.DataType, st.SearchStrategy[object]]] = {
    "i": ("int", pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
    "b": ("bool", pl.Boolean(), st.booleans()),
    "f": ("float", pl.Float64(), st.floats()),
    "at": ("instant", pl.Datetime("us", "UTC"), TIMES.map(lambda t: t.replace(tzinfo=UTC))),
    "l": ("local", pl.Datetime("us"), TIMES),
    "d": ("date", pl.Date(), st.dates(date(1, 1, 1))),
    "t": ("text", pl.String(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    "y": ("bytes", pl.Binary(), st.binary(max_size=9)),
    "n": (
        "decimal(18,4)",
        pl.Decimal(18, 4),
        st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-4)),
    ),
    "q": (
        "decimal(4,4)",
        pl.Decimal(4, 4),
        st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-4)),
    ),
}
CONTRACT = Contract(
    tuple(
        Column(name, ColumnType.parse(kind), Role.VALUE if place else Role.NULLABLE_KEY)
        for place, (name, (kind, _, _)) in enumerate(COLUMNS.items())
    )
)
ROWS = st.lists(st.tuples(*(st.none() | values for _, _, values in COLUMNS.values())), max_size=12)
KINDS = [column.kind for column in CONTRACT.proven]


def polars_frame(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    schema = {name: dtype for name, (_, dtype, _) in COLUMNS.items()}
    return pl.DataFrame(rows, schema, orient="row")


@settings(deadline=None)
@given(ROWS)
def test_numpy_makes_the_frames_of_the_oracle(rows: list[tuple[object, ...]]) -> None:
    made = frames_of(CONTRACT, polars_frame(rows))
    found = [made.data[a:b].tobytes() for a, b in zip(made.starts, made.ends, strict=True)]
    expected = [frame(KINDS, row) for row in rows]  # type: ignore[arg-type]
    assert found == expected
    assert made.digests() == [
        Digests(md5(whole[: len(frame(KINDS[:1], row[:1]))]).digest(), md5(whole).digest())  # type: ignore[arg-type]
        for whole, row in zip(expected, rows, strict=True)
    ]


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_duckdb_makes_the_frames_of_the_oracle(rows: list[tuple[object, ...]]) -> None:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'Asia/Kolkata'")
        connection.register("given", polars_frame(rows))
        query = rows_query(DuckDBDialect(), CONTRACT, Relation("given"), None, None)
        found = [b"".join(columns) for _, _, *columns in connection.execute(query).fetchall()]
    assert Counter(found) == Counter(frame(KINDS, row) for row in rows)  # type: ignore[arg-type]


KEYS = st.integers(0, 30).map(lambda n: md5(b"%d" % n).digest())
SIDE = st.lists(st.tuples(KEYS, st.sampled_from([b"a" * 16, b"b" * 16])), max_size=60)


def stream(rows: list[tuple[bytes, bytes]], cut: int) -> Iterator[pl.DataFrame]:
    ordered = sorted(rows)
    for first in range(0, len(ordered), cut):
        yield pl.DataFrame(ordered[first : first + cut], DIGESTS, orient="row")


@settings(deadline=None)
@given(SIDE, SIDE, st.integers(1, 70), st.integers(1, 70))
def test_the_descent_finds_every_key_that_differs_however_streams_are_cut(
    source: list[tuple[bytes, bytes]],
    target: list[tuple[bytes, bytes]],
    left_cut: int,
    right_cut: int,
) -> None:
    pairs = aligned(DIGESTS, stream(source, left_cut), stream(target, right_cut))
    found = [key for pair in pairs for key in differing(pair)]
    sides: list[dict[bytes, list[bytes]]] = [defaultdict(list), defaultdict(list)]
    for side, rows in zip(sides, (source, target), strict=True):
        for key, row in rows:
            side[key].append(row)
    expected = sorted(
        key
        for key in sides[0].keys() | sides[1].keys()
        if len(sides[0][key]) != 1 or sides[0][key] != sides[1][key]
    )
    assert found == expected


@given(
    st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16)))
)
def test_polars_sums_as_the_oracle_does(rows: list[tuple[bytes, bytes]]) -> None:
    doubled = rows + rows[:3]
    found = summed(pl.DataFrame(doubled, DIGESTS, orient="row"))
    assert found == cells_of(Digests(*row) for row in doubled)


def test_the_kinds_that_polars_has_are_all_tried() -> None:
    assert {kind.kind for kind in KINDS} == set(Kind) - {Kind.UUID}
