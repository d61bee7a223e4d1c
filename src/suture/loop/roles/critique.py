"""Ask the critic, the debugger and the summariser about candidates. Their replies decide nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents.calling.role_call import RoleCall
from suture.agents.prompting.prompt_parts import describe_fact
from suture.agents.roles.advisers import (
    CritiqueReply,
    LessonsReply,
    Objection,
    ObjectionsReply,
    draft_critique_prompt,
    draft_lessons_prompt,
    draft_objection_prompt,
)
from suture.agents.roles.coder import RepairBrief
from suture.agents.roles.debugger import (
    ComparedAttempt,
    DiagnosisReply,
    draft_diagnosis_prompt,
    find_test_setup,
    investigate,
    make_debugger_tools,
)
from suture.agents.roles.testers import checks_from_examples
from suture.core.ledger.kinds import (
    CandidateCriticised,
    DebuggerStepped,
    DiagnosisMade,
    LessonsDrawn,
    ToolStep,
)
from suture.core.records import Check, CheckOutcome, Critique, Diagnosis
from suture.errors import MalformedReply
from suture.judge import Suite
from suture.judge.tracing.variable_trace import TraceTarget
from suture.judge.trust.assessment import run_untrusted_checks
from suture.loop.briefing import describe_attempts, find_role_profile, make_role_call, recalled_lessons
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.loop.roles.generated_tests import accepts_generated_tests
from suture.loop.state import LoopState, RoleContributions, judged_attempts
from suture.loop.tuning import MAX_COMPARED_ATTEMPTS
from suture.project.workspace import overlay_candidate


async def criticise(
    brief: RepairBrief, attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> tuple[Critique | None, tuple[Check, ...]]:
    """Return (critique, checks): the critic's view of a candidate, and the tests that show its objections.

    There is no critique if the critic is degraded. Tests come only from a capable critic of code that passes.
    """
    if attempt.solved and find_role_profile("critic", context).is_capable:
        return await _ask_for_objections(brief, attempt, suite, state, context)
    total = attempt.passed + attempt.failed
    make_draft = partial(draft_critique_prompt, brief, passed=attempt.passed, total=total)
    critic = make_role_call("critic", state, context)
    reply = await critic.ask_typed_or_degrade(make_draft, CritiqueReply)
    if reply is None:
        return None, ()
    critique = reply.record()
    context.ledger.append(CandidateCriticised(candidate=attempt.candidate, critique=critique))
    return critique, ()


async def _ask_for_objections(
    brief: RepairBrief, attempt: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> tuple[Critique | None, tuple[Check, ...]]:
    """Return a capable critic's view of code that passes, without the objections that a run refutes."""
    critic = make_role_call("critic", state, context)
    make_draft = partial(draft_objection_prompt, brief, checks=attempt.passed)
    reply = await critic.ask_typed_or_degrade(make_draft, ObjectionsReply)
    if reply is None:
        return None, ()
    issues: list[str] = []
    refuted: list[str] = []
    shown: list[Check] = []
    for objection in reply.objections:
        check, outcome = await _run_objection(objection, attempt, suite, context)
        issue = f"{objection.problem} (the task: {objection.demand!r})"
        if outcome is not None and outcome.passed:
            refuted.append(issue)
            continue
        if check is not None and outcome is not None:
            shown.append(check)
            issue += f"; a run shows it: {_describe_outcome(check, outcome)}"
        issues.append(issue)
    critique = Critique(issues=tuple(dict.fromkeys(issues)), score=reply.score, approved=not issues)
    context.ledger.append(
        CandidateCriticised(candidate=attempt.candidate, critique=critique, refuted=tuple(refuted))
    )
    return critique, tuple(shown)


async def _run_objection(
    objection: Objection, attempt: Attempt, suite: Suite, context: RunContext
) -> tuple[Check | None, CheckOutcome | None]:
    """Return (check, outcome): the call that shows an objection, run on the candidate; `None` where there is none."""
    example = objection.example
    if example is None or not accepts_generated_tests(context):
        return None, None
    try:
        checks = checks_from_examples([example], "adversarial", context.task.entry_point).checks
    except MalformedReply:
        return None, None
    async with context.budget.time_limit():
        outcomes = await run_untrusted_checks(checks, context.candidates.load(attempt.blob), suite)
    return checks[0], next(iter(outcomes), None)


def _describe_outcome(check: Check, outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    return describe_fact(fact) if fact is not None else f"{check.id} fails"


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
    # A test that runs by the test command has its imports in its own file, and is not a check with a source.
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
