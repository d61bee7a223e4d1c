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
    first_s, last_s = events[0].time_s, max(event.time_s for event in events)
    spans = [
        Span(name="run", kind="run", start_s=first_s, end_s=last_s, attributes=_run_attributes(events, run))
    ]
    place = 0  # index of the current parent: the run, or the round in progress
    searching_s = first_s
    for event in events:
        if isinstance(event.payload, SearchStarted):
            searching_s = event.time_s
        if isinstance(event.payload, MovesDecided):
            if place:
                spans[place] = replace(spans[place], end_s=event.time_s)
            stops = [move.kind for move in event.payload.moves] == ["stop"]
            place = 0 if stops else len(spans)
            if not stops:
                spans.append(_round(event.payload, event.time_s, last_s))
        elif (span := _span_ending_with(event)) is not None:
            start_s = searching_s if span.kind == "search" else span.start_s
            start_s = min(max(start_s, spans[place].start_s), event.time_s)
            spans.append(replace(span, start_s=start_s, parent=place))
    return tuple(spans)


def _span_ending_with(event: Event) -> Span | None:
    """Return the span that ends with an event, if any."""
    match event.payload:
        case ModelCalled() as called:
            return _call(called, event.time_s)
        case SearchFinished() as finished:
            return _search(finished, event.time_s)
        case CandidateChecked() as checked:
            return _check(checked, event.time_s)
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
                attributes |= {
                    f"suture.{name}": getattr(started, name) for name in ("kind", "recipe", "model")
                }
            case RunFinished(outcome=outcome, confidence=confidence):
                attributes |= {"suture.outcome": outcome, "suture.confidence": confidence}
            case RunPaused(outcome=outcome):
                attributes["suture.outcome"] = outcome
            case RunFailed(error_type=kind):
                attributes["suture.refused"] = kind
    return attributes


def _round(decided: MovesDecided, time_s: float, last_s: float) -> Span:
    moves = ", ".join(move.kind for move in decided.moves)
    attributes: dict[str, Value] = {"suture.round": decided.round, "suture.moves": moves}
    name = f"round {decided.round}"
    return Span(name=name, kind="round", start_s=time_s, end_s=last_s, parent=0, attributes=attributes)


def _call(called: ModelCalled, time_s: float) -> Span:
    return Span(
        name=f"chat {called.model}",
        kind="model",
        start_s=time_s - called.seconds,
        end_s=time_s,
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


def _search(finished: SearchFinished, time_s: float) -> Span:
    plain = {key: value for key, value in vars(finished).items() if isinstance(value, (str, int, float))}
    attributes = {f"suture.{key}": value for key, value in plain.items()}
    return Span(name="search", kind="search", start_s=time_s, end_s=time_s, attributes=attributes)


def _check(checked: CandidateChecked, time_s: float) -> Span:
    names = ("candidate", "label", "passed", "failed", "evidence")
    return Span(
        name="check",
        kind="check",
        start_s=time_s - checked.seconds,
        end_s=time_s,
        attributes={f"suture.{name}": getattr(checked, name) for name in names},
    )
