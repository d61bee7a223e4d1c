"""The conversation of an agent: a model uses one tool after the other on a copy of the project.

Every step is in the ledger before the next one begins, with its observation and all changes so far. A run
that is resumed or replayed takes recorded steps from the ledger and does not repeat them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from suture.agents import tuning
from suture.agents.calling.coder_call import prompt_room_tokens
from suture.agents.calling.model_call import ModelQuestion, ask
from suture.agents.conversation.agent_commands import (
    TOOLS,
    AgentCommand,
    cut_after_first_command,
    parse_command,
)
from suture.agents.conversation.agent_tools import AgentTools, ToolResult, join_limited
from suture.agents.conversation.agent_turn import AgentChange, AgentTurn, find_recorded_step
from suture.core.ledger.kinds import AgentStepped
from suture.errors import BudgetExceeded, ContextTooLong, MalformedReply, ModelAuthError, ModelError
from suture.models import Message, Reply, Sampling
from suture.models.token_counting import estimate_tokens

TurnEnding = Literal["", "submitted", "passed", "malformed", "repeated"]
"""Why a step was the last one of its turn; empty if the turn continues."""


@dataclass(frozen=True, kw_only=True)
class _AgentStep:
    """A reply of the model, and the observation that it led to."""

    reply: str
    observation: str


@dataclass(kw_only=True)
class _Progress:
    """The state of a turn: its steps, the changed files (path -> text), and the commands since the last change."""

    steps: list[_AgentStep] = field(default_factory=list)
    changed: Mapping[str, str] = field(default_factory=dict)
    # A reply without a command is in the list as `None`.
    commands_since_change: list[AgentCommand | None] = field(default_factory=list)


async def run_agent(turn: AgentTurn) -> AgentChange:
    """Let the model work until it submits, the tests pass, or its steps or the budget are used up.

    Raises:
        BudgetExceeded: There was no budget for the first call.
        MalformedReply: The model changed nothing.
        ModelError: The model failed, and had changed nothing before.
        SandboxError: The sandbox failed.
    """
    tools, opening, progress = AgentTools(turn=turn), _opening_messages(turn), _Progress()
    call, ending = "", ""
    while not ending and len(progress.steps) < turn.max_steps:
        try:
            reply = await _ask_for_step(turn, opening, progress)
        except ModelAuthError:
            raise
        except (BudgetExceeded, ModelError):
            if not progress.changed:
                raise
            break  # The changes so far may be enough.
        call = reply.call_hash
        ending = await _take_step(reply, turn, tools, progress)
    if not progress.changed:
        why = f": {ending}" if ending else ""
        raise MalformedReply(f"the agent changed nothing in {len(progress.steps)} step(s){why}")
    return AgentChange(files=dict(progress.changed), call=call)


async def _take_step(reply: Reply, turn: AgentTurn, tools: AgentTools, progress: _Progress) -> str:
    """Carry out the command of a reply, or take its result from the ledger. Return the `TurnEnding`."""
    command, error = None, ""
    try:
        command = parse_command(reply.text)
    except MalformedReply as fault:
        error = f"ToolError: {fault.message}"
    number = len(progress.steps) + 1
    ending: str = _ending_before_use(command, progress.commands_since_change)
    recorded = find_recorded_step(
        AgentStepped,
        lambda step: (step.turn, step.number) == (turn.number, number),
        lambda step: (step.observation, step.changes),
        turn.calls,
    )
    if recorded is not None:
        event, (observation, changes) = recorded
        texts = {str(path): str(text) for path, text in changes.items()}
        result, ending = ToolResult(observation=str(observation), changed=texts), event.ending
    else:
        started_s = time.monotonic()
        result = ToolResult(observation=error or "Submitted.", changed=progress.changed)
        if command is not None and not ending:
            result = await tools.use(command, progress.changed)
            ending = "passed" if result.passed else ""
        folder = turn.calls.folder
        turn.calls.ledger.append(
            AgentStepped(
                turn=turn.number,
                number=number,
                tool=command.tool if command else "",
                input=(command.input if command else reply.text)[: tuning.MAX_LEDGER_INPUT_CHARS],
                observation=folder.save_json(result.observation),
                changes=folder.save_json(dict(result.changed)),
                seconds=round(time.monotonic() - started_s, 3),
                ending=ending,
            )
        )
    if result.changed != progress.changed:
        progress.commands_since_change = []
    else:
        progress.commands_since_change.append(command)
    progress.changed = result.changed
    shortened = cut_after_first_command(reply.text)[: tuning.MAX_HISTORY_REPLY_CHARS]
    progress.steps.append(_AgentStep(reply=shortened, observation=result.observation))
    return ending


def _ending_before_use(command: AgentCommand | None, earlier: list[AgentCommand | None]) -> TurnEnding:
    """Return why the turn ends before the command is carried out; empty if it does not."""
    if command is None:
        # This reply is malformed too, so that one fewer of the earlier replies has to be.
        latest = earlier[1 - tuning.MAX_MALFORMED_REPLIES :]
        return "malformed" if latest == [None] * (tuning.MAX_MALFORMED_REPLIES - 1) else ""
    if command.tool == "submit":
        return "submitted"
    return "repeated" if earlier.count(command) >= tuning.MAX_REPEATED_COMMANDS - 1 else ""


async def _ask_for_step(turn: AgentTurn, opening: tuple[Message, ...], progress: _Progress) -> Reply:
    """Return the next reply. Only the first one of a turn is an attempt. A prompt that is too long is shortened."""
    calls, steps = turn.calls, progress.steps
    role_model = calls.models.for_role(turn.coder)
    room_tokens = (
        prompt_room_tokens(role_model, calls.settings.model.context_tokens) or tuning.DEFAULT_CONTEXT_TOKENS
    )
    question = ModelQuestion(
        role=turn.coder,
        messages=(),
        prompt=calls.prompts.load("agent").hash,
        sampling=Sampling(
            temperature=turn.move.temperature,
            max_tokens=role_model.max_tokens,
            index=turn.move.index * turn.max_steps + len(steps),
        ),
        move="agent",
        is_retry=bool(steps),
        tools=TOOLS,
    )
    for retries in range(tuning.MAX_PROMPT_RETRIES + 1):
        # Each time that the provider calls the prompt too long, the room shrinks by a third. The factor is chosen
        # by judgement; not measured.
        messages = _build_conversation(opening, steps, int(room_tokens * (2 / 3) ** retries))
        try:
            return await ask(replace(question, messages=messages), calls)
        except ContextTooLong:
            if retries == tuning.MAX_PROMPT_RETRIES:
                raise
    raise AssertionError("unreachable")


def _build_conversation(
    opening: tuple[Message, ...], steps: Sequence[_AgentStep], room_tokens: int
) -> tuple[Message, ...]:
    """Return the messages of the next call, which have about `room_tokens` tokens at most.

    Nothing is left out while there is room, so that the provider's prompt cache stays valid. After that, the
    results of all but the last steps are left out first, and then whole steps, the oldest first.
    """
    messages = _render_steps(opening, steps, 0, without_results=False)
    for left_out in range(max(1, len(steps))):
        if estimate_tokens(messages) <= room_tokens:
            break
        messages = _render_steps(opening, steps, left_out, without_results=True)
    return messages


def _render_steps(
    opening: tuple[Message, ...], steps: Sequence[_AgentStep], left_out: int, *, without_results: bool
) -> tuple[Message, ...]:
    messages: list[Message] = []
    for number, step in enumerate(steps[left_out:], left_out + 1):
        observation = step.observation
        if without_results and number <= len(steps) - tuning.RECENT_STEPS:
            observation = f"(this result of {len(observation)} characters is not shown any more)"
        if left_out and not messages:
            observation = f"({left_out} steps before this one are not shown any more.)\n{observation}"
        messages.append(Message(role="assistant", content=step.reply))
        messages.append(Message(role="user", content=observation))
    return (*opening, *messages)


def _opening_messages(turn: AgentTurn) -> tuple[Message, ...]:
    prompt = turn.calls.prompts.load("agent")
    task = prompt.render(
        "begin",
        task=turn.briefing.render_markdown(),
        files=join_limited(sorted(turn.files), tuning.MAX_LISTED_FILES),
        tools="\n".join(f"- {tool.name}: {tool.description}" for tool in TOOLS),
        steps=str(turn.max_steps),
    )
    return (Message(role="system", content=prompt.render("system")), Message(role="user", content=task))
