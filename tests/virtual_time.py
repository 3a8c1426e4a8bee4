"""An event loop whose clock jumps to the next timer: exact, instant, and a stall is an error."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class StalledError(AssertionError):
    """Every task waits for another: nothing would ever happen again."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of sleeping until the next timer, puts the loop's clock forward."""

    loop: "VirtualTimeLoop"

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events and timeout is None:
            raise StalledError
        if not events and timeout:
            self.loop.now += timeout
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Time passes only when every task waits for it."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run_in_virtual_time(work: Coroutine[Any, Any, R]) -> R:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
