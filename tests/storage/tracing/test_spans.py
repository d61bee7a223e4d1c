"""Spans are computed from a ledger alone."""

from __future__ import annotations

from typing import Any

from suture.core.ledger import Event
from suture.storage.tracing import build_spans


def make_ledger(*entries: tuple[float, str, dict[str, Any]]) -> tuple[Event, ...]:
    """Return events with these times, kinds and data."""
    return tuple(
        Event(seq=number, time_s=time_s, kind=kind, data=data)
        for number, (time_s, kind, data) in enumerate(entries)
    )


def model_call(seconds: float) -> dict[str, Any]:
    """Return the data of a model call that took this many seconds."""
    return {"model": "m:x", "prompt_tokens": 7, "completion_tokens": 3, "seconds": seconds, "prompt": "abc"}


def moves_decided(number: int, *kinds: str) -> dict[str, Any]:
    """Return the data of a decision for these kinds of move."""
    return {"round": number, "moves": [{"kind": kind} for kind in kinds]}


BUDGET_SETTLED = {
    "reservation": 2,
    "attempts": 1,
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "model_calls": 1,
}
COMPLETE_LEDGER = make_ledger(
    (100, "run.started", {"kind": "write", "recipe": "adaptive", "model": "m:x", "statement": "secret"}),
    (101, "moves.decided", moves_decided(0, "sample")),
    (101, "budget.reserved", {"attempts": 1, "tokens": 20}),
    (105, "model.called", model_call(3.5)),
    (105, "budget.settled", BUDGET_SETTLED),
    (107, "candidate.checked", {"candidate": "c1", "passed": 1, "failed": 2, "verdict": "v", "seconds": 1.5}),
    (108, "moves.decided", moves_decided(1, "mutate")),
    (108, "search.started", {"files": [], "failing": 1, "candidates": 9, "seconds": 60.0, "seed": 0}),
    (110, "search.finished", {"candidates_tried": 5}),
    (111, "moves.decided", moves_decided(2, "stop")),
    (112, "run.finished", {"outcome": "not_healed", "reason": {"code": "no_progress"}, "result": "blob"}),
)  # fmt: skip


def test_spans_nest_in_rounds_and_the_run() -> None:
    spans = build_spans(COMPLETE_LEDGER, "r1")
    shape = [(span.kind, span.name, span.start_s, span.end_s, span.parent) for span in spans]

    assert shape == [
        ("run", "run", 100, 112, None),
        ("round", "round 0", 101, 108, 0),
        ("model", "chat m:x", 101.5, 105, 1),
        ("check", "check", 105.5, 107, 1),
        ("round", "round 1", 108, 111, 0),
        ("search", "search", 108, 110, 4),
    ]
    assert spans[0].attributes["suture.outcome"] == "not_healed"
    assert spans[0].attributes["suture.completion_tokens"] == 3
    assert spans[2].attributes["gen_ai.usage.input_tokens"] == 7
    assert spans[3].attributes["suture.failed"] == 2
    assert "secret" not in repr(spans)


def test_no_span_begins_before_its_parent() -> None:
    replayed = make_ledger(
        (100, "run.started", {}),
        (101, "moves.decided", moves_decided(0, "sample")),
        (101, "model.called", model_call(60)),
    )
    assert [span.start_s for span in build_spans(replayed, "r1")] == [100, 101, 101]


def test_a_killed_run_ends_with_its_last_event() -> None:
    for length in range(1, len(COMPLETE_LEDGER) + 1):
        spans = build_spans(COMPLETE_LEDGER[:length], "r1")
        assert all(span.start_s <= span.end_s <= COMPLETE_LEDGER[length - 1].time_s for span in spans)
        assert all(span.parent is None or span.parent < index for index, span in enumerate(spans))
    assert build_spans((), "r1") == ()
