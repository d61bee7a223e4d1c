"""What roles beside the coder said and did, as lines for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["HELPER_TELLERS"]


def _written(data: Mapping[str, Any]) -> str:
    dropped = sum(data["dropped"].values())
    left = f", {dropped} more of no use" if dropped else ""
    return f"{_name(data['role'])}: {len(data['tests'])} tests{left}; nobody trusts them yet"


def _assessed(data: Mapping[str, Any]) -> str:
    most = max((test["trust"] for test in data["tests"]), default=0.0)
    removed = f", {len(data['removed'])} removed" if data["removed"] else ""
    return (
        f"generated tests: {len(data['tests'])} weighed by {data['heard']} candidates{removed}; "
        f"the most trusted one has {most:.2f}"
    )


def _criticised(data: Mapping[str, Any]) -> str:
    critique = data["critique"]
    word = "approves" if critique["approved"] else "does not approve"
    said = f": {'; '.join(critique['issues'])}" if critique["issues"] else ""
    return f"critic {word} of {data['candidate'][:8]}{said}"


def _diagnosed(data: Mapping[str, Any]) -> str:
    found = data["diagnosis"]
    return (
        f"debugger on {data['candidate'][:8]}: {found['root_cause']} "
        f"({found['category']}, {found['strategy']}, confidence {found['confidence']:.2f})"
    )


def _looked(data: Mapping[str, Any]) -> str:
    step = data["did"]
    return f"debugger: {step['tool'] or 'no action'} {' '.join(step['input'].split())[:80]}".rstrip()


def _worked(data: Mapping[str, Any]) -> str:
    step = data["did"]
    return f"part {data['goal'][:60]!r}: {step['tool'] or 'no action'} {step['input'][:60]}".rstrip()


def _lessons(data: Mapping[str, Any]) -> str:
    return f"lessons: {'; '.join(data['lessons'])}"


def _degraded(data: Mapping[str, Any]) -> str:
    return f"{_name(data['role'])} failed, and the run goes on without: {data['message']}"


def _planned(data: Mapping[str, Any]) -> str:
    parts = [f"{number}. {part['goal']}" for number, part in enumerate(data["plan"]["subtasks"], 1)]
    return f"plan: {' '.join(parts)}"


def _compared(data: Mapping[str, Any]) -> str:
    told = f"compared {len(data['candidates'])} candidates that pass: {data['reason']}"
    for one in data["differ"][:1]:
        answers = "; ".join(f"{answer} by {name[:8]}" for name, answer in one["answers"].items())
        told += f"; {one['call']} gives {answers}"
    return told


def _optimised(data: Mapping[str, Any]) -> str:
    before, after = data["nodes"]
    kept = "kept" if data["kept"] else "left, for it is no simpler or does not pass"
    return f"rewritten {data['of'][:8]} as {data['candidate'][:8]}, {before} to {after} nodes: {kept}"


def _reviewed(data: Mapping[str, Any]) -> str:
    concerns = [f"{one['severity']} {one['kind']}: {one['problem']}" for one in data["review"]["concerns"]]
    return f"reviewer on {data['candidate'][:8]}: {'; '.join(concerns) or 'nothing to say'}"


def _near_limit(data: Mapping[str, Any]) -> str:
    of = f" of {data['limit']}" if data["limit"] else ""
    return f"warning: {data['used']}{of} attempts are used"


def _remembered(data: Mapping[str, Any]) -> str:
    told = [f"{kind} {solved} of {tried}" for kind, (solved, tried) in data["record"].items()]
    return (
        f"earlier runs with this model solved by {', '.join(told)}"
        if told
        else "no earlier runs to learn from"
    )


def _name(role: str) -> str:
    return role.replace("_", " ")


HELPER_TELLERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "attempts.near_limit": _near_limit,
    "candidates.compared": _compared,
    "criticised": _criticised,
    "debugger.stepped": _looked,
    "diagnosed": _diagnosed,
    "lessons.drawn": _lessons,
    "moves.remembered": _remembered,
    "optimised": _optimised,
    "part.stepped": _worked,
    "planned": _planned,
    "reviewed": _reviewed,
    "role.degraded": _degraded,
    "tests.assessed": _assessed,
    "tests.written": _written,
}
"""A line for each kind of event that a helper brings."""
