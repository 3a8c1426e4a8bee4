"""The watermark of every key: what moves it, where it stood before each row, where it ends.

Here belong the numbers of the profiles as arrays, idle steps, the running maximum and the state
that is carried to the next partition. Which rows are moving rows is decided before, in ``dedup``
and ``reorder``; what a row's standing against W means for it is decided after.

Minus infinity is ``NEVER`` in arrays and null in frames. A watermark below int64 is minus infinity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms import schemas
from transforms.judging.keyed import (
    FOREVER,
    NEVER,
    Grouped,
    Ints,
    Mask,
    Positions,
    before_each,
    key_codes,
    minus,
    running_max,
)
from transforms.spec.profiles import Profile

ProfileCodes = npt.NDArray[np.uint16]

# The spec names its profile `default` first.
_DEFAULT_CODE: Final = 0


@dataclass(frozen=True)
class ProfileTable:
    """The numbers of all profiles, by profile code; ``idle`` is ``FOREVER`` where it is off."""

    names: tuple[str, ...]
    grace: Ints
    idle: Ints
    capacity: Ints
    future_skew: Ints

    def codes(self, names: pl.Series) -> ProfileCodes:
        """Return the code of each name; one that is declared no more is served by ``default``."""
        known = names.cast(pl.Enum(self.names), strict=False).to_physical()
        codes: ProfileCodes = known.fill_null(_DEFAULT_CODE).cast(pl.UInt16).to_numpy()
        return codes


def profile_table(named: Mapping[str, Profile]) -> ProfileTable:
    """Lay the numbers of the profiles out by code."""
    profiles = list(named.values())
    return ProfileTable(
        names=tuple(named),
        grace=np.array([profile.grace_us for profile in profiles], np.int64),
        idle=np.array([_idle_or_forever(profile) for profile in profiles], np.int64),
        capacity=np.array([profile.capacity for profile in profiles], np.int64),
        future_skew=np.array([profile.future_skew_us for profile in profiles], np.int64),
    )


def _idle_or_forever(profile: Profile) -> int:
    return FOREVER if profile.idle_timeout_us is None else profile.idle_timeout_us


@dataclass(frozen=True)
class Standing:
    """What is carried of each known key, by key code; ``NEVER`` for a key without moving rows.

    ``profile`` is the code of the profile of the newest moving row.
    """

    watermark: Ints
    last_arrival: Ints
    profile: ProfileCodes
    max_event: Ints


def standing_of(watermarks: pl.DataFrame, keys: pl.Series, table: ProfileTable) -> Standing:
    """Read the state of all ``keys`` from the ``watermarks`` frame of the partition before."""
    codes = key_codes(watermarks[schemas.KEY], keys)

    def column(name: str) -> Ints:
        values = np.full(keys.len(), NEVER, np.int64)
        values[codes] = watermarks[name].fill_null(NEVER).to_numpy()
        return values

    profile = np.zeros(keys.len(), np.uint16)
    profile[codes] = table.codes(watermarks[schemas.PROFILE])
    return Standing(
        watermark=column(schemas.WATERMARK_US),
        last_arrival=column(schemas.LAST_ARRIVAL_US),
        profile=profile,
        max_event=column(schemas.MAX_EVENT_US),
    )


def watermarks_of(standing: Standing, keys: pl.Series, table: ProfileTable) -> pl.DataFrame:
    """Return the ``watermarks`` frame: a row for each key that ever had a moving row, by key."""
    names = pl.Series(table.names, dtype=pl.String)
    frame = pl.DataFrame(
        {
            schemas.KEY: keys,
            schemas.WATERMARK_US: times_or_null(standing.watermark),
            schemas.LAST_ARRIVAL_US: standing.last_arrival,
            schemas.PROFILE: names.gather(pl.Series(standing.profile)),
            schemas.MAX_EVENT_US: standing.max_event,
        }
    )
    return frame.filter(pl.Series(standing.last_arrival != NEVER))


def times_or_null(times: Ints) -> pl.Series:
    """Return the times as a column, null for ``NEVER``."""
    column = pl.Series(times)
    return column.set(column == NEVER, None) if (times == NEVER).any() else column


@dataclass(frozen=True)
class Arrivals:
    """The rows of a partition by position: what the watermark depends on.

    ``profile`` is a code for each row, or one for all. ``moving`` says which rows are moving rows;
    held rows are none here, for the carried state knows of them, and they see no idle step.
    """

    groups: Grouped
    event: Ints
    arrival: Ints
    profile: ProfileCodes | int
    moving: Mask
    held: Mask
    carried: Standing

    @cached_property
    def still(self) -> Positions:
        """The positions of the rows that are not moving."""
        return np.flatnonzero(~self.moving)

    @cached_property
    def heard(self) -> Ints:
        """The arrival of the newest moving row of the key, up to and with each row."""
        heard: Ints = self._of_newest(self.arrival, self.carried.last_arrival)
        return heard

    @cached_property
    def in_force(self) -> ProfileCodes | int:
        """The profile of the newest moving row of the key, up to and with each row."""
        if isinstance(self.profile, int):
            return self.profile
        in_force: ProfileCodes = self._of_newest(self.profile, self.carried.profile)
        return in_force

    def _of_newest(self, values: npt.NDArray[Any], carried: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give the rows that are not moving the value of the newest moving row before them."""
        if not self.still.size:
            return values
        opens_run = np.diff(self.still, prepend=-2) != 1
        opens_run |= np.isin(self.still, self.groups.starts)
        run = self.still[np.flatnonzero(opens_run)[np.cumsum(opens_run) - 1]]
        none_before = np.isin(run, self.groups.starts)
        filled = values.copy()
        filled[self.still] = np.where(none_before, carried[self.groups.codes[run]], values[run - 1])
        return filled


