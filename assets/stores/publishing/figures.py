"""What a publication came to, in numbers; and which of them somebody must be told of.

Here belong the figures and their thresholds. Where they are shown is the business of the assets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

if TYPE_CHECKING:
    from assets.stores.publishing.delivery import Delivery, Sink

DEAD_LETTER_SHARE: Final = 0.005


class HasResults(Protocol):
    """Batches that have been given."""

    @property
    def results(self) -> Iterable[tuple[object, "Delivery"]]:
        """Each with what became of it."""
        ...

    @property
    def deepest(self) -> int:
        """How many were on their way at once."""
        ...


@dataclass(frozen=True)
class Figures:
    """Counts of batches and revisions; seconds. A batch may be counted in several ways."""

    batches: int = 0
    committed: int = 0
    parked: int = 0
    dead_lettered: int = 0
    changed_rows: int = 0
    parked_rows: int = 0
    dead_lettered_rows: int = 0
    known_rows: int = 0
    queue_depth: int = 0
    attempts: int = 1
    digest_s: float = 0.0
    write_s: float = 0.0
    batch_rows: int = 0
    breaker: str = ""
    breaker_down_s: float = 0.0
    breaker_reset_s: float = 0.0
    why_parked: str = ""

    @classmethod
    def of(cls, sink: "Sink", landed: HasResults) -> Self:
        """Return the figures of some batches, and how the sink does now."""
        every = [delivery for _, delivery in landed.results]
        found = cls(
            batches=len(every),
            committed=sum(one.accepted.n > 0 for one in every),
            parked=sum(bool(one.parked) for one in every),
            dead_lettered=sum(one.dead_lettered.n > 0 for one in every),
            changed_rows=sum(one.published.inserted + one.published.amended for one in every),
            parked_rows=sum(offer.height for one in every for offer in one.parked),
            dead_lettered_rows=sum(one.dead_lettered.n for one in every),
            queue_depth=landed.deepest,
            attempts=max((one.attempts for one in every), default=1),
            write_s=sum(one.seconds for one in every),
            why_parked=next((one.why_parked for one in every if one.why_parked), ""),
        )
        return replace(found, **_state(sink))

    def now(self, sink: "Sink") -> "Figures":
        """Return them with the state that the sink is in now."""
        return replace(self, **_state(sink))

    def with_known(self, rows: int, digest_s: float) -> "Figures":
        """Return them with what the ledger knew already, and the time that digests took."""
        return replace(self, known_rows=rows, digest_s=digest_s)

    def plus(self, later: "Figures") -> "Figures":
        """Return the figures of both, the state of the later."""
        return replace(
            later,
            **{name: getattr(self, name) + getattr(later, name) for name in _SUMMED},
            queue_depth=max(self.queue_depth, later.queue_depth),
            attempts=max(self.attempts, later.attempts),
        )

    def since(self, earlier: "Figures") -> "Figures":
        """Return what came after earlier figures; states are those of now."""
        differences = {name: getattr(self, name) - getattr(earlier, name) for name in _SUMMED}
        return replace(self, **differences)

    def alerts(self) -> list[str]:
        """Return what somebody must be told of: one line each."""
        return list(filter(None, (self.too_many_refused(), self.too_long_down())))

    def too_many_refused(self) -> str:
        """Say that more batches hold rows that the target cannot than is usual; else nothing."""
        if self.dead_lettered <= DEAD_LETTER_SHARE * self.batches:
            return ""
        return (
            f"{self.dead_lettered} of {self.batches} batches hold rows that the target cannot"
            f" hold ({self.dead_lettered_rows} rows, see publish_dead_letters)"
        )

    def too_long_down(self) -> str:
        """Say that the breaker was open for longer than its reset period; else nothing."""
        if self.breaker_down_s <= self.breaker_reset_s:
            return ""
        return f"the target was out of reach for {self.breaker_down_s:.0f} s"

    def metadata(self) -> dict[str, int | float | str]:
        """Return them as the UI shows them."""
        return {
            "target_batches": self.batches,
            "target_batches_committed": self.committed,
            "target_batches_parked": self.parked,
            "target_batches_dead_lettered": self.dead_lettered,
            "target_rows_dead_lettered": self.dead_lettered_rows,
            "target_rows_known_before": self.known_rows,
            "target_queue_depth": self.queue_depth,
            "target_attempts": self.attempts,
            "target_digest_s": round(self.digest_s, 3),
            "target_write_s": round(self.write_s, 3),
            "target_batch_rows": self.batch_rows,
            "target_breaker": self.breaker,
            "target_alerts": "; ".join(self.alerts()) or "none",
        }


def _state(sink: "Sink") -> dict[str, Any]:
    breaker = sink.breaker
    return {
        "batch_rows": sink.size.rows,
        "breaker": str(breaker.state),
        "breaker_down_s": breaker.longest_down_s(),
        "breaker_reset_s": breaker.reset_s,
    }


_SUMMED: Final = (
    *("batches", "committed", "parked", "dead_lettered", "changed_rows", "parked_rows"),
    *("dead_lettered_rows", "known_rows", "digest_s", "write_s"),
)


@dataclass
class Record:
    """The figures of all that was given to a target in this process."""

    figures: Figures = field(default_factory=Figures)
    last_outage: str = ""

    def add(self, figures: Figures) -> None:
        """Take in the figures of one publication."""
        self.figures = self.figures.plus(figures)
