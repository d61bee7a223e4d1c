"""A task cut into parts, and a candidate made of them: independent parts are worked on at the same time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from suture.agents.roles.advisers import PlanBrief, PlanReply, plan_draft
from suture.agents.roles.project_coder import rules_of
from suture.agents.roles.subtask_coder import SubtaskBrief, work_on
from suture.agents.tools.in_memory_files import InMemoryFiles, merged_work
from suture.core.ledger import part_of_branch
from suture.core.ledger.kinds import PartStepped, Planned, ToolStep
from suture.core.records import Lesson, Move, Plan, Task, to_plain
from suture.errors import MalformedReply
from suture.judge import Suite
from suture.judge import protected_files as refused_files
from suture.loop.calls.budgeted_calls import BudgetedCall, prior_decision, reserve
from suture.loop.calls.helper_call import Consultation
from suture.loop.context import RunContext
from suture.loop.recalling import recalled_lines
from suture.loop.state import Aids
from suture.models import Role
from suture.project.languages import LANGUAGES
from suture.project.workspace import text_of


async def planned(aids: Aids, context: RunContext) -> Aids:
    """The planner's parts of a task that is to be written; none where the planner is degraded."""
    task = context.task
    if not context.recipe.helpers.plan or task.kind != "write" or not LANGUAGES[task.language].parsed:
        return aids
    brief = PlanBrief(
        statement=_wanted(task),
        module=task.module,
        project=tuple(task.files),
        lessons=[Lesson(text=text) for text in recalled_lines("planner", context)],
    )
    planner = Consultation(helper="planner", context=context, round=0)
    reply = await planner.typed_or_none(partial(plan_draft, brief), PlanReply)
    if reply is None:
        return aids
    plan = reply.record()
    context.ledger.append(Planned(plan=plan))
    return replace(aids, plan=context.folder.put_json(to_plain(plan)))


def _wanted(task: Task) -> str:
    """The statement, and of a project how it is laid out and started."""
    return f"{task.statement.strip()}\n\n{rules_of(task)}" if task.project else task.statement


def plan_of(aids: Aids, context: RunContext) -> Plan | None:
    """The plan, where there is one."""
    return context.folder.get_record(Plan, aids.plan) if aids.plan else None


async def planned_files(
    plan: Plan, aids: Aids, move: Move, context: RunContext, suite: Suite, coder: Role = "coder"
) -> dict[str, str]:
    """A candidate's files, made part by part; it is one attempt, however many parts there are.

    Raises:
        BudgetExceeded: There is no attempt left, or no budget for a part.
        MalformedReply: A part brought no file; the attempt is spent.
        ModelError: The model failed.
    """
    what = f"{move.kind} {move.index}, by plan"
    act = BudgetedCall(name=what, what=what, move=move.kind, attempt=True)
    attempt = reserve(act, context, prior_decision(act, context))
    try:
        files = await _worked_off(plan, aids, move, context, suite, coder)
    except MalformedReply:
        context.budget.settle(attempt)
        raise
    except BaseException:
        context.budget.release(attempt)
        raise
    context.budget.settle(attempt)
    return files


async def _worked_off(
    plan: Plan, aids: Aids, move: Move, context: RunContext, suite: Suite, coder: Role
) -> dict[str, str]:
    task = context.task
    given = {path: text_of(content) for path, content in task.files.items() if path.endswith(".py")}
    done: list[str] = []
    written: dict[str, str] = {}
    for wave in plan.waves:
        goals = [plan.subtasks[number - 1].goal for number in wave]
        base = {**given, **written}
        briefs = [
            SubtaskBrief(
                statement=_wanted(task),
                goal=goal,
                module=task.module,
                done=tuple(done),
                lessons=[Lesson(text=text) for text in aids.lessons],
            )
            for goal in goals
        ]
        written |= merged_work(base, await _worked_on(briefs, base, move, context, suite, coder))
        done += goals
    return written


async def _worked_on(
    briefs: Sequence[SubtaskBrief],
    base: dict[str, str],
    move: Move,
    context: RunContext,
    suite: Suite,
    coder: Role,
) -> list[Mapping[str, str]]:
    """What each part wrote; no part is still being paid for when another one's fault is raised."""
    # As `in_turn`: where tokens of replies are limited, each must know what those before it have used.
    at_once = len(briefs) if context.budget.limits.completion_tokens is None else 1
    gate = asyncio.Semaphore(at_once)

    async def one(number: int, brief: SubtaskBrief) -> dict[str, str]:
        with part_of_branch(number):
            async with gate:
                return await _worked(brief, base, move, context, suite, coder)

    numbered = enumerate(briefs, start=1 + len(briefs[0].done))
    ended = await asyncio.gather(*itertools.starmap(one, numbered), return_exceptions=True)
    works: list[Mapping[str, str]] = []
    for work in ended:
        if isinstance(work, BaseException):
            raise work
        works.append(work)
    return works


async def _worked(
    brief: SubtaskBrief,
    base: dict[str, str],
    move: Move,
    context: RunContext,
    suite: Suite,
    coder: Role,
) -> dict[str, str]:
    desk = InMemoryFiles(base, lambda path: not refused_files({path: ""}, suite))
    asked = Consultation(
        helper="subtask_coder",
        context=context,
        round=move.index,
        temperature=move.temperature,
        speaks_as=coder,
    )

    def record(step: ToolStep) -> None:
        context.ledger.append(PartStepped(goal=brief.goal, did=step))

    await work_on(brief, asked.prompt, desk, ask=asked.reply, on_step=record)
    return desk.written
