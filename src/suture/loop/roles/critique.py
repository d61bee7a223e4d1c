"""Ask the critic, the debugger and the summariser about candidates. Their replies decide nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents.calling.role_call import RoleCall
from suture.agents.roles.advisers import (
    CritiqueReply,
    LessonsReply,
    draft_critique_prompt,
    draft_lessons_prompt,
)
from suture.agents.roles.coder import RepairBrief
from suture.agents.roles.debugger import DiagnosisReply, draft_diagnosis_prompt, investigate
from suture.agents.tools.debugger_tools import ComparedAttempt, find_test_setup, make_debugger_tools
from suture.core.ledger.kinds import (
    CandidateCriticised,
    DebuggerStepped,
    DiagnosisMade,
    LessonsDrawn,
    ToolStep,
)
from suture.core.records import Critique, Diagnosis
from suture.judge import Suite
from suture.judge.tracing.variable_trace import TraceTarget
from suture.loop.briefing import describe_attempts, make_role_call
from suture.loop.context import RunContext
from suture.loop.memories import recalled_lessons
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState, RoleContributions, judged_attempts
from suture.loop.tuning import MAX_COMPARED_ATTEMPTS
from suture.project.workspace import overlay_candidate


async def criticise(
    brief: RepairBrief, attempt: Attempt, state: LoopState, context: RunContext
) -> Critique | None:
    """Return the critic's view of a candidate; `None` if the critic is degraded."""
    total = attempt.passed + attempt.failed
    make_draft = partial(draft_critique_prompt, brief, passed=attempt.passed, total=total)
    critic = make_role_call("critic", state, context)
    reply = await critic.ask_typed_or_degrade(make_draft, CritiqueReply)
    if reply is None:
        return None
    critique = reply.record()
    context.ledger.append(CandidateCriticised(candidate=attempt.candidate, critique=critique))
    return critique


async def diagnose(
    brief: RepairBrief, attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> Diagnosis | None:
    """Return why a candidate fails; `None` if the debugger is degraded."""
    uses_tools = context.recipe.helpers.diagnose == "tools"
    debugger = make_role_call("debugger" if uses_tools else "diagnose", state, context)
    lessons = recalled_lessons("debugger", context)
    if lessons:
        brief = replace(brief, statement="\n".join([brief.statement, *lessons]).lstrip())

    async def investigate_with_tools(call: RoleCall) -> Diagnosis:
        return await _investigate(brief, attempt, suite, state, call, context)

    async def ask_once(call: RoleCall) -> Diagnosis:
        return (await call.ask_typed(draft_diagnosis_prompt(brief, call.prompt), DiagnosisReply)).record()

    diagnosis = await debugger.run_or_degrade(investigate_with_tools if uses_tools else ask_once)
    if diagnosis is not None:
        context.ledger.append(DiagnosisMade(candidate=attempt.candidate, diagnosis=diagnosis))
    return diagnosis


async def _investigate(
    brief: RepairBrief,
    attempt: Attempt,
    suite: Suite,
    state: LoopState,
    call: RoleCall,
    context: RunContext,
) -> Diagnosis:
    """Return the diagnosis of a debugger that works with tools."""
    task = context.task
    target = TraceTarget(
        sandbox=context.sandbox,
        settings=context.settings.sandbox,
        files=overlay_candidate(task.files, context.candidates.load(attempt.blob).files),
        module=task.module if task.kind == "write" else next(iter(brief.files), ""),
        interpreter=context.interpreter,
    )
    failing_check = brief.facts[0].check_id if brief.facts else ""
    # A test that runs by the test command has its imports in its own file, and is no check with a source.
    sources = (check.source for check in suite.task.checks if check.id == failing_check)
    tools = make_debugger_tools(
        target,
        _compared_attempts(attempt, state, context),
        setup=next(map(find_test_setup, sources), ""),
        reference=_find_reference(failing_check, state, context),
    )

    def record_step(step: ToolStep) -> None:
        context.ledger.append(DebuggerStepped(candidate=attempt.candidate, step=step))

    async with context.budget.time_limit():
        investigation = await investigate(
            brief,
            call.prompt,
            tools,
            ask=call.ask_text,
            conclude=lambda draft: call.ask_typed(draft, DiagnosisReply),
            on_step=record_step,
        )
    return investigation.diagnosis


def _find_reference(check_id: str, state: LoopState, context: RunContext) -> dict[str, bytes] | None:
    """Return the project with a candidate that passes a check, if there is one."""
    for attempt in judged_attempts(state):
        if check_id in context.candidates.load_verdict(attempt.verdict).passed:
            files = context.candidates.load(attempt.blob).files
            return dict(overlay_candidate(context.task.files, files))
    return None


def _compared_attempts(failing: Attempt, state: LoopState, context: RunContext) -> list[ComparedAttempt]:
    """Return the last attempts, and then the failing one."""
    others = [attempt for attempt in judged_attempts(state) if attempt.candidate != failing.candidate]
    return [
        ComparedAttempt(
            label=attempt.label,
            files=context.candidates.load(attempt.blob).files,
            failed=context.candidates.load_verdict(attempt.verdict).failed,
        )
        for attempt in (*others[-MAX_COMPARED_ATTEMPTS:], failing)
    ]


async def draw_lessons(
    contributions: RoleContributions, state: LoopState, context: RunContext
) -> tuple[str, ...]:
    """Return the lessons of the run so far; those of the last round if the summariser is degraded."""
    remarks = [
        remark
        for attempt in judged_attempts(state)
        for remark in contributions.remarks.get(attempt.candidate, ())
    ]
    make_draft = partial(
        draft_lessons_prompt,
        statement=context.task.statement,
        history=describe_attempts(None, state, context),
        remarks=remarks,
        lessons=contributions.lessons,
    )
    summariser = make_role_call("summariser", state, context)
    reply = await summariser.ask_typed_or_degrade(make_draft, LessonsReply)
    if reply is None:
        return contributions.lessons
    lessons = reply.unique()
    context.ledger.append(LessonsDrawn(lessons=lessons))
    return lessons
