"""The one command of an agent's reply: a tool and what is given to it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from suture.agents.replies.edit_blocks import HEAD
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tools.react_loop import GIVEN, NAMED, NEXT
from suture.errors import MalformedReply
from suture.models import Tool

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

    Raises:
        MalformedReply: It names no tool, or one that there is not, or is too long.
    """
    lines = up_to_its_end(text).split("\n")
    at = next((number for number, line in enumerate(lines) if NAMED.match(line)), None)
    named = NAMED.match(lines[at]) if at is not None else None
    if at is None or named is None:
        return _unnamed(text, lines)
    tool = ALSO_CALLED.get(named[1].lower(), named[1].lower())
    if tool not in NAMES:
        raise MalformedReply(f"there is no tool {named[1][:40]!r}, only {', '.join(NAMES)}")
    below = lines[at + 1 :]
    end = next((number for number, line in enumerate(below) if NEXT.match(line)), len(below))
    inputs = ((number, match[1]) for number, line in enumerate(below) if (match := GIVEN.match(line)))
    place, given = next(inputs, (end, ""))
    called = _called(given)
    if called is not None:
        return _bounded(tool, called)
    if tool == "edit":
        return Command(tool=tool, given="\n".join(below))
    given = given.strip().strip("`")
    block = next(iter(fenced_blocks("\n".join(below[:end]))), None)
    if tool == "create_file":
        path = given or named[2] or ""
        if not path:
            raise MalformedReply("create_file needs a path: `INPUT: path`, and below it a block")
        return _bounded(tool, f"{path}\n{block.code if block else ''}")  # no block: an empty file
    before_a_result = given if place < end else ""
    return _bounded(tool, (block.code if block else before_a_result) or named[2] or "")


def _unnamed(text: str, lines: list[str]) -> Command:
    """What a reply means that names no tool."""
    if any(HEAD.match(line.rstrip("\r")) for line in lines):
        return Command(tool="edit", given=text)
    for block in fenced_blocks(text):
        if block.info.split()[:1] and block.info.split()[0] in SHELLS:
            return _bounded("shell", block.code)
    raise MalformedReply(f"your reply names no tool: write `TOOL:` and one of {', '.join(NAMES)}")


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


def _called(inputs: str) -> str | None:
    """The inputs of a call, which come as JSON, as a reply writes them out; `None` where it is none."""
    try:
        given = json.loads(inputs)
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
