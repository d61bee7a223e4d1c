"""The agent's loop: a model uses one tool after the other on a copy of the project, until it is done.

Every step is in the ledger before the next begins, with what the model was told and all that is changed; a
step on record is not had again, by whoever goes on with a run or does it again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.agents.calling.coder_call import SQUEEZES, room_tokens
from suture.agents.calling.model_call import Question, ask
from suture.agents.conversation.agent_commands import TOOLS, Command, read_command, up_to_its_end
from suture.agents.conversation.agent_tools import AgentTools, Done
from suture.agents.conversation.conversation_history import HISTORY_TOKENS, AgentStep, conversation
from suture.agents.conversation.recorded_steps import on_record
from suture.agents.conversation.task_briefing import Briefing, briefing_on
from suture.agents.conversation.user_program import proposed
from suture.core.ledger.kinds import AgentStepped
from suture.core.records import Move
from suture.errors import BudgetExceeded, ContextTooLong, MalformedReply, ModelAuthError, ModelError
from suture.judge import Suite
from suture.loop.context import RunContext
from suture.loop.policy.attempts import Attempt
from suture.loop.state import LoopState
from suture.models import Message, Reply, Role, Sampling
from suture.project.workspace import overlay

MOST_REFUSED = 3
"""Replies in a row that name no tool, before the model is taken to know none."""
MOST_REPEATED = 3
"""Times that the same command may come while nothing is changed."""
MOST_FILES = 150
"""Paths that the prompt lists."""
LONGEST_INPUT = 300
"""Of a command, in the ledger."""
LONGEST_REPLY = 12_000
"""Characters of a reply that the history keeps."""


@dataclass(frozen=True, kw_only=True)
class AgentWork:
    """What a turn brought: all that is changed, path -> text, and the last call's hash."""

    changed: dict[str, str]
    call: str


async def work(
    move: Move, tools: AgentTools, briefing: Briefing, coder: Role, context: RunContext
) -> AgentWork:
    """Let the model work until it submits, the tests pass, or its steps or the budget are used up.

    Raises:
        BudgetExceeded: There was no budget for the first call.
        MalformedReply: It changed nothing.
        ModelError: The model failed, and nothing was changed before.
        SandboxError: The wall failed.
    """
    opening = _opening(tools.files, briefing, context)
    changed: Mapping[str, str] = {}
    steps: list[AgentStep] = []
    commands: list[Command | None] = []
    call, ended = "", ""
    while not ended and len(steps) < context.recipe.agent_steps:
        try:
            reply = await _asked(move, opening, steps, coder, context)
        except ModelAuthError:
            raise
        except (BudgetExceeded, ModelError):
            if not changed:
                raise
            break  # what is changed may do
        call = reply.call_hash
        command, done, ended = await _step(reply, move, steps, commands, changed, tools, context)
        commands = [] if done.changed != changed else [*commands, command]
        changed = done.changed
        steps.append(AgentStep(reply=up_to_its_end(reply.text)[:LONGEST_REPLY], observation=done.observation))
    if not changed:
        raise MalformedReply(
            f"the agent changed nothing in {len(steps)} step(s)" + (f": {ended}" if ended else "")
        )
    return AgentWork(changed=dict(changed), call=call)


async def _step(
    reply: Reply,
    move: Move,
    steps: list[AgentStep],
    commands: list[Command | None],
    changed: Mapping[str, str],
    tools: AgentTools,
    context: RunContext,
) -> tuple[Command | None, Done, str]:
    """Carry out what a reply wants, or take it from the record; and why it was the last, if it was."""
    command, fault = _meant(reply.text)
    ended = _ended_by(command, commands)
    number = len(steps) + 1
    kept = on_record(
        AgentStepped,
        lambda step: (step.turn, step.number) == (move.index + 1, number),
        lambda step: (step.observation, step.changes),
        context,
    )
    if kept is not None:
        step, (observation, changes) = kept
        texts = {str(path): str(text) for path, text in changes.items()}
        return command, Done(observation=str(observation), changed=texts), step.ended
    began = time.monotonic()
    done = Done(observation=fault or "Submitted.", changed=changed)
    if command is not None and not ended:
        done = await tools.use(command, changed)
        ended = "passed" if done.passed else ""
    stepped = AgentStepped(
        turn=move.index + 1,
        number=number,
        tool=command.tool if command else "",
        input=(command.given if command else reply.text)[:LONGEST_INPUT],
        observation=context.folder.put_json(done.observation),
        changes=context.folder.put_json(dict(done.changed)),
        seconds=round(time.monotonic() - began, 3),
        ended=ended,
    )
    context.ledger.append(stepped)
    return command, done, ended


def _meant(text: str) -> tuple[Command | None, str]:
    try:
        return read_command(text), ""
    except MalformedReply as fault:
        return None, f"ToolError: {fault.message}"


def _ended_by(command: Command | None, before: list[Command | None]) -> str:
    if command is None:
        return "malformed" if before[1 - MOST_REFUSED :] == [None] * (MOST_REFUSED - 1) else ""
    if command.tool == "submit":
        return "submitted"
    return "repeated" if before.count(command) >= MOST_REPEATED - 1 else ""


async def _asked(
    move: Move, opening: tuple[Message, ...], steps: list[AgentStep], coder: Role, context: RunContext
) -> Reply:
    """The next reply; only the first of a turn is an attempt. One more try where the prompt was too long."""
    seat = context.models.for_role(coder)
    room = room_tokens(seat, context.settings.model.context_tokens) or HISTORY_TOKENS
    index = move.index * context.recipe.agent_steps + len(steps)
    sampling = Sampling(temperature=move.temperature, max_tokens=seat.max_tokens, index=index)
    prompt = context.prompts.load("agent").hash
    question = Question(
        role=coder,
        messages=(),
        prompt=prompt,
        sampling=sampling,
        move="agent",
        again=bool(steps),
        tools=TOOLS,
    )
    for squeeze in range(SQUEEZES + 1):
        messages = conversation(opening, steps, room, squeeze=squeeze)
        try:
            return await ask(replace(question, messages=messages), context)
        except ContextTooLong:
            if squeeze == SQUEEZES:
                raise
    raise AssertionError("unreachable")


def _opening(files: Mapping[str, bytes], briefing: Briefing, context: RunContext) -> tuple[Message, ...]:
    prompt = context.prompts.load("agent")
    names = sorted(files)
    more = f"\n... and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
    begin = prompt.render(
        "begin",
        task=briefing.as_words(),
        files="\n".join(names[:MOST_FILES]) + more,
        tools="\n".join(f"- {tool.name}: {tool.description}" for tool in TOOLS),
        steps=str(context.recipe.agent_steps),
    )
    return (Message(role="system", content=prompt.render("system")), Message(role="user", content=begin))


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
