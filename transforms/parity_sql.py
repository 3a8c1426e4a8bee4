"""The queries of a proof: cells, digests of bad buckets, rows by key; for both engines.

Each query is text made from a contract and a relation. A dialect knows how one column becomes bytes
and how a digest falls apart into lanes; the shape of the queries is the same. Nothing is executed
here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from transforms.canonical_sql import (
    LANES,
    Storage,
    duckdb_column,
    duckdb_lane,
    joined,
    postgres_bucket,
    postgres_column,
    postgres_digest,
    postgres_lane,
    postgres_sent,
    quoted,
)
from transforms.parity_contract import Column, Contract, Role

CELL_COLUMNS = (
    *("bucket", "n", "s0", "s1", "s2", "s3", "k0", "k1", "k2", "k3"),
    *("dup", "null_keys"),
)


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

    def column(self, column: Column) -> str:
        """A column of the frame, never null."""
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

    def column(self, column: Column) -> str:
        """See ``Dialect``."""
        return postgres_column(column.kind, quoted(column.name))

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

    def column(self, column: Column) -> str:
        """See ``Dialect``."""
        stored = self.storage.get(column.name, Storage.NATIVE)
        return duckdb_column(column.kind, quoted(column.name), stored)

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
    """What is read: an item of a FROM clause, already quoted, and the condition of a partition.

    ``located``: the relation has a column ``_bucket`` to find rows by; it is never believed.
    """

    source: str
    where: str = "true"
    located: bool = False


def cells_query(dialect: Dialect, contract: Contract, relation: Relation) -> str:
    """One row a bucket, columns ``CELL_COLUMNS``, numbers as text, for they pass any int."""
    sums = [
        f"sum({dialect.lane(digest, lane)})::text as {name}{lane}"
        for digest, name in (("d", "s"), ("kd", "k"))
        for lane in range(LANES)
    ]
    return (
        f"select ({dialect.bucket('kd')})::text as bucket, count(*)::text as n, {', '.join(sums)},"
        " (count(*) - count(distinct kd))::text as dup, sum(null_key)::text as null_keys"
        f" from (select {dialect.number('kf')} as kd, {dialect.number('kf || rf')} as d, null_key"
        f" from ({_frames(dialect, contract, relation)}) f{dialect.fence}) g group by 1"
    )


def digests_query(
    dialect: Dialect, contract: Contract, relation: Relation, buckets: Collection[int] | None
) -> str:
    """``kd`` and ``d`` of the rows of some buckets (None: of all), in order of ``kd``."""
    return (
        f"select {dialect.digest('kf')} as kd, {dialect.digest('kf || rf')} as d"
        f" from {_in_buckets(dialect, contract, relation, buckets)} order by 1, 2"
    )


def rows_query(
    dialect: Dialect,
    contract: Contract,
    relation: Relation,
    buckets: Collection[int] | None,
    keys: Sequence[bytes] | None,
) -> str:
    """``kd``, ``d``, and the columns of the frame, ``c0``..., of some keys (None: of all)."""
    columns = ", ".join(_names(contract))
    wanted = "" if keys is None else f" where md5(kf) in ({_hex(keys)})"
    return (
        f"select {dialect.digest('kf')} as kd, {dialect.digest('kf || rf')} as d, {columns}"
        f" from {_in_buckets(dialect, contract, relation, buckets, columns)}{wanted} order by 1, 2"
    )


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
        f"select {key} as kf, {rest} as rf, {_null_key(contract)} as null_key"
        f" from {relation.source} where {relation.where}{dialect.fence}"
    )


def _in_buckets(
    dialect: Dialect,
    contract: Contract,
    relation: Relation,
    buckets: Collection[int] | None,
    columns: str = "",
) -> str:
    key, rest = (
        joined(_names(contract)[part]) for part in (slice(len(contract.key)), _rest(contract))
    )
    single = ", ".join(f"{dialect.column(c)} as c{i}" for i, c in enumerate(contract.proven))
    kept = f", {columns}" if columns else ""
    located = _located(relation, buckets)
    frames = (
        f"(select {key} as kf, {rest or dialect.empty} as rf{kept} from (select {single}"
        f" from {relation.source} where {relation.where}{located}{dialect.fence}) c"
        f"{dialect.fence}) f"
    )
    if buckets is None or relation.located:
        return frames
    chosen = f"({dialect.bucket(dialect.number('kf'))}) in ({_list(buckets)})"
    return f"(select * from {frames} where {chosen}{dialect.fence}) h"


def _rest(contract: Contract) -> slice:
    return slice(len(contract.key), None)


def _located(relation: Relation, buckets: Collection[int] | None) -> str:
    if buckets is None or not relation.located:
        return ""
    return f" and {quoted('_bucket')} in ({_list(buckets)})"


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
