"""How many rows the next batch holds: it follows the memory of the process and the time of batches.

Here belongs the rule. Who measures memory and time is told apart in ``assets.stores.publishing``.
"""

import threading
from dataclasses import dataclass
from typing import Final

FLOOR: Final = 500
CEILING: Final = 65_536
START: Final = 20_000
# Of a new measurement, against all before it.
_WEIGHT: Final = 0.3
_GROWTH: Final = 1.1


@dataclass(frozen=True)
class Limits:
    """When a batch is too large, and when it may be larger: shares of the budget, seconds."""

    shrink_above_memory: float = 0.8
    grow_below_memory: float = 0.6
    shrink_above_s: float = 1.0
    grow_below_s: float = 0.5


class BatchSize:
    """Halves under pressure, grows by a tenth where there is room, else holds; any thread tells."""

    def __init__(
        self, budget_bytes: int, *, rows: int = START, limits: Limits | None = None
    ) -> None:
        self._budget = budget_bytes
        self._limits = limits or Limits()
        self._rows = rows
        self._smoothed_s: float | None = None
        self._lock = threading.Lock()

    @property
    def rows(self) -> int:
        """The size now, from ``FLOOR`` to ``CEILING``."""
        return self._rows

    @property
    def smoothed_s(self) -> float:
        """The time of a batch, smoothed; 0 before the first."""
        return self._smoothed_s or 0.0

    def learn(self, *, seconds: float, rss_bytes: int) -> None:
        """Take in how long a batch took and how much memory the process holds now."""
        with self._lock:
            before = seconds if self._smoothed_s is None else self._smoothed_s
            self._smoothed_s = before + _WEIGHT * (seconds - before)
            self._rows = self._next(rss_bytes / self._budget, self._smoothed_s)

    def _next(self, memory: float, seconds: float) -> int:
        limits = self._limits
        if memory > limits.shrink_above_memory or seconds > limits.shrink_above_s:
            return max(FLOOR, self._rows // 2)
        if memory < limits.grow_below_memory and seconds < limits.grow_below_s:
            return min(CEILING, int(self._rows * _GROWTH) + 1)
        return self._rows
