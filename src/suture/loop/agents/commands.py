"""The one command of an agent's reply: a tool and what is given to it."""

from __future__ import annotations

from dataclasses import dataclass

from suture.errors import MalformedReply
from suture.roles.replies.actions import GIVEN, NAMED, NEXT
from suture.roles.replies.edit_blocks import HEAD
from suture.roles.replies.fenced import fenced_blocks

TOOLS = {
    "shell": "runs a command in the project's folder; shows its exit code and what it prints",
    "read": "shows a file, or some of its lines: `INPUT: path` or `INPUT: path:10-40`",
    "edit": "changes files by search/replace blocks",
    "search": "shows the lines of all files that hold a text: `INPUT: some text`",
    "run_tests": "runs the tests that decide, on your changes; shows what fails",
    "submit": "hands your changes in as they are",
}
"""Name -> what it does, for the prompt."""
SHELLS = ("sh", "bash", "shell", "console", "zsh")
LONGEST_COMMAND = 8000


@dataclass(frozen=True, kw_only=True)
class Command:
    """What an agent wants done: one of `TOOLS`, and its input; of an edit, the whole reply."""

    tool: str
    given: str = ""


def read_command(text: str) -> Command:
    """The first command of a reply; what follows it is a guess at what the tool would say.

    A reply that names no tool means the shell where it holds a block for one, and an edit where it holds
    search/replace blocks.

    Args:
        text: The reply's text.

    Raises:
        MalformedReply: It names no tool, or one that there is not, or is too long.
    """
    lines = up_to_its_end(text).split("\n")
    at = next((number for number, line in enumerate(lines) if NAMED.match(line)), None)
    edits = any(HEAD.match(line.rstrip("\r")) for line in lines)
    named = NAMED.match(lines[at]) if at is not None else None
    if named is None:
        if edits:
            return Command(tool="edit", given=text)
        block = next(
            (b for b in fenced_blocks(text) if b.info.split()[:1] and b.info.split()[0] in SHELLS), None
        )
        if block is None:
            raise MalformedReply(f"your reply names no tool: write `TOOL:` and one of {', '.join(TOOLS)}")
        return _bounded("shell", block.code)
    tool = named[1].lower()
    if tool not in TOOLS:
        raise MalformedReply(f"there is no tool {named[1][:40]!r}, only {', '.join(TOOLS)}")
    if tool == "edit":
        return Command(tool=tool, given="\n".join(lines[(at or 0) + 1 :]))
    return _bounded(tool, _input(lines[(at or 0) + 1 :]) or (named[2] or ""))


def up_to_its_end(text: str) -> str:
    """A reply up to the end of its first command: small models go on with results that they make up."""
    lines = text.split("\n")
    named = [number for number, line in enumerate(lines) if NAMED.match(line)]
    return "\n".join(lines[: named[1]]).rstrip() if len(named) > 1 else text


def _bounded(tool: str, given: str) -> Command:
    given = given.strip()
    if len(given) > LONGEST_COMMAND:
        raise MalformedReply(f"the input has {len(given)} characters, and may have {LONGEST_COMMAND}")
    return Command(tool=tool, given=given)


def _input(below: list[str]) -> str:
    """What stands behind `INPUT:`, or in the block below the tool."""
    end = next((number for number, line in enumerate(below) if NEXT.match(line)), len(below))
    below = below[:end]
    blocks = fenced_blocks("\n".join(below))
    if blocks:
        return blocks[0].code
    found = next((match for line in below if (match := GIVEN.match(line))), None)
    return found[1].strip().strip("`") if found else ""
