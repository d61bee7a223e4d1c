"""The one command of an agent's reply: a tool and what is given to it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from suture.errors import MalformedReply
from suture.models import Tool
from suture.roles.replies.actions import GIVEN, NAMED, NEXT
from suture.roles.replies.edit_blocks import HEAD
from suture.roles.replies.fenced import fenced_blocks

TOOLS = (
    Tool(
        name="shell",
        description="runs a command in the project's folder; shows its exit code and what it prints",
        inputs={"command": "for sh; may have several lines"},
    ),
    Tool(
        name="list_files",
        description="shows the paths of all files, or of those below a folder: `INPUT: folder`",
        inputs={"path": "of the folder; empty for all"},
    ),
    Tool(
        name="read_file",
        description="shows a file, or some of its lines: `INPUT: path` or `INPUT: path:10-40`",
        inputs={"path": "of the file, with `:10-40` behind it for some of its lines"},
    ),
    Tool(
        name="create_file",
        description="writes a new file: `INPUT: path`, and below it a block with its whole content",
        inputs={"path": "of the file, which must not be there yet", "content": "all of it"},
    ),
    Tool(
        name="edit",
        description="changes files by search/replace blocks",
        inputs={
            "path": "of the file",
            "search": "whole lines as they are in the file, once in it; empty for a new file",
            "replace": "the lines that take their place",
        },
    ),
    Tool(
        name="search",
        description="shows the lines of all files that hold a text: `INPUT: some text`",
        inputs={"text": "what to look for, as it is"},
    ),
    Tool(
        name="run_tests",
        description="runs the tests that decide, on your changes; shows what fails",
        inputs={},
    ),
    Tool(name="submit", description="hands your changes in as they are", inputs={}),
)
ALSO_CALLED = {"read": "read_file"}
NAMES = tuple(tool.name for tool in TOOLS)
SHELLS = ("sh", "bash", "shell", "console", "zsh")
LONGEST_COMMAND = 8000
LONGEST_FILE = 40_000
"""Characters of a new file, with its path."""


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
            raise MalformedReply(f"your reply names no tool: write `TOOL:` and one of {', '.join(NAMES)}")
        return _bounded("shell", block.code)
    tool = ALSO_CALLED.get(named[1].lower(), named[1].lower())
    if tool not in NAMES:
        raise MalformedReply(f"there is no tool {named[1][:40]!r}, only {', '.join(NAMES)}")
    called = _called(lines[(at or 0) + 1 :])
    if called is not None:
        return _bounded(tool, called)
    if tool == "edit":
        return Command(tool=tool, given="\n".join(lines[(at or 0) + 1 :]))
    below = lines[(at or 0) + 1 :]
    if tool == "create_file":
        path = _path(below) or named[2] or ""
        if not path:
            raise MalformedReply("create_file needs a path: `INPUT: path`, and below it a block")
        content = _input(below)
        return _bounded(tool, f"{path}\n{content if content != path else ''}")  # no block: an empty file
    return _bounded(tool, _input(below) or (named[2] or ""))


def up_to_its_end(text: str) -> str:
    """A reply up to the end of its first command: small models go on with results that they make up."""
    lines = text.split("\n")
    named = [number for number, line in enumerate(lines) if NAMED.match(line)]
    return "\n".join(lines[: named[1]]).rstrip() if len(named) > 1 else text


def _bounded(tool: str, given: str) -> Command:
    given = given.strip()
    most = LONGEST_FILE if tool == "create_file" else LONGEST_COMMAND
    if len(given) > most:
        raise MalformedReply(f"the input has {len(given)} characters, and may have {most}")
    return Command(tool=tool, given=given)


def _called(below: list[str]) -> str | None:
    """The inputs of a call, which come as JSON, as a reply writes them out; `None` where there is none."""
    found = next((match for line in below if (match := GIVEN.match(line))), None)
    try:
        given = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        return None
    if {"path", "search", "replace"} <= set(given):
        path, search, replace = (given[name].strip("\n") for name in ("path", "search", "replace"))
        return "\n".join(
            part for part in (path, "<<<<<<< SEARCH", search, "=======", replace, ">>>>>>> REPLACE") if part
        )
    if {"path", "content"} <= set(given):  # in this order, whichever order they came in
        return f"{given['path']}\n{given['content']}"
    return "\n".join(given.values())


def _path(below: list[str]) -> str:
    """What stands behind `INPUT:`, where a block below it holds the rest."""
    found = next((match for line in below if (match := GIVEN.match(line))), None)
    return found[1].strip().strip("`") if found else ""


def _input(below: list[str]) -> str:
    """What stands behind `INPUT:`, or in the block below the tool."""
    end = next((number for number, line in enumerate(below) if NEXT.match(line)), len(below))
    below = below[:end]
    blocks = fenced_blocks("\n".join(below))
    if blocks:
        return blocks[0].code
    found = next((match for line in below if (match := GIVEN.match(line))), None)
    return found[1].strip().strip("`") if found else ""
