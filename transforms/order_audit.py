"""Which orders were kept, and where it matters: inverted pairs globally and for pairs of one key.

The rows of a frame stand in the order that should have been kept (the order of enqueueing, of
arrival, of release); each order column says where a row came in another order: handed out, begun,
landed, or its event time. A pair of rows is inverted when the earlier row holds the greater value.
Equal values are not inverted; they are counted as tied.

Only pairs of one key tell a defect. A keyed system works on different keys side by side, so it is
out of order globally, and right; that count is reported and never judged.

Belongs here: audits of frames and their report as values. Does not belong here: the counting itself
(`inversions`), reading files, verdicts in words.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from transforms.ordering.inversions import (
    Ints,
    grouped_inverted_pairs,
    inverted_pairs,
    stable_order,
)

NO_KEY = -1
"""The code of a row whose key is null: it forms no same-key pair."""

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class InvertedPair:
    """Two rows of one key that came the wrong way round: row numbers from 0 and their values.

    A value that is no finite number is given as text, so that a report can be written as JSON.
    """

    earlier_row: int
    later_row: int
    earlier_value: float | str
    later_value: float | str


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """One key's inverted pairs of all its pairs in one order column, with the first of them."""

    key: str
    rows: int
    pairs: int
    inverted: int
    example: InvertedPair


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Pairs of rows, and how many of them are inverted or tied (hold equal values)."""

    pairs: int
    inverted: int
    tied: int

    @property
    def share(self) -> float:
        """The inverted share of the pairs; 0 if there is no pair."""
        return self.inverted / self.pairs if self.pairs else 0.0


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """One order column. Rows without a value (null or NaN) are `missing` and form no pair.

    `as_text`: the values are text that is neither numbers nor times throughout.
    """

    column: str
    as_text: bool
    rows: int
    missing: int
    overall: PairCounts
    same_key: PairCounts
    keys_inverted: int
    worst_keys: tuple[KeyOrder, ...]


def speed_up(heaviest_share: float, workers: int) -> float:
    """How many times faster `workers` can be than one where a key has so large a share of all."""
    return min(float(workers), 1.0 / heaviest_share) if heaviest_share else float(workers)


@dataclass(frozen=True, slots=True)
class KeySkew:
    """How unevenly the work is spread over keys, and what that costs where keys are serialized.

    `heaviest_share` is the share of all work (rows, or a declared weight) of the heaviest key: the
    share of one worker's time that this key takes alone, however many workers there are.
    `effective_keys` is how many keys of equal weight would be as uneven (1 over the sum of squared
    shares).
    """

    keys: int
    heaviest_key: str | None
    heaviest_rows: int
    heaviest_share: float
    effective_keys: float

    def speed_up(self, workers: int) -> float:
        """How many times faster `workers` can be than one, at best, with keys serialized."""
        return speed_up(self.heaviest_share, workers)


@dataclass(frozen=True, slots=True)
class OrderAudit:
    """The whole audit. `keyless` rows have a null in their key and form no same-key pair."""

    rows: int
    keyless: int
    skew: KeySkew
    columns: tuple[ColumnOrder, ...]

    @property
    def same_key_inverted(self) -> int:
        """Inverted same-key pairs over all order columns: the figure to assert on."""
        return sum(column.same_key.inverted for column in self.columns)

    def as_record(self) -> dict[str, Any]:
        """Give it as nested dicts and tuples."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The key of each row as a dense code, NO_KEY if null, and the name of each code."""

    codes: Ints
    names: tuple[str, ...]


