"""How far behind the newest of its key each row came: the grace it would have needed.

The watermark of a key is its *reach* (the newest event time, or where idle steps have brought it)
less the grace. The reach does not depend on the grace, so one pass over the log answers for every
grace at once. Where the rows of a key name several profiles, the reach is that of one of them, and
the others hold W up from below, with the grace they have.

Here belongs the reach before each row and over time; what rows, windows and buffers make of it is
in ``grace.windows``, ``grace.room`` and ``grace``.
"""

from dataclasses import dataclass, replace

import numpy as np

from transforms.judging.keyed import (
    FOREVER,
    NEVER,
    Ints,
    Mask,
    Packing,
    Positions,
    fit_packing,
    minus,
)
from transforms.lateness.arrival_log import Log, profiles_used, with_profile
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

    By key, and rising within it; ``words`` are both packed. Where ``ramp``, silence let the reach
    rise evenly since the knot before, ``idle_us`` behind the clock.
    """

    packing: Packing
    words: Ints
    codes: Ints
    at: Ints
    ramp: Mask
    idle_us: int

    def first_at(self, codes: Ints, targets: Ints) -> Ints:
        """Return when each key reached each target; ``FOREVER`` where it has not yet."""
        if not self.words.size:
            return np.full(targets.size, FOREVER, np.int64)
        sought = self.packing.pack(codes, np.minimum(targets, self.packing.high))
        found = np.searchsorted(self.words, sought)
        knot = np.minimum(found, self.words.size - 1)
        reached = (found < self.words.size) & (self.codes[knot] == codes)
        reached &= targets <= self.packing.high
        at = np.where(self.ramp[knot], minus(targets, -self.idle_us), self.at[knot])
        return np.where(reached, at, FOREVER)


Steps = tuple[Ints, Ints, Ints, Mask]


def knots_of(log: Log, table: ProfileTable, profile: int, until_us: int) -> Knots:
    """Return how the reach of a profile rose, silences up to ``until_us`` among it."""
    rows, idle = log.rows, int(table.idle[profile])
    moving = np.flatnonzero(rows.moving)
    steps = _pushes(rows, moving, profile)
    if idle != FOREVER:
        steps = _with_silences(steps, _is_of(rows, moving, profile), idle, until_us)
    return _rising(steps, keys=log.keys.len(), idle=idle)


def _is_of(rows: Arrivals, moving: Positions, profile: int) -> Mask:
    if isinstance(rows.profile, int):
        return np.full(moving.size, rows.profile == profile)
    own: Mask = rows.profile[moving] == profile
    return own


def _pushes(rows: Arrivals, moving: Positions, profile: int) -> Steps:
    """Return a step for every moving row; those of another profile push nothing."""
    codes = rows.groups.codes[moving].astype(np.int64)
    own = _is_of(rows, moving, profile)
    value = np.where(own, rows.event[moving], NEVER)
    return codes, value, rows.arrival[moving], np.zeros(moving.size, np.bool_)


def _with_silences(steps: Steps, own: Mask, idle: int, until_us: int) -> Steps:
    """Put after each row of the profile where its silence began to count, and where it ended."""
    codes, _, heard, _ = steps
    ended = np.full(codes.size, until_us, np.int64)
    same = codes[1:] == codes[:-1]
    ended[:-1][same] = heard[1:][same]
    silent = np.flatnonzero((minus(ended, heard) >= idle) & own)
    begins, ends = heard[silent], ended[silent]
    values = np.stack([begins, minus(ends, idle)], axis=1)
    times = np.stack([minus(begins, -idle), ends], axis=1)
    ramps = np.broadcast_to([False, True], values.shape)
    pairs = (np.repeat(codes[silent], 2), *(pair.reshape(-1) for pair in (values, times, ramps)))
    place = np.repeat(silent + 1, 2)
    inserted = (np.insert(*both) for both in zip(steps, [place] * len(steps), pairs, strict=True))
    codes, value, at, ramp = inserted
    return codes, value, at, ramp


def _rising(steps: Steps, keys: int, idle: int) -> Knots:
    """Keep the steps that rise above all before them in their key."""
    codes, value, at, ramp = steps
    packing = fit_packing(keys, value)
    words = packing.pack(codes, value)
    rises = np.ones(words.size, np.bool_)
    rises[1:] = words[1:] > np.maximum.accumulate(words)[:-1]
    return Knots(packing, words[rises], codes[rises], at[rises], ramp[rises], idle)
