"""Each batch is one span; what went wrong on its way is in it, and no password."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from typing import Final

import duckdb
import polars as pl
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from publishing_desk import SPEC, Moody, revisions, sink_of

from assets.stores.publishing import traces
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.targets.faults import TargetOutageError
from assets.stores.targets.writers import publish
from orchestration.telemetry import export_traces
from transforms.publishing.ledger import Note

PROGRAM: Final = """
from opentelemetry import trace
from orchestration.telemetry import export_traces
assert export_traces()
with trace.get_tracer("t").start_as_current_span("publish batch"):
    pass
trace.get_tracer_provider().force_flush()
"""


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "_TRACER", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def test_a_batch_is_a_span_and_a_retry_an_event(
    tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    calls = count()

    def down_once(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) == 0:
            raise TargetOutageError("no answer")

    target = Moody(DuckDBTarget(tmp_path / "t.duckdb"), down_once)
    publish(sink_of(target), SPEC, revisions(5))
    [span] = spans.get_finished_spans()
    assert span.name == "publish batch"
    assert span.attributes is not None
    assert (span.attributes["rows"], span.attributes["rows.accepted"]) == (5, 5)
    assert span.attributes["partitions"] == ("2024-01-01",)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        [(batch,)] = connection.execute(
            "select publication || ':' || lo from gauges.publish_batches"
        ).fetchall()
    assert span.attributes["batch"] == batch
    assert [(e.name, (e.attributes or {})["why"]) for e in span.events] == [
        ("attempt failed", "no answer")
    ]


def test_without_an_endpoint_nothing_is_exported() -> None:
    assert not export_traces({})


def test_spans_are_sent_to_the_endpoint_that_the_environment_names() -> None:
    seen: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "PATH": ""}
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, timeout=60)
        server.shutdown()
        thread.join()
    assert seen == ["/v1/traces"]