def audit_order(
    rows: pl.DataFrame,
    *,
    key: Sequence[str],
    order: Sequence[str],
    weight: str | None = None,
    worst: int = 5,
) -> OrderAudit:
    """Audit each column of `order` over `rows`, whose own order is the one to be kept.

    `weight` is a numeric column of work per row (such as seconds) for the skew; without it each row
    counts as one. `worst` is how many keys are shown for each column. Text that reads as numbers,
    or as times with an offset, throughout is ordered as such. Raises polars' ColumnNotFoundError,
    and InvalidOperationError if a weight is no number.
    """
    keys = _keys(rows, key)
    return OrderAudit(
        rows=rows.height,
        keyless=int(np.count_nonzero(keys.codes == NO_KEY)),
        skew=_skew(keys, None if weight is None else _weights(rows[weight])),
        columns=tuple(_audit_column(rows[column], keys, worst) for column in order),
    )


def in_order_of(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Sort rows by the column of the order to be kept, stably; rows without a value come last."""
    values = rows[column]
    read = _read_text(values) if values.dtype == pl.String else values
    return (
        rows.with_columns(_orderable(read).alias("__order"))
        .sort("__order", maintain_order=True, nulls_last=True)
        .drop("__order")
    )


def _keys(rows: pl.DataFrame, key: Sequence[str]) -> _Keys:
    """Number the distinct keys in order of first appearance."""
    names = rows.select(key).unique(maintain_order=True).drop_nulls()
    names = names.with_columns(pl.Series("__code", np.arange(names.height)))
    codes = rows.select(key).join(names, on=list(key), how="left", maintain_order="left")["__code"]
    texts = (" ".join(map(str, name)) for name in names.drop("__code").iter_rows())
    return _Keys(codes.fill_null(NO_KEY).to_numpy(), tuple(texts))


def _weights(column: pl.Series) -> NDArray[np.float64]:
    return column.cast(pl.Float64).fill_null(0.0).to_numpy()


def _skew(keys: _Keys, weights: NDArray[np.float64] | None) -> KeySkew:
    has_key = keys.codes != NO_KEY
    codes = keys.codes[has_key]
    rows = np.bincount(codes, minlength=len(keys.names))
    work = rows if weights is None else np.bincount(codes, weights[has_key], len(keys.names))
    if not work.sum() > 0:
        return KeySkew(len(keys.names), None, 0, 0.0, 0.0)
    shares = work / work.sum()
    heaviest = int(shares.argmax())
    return KeySkew(
        keys=len(keys.names),
        heaviest_key=keys.names[heaviest],
        heaviest_rows=int(rows[heaviest]),
        heaviest_share=float(shares[heaviest]),
        effective_keys=float(1.0 / np.square(shares).sum()),
    )


def _audit_column(column: pl.Series, keys: _Keys, worst: int) -> ColumnOrder:
    read = _read_text(column) if column.dtype == pl.String else column
    numbers = _orderable(read)
    present = np.flatnonzero(numbers.is_not_null().to_numpy())
    values = numbers.drop_nulls().to_numpy()
    order = stable_order(values)
    sorted_values = values[order]
    overall = PairCounts(
        pairs=_pairs_of(len(values)),
        inverted=inverted_pairs(order),
        tied=_tied_pairs(sorted_values[1:] == sorted_values[:-1]),
    )
    groups = KeyGroups.of(values, order, keys.codes[present])
    return ColumnOrder(
        column=column.name,
        as_text=read.dtype == pl.String,
        rows=len(values),
        missing=column.len() - len(values),
        overall=overall,
        same_key=groups.pair_counts(),
        keys_inverted=int(np.count_nonzero(groups.inverted)),
        worst_keys=tuple(
            _key_order(groups, group, keys.names, present, column) for group in groups.worst(worst)
        ),
    )


def _orderable(column: pl.Series) -> pl.Series:
    """Give numbers in the order of the column's values; null where it has none (null or NaN)."""
    if column.dtype.is_temporal():
        return column.to_physical().cast(pl.Int64)
    if column.dtype.is_float():
        return column.fill_nan(None)
    if column.dtype.is_integer() and column.dtype not in {pl.UInt64, pl.Int128, pl.UInt128}:
        return column.cast(pl.Int64)
    return column.rank("dense").cast(pl.Int64)


def _read_text(column: pl.Series) -> pl.Series:
    """Read text as whole numbers, decimal ones or times with an offset if all of it can be."""
    for read in _READERS:
        numbers = read(column)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


_READERS: tuple[Callable[[pl.Series], pl.Series], ...] = (
    lambda text: text.cast(pl.Int64, strict=False),
    lambda text: text.cast(pl.Float64, strict=False),
    # Times without an offset are in order as text, if they are of one form.
    lambda text: text.str.to_datetime("%+", time_unit="ns", time_zone="UTC", strict=False),
)


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """The rows with a key, key by key and in row order: positions, values, starts and sizes."""

    positions: Ints
    values: Values
    starts: Ints
    sizes: Ints
    inverted: Ints
    tied: int

    @classmethod
    def of(cls, values: Values, order: Ints, codes: Ints) -> "KeyGroups":
        """Sort by key, stably, and count each key's inverted pairs. `order` sorts `values`."""
        positions = _without_key(codes, stable_order(codes))
        sizes = np.bincount(codes[positions])
        starts = np.cumsum(sizes) - sizes
        # Each row's place among the rows of its key, and those places in the order of the values.
        places = np.empty(len(codes), dtype=np.int64)
        places[positions] = np.arange(len(positions)) - np.repeat(starts, sizes)
        by_value = order[_without_key(codes[order], stable_order(codes[order]))]
        ascending, owners = values[by_value], codes[by_value]
        is_tied = (ascending[1:] == ascending[:-1]) & (owners[1:] == owners[:-1])
        return cls(
            positions=positions,
            values=values[positions],
            starts=starts,
            sizes=sizes,
            inverted=grouped_inverted_pairs(places[by_value], sizes),
            tied=_tied_pairs(is_tied),
        )

    def pair_counts(self) -> PairCounts:
        """Sum over all keys."""
        pairs = int((self.sizes * (self.sizes - 1) // 2).sum())
        return PairCounts(pairs, int(self.inverted.sum()), self.tied)

    def worst(self, count: int) -> list[int]:
        """Give the groups with most inverted pairs, the first of equals first; none without any."""
        groups = np.argsort(-self.inverted, kind="stable")[:count]
        return [int(group) for group in groups if self.inverted[group]]

    def first_descent(self, group: int) -> tuple[int, int]:
        """Give the positions of a group's first neighbours that are inverted."""
        start, size = int(self.starts[group]), int(self.sizes[group])
        values = self.values[start : start + size]
        place = start + int(np.argmax(values[1:] < values[:-1]))
        return int(self.positions[place]), int(self.positions[place + 1])


def _without_key(codes: Ints, by_key: Ints) -> Ints:
    """Drop the rows without a key, which sort first."""
    return by_key[np.count_nonzero(codes == NO_KEY) :]


def _key_order(
    groups: KeyGroups, group: int, names: Sequence[str], present: Ints, column: pl.Series
) -> KeyOrder:
    earlier, later = (int(present[position]) for position in groups.first_descent(group))
    size = int(groups.sizes[group])
    return KeyOrder(
        key=names[group],
        rows=size,
        pairs=_pairs_of(size),
        inverted=int(groups.inverted[group]),
        example=InvertedPair(earlier, later, _plain(column[earlier]), _plain(column[later])),
    )


def _plain(value: Any) -> float | str:
    return value if isinstance(value, int | float) and isfinite(value) else str(value)


def _pairs_of(count: int) -> int:
    return count * (count - 1) // 2


def _tied_pairs(is_same_as_next: NDArray[np.bool_]) -> int:
    """Count the pairs within runs of equal values, given which neighbours are equal."""
    breaks = np.flatnonzero(~is_same_as_next)
    edges = np.concatenate(([-1], breaks, [len(is_same_as_next)]))
    runs = np.diff(edges)
    return int((runs * (runs - 1) // 2).sum())
