"""A stream's stored arrivals as narrow arrays, judged as far as the watermark has no say.

Here belongs what every question about grace and lateness starts from: the rows by key and arrival,
which of them are moving rows, which are left for W to decide about. It is made once, by the code
that reorders; shards are joined, keys are picked out. What a grace would do is in ``grace``, what
the links and clocks do is in ``lateness``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from transforms.judging.keyed import Codes, Grouped, Ints, Mask, RowIds, take
from transforms.reorder import ACCEPTED, Fates, apart_from_watermark
from transforms.spec import StreamSpec
from transforms.watermark import Arrivals, ProfileCodes, Standing


@dataclass(frozen=True)
class Log:
    """All rows by position: grouped by key, in arrival order inside a key.

    ``fates`` are those of rows apart from W. ``by_time`` lists the positions of all rows but future
    ones by key, then event time.
    """

    keys: pl.Series
    rows: Arrivals
    fates: Fates
    by_time: RowIds

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self.fates.size)

    @property
    def undecided(self) -> Mask:
        """The rows that W decides about: those that windows count, on time or not."""
        mask: Mask = self.fates == ACCEPTED
        return mask

    def of_keys(self, chosen: Mask) -> "Log":
        """Return the rows of some keys, given by a mask over ``keys``."""
        if chosen.all():
            return self
        kept = self.rows.groups.spread(chosen)
        place = np.cumsum(kept) - 1
        by_time = self.by_time[take(kept, self.by_time)]
        rows = self.rows
        picked = Arrivals(
            groups=_grouped(rows.groups.counts[chosen]),
            event=rows.event[kept],
            arrival=rows.arrival[kept],
            profile=rows.profile if isinstance(rows.profile, int) else rows.profile[kept],
            moving=rows.moving[kept],
            held=rows.held[kept],
            carried=_standing_of(rows.carried, chosen),
        )
        keys = self.keys.filter(pl.Series(chosen))
        return Log(keys, picked, self.fates[kept], place[by_time].astype(np.uint32))


def _grouped(counts: Ints) -> Grouped:
    """Return the grouping of rows that stand by key already, so many of each key."""
    present = np.flatnonzero(counts)
    starts = np.cumsum(counts) - counts
    codes: Codes = np.repeat(np.arange(counts.size, dtype=np.uint32), counts)
    order = np.arange(codes.size, dtype=np.uint32)
    return Grouped(order, codes, counts, present, starts[present])


def _standing_of(standing: Standing, chosen: Mask) -> Standing:
    return Standing(
        standing.watermark[chosen],
        standing.last_arrival[chosen],
        standing.profile[chosen],
        standing.max_event[chosen],
    )


def read_log(spec: StreamSpec, staged: pl.DataFrame) -> Log:
    """Judge staged rows from the start of the stream; they are in arrival order, then ``seq``."""
    keys, known = apart_from_watermark(spec, staged)
    return Log(keys, known.rows, known.fates, known.by_time)


def joined(logs: Sequence[Log]) -> Log:
    """Return the logs of shards, which share no key, as one."""
    if len(logs) == 1:
        return logs[0]
    offsets = np.cumsum([0, *(log.size for log in logs)])
    rows = [log.rows for log in logs]
    carried = [part.carried for part in rows]
    merged = Arrivals(
        groups=_grouped(np.concatenate([part.groups.counts for part in rows])),
        event=np.concatenate([part.event for part in rows]),
        arrival=np.concatenate([part.arrival for part in rows]),
        profile=_joined_profiles(rows),
        moving=np.concatenate([part.moving for part in rows]),
        held=np.concatenate([part.held for part in rows]),
        carried=Standing(
            np.concatenate([part.watermark for part in carried]),
            np.concatenate([part.last_arrival for part in carried]),
            np.concatenate([part.profile for part in carried]),
            np.concatenate([part.max_event for part in carried]),
        ),
    )
    by_time = [log.by_time + np.uint32(at) for log, at in zip(logs, offsets, strict=False)]
    keys = pl.concat([log.keys for log in logs])
    fates = np.concatenate([log.fates for log in logs])
    return Log(keys, merged, fates, np.concatenate(by_time))


def _joined_profiles(rows: Sequence[Arrivals]) -> ProfileCodes | int:
    if all(isinstance(part.profile, int) for part in rows):
        return 0
    return np.concatenate([_by_row(part) for part in rows])


def _by_row(rows: Arrivals) -> ProfileCodes:
    if isinstance(rows.profile, int):
        return np.full(rows.event.size, rows.profile, np.uint16)
    return rows.profile


def profiles_used(log: Log, profiles: int) -> npt.NDArray[np.bool_]:
    """Tell which of so many profiles the moving rows of each key name: keys x profiles."""
    keys = log.keys.len()
    used = np.zeros((keys, profiles), np.bool_)
    moving = log.rows.moving
    which = log.rows.profile
    if isinstance(which, int):
        used[log.rows.groups.codes[moving], which] = True
    else:
        used[log.rows.groups.codes[moving], which[moving]] = True
    return used


def with_profile(log: Log, profile: int) -> Log:
    """Return the log as if every row had one profile, for keys that have no other."""
    return replace(log, rows=replace(log.rows, profile=profile))
