"""What the critic, the debugger and the summariser say of candidates. They inform; the checks decide."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from suture.agents import DiagnosisReply, RepairBrief, diagnosis_draft
from suture.agents.roles.advisers import (
    CritiqueBrief,
    CritiqueReply,
    LessonsBrief,
    LessonsReply,
    critique_draft,
    lessons_draft,
)
from suture.agents.roles.debugger import investigate
from suture.core.ledger.kinds import Criticised, DebuggerStepped, Diagnosed, LessonsDrawn, ToolStep
from suture.core.records import Critique, Diagnosis, Lesson
from suture.judge import Suite
from suture.judge.tracing.variable_trace import Probe
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.helpers.tools import Iteration, debugger_tools, setup_of
from suture.loop.policy.progress import Attempt
from suture.loop.prompting.briefs import digest
from suture.loop.recalling import recalled_lines
from suture.loop.state import Aids, LoopState, tried_in
from suture.project.workspace import overlay

DIFFS = 4
"""Earlier candidates that the debugger can compare."""


async def criticise(brief: RepairBrief, entry: Attempt, number: int, context: RunContext) -> Critique | None:
    """The critic's view of a candidate; `None` where the critic is degraded."""
    question = CritiqueBrief(
        statement=brief.statement,
        files=brief.files,
        passed=entry.passed,
        total=entry.passed + entry.failed,
        facts=brief.facts,
    )
    critic = Consultation(helper="critic", context=context, round=number)
    reply = await critic.typed_or_none(partial(critique_draft, question), CritiqueReply)
    if reply is None:
        return None
    critique = reply.record()
    context.ledger.append(Criticised(candidate=entry.candidate, critique=critique))
    return critique


async def diagnose(
    brief: RepairBrief, entry: Attempt, suite: Suite, state: LoopState, context: RunContext
) -> Diagnosis | None:
    """Why a candidate fails; `None` where the debugger is degraded."""
    with_tools = context.recipe.helpers.diagnose == "tools"
    asked = Consultation(
        helper="debugger" if with_tools else "diagnose", context=context, round=state["round"]
    )
    recalled = recalled_lines("debugger", context)
    brief = replace(brief, statement="\n".join([brief.statement, *recalled]).lstrip()) if recalled else brief
    found = await asked.or_none(
        partial(_look, brief, entry, suite, state) if with_tools else partial(_reply, brief)
    )
    if found is not None:
        context.ledger.append(Diagnosed(candidate=entry.candidate, diagnosis=found))
    return found


async def _reply(brief: RepairBrief, asked: Consultation) -> Diagnosis:
    return (await asked.typed(diagnosis_draft(brief, asked.prompt), DiagnosisReply)).record()


async def _look(
    brief: RepairBrief, entry: Attempt, suite: Suite, state: LoopState, asked: Consultation
) -> Diagnosis:
    context = asked.context
    probe = Probe(
        sandbox=context.sandbox,
        settings=context.settings.sandbox,
        files=overlay(context.task.files, context.candidate(entry.blob).files),
        module=context.task.module if context.task.kind == "write" else next(iter(brief.files), ""),
        interpreter=context.interpreter,
    )

    def record(step: ToolStep) -> None:
        context.ledger.append(DebuggerStepped(candidate=entry.candidate, did=step))

    async with context.budget.time_limit():
        found = await investigate(
            brief,
            asked.prompt,
            debugger_tools(
                probe,
                _iterations(entry, state, context),
                setup=_setup(brief, suite),
                reference=_reference(brief, state, context),
            ),
            ask=asked.reply,
            conclude=lambda draft: asked.typed(draft, DiagnosisReply),
            on_step=record,
        )
    return found.diagnosis


def _setup(brief: RepairBrief, suite: Suite) -> str:
    """What the first failing check imports and defines; a test of a command lies in a file of its own."""
    failing = brief.facts[0].check_id if brief.facts else ""
    return next((setup_of(check.source) for check in suite.task.checks if check.id == failing), "")


def _reference(brief: RepairBrief, state: LoopState, context: RunContext) -> dict[str, bytes] | None:
    """The project with a candidate that passes the first failing check, where there is one."""
    check = brief.facts[0].check_id if brief.facts else ""
    for entry in tried_in(state):
        if check in context.verdict(entry.verdict).passed:
            return dict(overlay(context.task.files, context.candidate(entry.blob).files))
    return None


def _iterations(entry: Attempt, state: LoopState, context: RunContext) -> list[Iteration]:
    """The last candidates, the failing one last."""
    others = [other for other in tried_in(state) if other.candidate != entry.candidate]
    return [
        Iteration(
            label=one.label,
            files=context.candidate(one.blob).files,
            failed=context.verdict(one.verdict).failed,
        )
        for one in (*others[-DIFFS:], entry)
    ]


async def draw_lessons(aids: Aids, state: LoopState, context: RunContext) -> tuple[str, ...]:
    """The lessons of the run up to now; those of before where the summariser is degraded."""
    brief = LessonsBrief(
        statement=context.task.statement,
        history=digest(None, state, context),
        remarks=[remark for entry in tried_in(state) for remark in aids.remarks.get(entry.candidate, ())],
        known=[Lesson(text=text) for text in aids.lessons],
    )
    summariser = Consultation(helper="summariser", context=context, round=state["round"])
    reply = await summariser.typed_or_none(partial(lessons_draft, brief), LessonsReply)
    if reply is None:
        return aids.lessons
    lessons = tuple(lesson.text for lesson in reply.record())
    context.ledger.append(LessonsDrawn(lessons=lessons))
    return lessons
