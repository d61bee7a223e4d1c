"""One action of a model that works with tools, out of a reply of two lines and perhaps a block of code."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.agents.prompting.fitting import Draft, PromptPart
from suture.agents.prompting.prompt_parts import fenced
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.core.ledger.kinds import ToolStep
from suture.errors import MalformedReply
from suture.models import Reply
from suture.project.python_source.statements import parses

DONE = "done"
"""The action of one who needs no more tools."""
LEAD, JOINT = r"^[\s>*_`#-]*", r"[\s*_`]*[:=][\s*_]*"
NAMED = re.compile(rf"{LEAD}(?:tool|action){JOINT}[`\"']*(\w+)[`\"'*_]*(?:\((.*)\))?", re.IGNORECASE)
GIVEN = re.compile(rf"{LEAD}(?:tool |action )?(?:input|argument)s?{JOINT}(.*)$", re.IGNORECASE)
NEXT = re.compile(rf"{LEAD}(?:tool|action|observation|result|thought){JOINT}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Action:
    """What a model wants done.

    Attributes:
        tool: The tool's name, or `done`.
        input: What stands behind `INPUT:`; empty where there is nothing.
        code: The block of code below it; empty where there is none.
    """

    tool: str
    input: str = ""
    code: str = ""

    @property
    def given(self) -> str:
        """The code where there is some, else the input."""
        return self.code or self.input


def read_action(text: str, tools: Collection[str]) -> Action:
    """The first action of a reply; what follows it is a guess at what the tool would say.

    Raises:
        MalformedReply: It names no tool, or one that there is not.
    """
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if NAMED.match(line)), None)
    if at is None:
        raise MalformedReply(f"there is no line `TOOL:` with one of {', '.join(sorted(tools))}, {DONE}")
    named = NAMED.match(lines[at])
    assert named is not None  # that is how the line was found
    tool = named[1].lower()
    if tool == DONE:
        return Action(tool=DONE)
    if tool not in tools:
        raise MalformedReply(f"there is no tool {named[1]!r}, only {', '.join(sorted(tools))}, {DONE}")
    return _with_input(tool, named[2] or "", lines[at + 1 :])


def _with_input(tool: str, in_brackets: str, below: list[str]) -> Action:
    end = next((number for number, line in enumerate(below) if NEXT.match(line)), len(below))
    below = below[:end]
    at = next((number for number, line in enumerate(below) if GIVEN.match(line)), None)
    blocks = [block.code for block in fenced_blocks("\n".join(below)) if block.may_be_code]
    given = in_brackets
    if at is not None and (match := GIVEN.match(below[at])):
        whole = "\n".join([match[1], *below[at + 1 :]])
        given = whole if not blocks and parses(whole) else match[1]
    return Action(tool=tool, input=_bare(given), code=blocks[0] if blocks else "")


def _bare(text: str) -> str:
    """The input without the marks around all of it."""
    text = text.strip()
    for mark in ("`", '"', "'"):
        if len(text) > 1 and text[0] == text[-1] == mark and mark not in text[1:-1]:
            return text[1:-1].strip()
    return text if text.strip("`") else ""


Ended = Literal["done", "steps", "repeated", "malformed"]
AskDraft = Callable[[Draft], Awaitable[Reply]]
"""Fits a prompt and asks the role's model. What it raises ends the loop, but for a `MalformedReply`."""

MOST_REFUSED = 2
"""Replies in a row that are no action, before the model is taken to know none."""
MOST_SHOWN = 4000


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """Something a model may do.

    Attributes:
        name: The word by which the model calls it.
        usage: What its input is and what it shows, for the prompt.
        run: Does it. What goes wrong with the input is an answer in words, not an exception.
    """

    name: str
    usage: str
    run: Callable[[Action], Awaitable[str]]


OnStep = Callable[[ToolStep], None]
"""Told of each step when it is done, such as to write it into a ledger."""


@dataclass(frozen=True, kw_only=True)
class Trail:
    """What was done, and why it ended.

    Attributes:
        steps: The turns so far, in order.
        ended: `done` by the model's word, or because it was enough; no `steps` were left; the same action
            was `repeated`; too many replies in a row were `malformed`.
    """

    steps: tuple[ToolStep, ...]
    ended: Ended

    @property
    def acted(self) -> bool:
        """Whether the model used a tool at all."""
        return any(step.tool and step.chosen for step in self.steps)


