"""Grids: where the windows of a declared kind lie on the time axis, for any instant.

Here belongs the arithmetic from an instant to the bounds of its windows, as arrays of int64
microseconds UTC. Zones and months are in ``calendars``; rows, keys and watermarks are no matter
of a grid.

Overlapping windows are handled as *layers*: layer ``r`` of a grid with ``n`` layers holds every
n-th window, and so no two that overlap. Within a layer an instant has at most one window, and
the window starts do not fall while the instants do not fall.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from transforms.spec.windows import WindowSpec
from transforms.windowing.calendars import (
    INT64,
    IntArray,
    Unit,
    local_clock_bounds,
    local_days,
    unit_of_days,
    unit_starts,
)

BoolArray = npt.NDArray[np.bool_]

# Window bounds of instants closer than 2**56 us (2,283 years) to the ends of int64 would not fit.
EARLIEST_US = int(INT64.min) + (1 << 56)
LATEST_US = int(INT64.max) - (1 << 56)
FAR_US = 1 << 62


class Bounds(NamedTuple):
    """The window of each instant within one layer: start, end, and whether there is one.

    ``inside`` is None where every instant has a window, as in every grid that tumbles.
    """

    start_us: IntArray
    end_us: IntArray
    inside: BoolArray | None

    def positions(self) -> IntArray:
        """The positions of the instants that have a window."""
        everywhere = np.arange(len(self.start_us))
        return everywhere if self.inside is None else everywhere[self.inside]


def within_reach(instants_us: IntArray) -> IntArray:
    """The instants, moved to where the bounds of their windows fit into int64."""
    return np.clip(instants_us, EARLIEST_US, LATEST_US)


def lateness_us(watermark_us: IntArray, event_us: IntArray) -> IntArray:
    """How far each event time is behind, at most 2**62 us either way instead of a wrap."""
    difference = watermark_us - event_us
    wrapped = ((watermark_us ^ event_us) & (watermark_us ^ difference)) < 0
    exact = np.clip(difference, -FAR_US, FAR_US)
    return np.where(wrapped, np.where(watermark_us < 0, -FAR_US, FAR_US), exact)


class Grid(ABC):
    """The windows of one declaration."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """The most windows that share an instant."""

    @abstractmethod
    def bounds(self, event_us: IntArray, layer: int) -> Bounds:
        """The window of each instant within a layer."""

    def count(self, event_us: IntArray, watermark_us: IntArray) -> tuple[IntArray, IntArray]:
        """How many windows of each instant are closed (end <= watermark), and how many it has."""
        closed, total = np.zeros_like(event_us), np.zeros_like(event_us)
        for layer in range(self.layers):
            _, end, inside = self.bounds(event_us, layer)
            exists = np.ones(len(end), dtype=np.bool_) if inside is None else inside
            total += exists
            closed += exists & (end <= watermark_us)
        return closed, total


def _step_back(newest: IntArray, layer: int, layers: int) -> IntArray:
    """The number of the newest window at or before ``newest`` that is of the layer."""
    return newest if layers == 1 else newest - (newest - layer) % layers


@dataclass(frozen=True)
class FixedGrid(Grid):
    """Windows of one length, one every so often, counted from an origin."""

    length_us: int
    every_us: int
    origin_us: int

    @property
    def layers(self) -> int:
        """The most windows that share an instant."""
        return -(-self.length_us // self.every_us)

    def bounds(self, event_us: IntArray, layer: int) -> Bounds:
        """The window of each instant within a layer."""
        event = within_reach(event_us)
        newest = (event - self.origin_us) // self.every_us
        start = self.origin_us + _step_back(newest, layer, self.layers) * self.every_us
        end = start + self.length_us
        return Bounds(start, end, None if self.layers == 1 else end > event)

    def count(self, event_us: IntArray, watermark_us: IntArray) -> tuple[IntArray, IntArray]:
        """How many windows of each instant are closed, and how many it has; in closed form."""
        into_newest = (within_reach(event_us) - self.origin_us) % self.every_us
        total = (self.length_us - 1 - into_newest) // self.every_us + 1
        behind = lateness_us(watermark_us, event_us)
        still_open = -((behind + into_newest - self.length_us) // self.every_us)
        return total - np.clip(still_open, 0, total), total


@dataclass(frozen=True)
class CalendarGrid(Grid):
    """Windows of ``length`` calendar units in a zone, one every ``every`` units."""

    unit: Unit
    length: int
    every: int
    zone: str

    @property
    def layers(self) -> int:
        """The most windows that share an instant."""
        return -(-self.length // self.every)

    def bounds(self, event_us: IntArray, layer: int) -> Bounds:
        """The window of each instant within a layer."""
        event = within_reach(event_us)
        newest = unit_of_days(self.unit, local_days(self.zone, event)) // self.every
        first = _step_back(newest, layer, self.layers) * self.every
        start = unit_starts(self.unit, self.zone, first)
        end = unit_starts(self.unit, self.zone, first + self.length)
        return Bounds(start, end, None if self.layers == 1 else end > event)


@dataclass(frozen=True)
class LocalClockGrid(Grid):
    """Windows of a part of an hour on the clock of a zone."""

    length_us: int
    zone: str

    @property
    def layers(self) -> int:
        """They do not overlap."""
        return 1

    def bounds(self, event_us: IntArray, layer: int) -> Bounds:  # noqa: ARG002 - there is but one
        """The window of each instant."""
        start, end = local_clock_bounds(self.zone, self.length_us, within_reach(event_us))
        return Bounds(start, end, None)


def grid_of(window: WindowSpec) -> Grid:
    """The grid that a window of a spec declares."""
    if window.kind == "fixed":
        return FixedGrid(window.length_us, window.every_us, window.origin_us)
    if window.unit == "local":
        return LocalClockGrid(window.length_us, window.zone)
    return CalendarGrid(cast("Unit", window.unit), window.count, window.every_count, window.zone)
