"""The two axes of time as Dagster partitions: keys, and the instants they stand for.

Here belong the partition definitions of a stream and the way from a key to its [start, end) in
microseconds and back, across changes of the clock. What is done with a partition belongs to the
stages.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Final, Self

import dagster as dg
import numpy as np
import numpy.typing as npt

from transforms.spec import Grain, StreamSpec
from transforms.spec.fields import EPOCH
from transforms.spec.partitions import local_time

_CRON: Final = {"15m": "*/15 * * * *", "hour": "0 * * * *", "day": "0 0 * * *"}
_TEXT: Final = {"15m": "%Y-%m-%d-%H:%M", "hour": "%Y-%m-%d-%H:%M", "day": "%Y-%m-%d"}
# Windows may start today, and a clock that runs ahead may close one that starts tomorrow.
_EVENT_PARTITIONS_AHEAD: Final = 2
_MICROSECOND: Final = timedelta(microseconds=1)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bounds:
    """A half-open range of instants, in microseconds UTC."""

    start_us: int
    end_us: int


@dataclass(frozen=True)
class Axis:
    """The partitions of one axis of a stream.

    Whatever is before the first partition belongs to it.
    """

    definition: dg.TimeWindowPartitionsDefinition

    @classmethod
    def of_arrivals(cls, spec: StreamSpec) -> Self:
        """Return the arrival partitions of a stream, in its zone, up to the last whole one."""
        arrival = spec.arrival
        return cls(_definition(arrival.grain, arrival.start_us, arrival.zone, ahead=0))

    @classmethod
    def of_events(cls, spec: StreamSpec) -> Self:
        """Return the event partitions of a stream, in UTC, with those that are under way."""
        events = spec.events
        ahead = _EVENT_PARTITIONS_AHEAD
        return cls(_definition(events.grain, events.start_us, "UTC", ahead=ahead))

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """All partitions there are now, oldest first."""
        return tuple(self.definition.get_partition_keys())

    @cached_property
    def _place(self) -> dict[str, int]:
        return {key: index for index, key in enumerate(self.keys)}

    def position(self, key: str) -> int:
        """Return the place of a partition among ``keys``."""
        return self._place[key]

    def previous(self, key: str) -> str | None:
        """Return the partition before, None for the first."""
        place = self.position(key)
        return self.keys[place - 1] if place else None

    def in_order(self, keys: Iterable[str]) -> list[str]:
        """Return those of the keys that are partitions, oldest first."""
        return sorted((key for key in keys if key in self._place), key=self.position)

    def up_to(self, key: str) -> tuple[str, ...]:
        """Return the partitions up to and with one."""
        return self.keys[: self.position(key) + 1]

    def between(self, first: str, last: str) -> tuple[str, ...]:
        """Return the partitions from one to another, both included."""
        return self.keys[self.position(first) : self.position(last) + 1]

    def bounds(self, key: str) -> Bounds:
        """Return the instants of a partition, as the clock of its zone has them."""
        return _bounds(self.definition, key)

    def cut(self, keys: Sequence[str], instants_us: Ints) -> Ints:
        """Return for each instant its place in ``keys``, which follow one another.

        -1 stands for before them, ``len(keys)`` for after; before the very first partition there is
        nothing.
        """
        ends = np.array([self.bounds(key).end_us for key in keys], dtype=np.int64)
        places: Ints = np.searchsorted(ends, instants_us, side="right")
        if self.previous(keys[0]) is not None:
            places = np.where(instants_us < self.bounds(keys[0]).start_us, -1, places)
        return places

    def key_of(self, instant_us: int) -> str:
        """Return the partition of an instant: the first one if it is before all, or the last."""
        place = bisect_right(self.keys, instant_us, key=lambda key: self.bounds(key).end_us)
        return self.keys[min(place, len(self.keys) - 1)]

    def keys_of(self, instants_us: Iterable[int]) -> list[str]:
        """Return the partitions that hold any of the instants, oldest first."""
        return self.in_order({self.key_of(instant) for instant in set(instants_us)})


def _definition(
    grain: Grain, start_us: int, zone: str, *, ahead: int
) -> dg.TimeWindowPartitionsDefinition:
    return dg.TimeWindowPartitionsDefinition(
        start=local_time(start_us, zone),
        timezone=zone,
        cron_schedule=_CRON[grain],
        fmt=_TEXT[grain],
        end_offset=ahead,
    )


@lru_cache(maxsize=1 << 17)
def _bounds(definition: dg.TimeWindowPartitionsDefinition, key: str) -> Bounds:
    window = definition.time_window_for_partition_key(key)
    return Bounds((window.start - EPOCH) // _MICROSECOND, (window.end - EPOCH) // _MICROSECOND)