async def act(
    draft_of: Callable[[Sequence[ToolStep]], Draft],
    tools: Sequence[AgentTool],
    ask: AskDraft,
    *,
    most_steps: int,
    on_step: OnStep | None = None,
    otherwise: Callable[[str], Action | None] = lambda _: None,
    first: Sequence[Action] = (),
    enough: Callable[[], bool] = lambda: False,
) -> Trail:
    """Let a model use tools until it is done, repeats itself, or has had its steps.

    Args:
        draft_of: The prompt after so many steps.
        tools: What it may do.
        ask: Fits a prompt and sends it to the model; answers its reply.
        most_steps: The most replies of the model.
        on_step: Told of each step.
        otherwise: What a reply means that names no tool; `None` where it means nothing.
        first: What is done before the model is asked; no steps of its own.
        enough: Whether what there is to do is done, asked after each step.

    Raises:
        BudgetExceeded: `ask` had no budget for another call.
        ModelError: The model failed.
        SandboxError: A tool's wall failed.
    """
    known = {tool.name: tool for tool in tools}
    steps: list[ToolStep] = []
    seen: set[str] = set()

    def note(step: ToolStep) -> None:
        steps.append(step)
        if on_step is not None:
            on_step(step)

    for action in first:
        note(await _done(action, known, len(steps) + 1, chosen=False))
        seen.add(_key(action))
    refused = 0
    for _ in range(most_steps):
        text = ""
        try:
            text = (await ask(draft_of(steps))).text
            action = _meant(text, known, otherwise)
        except MalformedReply as fault:
            note(ToolStep(number=len(steps) + 1, tool="", input=text[:200], observation=fault.message))
            refused += 1
            if refused == MOST_REFUSED:
                return Trail(steps=tuple(steps), ended="malformed")
            continue
        refused = 0
        if action.tool == DONE or _key(action) in seen:
            return Trail(steps=tuple(steps), ended="done" if action.tool == DONE else "repeated")
        seen.add(_key(action))
        note(await _done(action, known, len(steps) + 1, chosen=True))
        if enough():
            return Trail(steps=tuple(steps), ended="done")
    return Trail(steps=tuple(steps), ended="steps")


async def _done(action: Action, tools: Mapping[str, AgentTool], number: int, *, chosen: bool) -> ToolStep:
    output = (await tools[action.tool].run(action)).strip() or "(nothing)"
    return ToolStep(
        number=number,
        tool=action.tool,
        input=action.input,
        observation=_bounded(output),
        code=action.code,
        chosen=chosen,
    )


def _key(action: Action) -> str:
    return "".join(f"{action.tool}:{action.input}{action.code}".split())


def _meant(text: str, tools: Mapping[str, AgentTool], otherwise: Callable[[str], Action | None]) -> Action:
    try:
        return read_action(text, tools)
    except MalformedReply:
        action = otherwise(text)
        if action is None:
            raise
        return action


def _bounded(text: str) -> str:
    if len(text) <= MOST_SHOWN:
        return text
    half = MOST_SHOWN // 2
    return f"{text[:half]}\n... {len(text) - MOST_SHOWN} characters are cut ...\n{text[-half:]}"


def tools_text(tools: Sequence[AgentTool]) -> str:
    """The tools, as a prompt lists them."""
    return "\n".join(f"- {tool.name}: {tool.usage}" for tool in tools)


def steps_part(steps: Sequence[ToolStep]) -> PromptPart:
    """What was done so far, oldest first; each step is a piece."""
    pieces = [_shown(step) for step in steps]
    return PromptPart(pieces=pieces, before="\nWhat you did so far:\n\n", joint="\n\n", after="\n")


def _shown(step: ToolStep) -> str:
    if not step.tool:
        return f"Your reply could not be used: {step.observation}"
    code = f"\n{fenced(step.code)}" if step.code.strip() else ""
    return f"TOOL: {step.tool}\nINPUT: {step.input.strip()}{code}\nRESULT:\n{step.observation}"
