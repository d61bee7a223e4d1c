"""Let linters and formatters repair what they report, inside the sandbox; what they change is a candidate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from suture.judge.protected_files import find_protected_files
from suture.judge.runners.diagnostics.diagnostics_runner import PreparedTool, make_tool_request
from suture.judge.suite import Suite
from suture.project.languages import is_source
from suture.project.languages.diagnostics import UNSAFE_OPTIONS
from suture.project.workspace import decode_text, overlay_candidate


@dataclass(frozen=True, kw_only=True)
class ToolFix:
    """What the tools of a task changed.

    Attributes:
        files: The changed files, path -> text.
        commands: The commands that changed them, as words.
    """

    files: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]

    @property
    def label(self) -> str:
        """The commands, for people."""
        return " && ".join(map(" ".join, self.commands))

    @property
    def unsafe_commands(self) -> tuple[str, ...]:
        """The commands among them with fixes that may change what the code does, for people."""
        return tuple(" ".join(argv) for argv in self.commands if UNSAFE_OPTIONS & {*argv})


async def collect_tool_fixes(suite: Suite, files: Mapping[str, bytes]) -> AsyncIterator[ToolFix]:
    """Yield what the tools' own fixes change in a project, the safest fixes first; nothing if they change nothing.

    The tools run one after the other, each on what the one before left. Files that no candidate may write stay.

    Args:
        suite: The suite with the tools.
        files: The project's files, path -> content.
    """
    tools = suite.diagnostics.tools if suite.diagnostics is not None else ()
    levels = max((len(tool.fix_commands) for tool in tools), default=0)
    earlier: list[Mapping[str, str]] = []
    for level in range(levels):
        fixed: dict[str, str] = {}
        used: list[tuple[str, ...]] = []
        for tool in tools:
            commands = tool.fix_commands
            if not commands:
                continue
            argv = commands[min(level, len(commands) - 1)]
            changed = await _run_fix(tool, argv, overlay_candidate(files, fixed), suite)
            if changed:
                fixed |= changed
                used.append(argv)
        if fixed and fixed not in earlier:
            earlier.append(fixed)
            yield ToolFix(files=fixed, commands=tuple(used))


async def _run_fix(
    tool: PreparedTool, argv: tuple[str, ...], files: Mapping[str, bytes], suite: Suite
) -> dict[str, str]:
    """Return the allowed files that one run of a fix changes."""
    reported = {diagnostic.file for diagnostic in tool.base.diagnostics.values()}
    # A hook may change files without naming them.
    wanted = [
        path
        for path in files
        if path in reported or ("" in reported and is_source(path, suite.task.language))
    ]
    request = replace(make_tool_request(tool.command, tool.line, files, argv), collect=tuple(wanted))
    result = await suite.sandbox.run(request)
    changed = {
        path: decode_text(content)
        for path, content in result.files.items()
        if path in files and content != files[path]
    }
    protected = find_protected_files(changed, suite)
    return {path: text for path, text in changed.items() if path not in protected}
