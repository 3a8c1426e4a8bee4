"""The sweep: what each of many graces would have meant for the arrivals of a stream.

A candidate is judged exactly as reordering from the start of the stream would judge it, with the
other numbers of the profile and all other profiles as they are, and with room for every row: the
capacity that takes is part of the answer (``peak_rows``). That is no run per candidate. The reach
of a key (``grace.reach``) does not depend on the grace, so the log is sorted once and each
candidate is a few searches in sorted arrays.

Here belong the curve over candidates, its knee and the candidates themselves; what the curve says
to a person is in ``grace.advice``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl

from transforms import schemas
from transforms.durations import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from transforms.grace.reach import Reach, reach_of
from transforms.grace.room import Room
from transforms.grace.windows import Missed, Publication, missed_windows, publication
from transforms.judging.keyed import FOREVER, Ints, minus
from transforms.lateness.arrival_log import Log
from transforms.reorder import REASONS
from transforms.spec import StreamSpec
from transforms.watermark import profile_table

GRACE_US: Final = "grace_us"
ROWS: Final = "rows"
DEAD: Final = "dead_letters"
BEHIND_FRACTION: Final = "behind_fraction"
AMENDED: Final = "windows_amended"
FIRST_BY_LATE: Final = "windows_first_by_late_rows"
CLOSED: Final = "windows_closed"
DELAY_MEDIAN_US: Final = "delay_median_us"
DELAY_P95_US: Final = "delay_p95_us"
PEAK_ROWS: Final = "peak_rows"
# The reasons that W has no say in, whatever the grace.
APART: Final = (
    schemas.FUTURE_TIMESTAMP,
    schemas.CONFLICTING_DUPLICATE,
    schemas.INVALID_VALUE,
)

CURVE: Final = pl.Schema(
    {
        GRACE_US: pl.Int64(),
        ROWS: pl.Int64(),
        DEAD: pl.Int64(),
        **dict.fromkeys(schemas.DEAD_LETTER_REASONS, pl.Int64()),
        BEHIND_FRACTION: pl.Float64(),
        AMENDED: pl.Int64(),
        FIRST_BY_LATE: pl.Int64(),
        CLOSED: pl.Int64(),
        DELAY_MEDIAN_US: pl.Int64(),
        DELAY_P95_US: pl.Int64(),
        PEAK_ROWS: pl.Int64(),
    }
)

# Round numbers between which a person would choose, by the unit in which they are written.
_ROUND: Final = (
    *(step * SECOND_US // 1000 for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(step * SECOND_US for step in (1, 2, 3, 5, 7, 10, 15, 20, 30, 45)),
    *(step * MINUTE_US for step in (1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 45)),
    *(step * HOUR_US for step in (1, 1.5, 2, 3, 4, 6, 8, 12, 18)),
    *(step * DAY_US for step in (1, 1.5, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 90, 180, 365)),
)

# Candidates that only one in so many of the disordered rows would notice are left out.
_FEW: Final = 100


@dataclass(frozen=True)
class Sweep:
    """All graces of one profile over the rows of the keys that use it.

    ``until_us`` is the time up to which arrivals are known complete: silences count up to there.
    """

    spec: StreamSpec
    profile: str
    reach: Reach
    until_us: int

    @property
    def rows(self) -> int:
        """The number of rows of the keys that use the profile."""
        return self.reach.log.size

    @cached_property
    def counted(self) -> int:
        """The number of rows that W decides about."""
        return int(np.count_nonzero(self.reach.log.undecided))

    @cached_property
    def apart(self) -> dict[str, int]:
        """Dead letters that are so whatever the grace, by reason."""
        counts = np.bincount(self.reach.log.fates, minlength=max(REASONS) + 1)
        return {name: int(counts[fate]) for fate, name in REASONS.items() if name in APART}

    @cached_property
    def needed(self) -> Ints:
        """The least grace under which each row is on time, ascending; of those that need any.

        ``FOREVER`` stands for a row that no grace helps.
        """
        at = np.flatnonzero(self.reach.log.undecided)
        needed = self.reach.needed(at, self.reach.log.rows.event[at])
        return np.sort(needed[needed > 0])

    @cached_property
    def missed(self) -> Missed:
        """The windows that rows find closed."""
        return missed_windows(self.spec, self.reach)

    @cached_property
    def publication(self) -> Publication:
        """The windows of the shortest kind, and when they close."""
        return publication(self.spec, self.reach, self.until_us)

    @cached_property
    def room(self) -> Room:
        """The buffers."""
        return Room(self.reach)

    def behind(self, grace_us: int) -> int:
        """Return how many rows come behind W under a grace."""
        return int(self.needed.size - np.searchsorted(self.needed, grace_us, side="right"))

    def needed_quantile(self, share: float) -> int:
        """Return the least grace under which at least this share of the rows is on time."""
        allowed = int((1 - share) * self.counted + 1e-9)
        at = self.needed.size - 1 - allowed
        return int(self.needed[at]) if at >= 0 else 0

    def curve(self, graces: Iterable[int]) -> pl.DataFrame:
        """Judge the candidates; a row for each, ascending, with the columns of ``CURVE``."""
        points = [self.point(grace) for grace in sorted(set(graces))]
        return pl.DataFrame(points, schema=CURVE)

    def point(self, grace_us: int, capacity: int | None = None) -> dict[str, Any]:
        """Judge one grace; with a ``capacity``, rows that meet a full buffer are refused."""
        behind = self.behind(grace_us)
        closed = _at_least(self.missed.rows, grace_us)
        wholly = _at_least(self.missed.wholly, grace_us)
        full = 0 if capacity is None else self.room.refused(grace_us, capacity).size
        delays = self.publication.delays(grace_us)
        return {
            GRACE_US: grace_us,
            ROWS: self.rows,
            DEAD: behind + full + sum(self.apart.values()),
            schemas.BEHIND_WATERMARK: behind - closed,
            schemas.LATE_CLOSED_WINDOW: closed,
            schemas.BUFFER_OVERFLOW: full,
            **self.apart,
            BEHIND_FRACTION: behind / self.counted if self.counted else 0.0,
            AMENDED: _at_least(self.missed.windows, grace_us) - wholly,
            FIRST_BY_LATE: wholly,
            CLOSED: delays.size,
            DELAY_MEDIAN_US: _quantile(delays, 0.5),
            DELAY_P95_US: _quantile(delays, 0.95),
            PEAK_ROWS: self.room.peak(grace_us),
        }


def _at_least(values: Ints, grace_us: int) -> int:
    return int(values.size - np.searchsorted(values, grace_us, side="left"))


def _quantile(values: Ints, share: float) -> int | None:
    """Return the least value that this share of the values does not exceed; None of none."""
    if not values.size:
        return None
    at = max(int(np.ceil(share * values.size)) - 1, 0)
    return int(np.partition(values, at)[at])


def sweep_of(spec: StreamSpec, log: Log, profile: str, until_us: int | None = None) -> Sweep:
    """Prepare the sweep of one profile of the stream."""
    table = profile_table(spec.profiles.named)
    reach = reach_of(log, table, table.names.index(profile))
    last = int(log.rows.arrival.max(initial=0))
    return Sweep(spec, profile, reach, max(last, until_us or last))


def candidates(sweep: Sweep, most: int = 50) -> list[int]:
    """Return at most so many round graces between none and what every row needs, ascending.

    No grace at all and the one in force are always among them.
    """
    in_force = sweep.spec.profiles.named[sweep.profile].grace_us
    curable = sweep.needed[sweep.needed != FOREVER]
    if not curable.size:
        return sorted({0, in_force})
    low, high = int(curable[curable.size // _FEW]), int(curable[-1])
    rounds = [int(step) for step in _ROUND]
    within = [step for last, step in pairwise([0, *rounds]) if step >= low and last < high]
    extra = [high] if high > rounds[-1] else []
    chosen = sorted({0, in_force, *within, *extra})
    while len(chosen) > most:
        chosen = _thinned(chosen, in_force)
    return chosen


def _thinned(graces: list[int], keep: int) -> list[int]:
    """Leave out the candidate that stands closest after another, as a ratio."""
    ratios = [(high / low, high) for low, high in pairwise(graces[1:]) if high != keep]
    return [grace for grace in graces if grace != min(ratios)[1]]


def knee(curve: pl.DataFrame) -> int | None:
    """Return the grace from which on patience buys little; None where there is nothing to buy.

    It is the point of the curve that lies furthest below the straight line from its first to its
    last point, share of rows behind over the logarithm of the grace.
    """
    behind = curve[BEHIND_FRACTION].to_numpy()
    if behind.size < len(("first", "knee", "last")) or behind[0] <= behind[-1]:
        return None
    grace = curve[GRACE_US].to_numpy()
    least = grace[grace > 0][0]
    along = np.log(np.maximum(grace, least / 2))
    x = (along - along[0]) / (along[-1] - along[0])
    y = (behind - behind[-1]) / (behind[0] - behind[-1])
    below = 1 - x - y
    return int(grace[below.argmax()]) if below.max() > 0 else None


def busiest_rate(sweep: Sweep, span_us: int) -> float:
    """Return the most rows per second that one key sampled in an interval of event time."""
    codes, event = sweep.room.by_time
    if not event.size:
        return 0.0
    cell = event // span_us
    new = np.ones(event.size, np.bool_)
    new[1:] = (cell[1:] != cell[:-1]) | (codes[1:] != codes[:-1])
    rows = np.diff(np.flatnonzero(new), append=event.size)
    return float(rows.max()) / (span_us / SECOND_US)


def sampling_interval(sweep: Sweep) -> int:
    """Return the usual distance of two readings of one key in event time; 0 if none has two."""
    codes, event = sweep.room.by_time
    apart = minus(event[1:], event[:-1])[codes[1:] == codes[:-1]]
    return int(np.median(apart)) if apart.size else 0
