"""The ReAct loop: a model chooses a tool, sees its result, and continues, up to a number of steps.

The caller passes the tools and the function that asks the model.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.agents.prompting.fitting import PromptDraft, PromptPart
from suture.agents.prompting.prompt_parts import fence_python
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tuning import MAX_CONSECUTIVE_MALFORMED, MAX_OBSERVATION_CHARS
from suture.core.ledger.kinds import ToolStep
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.statement_edits import is_valid_python

DONE = "done"
"""The action of a model that needs no more tools."""
LINE_START, LABEL_END = r"^[\s>*_`#-]*", r"[\s*_`]*[:=][\s*_]*"
"""Marks of Markdown that may surround a label such as `TOOL:`."""
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
    """Return the first action of a reply. Text after it is ignored: there the model invents the tool's result."""
    lines = text.split("\n")
    number, match = find_first_match(TOOL_LINE, lines)
    if match is None:
        raise MalformedReply(f"there is no line `TOOL:` with one of {', '.join(sorted(tools))}, {DONE}")
    tool = match[1].lower()
    if tool == DONE:
        return ToolAction(tool=DONE)
    if tool not in tools:
        raise MalformedReply(f"there is no tool {match[1]!r}, only {', '.join(sorted(tools))}, {DONE}")
    return _read_input(tool, match[2] or "", lines[number + 1 :])


def find_first_match(pattern: re.Pattern[str], lines: Sequence[str]) -> tuple[int, re.Match[str] | None]:
    """Return `(index, match)` of the first line that matches; `(number of lines, None)` if none does."""
    matches = ((number, match) for number, line in enumerate(lines) if (match := pattern.match(line)))
    return next(matches, (len(lines), None))


def _read_input(tool: str, in_brackets: str, below: list[str]) -> ToolAction:
    """Return the action of a tool whose input is in brackets, as in `TOOL: f(x)`, or in the lines below."""
    below = below[: find_first_match(NEXT_LABEL, below)[0]]
    number, match = find_first_match(INPUT_LINE, below)
    blocks = [block.code for block in fenced_blocks("\n".join(below)) if block.may_be_code]
    input_text = in_brackets
    if match is not None:
        all_lines = "\n".join([match[1], *below[number + 1 :]])
        input_text = all_lines if not blocks and is_valid_python(all_lines) else match[1]
    return ToolAction(tool=tool, input=_strip_quotes(input_text), code=blocks[0] if blocks else "")


def _strip_quotes(text: str) -> str:
    """Return the input without quotes around all of it."""
    text = text.strip()
    for mark in ("`", '"', "'"):
        if len(text) > 1 and text[0] == text[-1] == mark and mark not in text[1:-1]:
            return text[1:-1].strip()
    return text if text.strip("`") else ""


MAX_RECORDED_REPLY_CHARS = 200
"""Characters of a malformed reply that its step records. Chosen by judgement; not measured."""

AskDraft = Callable[[PromptDraft], Awaitable[Reply]]
"""Fits a prompt and asks the role's model. Its exceptions end the loop, except `MalformedReply`."""


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool that a model may use.

    Attributes:
        usage: The tool's input and result in words, for the prompt.
        run: Returns the result in words; so is a fault in the input, which raises no exception.
    """

    name: str
    usage: str
    run: Callable[[ToolAction], Awaitable[str]]


OnStep = Callable[[ToolStep], None]
"""Called after each step, for example to record it in the ledger."""


@dataclass(frozen=True, kw_only=True)
class ToolLoopResult:
    """The steps of a loop, and why it ended.

    Attributes:
        ending: The model said `done` or the goal was reached; the maximum of `steps` was reached; an action
            was `repeated`; or too many consecutive replies were `malformed`.
    """

    steps: tuple[ToolStep, ...]
    ending: Literal["done", "steps", "repeated", "malformed"]


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
) -> ToolLoopResult:
    """Let a model use tools until it is done, repeats itself, or reaches the maximum number of steps.

    Args:
        draft_for: Returns the prompt after the steps so far.
        fallback: Returns the action that a reply without a tool means, or `None`.
        initial_actions: Actions before the first reply; they do not count towards `max_steps`.
        is_done: Returns whether the goal is reached; called after each step.
    """
    tool_by_name = {tool.name: tool for tool in tools}
    steps: list[ToolStep] = []
    executed_actions: set[str] = set()

    def record(step: ToolStep) -> None:
        steps.append(step)
        if on_step is not None:
            on_step(step)

    async def execute(action: ToolAction, *, chosen: bool) -> None:
        result = (await tool_by_name[action.tool].run(action)).strip() or "(nothing)"
        step = ToolStep(
            number=len(steps) + 1,
            tool=action.tool,
            input=action.input,
            observation=cut_middle(result, MAX_OBSERVATION_CHARS),
            code=action.code,
            chosen=chosen,
        )
        record(step)
        executed_actions.add(_action_key(action))

    for action in initial_actions:
        await execute(action, chosen=False)
    consecutive_malformed = 0
    for _ in range(max_steps):
        text = ""
        try:
            text = (await ask(draft_for(steps))).text
            action = _choose_action(text, tool_by_name, fallback)
        except MalformedReply as fault:
            start = text[:MAX_RECORDED_REPLY_CHARS]
            record(ToolStep(number=len(steps) + 1, tool="", input=start, observation=fault.message))
            consecutive_malformed += 1
            if consecutive_malformed == MAX_CONSECUTIVE_MALFORMED:
                return ToolLoopResult(steps=tuple(steps), ending="malformed")
            continue
        consecutive_malformed = 0
        if action.tool == DONE or _action_key(action) in executed_actions:
            return ToolLoopResult(steps=tuple(steps), ending="done" if action.tool == DONE else "repeated")
        await execute(action, chosen=True)
        if is_done():
            return ToolLoopResult(steps=tuple(steps), ending="done")
    return ToolLoopResult(steps=tuple(steps), ending="steps")


def _action_key(action: ToolAction) -> str:
    """Return a string that is equal for actions that differ only in white space."""
    return "".join(f"{action.tool}:{action.input}{action.code}".split())


def _choose_action(
    text: str, tools: Collection[str], fallback: Callable[[str], ToolAction | None]
) -> ToolAction:
    try:
        return read_action(text, tools)
    except MalformedReply:
        action = fallback(text)
        if action is None:
            raise
        return action


def cut_middle(text: str, max_chars: int) -> str:
    """Return a string without its middle if it is too long."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return f"{text[:half]}\n... {len(text) - max_chars} characters are cut ...\n{text[-half:]}"


def render_tools(tools: Sequence[AgentTool]) -> str:
    """Return the tools as a prompt lists them."""
    return "\n".join(f"- {tool.name}: {tool.usage}" for tool in tools)


def steps_part(steps: Sequence[ToolStep]) -> PromptPart:
    """Return the steps so far, oldest first; each is a piece."""
    pieces = list(map(_render_step, steps))
    return PromptPart(pieces=pieces, before="\nWhat you did so far:\n\n", separator="\n\n", after="\n")


def _render_step(step: ToolStep) -> str:
    if not step.tool:
        return f"Your reply could not be used: {step.observation}"
    code = f"\n{fence_python(step.code)}" if step.code.strip() else ""
    return f"TOOL: {step.tool}\nINPUT: {step.input.strip()}{code}\nRESULT:\n{step.observation}"
