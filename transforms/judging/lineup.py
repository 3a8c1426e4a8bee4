"""The held and the staged rows of a partition as one line: narrow arrays, and frames on demand.

Here belongs where a row stands (its row number: held rows first, then the arrivals; its position:
grouped by key, in that order) and how the columns of many rows are gathered at small cost. What
becomes of the rows is decided in ``reorder``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from transforms import schemas
from transforms.judging.keyed import (
    Grouped,
    Ints,
    Mask,
    Positions,
    RowIds,
    group,
    key_codes,
    take,
)
from transforms.spec import StreamSpec
from transforms.watermark import ProfileCodes, ProfileTable

# A column is brought into one chunk for more than this part of its rows.
_FEW: Final = 8


@dataclass(frozen=True)
class LineUp:
    """Held and staged rows by position. ``keys`` are all known keys, sorted, silent ones too."""

    spec: StreamSpec
    held: pl.DataFrame
    staged: pl.DataFrame
    keys: pl.Series
    groups: Grouped
    event: Ints

    @cached_property
    def is_held(self) -> Mask:
        """Which rows were held before the partition."""
        held: Mask = self.groups.order < self.held.height
        return held

    def numbers(self, name: str) -> Ints:
        """Return a whole-number column by position."""
        return take(_numbers(self.held, self.staged, name), self.groups.order)

    def staged_mask(self, by_row: Mask) -> Mask:
        """Return by position what is known of each staged row; false for held rows."""
        every = np.concatenate([np.zeros(self.held.height, np.bool_), by_row])
        mask: Mask = take(every, self.groups.order)
        return mask

    def profiles(self, table: ProfileTable) -> ProfileCodes | int:
        """Return the profile code of each row, or one for all; that of a held row is not used."""
        profiles = self.spec.profiles
        if len(table.names) == 1:
            return 0
        if profiles.by is None:
            of_key = [profiles.of_key(key) for key in self.keys]
            return self.groups.spread(table.codes(pl.Series(of_key, dtype=pl.String)))
        staged = table.codes(self.staged[schemas.PROFILE])
        every = np.concatenate([np.zeros(self.held.height, staged.dtype), staged])
        return take(every, self.groups.order)

    def rows(self, positions: RowIds | Positions, columns: Sequence[str]) -> pl.DataFrame:
        """Return columns of the rows at ``positions``; a column that held rows lack is null there.

        What all rows of a key share is read from a table of the keys, which fits the cache.
        """
        codes = pl.Series(take(self.groups.codes, positions))
        rows = pl.Series(take(self.groups.order, positions))
        by_key = self._of_keys
        return pl.DataFrame(
            [
                by_key[name].gather(codes) if name in by_key else self._gather(name, rows)
                for name in columns
            ]
        )

    @cached_property
    def _of_keys(self) -> dict[str, pl.Series]:
        """The columns that all rows of a key share, by key code; null for a key without rows."""
        first = np.full(self.keys.len(), -1, np.int64)
        first[self.groups.present] = self.groups.order[self.groups.starts]
        row = pl.Series(first).replace(-1, None)
        parts = {name: self._column(name).gather(row) for name in self.spec.key_parts}
        return {schemas.KEY: self.keys.alias(schemas.KEY), **parts}

    def _gather(self, name: str, rows: pl.Series) -> pl.Series:
        column = self._column(name)
        # Scattered reads of many rows are quick from one chunk only.
        whole = column.rechunk() if rows.len() > column.len() // _FEW else column
        return whole.gather(rows)

    def _column(self, name: str) -> pl.Series:
        staged = self.staged[name]
        if not self.held.height:
            return staged
        if name in self.held.columns:
            return pl.concat([self.held[name], staged])
        missing = pl.repeat(None, self.held.height, dtype=staged.dtype, eager=True)
        return pl.concat([missing.alias(name), staged])


def line_up(spec: StreamSpec, staged: pl.DataFrame, held: pl.DataFrame, known: pl.Series) -> LineUp:
    """Bring held and staged rows together by key; ``known`` are the keys that have a state."""
    # A held row may be all that is known of a key: the lowest arrival of all is no state.
    listed = [known, *(part[schemas.KEY].unique() for part in (held, staged))]
    keys = pl.concat(listed).unique().sort()
    codes = np.concatenate([key_codes(part[schemas.KEY], keys) for part in (held, staged)])
    groups = group(codes, keys.len())
    event = take(_numbers(held, staged, schemas.EVENT_US), groups.order)
    return LineUp(spec, held, staged, keys, groups, event)


def _numbers(held: pl.DataFrame, staged: pl.DataFrame, name: str) -> Ints:
    if not held.height:
        return staged[name].to_numpy()
    return np.concatenate([held[name].to_numpy(), staged[name].to_numpy()])
