"""The rows that meet a full reorder buffer.

A buffer holds at most ``C`` rows of its key; the row that meets ``C`` of them, after everything
releasable was released, is refused. W does not depend on it, for a refused row moves W all the
same. So most keys are cleared by arithmetic: first by how many rows can lie within the reach of W
at all, then by how full the buffer would have been had nobody been refused. Only the keys that are
left go through their rows one by one.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.judging.keyed import Codes, Ints, Mask, Positions, fit_packing, minus


@dataclass(frozen=True)
class Entrants:
    """Rows that enter the buffer of their key if there is room: by key, then in arrival order.

    ``position`` is their place among all rows. ``watermark`` is W before each row. ``held`` marks
    rows that are in the buffer from the start. All are arrays of one length.
    """

    position: Positions
    codes: Codes
    event: Ints
    watermark: Ints
    capacity: Ints
    held: Mask

    def where(self, chosen: Mask) -> "Entrants":
        """Return some of the rows."""
        return Entrants(
            self.position[chosen],
            self.codes[chosen],
            self.event[chosen],
            self.watermark[chosen],
            self.capacity[chosen],
            self.held[chosen],
        )


def keys_within_reach(codes: Codes, event: Ints, keys: int, capacity: int, reach: int) -> Mask:
    """Tell, for each of ``keys`` keys, whether ``capacity`` of its rows could be held together.

    The rows are sorted by key, then event time. What is held at any time lies between W and the
    newest event time of its key, which is at most ``reach`` above W.
    """
    crowded = np.zeros(keys, np.bool_)
    last = codes.size - capacity + 1
    if last <= 0:
        return crowded
    same_key = codes[capacity - 1 :] == codes[:last]
    close = minus(event[capacity - 1 :], event[:last]) <= reach
    crowded[codes[:last][same_key & close]] = True
    return crowded


def refused_for_room(entrants: Entrants) -> Positions:
    """Return the positions of the rows that meet a full buffer."""
    if not entrants.position.size:
        return entrants.position
    full = (occupancy_if_all_enter(entrants) >= entrants.capacity) & ~entrants.held
    doubtful = np.isin(entrants.codes, np.unique(entrants.codes[full]))
    queue = entrants.where(doubtful)
    starts = _starts(queue.codes)
    parts = [np.empty(0, np.int64), *map(_refused_of_key, _split(queue, starts))]
    return np.concatenate(parts)


def occupancy_if_all_enter(entrants: Entrants) -> Ints:
    """Return how many rows each row meets in the buffer if no row was ever refused.

    A row that entered has left once W is above it. As it was not behind W when it came, all rows
    of the key below W came, and left, before.
    """
    codes = entrants.codes
    packing = fit_packing(int(codes.max()) + 1, entrants.event, entrants.watermark)
    came = np.arange(codes.size)
    by_time = np.sort(packing.pack(codes, entrants.event))
    left = np.searchsorted(by_time, packing.pack(codes, entrants.watermark))
    return came - left


def _starts(codes: Codes) -> Positions:
    """Return the place of the first row of each key."""
    return np.flatnonzero(np.diff(codes.astype(np.int64), prepend=-1))


def _split(queue: Entrants, starts: Positions) -> list[Entrants]:
    """Return the rows of each key apart."""
    fields = (np.split(getattr(queue, name), starts[1:]) for name in Entrants.__annotations__)
    return [Entrants(*parts) for parts in zip(*fields, strict=True)] if starts.size else []


def _refused_of_key(queue: Entrants) -> Positions:
    """Fill and empty the buffer of one key, row by row."""
    buffer: list[int] = []
    refused: list[int] = []
    columns = (queue.position, queue.event, queue.watermark, queue.capacity, queue.held)
    for position, event, watermark, capacity, held in zip(*map(_listed, columns), strict=True):
        while buffer and buffer[0] < watermark:
            heappop(buffer)
        if not held and len(buffer) >= capacity:
            refused.append(position)
        else:
            heappush(buffer, event)
    return np.array(refused, np.int64)


def _listed(column: npt.NDArray[Any]) -> list[Any]:
    listed: list[Any] = column.tolist()
    return listed
