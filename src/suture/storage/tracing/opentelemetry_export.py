"""Export of spans to OpenTelemetry, configured by its standard environment variables."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from suture.core.ledger import RunFolder, read_ledger
from suture.storage.tracing.spans import Span, build_spans

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource


ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
NANOSECONDS_PER_SECOND = 1_000_000_000
"""OpenTelemetry's unit of time."""
log = logging.getLogger("suture.storage.tracing")


def is_tracing_enabled(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables name a collector and do not disable tracing."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") == "none":
        return False
    return any(environment.get(name) for name in ENDPOINT_VARIABLES)


def export_run_trace(folder: RunFolder) -> int:
    """Send a run's spans to the collector that the environment names; return how many.

    Sending a run twice gives the same ids. A failure to send is logged as a warning and never fails the run,
    which is on disk and can be sent again.

    Raises:
        StorageError: The ledger cannot be read.
    """
    spans = build_spans(read_ledger(folder.ledger_path).events, folder.id)
    try:
        _send(spans, folder.id)
    except ImportError:
        log.warning("no trace of run %s was sent: install suture[otel]", folder.id)
        return 0
    return len(spans)


def _send(spans: tuple[Span, ...], run: str) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import SpanKind, set_span_in_context

    class DeterministicIds(IdGenerator):
        """Generates the same ids whenever the same run is sent."""

        span_count = 0

        def generate_trace_id(self) -> int:
            return _hash_number(run, 16)

        def generate_span_id(self) -> int:
            self.span_count += 1
            return _hash_number(f"{run} {self.span_count}", 8)

    provider = TracerProvider(id_generator=DeterministicIds(), resource=_resource(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("suture")
    contexts: list[Context] = []
    for span in spans:
        sent_span = tracer.start_span(
            span.name,
            context=None if span.parent is None else contexts[span.parent],
            kind=SpanKind.CLIENT if span.kind == "model" else SpanKind.INTERNAL,
            attributes=dict(span.attributes),
            start_time=int(span.start_s * NANOSECONDS_PER_SECOND),
        )
        contexts.append(set_span_in_context(sent_span))
        sent_span.end(int(span.end_s * NANOSECONDS_PER_SECOND))
    provider.shutdown()


def _resource() -> Resource:
    """Return the resource that the standard variables describe; its default service name is `suture`."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return resource.merge(Resource({SERVICE_NAME: "suture"}))
    return resource


def _hash_number(text: str, length: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:length], "big")
