"""From a ledger's events to spans: the run, its rounds, and in each the model calls, searches and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from suture.ledger import spend_of
from suture.records import Event

__all__ = ["Span", "spans_of"]

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
        run: Its id.
    """
    if not events:
        return ()
    first_s, last_s = events[0].time_s, max(event.time_s for event in events)
    spans = [Span(name="run", kind="run", start_s=first_s, end_s=last_s, attributes=_of_run(events, run))]
    place = 0  # of the run, or of the round that goes on
    searching_s = first_s
    for event in events:
        if event.kind == "decided":
            if place:
                spans[place] = replace(spans[place], end_s=event.time_s)
            stops = [move["kind"] for move in event.data["moves"]] == ["stop"]
            place = 0 if stops else len(spans)
            if not stops:
                spans.append(_round(event, last_s))
        elif event.kind == "search.started":
            searching_s = event.time_s
        elif event.kind in ENDINGS:
            span = ENDINGS[event.kind](event)
            start_s = searching_s if span.kind == "search" else span.start_s
            start_s = min(max(start_s, spans[place].start_s), event.time_s)
            spans.append(replace(span, start_s=start_s, parent=place))
    return tuple(spans)


def _of_run(events: Sequence[Event], run: str) -> dict[str, Value]:
    spend = spend_of(events)
    told: dict[str, Value] = {
        "suture.run": run,
        "suture.attempts": spend.attempts,
        "suture.prompt_tokens": spend.prompt_tokens,
        "suture.completion_tokens": spend.completion_tokens,
        "suture.money_usd": spend.money,
    }
    wanted = {
        "run.started": ("kind", "recipe", "model"),
        "run.finished": ("outcome", "confidence"),
        "run.parked": ("outcome",),
        "run.refused": ("kind",),
    }
    for event in events:
        for name in wanted.get(event.kind, ()):
            value = event.data.get(name)
            if isinstance(value, (str, int, float)):
                told[f"suture.{'refused' if event.kind == 'run.refused' else name}"] = value
    return told


def _round(event: Event, last_s: float) -> Span:
    moves = [str(move["kind"]) for move in event.data["moves"]]
    number = int(event.data["round"])
    told: dict[str, Value] = {"suture.round": number, "suture.moves": ", ".join(moves)}
    return Span(
        name=f"round {number}", kind="round", start_s=event.time_s, end_s=last_s, parent=0, attributes=told
    )


def _call(event: Event) -> Span:
    data = event.data
    return Span(
        name=f"chat {data['model']}",
        kind="model",
        start_s=event.time_s - data.get("seconds", 0.0),
        end_s=event.time_s,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": str(data["model"]),
            "gen_ai.usage.input_tokens": int(data.get("prompt_tokens") or 0),
            "gen_ai.usage.output_tokens": int(data.get("completion_tokens") or 0),
            "suture.finish": str(data.get("finish", "")),
            "suture.role": str(data.get("role", "")),
            "suture.call": str(data.get("call", "")),
            "suture.prompt": str(data.get("prompt", "")),
        },
    )


def _search(event: Event) -> Span:
    told = {key: value for key, value in event.data.items() if isinstance(value, (str, int, float))}
    attributes = {f"suture.{key}": value for key, value in told.items()}
    return Span(name="search", kind="search", start_s=event.time_s, end_s=event.time_s, attributes=attributes)


def _check(event: Event) -> Span:
    data = event.data
    names = ("candidate", "label", "passed", "failed", "evidence")
    return Span(
        name="check",
        kind="check",
        start_s=event.time_s - data.get("seconds", 0.0),
        end_s=event.time_s,
        attributes={f"suture.{name}": data[name] for name in names if data.get(name) is not None},
    )


ENDINGS: Mapping[str, Callable[[Event], Span]] = {
    "model.called": _call,
    "search.finished": _search,
    "candidate.checked": _check,
}
