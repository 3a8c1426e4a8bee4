"""Traces leave this process where the environment names an endpoint, and cost nothing elsewhere.

The variables are those of OpenTelemetry. Here belongs the set-up; spans are made in
``assets.stores.publishing.traces``.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def export_traces(environment: Mapping[str, str] | None = None) -> bool:
    """Export spans if an endpoint is configured; returns whether one is."""
    given = os.environ if environment is None else environment
    if not any(given.get(name) for name in ENDPOINTS):
        return False
    _start()
    return True


@lru_cache(maxsize=1)
def _start() -> None:
    # The exporter takes a while to import, and most processes have none.
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": "lowwater"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
