"""One OpenTelemetry span for each batch; retries are events of it. Never a source of counts.

Without an exporter a span costs next to nothing; ``orchestration.telemetry`` sets one where the
environment names an endpoint. Here belongs what a span says.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from assets.stores.publishing.offers import Offer

if TYPE_CHECKING:
    from opentelemetry.util.types import AnyValue

_TRACER = trace.get_tracer("lowwater.publishing")


@dataclass(frozen=True)
class Trace:
    """The span of the batch that is on its way."""

    span: Span

    def note(self, error: Exception) -> None:
        """Say that an attempt failed, and why; the message holds no password."""
        self.span.add_event("attempt failed", {"error": type(error).__name__, "why": str(error)})

    def end(self, accepted: int, dead_lettered: int, parked: str) -> None:
        """Say what became of the rows."""
        self.span.set_attribute("rows.accepted", accepted)
        self.span.set_attribute("rows.dead_lettered", dead_lettered)
        if parked:
            self.span.set_status(Status(StatusCode.ERROR, f"parked: {parked}"))


@contextmanager
def traced(stream: str, target: str, offer: Offer) -> Iterator[Trace]:
    """Open the span of a batch, under the name that the ledger finds it by."""
    about: dict[str, AnyValue] = {
        "stream": stream,
        "target": target,
        "batch": offer.name,
        "partitions": offer.partitions,
        "rows": offer.height,
    }
    with _TRACER.start_as_current_span("publish batch", attributes=about) as span:
        yield Trace(span)
