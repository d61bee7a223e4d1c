"""Whether an event of a pytest report is one that our plugin writes: its texts come from code under test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {
    "begin": ("named", "patterns", "left_out"),
    "items": ("ids",),
    "end": (),
}
MORE_NAMES = ("files", "deselected")
PAIRS = ("early", "changed", "meanwhile")
TEXTS = {"uncollectable": ("id", "text"), "start": ("id",), "phase": ("id", "when", "outcome", "text")}
OUTCOMES = ("passed", "failed", "skipped", "rerun")
"""The last is that of pytest-rerunfailures: the test failed, and begins anew."""


def is_sound(event: Mapping[str, Any]) -> bool:
    """Whether all that is read of an event is there, and of its kind."""
    kind = event.get("event")
    if not isinstance(kind, str):
        return False
    named = [event.get(name) for name in NAMES.get(kind, ())]
    named += [event[name] for name in MORE_NAMES if name in event]
    pairs = [pair for name in PAIRS if name in event for pair in _listed(event[name])]
    named += [pair if isinstance(pair, list) and len(pair) == 2 else None for pair in pairs]
    texts = [event.get(name) for name in TEXTS.get(kind, ())]
    numbers = [event.get(name, 0.0) for name in ("used_s", "limit_s")]
    return (
        all(isinstance(text, str) for text in (*texts, event.get("rootdir", "")))
        and all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in named)
        and all(type(number) in (int, float) for number in numbers)
        and (kind != "end" or type(event.get("exit")) is int)
        and (kind != "phase" or (event["outcome"] in OUTCOMES and _is_fact(event.get("fact"))))
        and _are_examples(event.get("examples", {}))
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [None]


def _are_examples(examples: object) -> bool:
    return isinstance(examples, dict) and all(
        isinstance(of_test, list) and all(isinstance(one, list) for one in of_test)
        for of_test in examples.values()
    )


def _is_fact(fact: object) -> bool:
    if fact is None:
        return True
    if not isinstance(fact, dict) or type(fact.get("line")) not in (int, type(None)):
        return False
    if type(fact.get("no_end_s", 0.0)) not in (int, float):
        return False
    if "example" not in fact:
        return True
    example = fact["example"]
    return isinstance(example, list) and len(example) == 3 and {"type", "text", "line"} <= fact.keys()
