"""Render the events of the roles beside the coder, and of the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from suture.core.ledger import Payload
from suture.core.ledger.kinds import (
    AgentStepped,
    AttemptsNearLimit,
    CandidateCriticised,
    CandidateOptimised,
    CandidateReviewed,
    CandidatesCompared,
    DebuggerStepped,
    DiagnosisMade,
    LessonsDrawn,
    MemoryRecalled,
    MemoryStored,
    PlanMade,
    ProposerRan,
    RoleDegraded,
    SubtaskStepped,
    TestsAssessed,
    TestsWritten,
)
from suture.interfaces.narrative.plain_text import format_count

MAX_FACTORS = 5
"""The number of search factors that a line about the memory lists."""


def _tests_written(written: TestsWritten) -> str:
    dropped = sum(written.dropped.values())
    left = f", and {dropped} unusable ones" if dropped else ""
    tests = format_count(len(written.tests), "test")
    return f"{_role_name(written.role)} wrote {tests}{left}; they do not decide anything yet"


def _tests_assessed(assessed: TestsAssessed) -> str:
    most = max((test.trust for test in assessed.tests), default=0.0)
    removed = f", {len(assessed.removed)} removed" if assessed.removed else ""
    return (
        f"generated tests: {len(assessed.tests)} compared on "
        f"{format_count(assessed.candidates, 'candidate')}{removed}"
        f"; highest trust {most:.2f}"
    )


def _criticised(criticised: CandidateCriticised) -> str:
    critique = criticised.critique
    word = "approves" if critique.approved else "does not approve"
    issues = f": {'; '.join(critique.issues)}" if critique.issues else ""
    return f"critic {word} of {criticised.candidate[:8]}{issues}"


def _diagnosed(diagnosed: DiagnosisMade) -> str:
    found = diagnosed.diagnosis
    return (
        f"debugger on {diagnosed.candidate[:8]}: {found.root_cause} "
        f"({found.category}, {found.strategy}, confidence {found.confidence:.2f})"
    )


def _debugger_stepped(looked: DebuggerStepped) -> str:
    step = looked.step
    return f"debugger: {step.tool or 'no action'} {' '.join(step.input.split())[:80]}".rstrip()


def _part_stepped(worked: SubtaskStepped) -> str:
    step = worked.step
    return f"part {worked.goal[:60]!r}: {step.tool or 'no action'} {step.input[:60]}".rstrip()


def _agent_stepped(step: AgentStepped) -> str:
    ended = f", {step.ending}" if step.ending else ""
    arguments = " ".join(step.input.split())[:80] if step.tool not in ("submit", "run_tests") else ""
    return f"agent step {step.number}: {step.tool or 'no tool'} {arguments}".rstrip() + ended


def _proposer_ran(ran: ProposerRan) -> str:
    ended = {"exit": f"exit code {ran.exit_code}", "timeout": "timed out", "memory": "out of memory"}
    what = f"changed {', '.join(ran.changed)}" if ran.changed else "changed nothing"
    kept = f"; deletions ignored: {', '.join(ran.deleted)}" if ran.deleted else ""
    out = f"; not part of the change: {', '.join(ran.excluded_files)}" if ran.excluded_files else ""
    return f"proposer: {ended.get(ran.ending, ran.ending)} after {ran.seconds:.1f} s, {what}{kept}{out}"


def _lessons_drawn(drawn: LessonsDrawn) -> str:
    return f"lessons: {'; '.join(drawn.lessons)}"


def _role_degraded(degraded: RoleDegraded) -> str:
    return f"{_role_name(degraded.role)} failed, and the run continues without it: {degraded.message}"


def _planned(planned: PlanMade) -> str:
    parts = [f"{number}. {part.goal}" for number, part in enumerate(planned.plan.subtasks, 1)]
    return f"plan: {' '.join(parts)}"


def _candidates_compared(compared: CandidatesCompared) -> str:
    text = f"compared {len(compared.candidates)} candidates that pass: {compared.reason}"
    for one in compared.differ[:1]:
        answers = "; ".join(f"{answer} by {name[:8]}" for name, answer in one.answers.items())
        text += f"; {one.call} gives {answers}"
    return text


def _optimised(optimised: CandidateOptimised) -> str:
    before, after = optimised.nodes
    decision = "kept" if optimised.accepted else "discarded, because it is no simpler or does not pass"
    names = f"{optimised.original[:8]} as {optimised.candidate[:8]}"
    return f"rewritten {names}, {before} to {after} nodes: {decision}"


def _reviewed(reviewed: CandidateReviewed) -> str:
    concerns = [f"{one.severity} {one.kind}: {one.problem}" for one in reviewed.review.concerns]
    return f"reviewer on {reviewed.candidate[:8]}: {'; '.join(concerns) or 'no concerns'}"


def _attempts_near_limit(near: AttemptsNearLimit) -> str:
    of = f" of {near.limit}" if near.limit else ""
    return f"Warning: {near.used}{of} attempts are used"


def _role_name(role: str) -> str:
    return role.replace("_", " ")


ROLE_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    AgentStepped: _agent_stepped,
    AttemptsNearLimit: _attempts_near_limit,
    CandidatesCompared: _candidates_compared,
    CandidateCriticised: _criticised,
    DebuggerStepped: _debugger_stepped,
    DiagnosisMade: _diagnosed,
    LessonsDrawn: _lessons_drawn,
    CandidateOptimised: _optimised,
    SubtaskStepped: _part_stepped,
    PlanMade: _planned,
    ProposerRan: _proposer_ran,
    CandidateReviewed: _reviewed,
    RoleDegraded: _role_degraded,
    TestsAssessed: _tests_assessed,
    TestsWritten: _tests_written,
}
"""One renderer for each event kind of a role."""


def _memory_recalled(recalled: MemoryRecalled) -> str:
    if recalled.fault:
        return f"memory is not available, and the run continues without it: {recalled.fault}"
    if not recalled.found:
        return "memory: nothing similar is known"
    arms = Counter(one.arm for one in recalled.found)
    how = ", ".join(f"{count} {arm}" for arm, count in arms.items())
    text = f"memory: {len(recalled.found)} from earlier runs are like {recalled.query!r} ({how})"
    raised = sorted(recalled.factors.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_FACTORS]
    if raised:
        text += "; the search prefers: " + ", ".join(f"{name} x{by:g}" for name, by in raised)
    if recalled.prompt_texts:
        text += "; added to prompts: " + " / ".join(recalled.prompt_texts)
    return text


def _memory_kept(kept: MemoryStored) -> str:
    if kept.fault:
        return f"memory could not store the lessons of this run: {kept.fault}"
    counts = (format_count(kept.failures, "failure"), format_count(kept.patterns, "pattern"))
    rest = format_count(kept.lessons, "lesson")
    return f"memory stored {', '.join(counts)} and {rest} from this run"


MEMORY_RENDERERS: dict[type[Payload], Callable[[Any], str]] = {
    MemoryStored: _memory_kept,
    MemoryRecalled: _memory_recalled,
}
"""One renderer for each event kind of the memory."""
