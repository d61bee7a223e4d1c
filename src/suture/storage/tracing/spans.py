"""Spans of a run: the run, its rounds, and in each the model calls, searches and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from suture.core.ledger import Event, total_spend
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

Value = str | int | float | bool
Kind = Literal["run", "round", "model", "search", "check"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """A part of a run with a start and an end.

    Attributes:
        name: The span's name, for people.
        kind: The kind of the span.
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
        run: The run's id.
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
                spans.append(_round_span(event.payload, event.time_s, end_s))
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


def _round_span(decided: MovesDecided, start_s: float, end_s: float) -> Span:
    moves = ", ".join(move.kind for move in decided.moves)
    attributes: dict[str, Value] = {"suture.round": decided.round, "suture.moves": moves}
    name = f"round {decided.round}"
    return Span(name=name, kind="round", start_s=start_s, end_s=end_s, parent=0, attributes=attributes)


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
