"""The stages whose checks run together, each with its invariants; one suite is made of each."""

from collections.abc import Mapping
from typing import Final

from expectations.invariants import AUDITS, NEWS, RECONCILE, REORDER, STAGING, WINDOWS, Invariant
from transforms.schemas import ORDER_AUDIT, STAGED_EVENTS, TARGET_PARITY


def _about(invariants: tuple[Invariant, ...], *assets: str) -> tuple[Invariant, ...]:
    return tuple(invariant for invariant in invariants if invariant.asset in assets)


_OF_STAGING: Final = _about(NEWS, STAGED_EVENTS)
# Everything in a stage has one axis. News is about what reorder makes, but for its input.
STAGES: Final[Mapping[str, tuple[Invariant, ...]]] = {
    "staging": (*STAGING, *_OF_STAGING),
    "reorder": (*REORDER, *(invariant for invariant in NEWS if invariant not in _OF_STAGING)),
    "windows": WINDOWS,
    "reconcile": RECONCILE,
    "order_audit": _about(AUDITS, ORDER_AUDIT),
    "target_parity": _about(AUDITS, TARGET_PARITY),
}
