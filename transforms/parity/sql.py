"""The queries of a proof: prints, cells, digests of bad buckets, rows by key; for both engines.

Each query is text made from a contract and a relation. A dialect knows how one column becomes bytes
and how a digest falls apart into lanes; the shape of the queries is the same. Nothing is executed
here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from transforms.parity.canonical_sql import (
    LANES,
    Storage,
    duckdb_column,
    duckdb_lane,
    duckdb_micros,
    duckdb_plain,
    joined,
    postgres_bucket,
    postgres_column,
    postgres_digest,
    postgres_lane,
    postgres_micros,
    postgres_sent,
    quoted,
)
from transforms.parity.contract import Column, Contract, Role
from transforms.parity.grid import Cut

CELL_COLUMNS = (
    *("number", "bucket", "n", "s0", "s1", "s2", "s3", "k0", "k1", "k2", "k3"),
    *("dup", "null_keys"),
)
PRINT_COLUMNS = ("number", "n", "forward", "backward")


class Dialect(Protocol):
    """How an engine spells what the queries are made of."""

    @property
    def fence(self) -> str:
        """What keeps the optimizer from computing a digest once for each lane."""
        ...

    @property
    def empty(self) -> str:
        """No bytes: the rest of a row that is all key."""
        ...

    def column(self, column: Column, at: str = "") -> str:
        """A column of the frame, never null; ``at`` is where it stands, if not under its name."""
        ...

    def number_in(self, cut: Cut) -> str:
        """The number of the partition that a row lies in."""
        ...

    def number(self, frame: str) -> str:
        """The md5 of a frame, in the form that ``lane`` and ``bucket`` take."""
        ...

    def digest(self, frame: str) -> str:
        """The md5 of a frame as 16 bytes."""
        ...

    def lane(self, number: str, lane: int) -> str:
        """A word of it."""
        ...

    def bucket(self, number: str) -> str:
        """The bucket of a key's number."""
        ...


@dataclass(frozen=True)
class PostgresDialect:
    """Computed by the server."""

    fence: str = " offset 0"
    empty: str = "''::bytea"

    def column(self, column: Column, at: str = "") -> str:
        """See ``Dialect``."""
        return postgres_column(column.kind, at or quoted(column.name))

    def number_in(self, cut: Cut) -> str:
        """See ``Dialect``."""
        micros = postgres_micros(quoted(cut.column))
        return f"greatest(div({micros} - {cut.origin_us}, {cut.length_us}), 0)"

    def number(self, frame: str) -> str:
        """See ``Dialect``."""
        return postgres_digest(frame)

    def digest(self, frame: str) -> str:
        """See ``Dialect``."""
        return postgres_digest(frame)

    def lane(self, number: str, lane: int) -> str:
        """See ``Dialect``."""
        return postgres_lane(number, lane)

    def bucket(self, number: str) -> str:
        """See ``Dialect``."""
        return postgres_bucket(number)


@dataclass(frozen=True)
class DuckDBDialect:
    """Computed by DuckDB, over its own tables, Parquet files, or what a bulk read hands over."""

    storage: Mapping[str, Storage] = field(default_factory=dict)
    fence: str = ""
    empty: str = "''::BLOB"

    def column(self, column: Column, at: str = "") -> str:
        """See ``Dialect``."""
        return duckdb_column(column.kind, at or quoted(column.name), self._stored(column.name))

    def plain(self, column: Column) -> str:
        """What is hashed of a column where both sides are read into this process."""
        return duckdb_plain(column.kind, quoted(column.name), self._stored(column.name))

    def number_in(self, cut: Cut) -> str:
        """See ``Dialect``."""
        micros = duckdb_micros(quoted(cut.column), self._stored(cut.column))
        return f"greatest(({micros} - {cut.origin_us}) // {cut.length_us}, 0)"

    def _stored(self, name: str) -> Storage:
        return self.storage.get(name, Storage.NATIVE)

    def number(self, frame: str) -> str:
        """See ``Dialect``."""
        return f"md5_number({frame})"

    def digest(self, frame: str) -> str:
        """See ``Dialect``."""
        return f"unhex(md5({frame}))"

    def lane(self, number: str, lane: int) -> str:
        """See ``Dialect``."""
        return duckdb_lane(number, lane)

    def bucket(self, number: str) -> str:
        """See ``Dialect``."""
        return f"({number} & 4095)::INTEGER"