def watermark_before_each(rows: Arrivals, table: ProfileTable) -> Ints:
    """Return W as it stands before each row is judged: its own idle step taken, itself not."""
    pushes = before_each(rows.groups, _pushed_by(rows, table), rows.carried.watermark)
    _take_idle_steps(pushes, rows, table)
    return running_max(rows.groups, pushes)


def _pushed_by(rows: Arrivals, table: ProfileTable) -> Ints:
    """Return the W that each moving row asks for, ``t - B``; ``NEVER`` for the others."""
    pushed = minus(rows.event, table.grace[rows.profile])
    pushed[rows.still] = NEVER
    return pushed


def _take_idle_steps(pushes: Ints, rows: Arrivals, table: ProfileTable) -> None:
    """Raise ``pushes`` where a row ends a silence of its key."""
    if (table.idle == FOREVER).all():
        return
    heard = before_each(rows.groups, rows.heard, rows.carried.last_arrival)
    profile = rows.in_force
    if not isinstance(profile, int):
        profile = before_each(rows.groups, profile, rows.carried.profile)
    silent = _is_silent(rows.arrival, heard, profile, table) & ~rows.held
    at = np.flatnonzero(silent)
    which = profile if isinstance(profile, int) else profile[at]
    pushes[at] = np.maximum(pushes[at], _idle_step(rows.arrival[at], which, table))


def _is_silent(now: Ints, heard: Ints, profile: ProfileCodes | int, table: ProfileTable) -> Mask:
    """Tell where the idle timeout is reached; a key never heard of is not silent."""
    idle = table.idle[profile]
    unheard = heard == NEVER
    silent: Mask = minus(now, np.where(unheard, now, heard)) >= idle
    silent &= ~unheard & (idle != FOREVER)
    return silent


def _idle_step(now: Ints, profile: ProfileCodes | int, table: ProfileTable) -> Ints:
    return minus(minus(now, table.idle[profile]), table.grace[profile])


def standing_after(rows: Arrivals, before_rows: Ints, table: ProfileTable) -> Standing:
    """Return what is carried on after all rows; ``before_rows`` is W before each of them."""
    groups, carried = rows.groups, rows.carried
    if not rows.event.size:
        return carried
    ends = groups.ends
    at_end = np.maximum(before_rows[ends], _pushed_at_end(rows, table))
    event = np.where(rows.moving, rows.event, NEVER)
    newest = np.maximum.reduceat(event, groups.starts)
    profile = rows.in_force if isinstance(rows.in_force, int) else rows.in_force[ends]
    return Standing(
        watermark=_updated(carried.watermark, groups, at_end),
        last_arrival=_updated(carried.last_arrival, groups, rows.heard[ends]),
        profile=_updated(carried.profile, groups, profile),
        max_event=np.maximum(carried.max_event, _updated(carried.max_event, groups, newest)),
    )


def _pushed_at_end(rows: Arrivals, table: ProfileTable) -> Ints:
    """Return the W that the last row of each present key asks for."""
    last = rows.groups.ends
    profile = rows.profile if isinstance(rows.profile, int) else rows.profile[last]
    pushed = minus(rows.event[last], table.grace[profile])
    return np.where(rows.moving[last], pushed, NEVER)


def _updated(carried: npt.NDArray[Any], groups: Grouped, of_present: Any) -> npt.NDArray[Any]:
    """Return ``carried`` with the values of the keys that have rows."""
    updated = carried.copy()
    updated[groups.present] = of_present
    return updated


def at_frontier(standing: Standing, frontier_us: int, table: ProfileTable) -> Standing:
    """Take the idle step of every key, silent ones too, at the end of a complete partition."""
    frontier = np.full(standing.watermark.size, frontier_us, np.int64)
    silent = _is_silent(frontier, standing.last_arrival, standing.profile, table)
    step = np.where(silent, _idle_step(frontier, standing.profile, table), NEVER)
    watermark = np.maximum(standing.watermark, step)
    return Standing(watermark, standing.last_arrival, standing.profile, standing.max_event)
