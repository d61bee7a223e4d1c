"""Spans of a run: the run, its rounds, and in each the model calls, searches and checks; and their export.

The export to OpenTelemetry is configured by its standard environment variables.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from suture.core.installation import format_install_command
from suture.core.ledger import Event, RunFolder, read_ledger, total_spend
from suture.core.ledger.kinds import (
    CandidateChecked,
    ModelCalled,
    MovesDecided,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStarted,
    SearchFinished,
    SearchStarted,
)

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.resources import Resource


Value = str | int | float | bool
Kind = Literal["run", "round", "model", "search", "check"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """A part of a run with a start and an end.

    Attributes:
        name: The span's name, for people.
        start_s: Start in seconds since the epoch.
        end_s: End in seconds since the epoch; never before the start.
        parent: Index of the parent in the list of spans; `None` for the run.
        attributes: Those of model calls follow OpenTelemetry's conventions for generative AI (`gen_ai.*`);
            all others start with `suture.`.
    """

    name: str
    kind: Kind
    start_s: float
    end_s: float
    parent: int | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)


def build_spans(events: Sequence[Event], run: str) -> tuple[Span, ...]:
    """Return the spans of a run, each after its parent; none if there are no events.

    Args:
        events: The ledger's events in order; the run may still be running, or may have been killed.
    """
    if not events:
        return ()
    start_s, end_s = events[0].time_s, max(event.time_s for event in events)
    spans = [
        Span(name="run", kind="run", start_s=start_s, end_s=end_s, attributes=_run_attributes(events, run))
    ]
    parent = 0  # the run, or the round in progress
    search_start_s = start_s
    for event in events:
        if isinstance(event.payload, SearchStarted):
            search_start_s = event.time_s
        if isinstance(event.payload, MovesDecided):
            if parent:
                spans[parent] = replace(spans[parent], end_s=event.time_s)
            if [move.kind for move in event.payload.moves] == ["stop"]:
                parent = 0
            else:
                parent = len(spans)
                moves = ", ".join(move.kind for move in event.payload.moves)
                spans.append(
                    Span(
                        name=f"round {event.payload.round}",
                        kind="round",
                        start_s=event.time_s,
                        end_s=end_s,
                        parent=0,
                        attributes={"suture.round": event.payload.round, "suture.moves": moves},
                    )
                )
        elif (span := _make_child_span(event, search_start_s)) is not None:
            child_start_s = min(max(span.start_s, spans[parent].start_s), event.time_s)
            spans.append(replace(span, start_s=child_start_s, parent=parent))
    return tuple(spans)


def _make_child_span(event: Event, search_start_s: float) -> Span | None:
    """Return the span that ends with an event, if any."""
    match event.payload:
        case ModelCalled() as called:
            return _call_span(called, event.time_s)
        case SearchFinished() as finished:
            attributes = {
                f"suture.{name}": value
                for name, value in vars(finished).items()
                if isinstance(value, (str, int, float))
            }
            return Span(
                name="search",
                kind="search",
                start_s=search_start_s,
                end_s=event.time_s,
                attributes=attributes,
            )
        case CandidateChecked() as checked:
            names = ("candidate", "label", "passed", "failed", "evidence")
            return Span(
                name="check",
                kind="check",
                start_s=event.time_s - checked.seconds,
                end_s=event.time_s,
                attributes={f"suture.{name}": getattr(checked, name) for name in names},
            )
    return None


def _run_attributes(events: Sequence[Event], run: str) -> dict[str, Value]:
    spend = total_spend(events)
    attributes: dict[str, Value] = {
        "suture.run": run,
        "suture.attempts": spend.attempts,
        "suture.prompt_tokens": spend.prompt_tokens,
        "suture.completion_tokens": spend.completion_tokens,
        "suture.money_usd": spend.money,
    }
    for event in events:
        match event.payload:
            case RunStarted() as started:
                names = ("kind", "recipe", "model")
                attributes |= {f"suture.{name}": getattr(started, name) for name in names}
            case RunFinished(outcome=outcome, confidence=confidence):
                attributes |= {"suture.outcome": outcome, "suture.confidence": confidence}
            case RunPaused(outcome=outcome):
                attributes["suture.outcome"] = outcome
            case RunFailed(error_type=error_type):
                attributes["suture.refused"] = error_type
    return attributes


def _call_span(called: ModelCalled, end_s: float) -> Span:
    return Span(
        name=f"chat {called.model}",
        kind="model",
        start_s=end_s - called.seconds,
        end_s=end_s,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": called.model,
            "gen_ai.usage.input_tokens": called.prompt_tokens,
            "gen_ai.usage.output_tokens": called.completion_tokens,
            "suture.finish": called.finish_reason,
            "suture.role": called.role,
            "suture.call": called.call,
            "suture.prompt": called.prompt,
        },
    )


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
        log.warning("no trace of run %s was sent: %s", folder.id, format_install_command("otel"))
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