@dataclass(frozen=True)
class Relation:
    """What is read: an item of a FROM clause, already quoted, and the condition of its rows.

    ``located``: the relation has a column ``_bucket`` to find rows by; it is never believed.
    ``cut``: how its rows fall apart into partitions; None: they are one, of number 0.
    """

    source: str
    where: str = "true"
    located: bool = False
    cut: Cut | None = None


def cells_query(dialect: Dialect, contract: Contract, relation: Relation) -> str:
    """One row a partition and bucket, ``CELL_COLUMNS``, numbers as text, for they pass any int."""
    sums = [
        f"sum({dialect.lane(digest, lane)})::text as {name}{lane}"
        for digest, name in (("d", "s"), ("kd", "k"))
        for lane in range(LANES)
    ]
    return (
        f"select (number)::text as number, ({dialect.bucket('kd')})::text as bucket,"
        f" count(*)::text as n, {', '.join(sums)},"
        " (count(*) - count(distinct kd))::text as dup, sum(null_key)::text as null_keys"
        f" from (select number, {dialect.number('kf')} as kd,"
        f" {dialect.number('kf || rf')} as d, null_key"
        f" from ({_frames(dialect, contract, relation)}) f{dialect.fence}) g group by 1, 2"
    )


def prints_query(dialect: DuckDBDialect, contract: Contract, relation: Relation) -> str:
    """One row a partition, ``PRINT_COLUMNS``: sums of two hashes of every row, numbers as text.

    The hash is that of this process: fast, and another one in another version of the engine. It is
    taken of the columns in both orders, and once more of itself, so that sums keep nothing of how
    it is put together.
    """
    plain = [dialect.plain(column) for column in contract.proven]
    forward, backward = (
        f"sum(hash(hash({', '.join(columns)})))::text" for columns in (plain, plain[::-1])
    )
    return (
        f"select ({_number(dialect, relation)})::text as number, count(*)::text as n,"
        f" {forward} as forward, {backward} as backward"
        f" from {relation.source} where {relation.where} group by {_number(dialect, relation)}"
    )


def digests_query(
    dialect: Dialect, contract: Contract, relation: Relation, buckets: Collection[int] | None
) -> str:
    """``kd`` and ``d`` of the rows of some buckets (None: of all), in order of ``kd``."""
    return _digests(dialect, contract, _chosen(dialect, contract, relation, buckets))


def rows_query(
    dialect: Dialect,
    contract: Contract,
    relation: Relation,
    buckets: Collection[int] | None,
    keys: Sequence[bytes] | None,
) -> str:
    """``kd``, ``d``, and the columns of the frame, ``c0``..., of some keys (None: of all)."""
    chosen = _chosen(dialect, contract, relation, buckets, keys)
    return _digests(dialect, contract, chosen, ", ".join(["", *_names(contract)]))


def bulk_query(contract: Contract, relation: Relation) -> tuple[str, dict[str, Storage]]:
    """What a client reads of PostgreSQL to make the frames itself, and what it then holds."""
    sent = {c.name: postgres_sent(c.kind, quoted(c.name)) for c in contract.proven}
    columns = ", ".join(f"{sql} as {quoted(name)}" for name, (sql, _) in sent.items())
    storage = {name: stored for name, (_, stored) in sent.items()}
    return f"select {columns} from {relation.source} where {relation.where}", storage


