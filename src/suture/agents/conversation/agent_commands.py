"""The tools that an agent is offered, and the parsing of the command in its reply: a tool and its input.

The descriptions of the tools are part of the prompt.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from suture.agents.replies.edit_blocks import HEAD
from suture.agents.replies.fenced_blocks import fenced_blocks
from suture.agents.tools.react_loop import INPUT_LINE, NEXT_LABEL, TOOL_LINE, find_first_match
from suture.agents.tuning import MAX_COMMAND_CHARS, MAX_NEW_FILE_CHARS
from suture.errors import MalformedReply
from suture.models import ToolDeclaration

TOOLS = (
    ToolDeclaration(
        name="shell",
        description="runs a command in the project's folder; shows its exit code and what it prints",
        inputs={"command": "for sh; may have several lines"},
    ),
    ToolDeclaration(
        name="list_files",
        description="shows the paths of all files, or of those below a folder: `INPUT: folder`",
        inputs={"path": "of the folder; empty for all"},
    ),
    ToolDeclaration(
        name="read_file",
        description="shows a file, or some of its lines: `INPUT: path` or `INPUT: path:10-40`",
        inputs={"path": "of the file, with `:10-40` behind it for some of its lines"},
    ),
    ToolDeclaration(
        name="create_file",
        description="writes a new file: `INPUT: path`, and below it a block with its whole content",
        inputs={"path": "of the file, which must not be there yet", "content": "all of it"},
    ),
    ToolDeclaration(
        name="edit",
        description="changes files by search/replace blocks",
        inputs={
            "path": "of the file",
            "search": "whole lines as they are in the file, once in it; empty for a new file",
            "replace": "the lines that take their place",
        },
    ),
    ToolDeclaration(
        name="search",
        description="shows the lines of all files that hold a text: `INPUT: some text`",
        inputs={"text": "what to look for, as it is"},
    ),
    ToolDeclaration(
        name="run_tests",
        description="runs the tests that decide, on your changes; shows what fails",
        inputs={},
    ),
    ToolDeclaration(name="submit", description="hands your changes in as they are", inputs={}),
)
TOOL_ALIASES = {"read": "read_file"}
TOOL_NAMES = tuple(tool.name for tool in TOOLS)
SHELL_FENCES = ("sh", "bash", "shell", "console", "zsh")
"""Info strings of code blocks that hold a shell command."""


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """A tool that an agent uses, and its input; for an edit that is the text with its search/replace blocks."""

    tool: str
    input: str = ""


def parse_command(text: str) -> AgentCommand:
    """Return the first command of a reply. What follows it is a guess at the tool's result.

    A reply that names no tool means the shell if it holds a shell code block, and an edit if it holds
    search/replace blocks.
    """
    lines = cut_after_first_command(text).split("\n")
    number, tool_line = find_first_match(TOOL_LINE, lines)
    if tool_line is None:
        return _infer_command(text, lines)
    name, in_brackets = tool_line[1], tool_line[2] or ""
    tool = TOOL_ALIASES.get(name.lower(), name.lower())
    if tool not in TOOL_NAMES:
        raise MalformedReply(f"there is no tool {name[:40]!r}, only {', '.join(TOOL_NAMES)}")
    below = lines[number + 1 :]
    end, _ = find_first_match(NEXT_LABEL, below)
    input_number, input_line = find_first_match(INPUT_LINE, below)
    input_text = input_line[1] if input_line else ""
    native_inputs = _decode_json_inputs(input_text)
    if native_inputs is not None:
        return _bounded_command(tool, native_inputs)
    if tool == "edit":
        return AgentCommand(tool=tool, input="\n".join(below))
    input_text = input_text.strip().strip("`")
    block = next(iter(fenced_blocks("\n".join(below[:end]))), None)
    if tool == "create_file":
        path = input_text or in_brackets
        if not path:
            raise MalformedReply("create_file needs a path: `INPUT: path`, and below it a block")
        return _bounded_command(tool, f"{path}\n{block.code if block else ''}")  # No block: an empty file.
    inline = input_text if input_number < end else ""
    return _bounded_command(tool, (block.code if block else inline) or in_brackets)


def _infer_command(text: str, lines: list[str]) -> AgentCommand:
    """Return the command that a reply means although it names no tool."""
    if any(HEAD.match(line.rstrip("\r")) for line in lines):
        return AgentCommand(tool="edit", input=text)
    for block in fenced_blocks(text):
        if block.info.split()[:1] and block.info.split()[0] in SHELL_FENCES:
            return _bounded_command("shell", block.code)
    raise MalformedReply(f"your reply names no tool: write `TOOL:` and one of {', '.join(TOOL_NAMES)}")


def cut_after_first_command(text: str) -> str:
    """Cut a reply after its first command: small models continue with results that they make up."""
    lines = text.split("\n")
    tool_lines = [number for number, line in enumerate(lines) if TOOL_LINE.match(line)]
    return "\n".join(lines[: tool_lines[1]]).rstrip() if len(tool_lines) > 1 else text


def _bounded_command(tool: str, text: str) -> AgentCommand:
    text = text.strip()
    limit = MAX_NEW_FILE_CHARS if tool == "create_file" else MAX_COMMAND_CHARS
    if len(text) > limit:
        raise MalformedReply(f"the input has {len(text)} characters, and may have {limit}")
    return AgentCommand(tool=tool, input=text)


def _decode_json_inputs(inputs: str) -> str | None:
    """Return the JSON inputs of a native tool call as other models write them; `None` if they are not JSON."""
    try:
        values = json.loads(inputs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        return None
    if {"path", "search", "replace"} <= set(values):
        path, search, replace = (values[name].strip("\n") for name in ("path", "search", "replace"))
        return "\n".join(
            part for part in (path, "<<<<<<< SEARCH", search, "=======", replace, ">>>>>>> REPLACE") if part
        )
    if {"path", "content"} <= set(values):  # The path comes first, whatever the order of the JSON keys.
        return f"{values['path']}\n{values['content']}"
    return "\n".join(values.values())
