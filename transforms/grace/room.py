"""How many rows the buffer of a key holds under a grace, and what a capacity refuses.

What a buffer holds lies within a grace of event time, so most keys are cleared by one comparison of
times that stand so many rows apart; the few that might hold more than is known yet are counted
exactly, by the code that reorders. Here belong that search and the exact counts; which rows are
behind is in ``grace.reach``.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from transforms.grace.reach import Reach
from transforms.judging.keyed import Codes, Ints, Mask, Positions, take
from transforms.judging.overflow import (
    Entrants,
    keys_within_reach,
    occupancy_if_all_enter,
    refused_for_room,
)

# So many keys are counted exactly at first, twice as many each time after: the largest first.
_AT_FIRST: Final = 32
_PIECE: Final = 1 << 18  # rows compared at a time: they fit the cache
_WORD_BITS: Final = 63


@dataclass
class Room:
    """The buffers of all keys of a reach; remembers which key was the fullest."""

    reach: Reach
    _fullest: int | None = field(default=None, init=False)

    @property
    def _counts(self) -> Ints:
        return self.reach.log.rows.groups.counts

    @cached_property
    def by_time(self) -> tuple[Codes, Ints]:
        """Key code and event time of the rows that may enter, by key and time."""
        log = self.reach.log
        order = log.by_time[take(log.undecided, log.by_time)]
        return take(log.rows.groups.codes, order), take(log.rows.event, order)

    @cached_property
    def _words(self) -> Ints | None:
        """Key and event time as one number; those of two keys are further apart than any times."""
        codes, event = self.by_time
        if not event.size:
            return None
        low = int(event.min())
        bits = (int(event.max()) - low).bit_length() + 1
        if bits + self._counts.size.bit_length() > _WORD_BITS:
            return None
        return np.left_shift(codes, bits, dtype=np.int64) | (event - low)

    def peak(self, grace_us: int) -> int:
        """Return the most rows that one key needs room for if none is ever refused.

        It is the least capacity that refuses nobody; 0 where no row may enter.
        """
        if not self.by_time[0].size:
            return 0
        if self._fullest is None:
            self._fullest = int(np.bincount(self.by_time[0]).argmax())
        peak, at_once = 0, _AT_FIRST
        todo = np.array([self._fullest])
        counted = np.zeros(self._counts.size, np.bool_)
        while todo.size:
            peak = max(peak, self._count(todo, grace_us, above=peak))
            counted[todo] = True
            more = np.flatnonzero(self._crowded(max(peak, 1), grace_us) & ~counted)
            todo = more[np.argsort(-self._counts[more], kind="stable")[:at_once]]
            at_once *= 2
        return peak

    def _count(self, keys: Positions, grace_us: int, above: int) -> int:
        """Return the most rows that one of some keys needs room for, exactly."""
        entrants = self._entrants(np.sort(keys), grace_us, np.int64(0))
        if not entrants.position.size:
            return 0
        room = occupancy_if_all_enter(entrants) + 1
        most = int(room.max())
        if most > above:
            self._fullest = int(entrants.codes[room.argmax()])
        return most

    def _crowded(self, rows: int, grace_us: int) -> Mask:
        """Tell which keys have so many rows within a grace: only they can need more room."""
        codes, event = self.by_time
        # Rows of another profile hold W up by its own grace only, and so may rows of this one wait.
        widest = max([grace_us, *self._of_others(self.reach.table.grace)])
        if self._words is None:
            return keys_within_reach(codes, event, self._counts.size, rows, widest)
        # All times of a key are this close, and two keys are further apart.
        within = min(widest, int(event.max()) - int(event.min()))
        return _keys_close(self._words, codes, self._counts.size, rows - 1, within)

    def refused(self, grace_us: int, capacity: int) -> Positions:
        """Return the rows that meet a full buffer, under a grace and a capacity of the profile."""
        least = min([capacity, *self._of_others(self.reach.table.capacity)])
        crowded = self._crowded(least, grace_us)
        if not crowded.any():
            return np.empty(0, np.int64)
        keys = np.flatnonzero(crowded)
        return refused_for_room(self._entrants(keys, grace_us, self._capacities(capacity)))

    def _of_others(self, numbers: Ints) -> list[int]:
        """Return the numbers of the other profiles that rows of these keys name."""
        return [int(numbers[code]) for code in self.reach.by_others]

    def _capacities(self, capacity: int) -> Ints | np.int64:
        """Return the capacity of each row: that of its own profile."""
        profile, table = self.reach.log.rows.profile, self.reach.table
        if isinstance(profile, int):
            return np.int64(capacity)
        changed = table.capacity.copy()
        changed[self.reach.profile] = capacity
        capacities: Ints = changed[profile]
        return capacities

    def _entrants(self, keys: Positions, grace_us: int, capacity: Ints | np.int64) -> Entrants:
        """Return the rows of some keys, in their order, that enter their buffer if it has room."""
        log = self.reach.log
        at = self._rows_of(keys)
        at = at[log.undecided[at]]
        event, watermark = log.rows.event[at], self.reach.watermark(grace_us, at)
        enters = event >= watermark
        at = at[enters]
        return Entrants(
            position=at,
            codes=log.rows.groups.codes[at],
            event=event[enters],
            watermark=watermark[enters],
            capacity=np.broadcast_to(capacity, (log.size,))[at],
            held=np.zeros(at.size, np.bool_),
        )

    def _rows_of(self, keys: Positions) -> Positions:
        ends = np.cumsum(self._counts)
        size = self._counts[keys]
        within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        return np.repeat(ends[keys] - size, size) + within


def _keys_close(words: Ints, codes: Codes, keys: int, apart: int, grace_us: int) -> Mask:
    """Tell which keys have two rows, so many rows apart, within a grace of each other."""
    close = np.zeros(keys, np.bool_)
    last = words.size - apart
    for begin in range(0, last, _PIECE):
        end = min(begin + _PIECE, last)
        found = words[begin + apart : end + apart] - words[begin:end] <= grace_us
        if found.any():
            close[codes[begin:end][found]] = True
    return close
