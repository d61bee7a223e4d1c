"""What the lines of a ledger look like: a whole line that is otherwise is not Suture's, or was changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suture.records import Event

__all__ = ["event_of", "why_misshapen"]

NUMBER = (int, float)
COUNTS = ("attempts", "tokens", "completion_tokens", "prompt_tokens", "model_calls", "unpriced_calls")
BOOKED: Mapping[str, Any] = {**dict.fromkeys(COUNTS, int), "money": NUMBER, "reservation": int}
PLACE: Mapping[str, Any] = {"step": int, "branch": int, "part": int}
"""Of every event that a branch of a round wrote."""
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "run.started": {
        **dict.fromkeys(("kind", "statement", "task", "recipe", "model", "project", "settings"), str),
        **{"limits": Mapping, "unpriced": list, "schema_version": int, "common_model": str},
    },
    "run.finished": {"outcome": str, "reason": str, "result": str, "confidence": NUMBER, "warnings": list},
    "run.parked": {"outcome": str, "reason": str, "result": str},
    "run.refused": {"kind": str, "message": str},
    "run.resumed": {"at": list},
    "budget.reserved": {**BOOKED, "what": str, "role": str, "move": str, "act": str, "most": int},
    "budget.settled": BOOKED,
    "budget.refused": {"what": str, "act": str, "limited": str},
    "decided": {"decision": int, "round": int, "moves": list},
    "candidate.proposed": {**dict.fromkeys(("candidate", "blob", "origin", "parent", "label"), str)},
    "candidate.checked": {"candidate": str, "verdict": str, "seconds": NUMBER},
    "candidate.regressed": {"candidate": str, "checks": list},
    "model.called": {
        **dict.fromkeys(("role", "call", "model"), str),
        **{"prompt_tokens": int, "completion_tokens": int, "seconds": NUMBER, "retries": int},
    },
    "move.failed": {"kind": str, "message": str},
    "role.degraded": {"role": str, "kind": str, "message": str},
    "reply.cut": {"call": str, "again_with_tokens": int},
    # Of a hand-over the branch is git's, and no place in the run.
    **{kind: {"branch": str} for kind in ("commit.started", "commit.made", "tree.undone")},
    "review.asked": {"key": str, "stage": str},
    "review.answered": {"key": str, "choice": str, "hint": str, "blob": str},
}
"""By kind, the type of each field that is read back, where the event has it. Other kinds are only told."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "budget.reserved": ("attempts", "tokens"),
    "budget.settled": ("reservation", *("attempts", "prompt_tokens", "completion_tokens", "model_calls")),
}
"""What an event of a kind always had."""


def event_of(fields: Any) -> Event | None:
    """The event with these fields; `None` where it has others than an event has."""
    try:
        return Event(**fields)
    except TypeError:
        return None


def why_misshapen(event: Event) -> str:
    """Which field of an event is of another type than Suture writes; empty where none is.

    Args:
        event: As it was read.
    """
    data: object = event.data
    whole = {"seq": (event.seq, int), "time_s": (event.time_s, NUMBER), "kind": (event.kind, str)}
    for name, (value, wanted) in whole.items():
        if not _is(value, wanted):
            return f"{name!r} is {value!r:.60}"
    if not isinstance(data, Mapping):
        return f"'data' is {data!r:.60}"
    for name, wanted in {**PLACE, **FIELDS.get(event.kind, {})}.items():
        if (value := data.get(name)) is not None and not _is(value, wanted):
            return f"{name!r} of {event.kind!r} is {value!r:.60}"
    missing = [name for name in NEEDED.get(event.kind, ()) if data.get(name) is None]
    return f"{event.kind!r} has no {missing[0]!r}" if missing else ""


def _is(value: object, wanted: Any) -> bool:
    return isinstance(value, wanted) and not isinstance(value, bool)
