"""How far behind the newest of its key each row came: the grace it would have needed.

The watermark of a key is its *reach* (the newest event time, or where idle steps have brought it)
less the grace. The reach does not depend on the grace, so one pass over the log answers for every
grace at once. Where the rows of a key name several profiles, the reach is that of one of them, and
the others hold W up from below, with the grace they have.

Here belongs the reach before each row and over time; what rows, windows and buffers make of it is
in ``grace_windows``, ``grace_room`` and ``grace``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from transforms.arrival_log import Log, profiles_used, with_profile
from transforms.keyed import (
    FOREVER,
    Ints,
    Mask,
    Positions,
    fit_packing,
    minus,
)
from transforms.watermark import Arrivals, ProfileTable, watermark_before_each


@dataclass(frozen=True)
class Reach:
    """The rows of all keys that use a profile, and the reach of that profile before each of them.

    ``floor`` is the watermark that the other profiles of a key stand for, None where no key has
    another. ``by_others`` are the codes of those profiles.
    """

    log: Log
    table: ProfileTable
    profile: int
    before: Ints
    floor: Ints | None
    by_others: tuple[int, ...]

    def watermark(self, grace_us: int, at: Positions | Mask) -> Ints:
        """Return W before some rows, under a grace of the profile."""
        watermark = minus(self.before[at], grace_us)
        return watermark if self.floor is None else np.maximum(watermark, self.floor[at])

    def needed(self, at: Positions | Mask, times: Ints) -> Ints:
        """Return the least grace under which W before some rows is not above ``times``.

        It may be negative; ``FOREVER`` where no grace helps, for another profile holds W up.
        """
        needed = minus(self.before[at], times)
        return needed if self.floor is None else np.where(self.floor[at] > times, FOREVER, needed)

    def closing(self, at: Positions | Mask, ends: Ints) -> Ints:
        """Return the greatest grace under which W before some rows has reached ``ends``.

        It may be negative; ``FOREVER`` where another profile has brought W there.
        """
        closing = minus(self.before[at], ends)
        return closing if self.floor is None else np.where(self.floor[at] >= ends, FOREVER, closing)


def reach_of(log: Log, table: ProfileTable, profile: int) -> Reach:
    """Return the reach of a profile over the rows of the keys whose moving rows name it."""
    used = profiles_used(log, len(table.names))
    own = log.of_keys(used[:, profile])
    others = np.flatnonzero(used[used[:, profile]].any(axis=0))
    mixed = tuple(int(code) for code in others if code != profile)
    if not mixed:
        own = with_profile(own, profile)
        before = watermark_before_each(own.rows, _with_grace(table, {profile: 0}))
        return Reach(own, table, profile, before, None, ())
    apart = dict.fromkeys(range(len(table.names)), FOREVER)
    before = watermark_before_each(own.rows, _with_grace(table, apart | {profile: 0}))
    floor = watermark_before_each(own.rows, _with_grace(table, {profile: FOREVER}))
    return Reach(own, table, profile, before, floor, mixed)


def _with_grace(table: ProfileTable, grace_us: dict[int, int]) -> ProfileTable:
    changed = table.grace.copy()
    changed[list(grace_us)] = list(grace_us.values())
    return replace(table, grace=changed)


@dataclass(frozen=True)
class Knots:
    """How the reach of each key rose over arrival time: ``value`` was reached at ``at``.

    By key, and rising within it. Where ``ramp``, silence let the reach rise evenly since the knot
    before, ``idle_us`` behind the clock.
    """

    codes: Ints
    value: Ints
    at: Ints
    ramp: Mask
    idle_us: int

    def first_at(self, codes: Ints, targets: Ints) -> Ints:
        """Return when each key reached each target; ``FOREVER`` where it has not yet."""
        if not self.value.size:
            return np.full(targets.size, FOREVER, np.int64)
        keys = int(max(self.codes[-1], codes.max(initial=0))) + 1
        packing = fit_packing(keys, self.value, targets)
        found = np.searchsorted(packing.pack(self.codes, self.value), packing.pack(codes, targets))
        knot = np.minimum(found, self.value.size - 1)
        reached = (found < self.value.size) & (self.codes[knot] == codes)
        at = np.where(self.ramp[knot], minus(targets, -self.idle_us), self.at[knot])
        return np.where(reached, at, FOREVER)


def knots_of(log: Log, table: ProfileTable, profile: int, until_us: int) -> Knots:
    """Return how the reach of a profile rose, silences up to ``until_us`` among it."""
    rows = log.rows
    idle = int(table.idle[profile])
    moving = np.flatnonzero(rows.moving)
    if isinstance(rows.profile, int) and rows.profile != profile:
        moving = moving[:0]
    steps = [_pushes(rows, moving, profile)]
    if idle != FOREVER and moving.size:
        steps += _silences(rows, moving, profile, idle, until_us)
    codes, value, at, kind = (np.concatenate(column) for column in zip(*steps, strict=True))
    if len(steps) > 1:
        order = np.lexsort((value, kind, at, codes))
        codes, value, at, kind = codes[order], value[order], at[order], kind[order]
    return _rising(codes, value, at, kind == _SILENCE_ENDS, idle)


Kinds = npt.NDArray[np.uint8]
Steps = tuple[Ints, Ints, Ints, Kinds]
# What is taken first at one arrival: a row ends a silence before it is judged.
_SILENCE_BEGINS, _SILENCE_ENDS, _PUSH = range(3)


def _of_kind(kind: int, size: int) -> Kinds:
    return np.full(size, kind, np.uint8)


def _pushes(rows: Arrivals, moving: Positions, profile: int) -> Steps:
    """Return the steps that rows of the profile make by their event time."""
    at = moving
    if not isinstance(rows.profile, int):
        at = moving[rows.profile[moving] == profile]
    codes = rows.groups.codes[at].astype(np.int64)
    return codes, rows.event[at], rows.arrival[at], _of_kind(_PUSH, at.size)


def _silences(
    rows: Arrivals, moving: Positions, profile: int, idle: int, until_us: int
) -> Sequence[Steps]:
    """Return where silences after rows of the profile began to count, and where they ended."""
    codes = rows.groups.codes[moving].astype(np.int64)
    heard = rows.arrival[moving]
    ended = np.full(moving.size, until_us, np.int64)
    same = codes[1:] == codes[:-1]
    ended[:-1][same] = heard[1:][same]
    silent = minus(ended, heard) >= idle
    if not isinstance(rows.profile, int):
        silent &= rows.profile[moving] == profile
    codes, heard, ended = codes[silent], heard[silent], ended[silent]
    return (
        (codes, heard, minus(heard, -idle), _of_kind(_SILENCE_BEGINS, codes.size)),
        (codes, minus(ended, idle), ended, _of_kind(_SILENCE_ENDS, codes.size)),
    )


def _rising(codes: Ints, value: Ints, at: Ints, ramp: Mask, idle: int) -> Knots:
    """Keep the steps that rise above all before them in their key."""
    packing = fit_packing(int(codes[-1]) + 1 if codes.size else 1, value)
    words = packing.pack(codes, value)
    newest = np.maximum.accumulate(words) if words.size else words
    rises = np.ones(words.size, np.bool_)
    rises[1:] = words[1:] > newest[:-1]
    return Knots(codes[rises], value[rises], at[rises], ramp[rises], idle)
