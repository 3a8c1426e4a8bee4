"""What sides in SQL share: the queries below level one, partitions, the sample, the self-test.

Here belongs whatever does not depend on how rows leave the store. Each kind of store says how a
query is run, and how it makes level one.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property

import polars as pl

from assets.stores.counting import Passed, unheard
from assets.stores.parity.side import NO_ROWS, Frames, Prints, Scans, condition
from transforms.parity.canonical_sql import quoted
from transforms.parity.canonical_types import Declared
from transforms.parity.cells import Cells
from transforms.parity.contract import Contract, RefusedError
from transforms.parity.descent import DIGESTS
from transforms.parity.grid import Cut
from transforms.parity.sql import Dialect, Relation, digests_query, rows_query


class SQLSide(ABC):
    """Half of a ``Side``."""

    label: str
    in_process: bool

    def __init__(self, label: str, source: str, dialect: Dialect) -> None:
        self.label = label
        self._source = source
        self._dialect = dialect

    @abstractmethod
    def _described(self) -> list[Declared]:
        """Return the columns, as the store has them now."""

    @abstractmethod
    def _query(self, query: str) -> list[tuple]:  # type: ignore[type-arg]
        """Return all rows of a query."""

    @abstractmethod
    def _stream(self, query: str) -> Frames:
        """Yield the rows of a query as they come."""

    @abstractmethod
    def _cells(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Scans:
        """Make level one of a relation."""

    @abstractmethod
    def _prints(self, contract: Contract, relation: Relation, told: Passed = unheard) -> Prints:
        """Hash a relation in this process."""

    def columns(self) -> list[Declared]:
        """See ``Side``."""
        return self._columns

    @cached_property
    def _columns(self) -> list[Declared]:
        return self._described()

    def partitions(self, column: str) -> list[str]:
        """See ``Side``."""
        # Another collation than that of bytes may take two values for one.
        text = f'{quoted(column)}::text collate "C"'
        values = [value for (value,) in self._query(f"select distinct {text} from {self._source}")]
        if None in values:
            raise RefusedError([f"{self.label}: partition column {column} holds a null"])
        return sorted(values)

    def condition(self, column: str, value: str) -> str:
        """See ``Side``."""
        declared = next((c for c in self.columns() if c.name == column), None)
        return condition(declared, quoted(column), value)

    def cells(
        self, contract: Contract, where: str, cut: Cut | None = None, told: Passed = unheard
    ) -> Scans:
        """See ``Side``."""
        return self._cells(contract, Relation(self._source, where, cut=cut), told)

    def prints(
        self, contract: Contract, where: str, cut: Cut | None = None, told: Passed = unheard
    ) -> Prints:
        """See ``Side``."""
        return self._prints(contract, Relation(self._source, where, cut=cut), told)

    def sample(self, contract: Contract, where: str, most: int) -> tuple[pl.DataFrame, Cells]:
        """See ``Side``: a snapshot that is read in its own order gives the same rows twice."""
        some = Relation(f"(select * from {self._source} where {where} limit {most}) s")
        columns = {f"c{i}": pl.Binary() for i in range(len(contract.proven))}
        query = rows_query(self._dialect, contract, some, None, None)
        empty = pl.Schema({**DIGESTS, **columns}).to_frame()
        rows = pl.concat([empty, *self._stream(query)])
        return rows, self._cells(contract, some).get(0, NO_ROWS).cells

    def digests(
        self, contract: Contract, where: str, buckets: Collection[int], *, located: bool
    ) -> Frames:
        """See ``Side``."""
        has_buckets = any(column.name == "_bucket" for column in self.columns())
        relation = Relation(self._source, where, located and has_buckets)
        return self._stream(digests_query(self._dialect, contract, relation, buckets))

    def rows(
        self,
        contract: Contract,
        where: str,
        buckets: Collection[int] | None,
        keys: Sequence[bytes] | None,
    ) -> Frames:
        """See ``Side``."""
        relation = Relation(self._source, where)
        return self._stream(rows_query(self._dialect, contract, relation, buckets, keys))
