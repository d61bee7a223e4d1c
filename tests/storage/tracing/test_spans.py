"""Spans are a fold over a ledger."""

from __future__ import annotations

from typing import Any

from suture.core.ledger import Event
from suture.storage.tracing import build_spans


def ledger(*told: tuple[float, str, dict[str, Any]]) -> tuple[Event, ...]:
    return tuple(Event(seq=n, time_s=t, kind=kind, data=data) for n, (t, kind, data) in enumerate(told))


def call(seconds: float) -> dict[str, Any]:
    return {"model": "m:x", "prompt_tokens": 7, "completion_tokens": 3, "seconds": seconds, "prompt": "abc"}


def decided(number: int, *kinds: str) -> dict[str, Any]:
    return {"round": number, "moves": [{"kind": kind} for kind in kinds]}


SETTLED = {"reservation": 2, "attempts": 1, "prompt_tokens": 7, "completion_tokens": 3, "model_calls": 1}
WHOLE = ledger(
    (100, "run.started", {"kind": "write", "recipe": "adaptive", "model": "m:x", "statement": "secret"}),
    (101, "moves.decided", decided(0, "sample")),
    (101, "budget.reserved", {"attempts": 1, "tokens": 20}),
    (105, "model.called", call(3.5)),
    (105, "budget.settled", SETTLED),
    (107, "candidate.checked", {"candidate": "c1", "passed": 1, "failed": 2, "verdict": "v", "seconds": 1.5}),
    (108, "moves.decided", decided(1, "mutate")),
    (108, "search.started", {"files": [], "failing": 1, "candidates": 9, "seconds": 60.0, "seed": 0}),
    (110, "search.finished", {"candidates_tried": 5}),
    (111, "moves.decided", decided(2, "stop")),
    (112, "run.finished", {"outcome": "not_healed", "reason": {"code": "no_progress"}, "result": "blob"}),
)  # fmt: skip


def test_spans_nest_in_rounds_and_the_run() -> None:
    spans = build_spans(WHOLE, "r1")
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
    replayed = ledger(
        (100, "run.started", {}),
        (101, "moves.decided", decided(0, "sample")),
        (101, "model.called", call(60)),
    )
    assert [span.start_s for span in build_spans(replayed, "r1")] == [100, 101, 101]


def test_a_run_that_was_killed_ends_with_its_last_event() -> None:
    for length in range(1, len(WHOLE) + 1):
        spans = build_spans(WHOLE[:length], "r1")
        assert all(span.start_s <= span.end_s <= WHOLE[length - 1].time_s for span in spans)
        assert all(span.parent is None or span.parent < place for place, span in enumerate(spans))
    assert build_spans((), "r1") == ()
