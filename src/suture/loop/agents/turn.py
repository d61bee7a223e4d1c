"""One turn of an agent: who has it, on which files, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from suture.checks import Suite
from suture.loop.agents.briefing import briefing_on
from suture.loop.agents.proposer import proposed
from suture.loop.agents.tools import AgentTools
from suture.loop.agents.work import work
from suture.loop.context import RunContext
from suture.loop.policy.progress import Attempt
from suture.loop.state import LoopState
from suture.records import Move
from suture.workspace import overlay


@dataclass(frozen=True, kw_only=True)
class Worked:
    """What an agent changed, path -> text, and the last model call that brought it, where one did."""

    files: dict[str, str]
    call: str = ""


async def work_of_agent(
    move: Move, parent: Attempt | None, state: LoopState, context: RunContext, suite: Suite
) -> Worked:
    """Have the agent of this run work on a copy of a candidate's files.

    Args:
        move: The turn.
        parent: The candidate that it begins with; `None` where there is no code yet.
        state: The run's.
        context: The run.
        suite: What decides afterwards.

    Raises:
        BudgetExceeded: Nothing is left for it.
        MalformedReply: It changed nothing.
        ModelError: The model failed.
        SandboxError: The wall failed.
    """
    written = context.candidate(parent.blob).files if parent else {}
    files = overlay(context.task.files, written)
    briefing = briefing_on(parent, state["hints"], context)
    if context.has_proposer:
        return Worked(files=await proposed(move, files, briefing, suite, context))
    tools = AgentTools(files=files, parent=written, suite=suite, context=context)
    done = await work(move, tools, briefing, context.coder(state), context)
    return Worked(files=done.changed, call=done.call)