def _names(contract: Contract) -> list[str]:
    return [f"c{position}" for position in range(len(contract.proven))]


def _null_key(contract: Contract) -> str:
    tests = [f"{quoted(c.name)} is null" for c in contract.key if c.role is Role.KEY]
    return f"case when {' or '.join(tests) or 'false'} then 1 else 0 end"


def _frames(dialect: Dialect, contract: Contract, relation: Relation) -> str:
    key = joined([dialect.column(column) for column in contract.key])
    rest = joined([dialect.column(column) for column in contract.values]) or dialect.empty
    return (
        f"select {_number(dialect, relation)} as number, {key} as kf, {rest} as rf,"
        f" {_null_key(contract)} as null_key"
        f" from {relation.source} where {relation.where}{dialect.fence}"
    )


def _number(dialect: Dialect, relation: Relation) -> str:
    # A literal number in GROUP BY would be the place of a column.
    return dialect.number_in(relation.cut) if relation.cut else "'0'"


def _digests(dialect: Dialect, contract: Contract, chosen: str, columns: str = "") -> str:
    """The digests of rows, with columns of their frames."""
    first = len(contract.key)
    key, rest = _names(contract)[:first], contract.values
    frames = [f"{dialect.column(c, f'v{i}')} as c{i}" for i, c in enumerate(rest, start=first)]
    body = joined(_names(contract)[first:]) or dialect.empty
    return (
        f"select {dialect.digest('kf')} as kd, {dialect.digest(f'kf || {body}')} as d{columns}"
        f" from (select {', '.join(['kf', *key, *frames])} from {chosen}{dialect.fence}) r"
        " order by 1, 2"
    )


def _chosen(
    dialect: Dialect,
    contract: Contract,
    relation: Relation,
    buckets: Collection[int] | None,
    keys: Sequence[bytes] | None = None,
) -> str:
    """Rows of buckets and keys: their key frames, and the rest (``v0``...) as it is.

    What is left out is known by its key alone; so no frame is made of the rest of it.
    """
    first = len(contract.key)
    names = _names(contract)[:first]
    key = [f"{dialect.column(c)} as c{i}" for i, c in enumerate(contract.key)]
    rest = [f"{quoted(c.name)} as v{i}" for i, c in enumerate(contract.values, start=first)]
    frames = (
        f"(select *, {joined(names)} as kf from (select {', '.join([*key, *rest])}"
        f" from {relation.source} where {_located(relation, buckets)}{dialect.fence}) c"
        f"{dialect.fence}) f"
    )
    tests = [] if keys is None else [f"md5(kf) in ({_hex(keys)})"]
    if buckets is not None and not relation.located:
        tests.insert(0, f"({dialect.bucket(dialect.number('kf'))}) in ({_list(buckets)})")
    if not tests:
        return frames
    return f"(select * from {frames} where {' and '.join(tests)}{dialect.fence}) h"


def _located(relation: Relation, buckets: Collection[int] | None) -> str:
    if buckets is None or not relation.located:
        return relation.where
    return f"({relation.where}) and {quoted('_bucket')} in ({_list(buckets)})"


def _list(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers)) or "null"


def _hex(keys: Sequence[bytes]) -> str:
    return ", ".join(f"'{key.hex()}'" for key in keys) or "null"


def lanes_query(dialect: Dialect, contract: Contract, relation: Relation) -> str:
    """One row for each row, in its order: the lanes of its digest and of its key's, s0 to k3."""
    lanes = ", ".join(
        f"{dialect.lane(digest, lane)} as {name}{lane}"
        for digest, name in (("d", "s"), ("kd", "k"))
        for lane in range(LANES)
    )
    return (
        f"select {lanes} from (select {dialect.number('kf')} as kd,"
        f" {dialect.number('kf || rf')} as d"
        f" from ({_frames(dialect, contract, relation)}) f{dialect.fence}) g"
    )
