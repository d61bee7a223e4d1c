"""One action of a model that works with tools, out of a reply of two lines and perhaps a block of code."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from suture.agents.replies.fenced import fenced_blocks
from suture.errors import MalformedReply
from suture.project.python_source.python_code import parses

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
