"""The moving rows of a log with what lateness is read off: delay, distance behind, steps between.

Here belongs the one frame that all lateness figures are made from. What is made of it is in
``lateness``, ``lateness.clocks`` and ``lateness.deliveries``.

A row's *delay* is its arrival less its event time: what link and clock did to it. It is *behind* by
as much as a newer row of its key came before it, which is what a grace is for: rows that are all
an hour late, but in order, need none.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from transforms.judging.keyed import NEVER, before_each, minus, running_max
from transforms.lateness.arrival_log import Log
from transforms.schemas import ARRIVAL_US, EVENT_US, KEY, PROFILE

DELAY_US: Final = "delay_us"
BEHIND_US: Final = "behind_us"
# To the row before of the same key, as rows came; null for the first.
EVENT_STEP_US: Final = "event_step_us"
ARRIVAL_STEP_US: Final = "arrival_step_us"


def lateness_rows(log: Log, profiles: Sequence[str]) -> pl.DataFrame:
    """Return the moving rows by key, as they came; ``profiles`` are the names by code."""
    moving = np.flatnonzero(log.rows.moving)
    groups, event = log.rows.groups, np.where(log.rows.moving, log.rows.event, NEVER)
    never = np.full(groups.counts.size, NEVER, np.int64)
    newest = before_each(groups, running_max(groups, event), never)
    arrival, event = log.rows.arrival[moving], event[moving]
    frame = pl.DataFrame(
        {
            KEY: log.keys.gather(groups.codes[moving]),
            PROFILE: _profiles(log, moving, profiles),
            EVENT_US: event,
            ARRIVAL_US: arrival,
            DELAY_US: minus(arrival, event),
            BEHIND_US: np.maximum(minus(newest[moving], event), 0),
        }
    )
    first = pl.col(KEY) != pl.col(KEY).shift(1)
    steps = ((EVENT_STEP_US, EVENT_US), (ARRIVAL_STEP_US, ARRIVAL_US))
    return frame.with_columns(
        pl.when(first).then(None).otherwise(pl.col(of).diff()).alias(name) for name, of in steps
    )


def _profiles(log: Log, moving: np.ndarray, names: Sequence[str]) -> pl.Series:
    which = log.rows.profile
    if isinstance(which, int):
        return pl.repeat(names[which], moving.size, dtype=pl.String, eager=True)
    return pl.Series(names, dtype=pl.String).gather(pl.Series(which[moving]))
