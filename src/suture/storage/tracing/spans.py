"""From a ledger's events to spans: the run, its rounds, and in each the model calls, searches and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from suture.core.ledger import Event, spend_of
from suture.core.ledger.kinds import (
    CandidateChecked,
    Decided,
    ModelCalled,
    RunFinished,
    RunParked,
    RunRefused,
    RunStarted,
    SearchFinished,
    SearchStarted,
)

Value = str | int | float | bool
Kind = Literal["run", "round", "model", "search", "check"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of a run.

    Attributes:
        name: What it is, for people.
        kind: Which of the five it is.
        start_s: Seconds since the epoch.
        end_s: Likewise; never before the start.
        parent: Its place in the list of spans; `None` for the run.
        attributes: What is known of it. Those of model calls have the names that OpenTelemetry gives them
            (`gen_ai.*`, semantic conventions for generative AI); all others begin with `suture.`.
    """

    name: str
    kind: Kind
    start_s: float
    end_s: float
    parent: int | None = None
    attributes: Mapping[str, Value] = field(default_factory=dict)


def spans_of(events: Sequence[Event], run: str) -> tuple[Span, ...]:
    """The spans of a run, each after its parent; none where nothing happened.

    Args:
        events: Its ledger, in order; also of a run that goes on, or was killed.
        run: The run's id.
    """
    if not events:
        return ()
    first_s, last_s = events[0].time_s, max(event.time_s for event in events)
    spans = [Span(name="run", kind="run", start_s=first_s, end_s=last_s, attributes=_of_run(events, run))]
    place = 0  # of the run, or of the round that goes on
    searching_s = first_s
    for event in events:
        if isinstance(event.payload, SearchStarted):
            searching_s = event.time_s
        if isinstance(event.payload, Decided):
            if place:
                spans[place] = replace(spans[place], end_s=event.time_s)
            stops = [move.kind for move in event.payload.moves] == ["stop"]
            place = 0 if stops else len(spans)
            if not stops:
                spans.append(_round(event.payload, event.time_s, last_s))
        elif (span := _ended(event)) is not None:
            start_s = searching_s if span.kind == "search" else span.start_s
            start_s = min(max(start_s, spans[place].start_s), event.time_s)
            spans.append(replace(span, start_s=start_s, parent=place))
    return tuple(spans)


def _ended(event: Event) -> Span | None:
    """What has ended with an event."""
    match event.payload:
        case ModelCalled() as called:
            return _call(called, event.time_s)
        case SearchFinished() as finished:
            return _search(finished, event.time_s)
        case CandidateChecked() as checked:
            return _check(checked, event.time_s)
    return None


def _of_run(events: Sequence[Event], run: str) -> dict[str, Value]:
    spend = spend_of(events)
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
            case RunParked(outcome=outcome):
                attributes["suture.outcome"] = outcome
            case RunRefused(kind=kind):
                attributes["suture.refused"] = kind
    return attributes


def _round(decided: Decided, time_s: float, last_s: float) -> Span:
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
            "suture.finish": called.finish,
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
