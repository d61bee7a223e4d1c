"""Let the planner split a task into parts, and write a candidate part by part."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from suture.agents.calling.budgeted_call import BudgetedCall, find_prior_decision, reserve
from suture.agents.calling.role_call import RoleCall
from suture.agents.roles.advisers import PlanReply, draft_plan_prompt
from suture.agents.roles.project_coder import render_project_rules
from suture.agents.roles.subtask_coder import InMemoryFiles, SubtaskBrief, merge_subtask_files, write_subtask
from suture.core.ledger import in_branch_part
from suture.core.ledger.kinds import PlanMade, SubtaskStepped, ToolStep
from suture.core.records import Move, Plan, Task, encode_record
from suture.errors import MalformedReply
from suture.judge import Suite, find_protected_paths
from suture.loop.briefing import make_role_call, recalled_lessons
from suture.loop.context import RunContext
from suture.loop.state import LoopState, RoleContributions
from suture.models import Role
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text


async def make_plan(
    contributions: RoleContributions, state: LoopState, context: RunContext
) -> RoleContributions:
    """Add the planner's plan of a `write` task; there is none if the recipe has no planner or it is degraded."""
    task = context.task
    if not context.recipe.helpers.plan or task.kind != "write" or not LANGUAGES[task.language].parsed:
        return contributions
    make_draft = partial(
        draft_plan_prompt,
        statement=_describe_task(task),
        module=task.module,
        project=task.files,
        lessons=recalled_lessons("planner", context),
    )
    planner = make_role_call("planner", state, context)
    reply = await planner.ask_typed_or_degrade(make_draft, PlanReply)
    if reply is None:
        return contributions
    plan = reply.record()
    context.ledger.append(PlanMade(plan=plan))
    return replace(contributions, plan=context.folder.save_json(encode_record(plan)))


def _describe_task(task: Task) -> str:
    """Return the statement; for a project also how it is laid out and started."""
    return f"{task.statement.strip()}\n\n{render_project_rules(task)}" if task.project else task.statement


def load_plan(contributions: RoleContributions, context: RunContext) -> Plan | None:
    """Return the plan, if there is one."""
    return context.folder.load_record(Plan, contributions.plan) if contributions.plan else None


@dataclass(frozen=True, kw_only=True)
class PlannedWriting:
    """The inputs of writing one candidate by plan.

    Attributes:
        lessons: The lessons of the run so far.
        move: The move that the candidate is for.
        suite: The suite that decides; it says which files may be written.
        coder: The role that writes the code.
    """

    plan: Plan
    lessons: Sequence[str]
    move: Move
    suite: Suite
    coder: Role
    context: RunContext


async def write_planned_files(writing: PlannedWriting) -> dict[str, str]:
    """Write a candidate's files part by part. They cost one attempt, however many parts there are.

    Raises:
        BudgetExceeded: No attempt is left, or no budget for a part.
        MalformedReply: A part produced no file; the attempt is spent.
        ModelError: The model failed.
    """
    move, calls = writing.move, writing.context.calls
    name = f"{move.kind} {move.index}, by plan"
    call = BudgetedCall(key=name, description=name, move=move.kind, is_attempt=True)
    reservation = reserve(call, calls, find_prior_decision(call, calls))
    try:
        files = await _write_parts(writing)
    except MalformedReply:
        calls.budget.settle(reservation)
        raise
    except BaseException:
        calls.budget.release(reservation)
        raise
    calls.budget.settle(reservation)
    return files


async def _write_parts(writing: PlannedWriting) -> dict[str, str]:
    """Write the parts in waves: the parts of a wave do not depend on each other."""
    task, plan = writing.context.task, writing.plan
    task_files = {path: decode_text(text) for path, text in task.files.items() if path.endswith(".py")}
    done: list[str] = []
    written: dict[str, str] = {}
    for wave in plan.waves:
        goals = [plan.subtasks[number - 1].goal for number in wave]  # subtasks are numbered from 1
        base = {**task_files, **written}
        briefs = [
            SubtaskBrief(
                statement=_describe_task(task),
                goal=goal,
                module=task.module,
                done=tuple(done),
                lessons=writing.lessons,
            )
            for goal in goals
        ]
        written |= merge_subtask_files(base, await _write_wave(briefs, base, writing))
        done += goals
    return written


async def _write_wave(
    briefs: Sequence[SubtaskBrief], base: dict[str, str], writing: PlannedWriting
) -> list[Mapping[str, str]]:
    """Write independent parts at the same time, and return the files of each.

    All of them have ended before the fault of one is raised.
    """
    # As in `CallContext.reply_turn`: where reply tokens are limited, each part must know what the previous ones used.
    is_limited = writing.context.budget.limits.completion_tokens is not None
    semaphore = asyncio.Semaphore(1 if is_limited else len(briefs))

    async def write_part(number: int, brief: SubtaskBrief) -> dict[str, str]:
        with in_branch_part(number):
            async with semaphore:
                return await _write_part(brief, base, writing)

    numbered = enumerate(briefs, start=1 + len(briefs[0].done))
    results = await asyncio.gather(*itertools.starmap(write_part, numbered), return_exceptions=True)
    files: list[Mapping[str, str]] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        files.append(result)
    return files


async def _write_part(brief: SubtaskBrief, base: dict[str, str], writing: PlannedWriting) -> dict[str, str]:
    files = InMemoryFiles(base, lambda path: not find_protected_paths([path], writing.suite))
    call = RoleCall(
        helper="subtask_coder",
        calls=writing.context.calls,
        round=writing.move.index,  # keeps equal questions for different candidates distinct
        temperature=writing.move.temperature,
        model_role=writing.coder,
    )

    def record_step(step: ToolStep) -> None:
        writing.context.ledger.append(SubtaskStepped(goal=brief.goal, step=step))

    await write_subtask(brief, call.prompt, files, ask=call.ask_text, on_step=record_step)
    return files.written
