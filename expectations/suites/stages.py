"""The stages whose checks run together, each with its invariants; one suite is made of each."""

from collections.abc import Mapping
from typing import Final

from expectations.invariants import NEWS, RECONCILE, REORDER, STAGING, WINDOWS, Invariant

# Everything in a stage has one axis. News is about what reorder makes.
STAGES: Final[Mapping[str, tuple[Invariant, ...]]] = {
    "staging": STAGING,
    "reorder": (*REORDER, *NEWS),
    "windows": WINDOWS,
    "reconcile": RECONCILE,
}
