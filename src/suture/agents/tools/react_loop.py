"""The ReAct loop: a model chooses an action, sees its result, and continues, up to a number of steps.

The caller passes the function that asks the model and the tools; nothing here runs code.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_parts import fence_python
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tuning import MAX_CONSECUTIVE_MALFORMED, MAX_OBSERVATION_CHARS
from suture.core.ledger.kinds import ToolStep
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.statements import is_valid_python

DONE = "done"
"""The action of a model that needs no more tools."""
LINE_START, LABEL_END = r"^[\s>*_`#-]*", r"[\s*_`]*[:=][\s*_]*"
TOOL_LINE = re.compile(
    rf"{LINE_START}(?:tool|action){LABEL_END}[`\"']*(\w+)[`\"'*_]*(?:\((.*)\))?", re.IGNORECASE
)
INPUT_LINE = re.compile(rf"{LINE_START}(?:tool |action )?(?:input|argument)s?{LABEL_END}(.*)$", re.IGNORECASE)
NEXT_LABEL = re.compile(rf"{LINE_START}(?:tool|action|observation|result|thought){LABEL_END}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ToolAction:
    """An action that a model chose.

    Attributes:
        tool: The tool's name, or `done`.
        input: The text after `INPUT:`; empty if there is none.
        code: The code block below it; empty if there is none.
    """

    tool: str
    input: str = ""
    code: str = ""

    @property
    def content(self) -> str:
        """Return the code if there is any, else the input."""
        return self.code or self.input


def read_action(text: str, tools: Collection[str]) -> ToolAction:
    """Return the first action of a reply; what follows is a guess at the tool's result.

    Raises:
        MalformedReply: The reply names no tool, or an unknown one.
    """
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if TOOL_LINE.match(line)), None)
    if at is None:
        raise MalformedReply(f"there is no line `TOOL:` with one of {', '.join(sorted(tools))}, {DONE}")
    named = TOOL_LINE.match(lines[at])
    assert named is not None  # that is how the line was found
    tool = named[1].lower()
    if tool == DONE:
        return ToolAction(tool=DONE)
    if tool not in tools:
        raise MalformedReply(f"there is no tool {named[1]!r}, only {', '.join(sorted(tools))}, {DONE}")
    return _read_input(tool, named[2] or "", lines[at + 1 :])


def _read_input(tool: str, in_brackets: str, below: list[str]) -> ToolAction:
    end = next((number for number, line in enumerate(below) if NEXT_LABEL.match(line)), len(below))
    below = below[:end]
    at = next((number for number, line in enumerate(below) if INPUT_LINE.match(line)), None)
    blocks = [block.code for block in fenced_blocks("\n".join(below)) if block.may_be_code]
    given = in_brackets
    if at is not None and (match := INPUT_LINE.match(below[at])):
        whole = "\n".join([match[1], *below[at + 1 :]])
        given = whole if not blocks and is_valid_python(whole) else match[1]
    return ToolAction(tool=tool, input=_strip_quotes(given), code=blocks[0] if blocks else "")


def _strip_quotes(text: str) -> str:
    """Return the input without quotes around all of it."""
    text = text.strip()
    for mark in ("`", '"', "'"):
        if len(text) > 1 and text[0] == text[-1] == mark and mark not in text[1:-1]:
            return text[1:-1].strip()
    return text if text.strip("`") else ""


Ended = Literal["done", "steps", "repeated", "malformed"]
AskDraft = Callable[[PromptDraft], Awaitable[Reply]]
"""Fits a prompt and asks the role's model. Its exceptions end the loop, except `MalformedReply`."""


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool that a model may use.

    Attributes:
        name: The word that the model writes to use it.
        usage: Its input and its result, for the prompt.
        run: Runs it. A fault in the input is a result in words, not an exception.
    """

    name: str
    usage: str
    run: Callable[[ToolAction], Awaitable[str]]


OnStep = Callable[[ToolStep], None]
"""Called after each step, for example to record it in the ledger."""


@dataclass(frozen=True, kw_only=True)
class ToolTrail:
    """The steps of a loop, and why it ended.

    Attributes:
        steps: The steps, in order.
        ending: The model said `done` or the goal was reached; the maximum of `steps` was reached; an action
            was `repeated`; or too many consecutive replies were `malformed`.
    """

    steps: tuple[ToolStep, ...]
    ending: Ended

    @property
    def used_tools(self) -> bool:
        """Return whether the model used any tool."""
        return any(step.tool and step.chosen for step in self.steps)


async def run_tool_loop(
    draft_for: Callable[[Sequence[ToolStep]], PromptDraft],
    tools: Sequence[AgentTool],
    ask: AskDraft,
    *,
    max_steps: int,
    on_step: OnStep | None = None,
    fallback: Callable[[str], ToolAction | None] = lambda _: None,
    initial_actions: Sequence[ToolAction] = (),
    is_done: Callable[[], bool] = lambda: False,
) -> ToolTrail:
    """Let a model use tools until it is done, repeats itself, or reaches the maximum number of steps.

    Args:
        draft_for: Returns the prompt after the steps so far.
        tools: The tools that it may use.
        ask: Fits a prompt, sends it to the model, and returns the reply.
        max_steps: Maximum number of replies.
        on_step: Called after each step.
        fallback: Returns the action that a reply without a tool means, or `None`.
        initial_actions: Actions before the first reply; they do not count as steps.
        is_done: Whether the goal is reached; called after each step.

    Raises:
        BudgetExceeded: `ask` had no budget for another call.
        ModelError: The model failed.
        SandboxError: The sandbox of a tool failed.
    """
    known = {tool.name: tool for tool in tools}
    steps: list[ToolStep] = []
    seen: set[str] = set()

    def record(step: ToolStep) -> None:
        steps.append(step)
        if on_step is not None:
            on_step(step)

    for action in initial_actions:
        record(await _execute(action, known, len(steps) + 1, chosen=False))
        seen.add(_key(action))
    refused = 0
    for _ in range(max_steps):
        text = ""
        try:
            text = (await ask(draft_for(steps))).text
            action = _choose_action(text, known, fallback)
        except MalformedReply as fault:
            record(ToolStep(number=len(steps) + 1, tool="", input=text[:200], observation=fault.message))
            refused += 1
            if refused == MAX_CONSECUTIVE_MALFORMED:
                return ToolTrail(steps=tuple(steps), ending="malformed")
            continue
        refused = 0
        if action.tool == DONE or _key(action) in seen:
            return ToolTrail(steps=tuple(steps), ending="done" if action.tool == DONE else "repeated")
        seen.add(_key(action))
        record(await _execute(action, known, len(steps) + 1, chosen=True))
        if is_done():
            return ToolTrail(steps=tuple(steps), ending="done")
    return ToolTrail(steps=tuple(steps), ending="steps")


async def _execute(
    action: ToolAction, tools: Mapping[str, AgentTool], number: int, *, chosen: bool
) -> ToolStep:
    output = (await tools[action.tool].run(action)).strip() or "(nothing)"
    return ToolStep(
        number=number,
        tool=action.tool,
        input=action.input,
        observation=_shorten_result(output),
        code=action.code,
        chosen=chosen,
    )


def _key(action: ToolAction) -> str:
    return "".join(f"{action.tool}:{action.input}{action.code}".split())


def _choose_action(
    text: str, tools: Mapping[str, AgentTool], otherwise: Callable[[str], ToolAction | None]
) -> ToolAction:
    try:
        return read_action(text, tools)
    except MalformedReply:
        action = otherwise(text)
        if action is None:
            raise
        return action


def _shorten_result(text: str) -> str:
    if len(text) <= MAX_OBSERVATION_CHARS:
        return text
    half = MAX_OBSERVATION_CHARS // 2
    return f"{text[:half]}\n... {len(text) - MAX_OBSERVATION_CHARS} characters are cut ...\n{text[-half:]}"


def render_tools(tools: Sequence[AgentTool]) -> str:
    """Return the tools as a prompt lists them."""
    return "\n".join(f"- {tool.name}: {tool.usage}" for tool in tools)


def steps_part(steps: Sequence[ToolStep]) -> PromptPart:
    """Return the steps so far, oldest first; each is a piece."""
    pieces = [_render_step(step) for step in steps]
    return PromptPart(pieces=pieces, before="\nWhat you did so far:\n\n", separator="\n\n", after="\n")


def _render_step(step: ToolStep) -> str:
    if not step.tool:
        return f"Your reply could not be used: {step.observation}"
    code = f"\n{fence_python(step.code)}" if step.code.strip() else ""
    return f"TOOL: {step.tool}\nINPUT: {step.input.strip()}{code}\nRESULT:\n{step.observation}"
