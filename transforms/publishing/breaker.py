"""The circuit breaker: who asks a store that is down is told at once, and one call finds out.

Closed, it counts calls; when half of them failed it opens, and refuses for the reset period. Then
it is half-open: one call, the probe, is let through, others are refused as before. Here belong its
states; what counts as a failure is known to who calls.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WINDOW_S: Final = 30.0
RESET_S: Final = 30.0
LEAST_CALLS: Final = 5
FAILED_SHARE: Final = 0.5


class BreakerOpenError(Exception):
    """The call was not made: the store behind the breaker is down."""


class BreakerState(StrEnum):
    """What becomes of the next call."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Answer(StrEnum):
    """What a call found out about the store."""

    ANSWERED = "answered"  # it is there, whatever it said
    OUTAGE = "outage"
    NOTHING = "nothing"  # it was cancelled, or two writers met


@dataclass(frozen=True)
class Pass:
    """The right to make one call."""

    is_probe: bool


class Breaker:
    """Any thread may ask; the lock is held for its state alone, never for a call.

    One that ``was_down`` before a restart starts half-open.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        window_s: float = WINDOW_S,
        reset_s: float = RESET_S,
        least_calls: int = LEAST_CALLS,
        was_down: bool = False,
    ) -> None:
        self._clock = clock
        self._window_s = window_s
        self.reset_s = reset_s
        self._least_calls = least_calls
        self._lock = threading.Lock()
        self._calls: deque[tuple[float, bool]] = deque()
        self._opened_at: float | None = None
        self._down_since: float | None = None
        self._probing = False
        self._longest_down_s = 0.0
        if was_down:
            self._down_since = clock()
            self._opened_at = self._down_since - reset_s

    @property
    def state(self) -> BreakerState:
        """What it is now."""
        with self._lock:
            if self._opened_at is None:
                return BreakerState.CLOSED
            return BreakerState.OPEN if self._rest() > 0 else BreakerState.HALF_OPEN

    def opens_in(self) -> float:
        """Seconds until a call may be let through; 0 where one may now."""
        with self._lock:
            return self._rest()

    def longest_down_s(self) -> float:
        """The longest time in one piece that it was not closed, the present one too."""
        with self._lock:
            now = 0.0 if self._down_since is None else self._clock() - self._down_since
            return max(self._longest_down_s, now)

    def admit(self) -> Pass:
        """Ask for a call, to be settled by ``settle``. Raises ``BreakerOpenError``."""
        with self._lock:
            if self._opened_at is None:
                return Pass(is_probe=False)
            if self._probing or self._rest() > 0:
                raise BreakerOpenError(f"nothing is tried for {self._rest():.0f} s")
            self._probing = True
            return Pass(is_probe=True)

    def settle(self, call: Pass, answer: Answer) -> None:
        """Say what a call found out."""
        with self._lock:
            if call.is_probe:
                self._settle_probe(answer)
            elif self._opened_at is None and answer is not Answer.NOTHING:
                self._count(failed=answer is Answer.OUTAGE)

    def _settle_probe(self, answer: Answer) -> None:
        self._probing = False
        if answer is Answer.OUTAGE:
            self._opened_at = self._clock()
        elif answer is Answer.ANSWERED:
            self._close()

    def _close(self) -> None:
        if self._down_since is not None:
            self._longest_down_s = max(self._longest_down_s, self._clock() - self._down_since)
        self._opened_at = self._down_since = None
        self._calls.clear()

    def _count(self, *, failed: bool) -> None:
        now = self._clock()
        self._calls.append((now, failed))
        while self._calls[0][0] < now - self._window_s:
            self._calls.popleft()
        failures = sum(failed for _, failed in self._calls)
        enough = len(self._calls) >= self._least_calls
        if enough and failures >= FAILED_SHARE * len(self._calls):
            self._opened_at = self._down_since = now

    def _rest(self) -> float:
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self.reset_s - self._clock())
