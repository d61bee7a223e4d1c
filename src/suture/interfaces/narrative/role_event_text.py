"""What roles beside the coder said and did, and what memory recalled and kept, as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from suture.core.ledger import Payload
from suture.core.ledger.kinds import (
    AgentStepped,
    AttemptsNearLimit,
    CandidatesCompared,
    Criticised,
    DebuggerStepped,
    Diagnosed,
    LessonsDrawn,
    MemoryKept,
    MemoryRecalled,
    Optimised,
    PartStepped,
    Planned,
    ProposerRan,
    Reviewed,
    RoleDegraded,
    TestsAssessed,
    TestsWritten,
)
from suture.interfaces.narrative.plain_text import format_count

MOST_FACTORS = 5


def _written(written: TestsWritten) -> str:
    dropped = sum(written.dropped.values())
    left = f", and {dropped} more that cannot be used" if dropped else ""
    tests = format_count(len(written.tests), "test")
    return f"{_name(written.role)} wrote {tests}{left}; they decide nothing yet"


def _assessed(assessed: TestsAssessed) -> str:
    most = max((test.trust for test in assessed.tests), default=0.0)
    removed = f", {len(assessed.removed)} removed" if assessed.removed else ""
    return (
        f"generated tests: {len(assessed.tests)} compared on {format_count(assessed.heard, 'candidate')}{removed}"
        f"; highest trust {most:.2f}"
    )


def _criticised(criticised: Criticised) -> str:
    critique = criticised.critique
    word = "approves" if critique.approved else "does not approve"
    said = f": {'; '.join(critique.issues)}" if critique.issues else ""
    return f"critic {word} of {criticised.candidate[:8]}{said}"


def _diagnosed(diagnosed: Diagnosed) -> str:
    found = diagnosed.diagnosis
    return (
        f"debugger on {diagnosed.candidate[:8]}: {found.root_cause} "
        f"({found.category}, {found.strategy}, confidence {found.confidence:.2f})"
    )


def _looked(looked: DebuggerStepped) -> str:
    step = looked.did
    return f"debugger: {step.tool or 'no action'} {' '.join(step.input.split())[:80]}".rstrip()


def _worked(worked: PartStepped) -> str:
    step = worked.did
    return f"part {worked.goal[:60]!r}: {step.tool or 'no action'} {step.input[:60]}".rstrip()


def _stepped(step: AgentStepped) -> str:
    ended = f", {step.ended}" if step.ended else ""
    given = " ".join(step.input.split())[:80] if step.tool not in ("submit", "run_tests") else ""
    return f"agent step {step.number}: {step.tool or 'no tool'} {given}".rstrip() + ended


def _proposed(ran: ProposerRan) -> str:
    ended = {"exit": f"exit code {ran.code}", "timeout": "its time was up", "memory": "too much memory"}
    what = f"changed {', '.join(ran.changed)}" if ran.changed else "changed nothing"
    kept = f"; what it deleted stays: {', '.join(ran.deleted)}" if ran.deleted else ""
    out = f"; no part of the change: {', '.join(ran.left_out)}" if ran.left_out else ""
    return f"proposer: {ended.get(ran.ended, ran.ended)} after {ran.seconds:.1f} s, {what}{kept}{out}"


def _lessons(drawn: LessonsDrawn) -> str:
    return f"lessons: {'; '.join(drawn.lessons)}"


def _degraded(degraded: RoleDegraded) -> str:
    return f"{_name(degraded.role)} failed, and the run goes on without: {degraded.message}"


def _planned(planned: Planned) -> str:
    parts = [f"{number}. {part.goal}" for number, part in enumerate(planned.plan.subtasks, 1)]
    return f"plan: {' '.join(parts)}"


def _compared(compared: CandidatesCompared) -> str:
    text = f"compared {len(compared.candidates)} candidates that pass: {compared.reason}"
    for one in compared.differ[:1]:
        answers = "; ".join(f"{answer} by {name[:8]}" for name, answer in one.answers.items())
        text += f"; {one.call} gives {answers}"
    return text


def _optimised(optimised: Optimised) -> str:
    before, after = optimised.nodes
    kept = "kept" if optimised.kept else "left, for it is no simpler or does not pass"
    names = f"{optimised.of[:8]} as {optimised.candidate[:8]}"
    return f"rewritten {names}, {before} to {after} nodes: {kept}"


def _reviewed(reviewed: Reviewed) -> str:
    concerns = [f"{one.severity} {one.kind}: {one.problem}" for one in reviewed.review.concerns]
    return f"reviewer on {reviewed.candidate[:8]}: {'; '.join(concerns) or 'nothing to say'}"


def _near_limit(near: AttemptsNearLimit) -> str:
    of = f" of {near.limit}" if near.limit else ""
    return f"Warning: {near.used}{of} attempts are used"


def _name(role: str) -> str:
    return role.replace("_", " ")


ROLE_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    AgentStepped: _stepped,
    AttemptsNearLimit: _near_limit,
    CandidatesCompared: _compared,
    Criticised: _criticised,
    DebuggerStepped: _looked,
    Diagnosed: _diagnosed,
    LessonsDrawn: _lessons,
    Optimised: _optimised,
    PartStepped: _worked,
    Planned: _planned,
    ProposerRan: _proposed,
    Reviewed: _reviewed,
    RoleDegraded: _degraded,
    TestsAssessed: _assessed,
    TestsWritten: _written,
}
"""A line for each kind of event that a helper brings."""


def _recalled(recalled: MemoryRecalled) -> str:
    if recalled.fault:
        return f"memory could not be asked, and the run goes on without: {recalled.fault}"
    if not recalled.found:
        return "memory: nothing like this was met before"
    arms = Counter(one.arm for one in recalled.found)
    how = ", ".join(f"{count} {arm}" for arm, count in arms.items())
    text = f"memory: {len(recalled.found)} from earlier runs are like {recalled.query!r} ({how})"
    raised = sorted(recalled.factors.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_FACTORS]
    if raised:
        text += "; the search takes for likelier: " + ", ".join(f"{name} x{by:g}" for name, by in raised)
    if recalled.told:
        text += "; prompts tell: " + " / ".join(recalled.told)
    return text


def _kept(kept: MemoryKept) -> str:
    if kept.fault:
        return f"memory could not keep what this run taught: {kept.fault}"
    counts = (format_count(kept.failures, "failure"), format_count(kept.patterns, "pattern"))
    rest = format_count(kept.lessons, "lesson")
    return f"memory keeps {', '.join(counts)} and {rest} of this run"


MEMORY_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {MemoryKept: _kept, MemoryRecalled: _recalled}
"""A line for each kind of event about memory."""
