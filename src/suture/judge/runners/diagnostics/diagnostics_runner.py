"""Commands of linters, type checkers and compilers, whose diagnostics are checks.

A diagnostic of the task's own files is a check that fails until the diagnostic is gone; a diagnostic that only a
candidate has is a new check that fails. Lines move, so diagnostics are distinguished by their file, rule and message,
and by the function around them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from suture.core.records import CheckOutcome, Counterexample, Task, VerdictNote
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge.failures import decode_output, make_ending_failure, make_failure
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.diagnostics.lent_programs import find_ruff
from suture.judge.runners.exit_status_runner import CANNOT_START_CODES
from suture.judge.sandbox_programs import drop_private_files
from suture.project.languages import Interpreter, find_working_folder
from suture.project.languages.diagnostics import (
    Diagnostic,
    ToolCommand,
    ToolOutput,
    find_enclosing_definition,
    find_new_suppressions,
    require_tool,
)
from suture.project.languages.diagnostics.reports import read_report
from suture.project.workspace import decode_text
from suture.sandbox import BOX, Mount, RunRequest, RunResult, Sandbox

LENT_PROGRAMS = "/lent"
"""Where the sandbox mounts a program of the user's that the project's environment lacks."""
STUBS = (".pyi", ".d.ts", ".d.mts", ".d.cts")
SUPPRESSION_CHECK = "no rule is switched off"
MAX_NAMED_SUPPRESSIONS = 5


@dataclass(frozen=True, kw_only=True)
class ToolRun:
    """One run of a tool.

    Attributes:
        diagnostics: Id of the check -> the diagnostic that it reports.
    """

    result: RunResult
    diagnostics: Mapping[str, Diagnostic]


@dataclass(frozen=True, kw_only=True)
class PreparedTool:
    """A tool that runs on the task's own files.

    Attributes:
        line: Builds the requests of its runs.
        base: Its run on the task's own files.
    """

    command: ToolCommand
    line: CommandLine
    base: ToolRun

    @property
    def fix_commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands by which what the tool reports is repaired; none if it reports nothing."""
        reported = self.base.diagnostics.values()
        return self.command.make_fix_commands(reported) if reported else ()


class DiagnosticsRunner:
    """Runs the tools of a task and judges candidates by their diagnostics.

    Args:
        tools: The tools, in the order of the user's command.
    """

    def __init__(self, task: Task, sandbox: Sandbox, tools: Sequence[PreparedTool]) -> None:
        self._task = task
        self._sandbox = sandbox
        self.tools = tuple(tools)

    @classmethod
    async def prepare(
        cls, task: Task, sandbox: Sandbox, settings: SandboxSettings, interpreter: Interpreter
    ) -> DiagnosticsRunner:
        """Return the runner after a run of each tool on the task's own files.

        Raises:
            UsageError: A tool does not start, or fails without a diagnostic.
        """
        tools = []
        for argv in task.tools:
            command = require_tool(argv)
            line = CommandLine(
                task=replace(task, test_command=argv), settings=settings, interpreter=interpreter
            )
            base = await run_tool(command, line, sandbox, task.files)
            _require_report(command, line, base)
            tools.append(PreparedTool(command=command, line=line, base=base))
        return cls(task, sandbox, tools)

    @property
    def checks_types(self) -> bool:
        """Whether one of the tools is a type checker."""
        return any(tool.command.tool.is_type_checker for tool in self.tools)

    @property
    def messages(self) -> tuple[str, ...]:
        """What the tools report on the task's own files."""
        return tuple(found.message for tool in self.tools for found in tool.base.diagnostics.values())

    @property
    def reported_files(self) -> frozenset[str]:
        """The files that have a diagnostic before any change."""
        return frozenset(found.file for tool in self.tools for found in tool.base.diagnostics.values())

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the tools on a project's files, and return an outcome for each diagnostic that is there or was.

        That no rule is switched off is a check too. The task's own files pass it, so that a change which silences a
        tool counts as a step back, however many diagnostics are gone.
        """
        is_base = dict(files) == dict(self._task.files)
        outcomes: list[CheckOutcome] = []
        outputs: list[str] = []
        wall_s = 0.0
        for tool in self.tools:
            run = tool.base if is_base else await run_tool(tool.command, tool.line, self._sandbox, files)
            outcomes += _make_outcomes(tool, run)
            outputs.append(decode_output(run.result))
            wall_s += run.result.wall_s
        outcomes.append(_check_suppressions(self._task.files, files))
        names = tuple(" ".join(tool.line.task.test_command) for tool in self.tools)
        return CommandRun(
            outcomes=tuple(outcomes),
            output="\n".join(filter(None, outputs)),
            notes=(VerdictNote(code="diagnostics", subjects=names),),
            wall_s=wall_s,
        )


async def run_tool(
    command: ToolCommand, line: CommandLine, sandbox: Sandbox, files: Mapping[str, bytes]
) -> ToolRun:
    """Run a tool on a project's files. It reports, and changes nothing."""
    request = make_tool_request(command, line, files, command.make_report_command())
    result = await sandbox.run(request)
    output = ToolOutput(
        stdout=result.stdout.decode("utf-8", "replace"),
        stderr=result.stderr.decode("utf-8", "replace"),
        root=BOX,
        folder=find_working_folder(line.task.test_command),
    )
    found = read_report(command.tool.read, output)
    if any(diagnostic.is_error for diagnostic in found):
        found = tuple(diagnostic for diagnostic in found if diagnostic.is_error)
    elif result.status == "ok" and command.tool.reports_by_status:
        found = ()  # only warnings, with which the user's command succeeds
    return ToolRun(result=result, diagnostics=_name_diagnostics(command.tool.name, found, files))


def make_tool_request(
    command: ToolCommand, line: CommandLine, files: Mapping[str, bytes], argv: tuple[str, ...]
) -> RunRequest:
    """Return the sandbox request of a run of a tool."""
    line = replace(line, task=replace(line.task, test_command=argv))
    request = line.request(drop_private_files(files))
    if command.tool.name.startswith("pre-commit"):
        request = _add_repository(request)
    lent = find_ruff(line.interpreter) if "ruff" in argv else None
    if lent is not None and str(lent.parent) != line.environment()["PATH"].split(":")[0]:
        mount = Mount(source=str(lent), target=f"{LENT_PROGRAMS}/ruff")
        path = f"{request.env['PATH']}:{LENT_PROGRAMS}"
        request = replace(request, mounts=(*request.mounts, mount), env={**request.env, "PATH": path})
    return line.link_packages(request)


MAKE_REPOSITORY = 'git init -q . && git add -A -f . && exec "$@"'
"""A shell script that makes the project's folder a repository, as pre-commit needs it, and runs a command."""


def _add_repository(request: RunRequest) -> RunRequest:
    return replace(request, argv=("/bin/sh", "-c", MAKE_REPOSITORY, "sh", *request.argv))


def _name_diagnostics(
    tool: str, found: Sequence[Diagnostic], files: Mapping[str, bytes]
) -> dict[str, Diagnostic]:
    """Return the diagnostics by the ids of their checks. Equal ones in one function are numbered."""
    counts: Counter[str] = Counter()
    texts: dict[str, str] = {}
    named: dict[str, Diagnostic] = {}
    for diagnostic in found:
        path = diagnostic.file
        if path not in texts:
            texts[path] = decode_text(files.get(path, b""))
        around = find_enclosing_definition(path, texts[path], diagnostic.line)
        place = f" (in {around})" if around else ""
        name = f"{path or '.'}::{tool} {diagnostic.code}: {diagnostic.lasting_message}{place}"
        counts[name] += 1
        named[name if counts[name] == 1 else f"{name} #{counts[name]}"] = diagnostic
    return named


def _require_report(command: ToolCommand, line: CommandLine, base: ToolRun) -> None:
    result = base.result
    if result.exit_code in CANNOT_START_CODES:
        program = command.program[-1]
        shown = shutil.which(program)
        where = f"; {shown!r} is on your PATH, outside of that environment" if shown else ""
        raise UsageError(
            f"{line.shown!r} cannot start: there is no {program!r} in the project's environment{where}",
            remedy="install it there, as your pipeline does",
        )
    if result.status not in ("ok", "timeout") and not base.diagnostics:
        line.refuse_start(result)


def _make_outcomes(tool: PreparedTool, run: ToolRun) -> list[CheckOutcome]:
    outcomes = [_make_outcome(name, None) for name in tool.base.diagnostics if name not in run.diagnostics]
    outcomes += [_make_outcome(name, _make_fact(name, found)) for name, found in run.diagnostics.items()]
    command = tool.line.shown
    if run.result.status == "timeout":
        ending = make_ending_failure(command, run.result, call=command)
        outcomes.append(replace(_make_outcome(command, ending), status="timeout"))
    elif not run.diagnostics:
        has_failed = run.result.status != "ok"
        fact = make_ending_failure(command, run.result, call=command) if has_failed else None
        outcomes.append(_make_outcome(command, fact))
    return outcomes


def _make_fact(name: str, diagnostic: Diagnostic) -> Counterexample:
    return Counterexample(
        check_id=name,
        exception=f"{diagnostic.code}: {diagnostic.message}",
        file=diagnostic.file,
        line=diagnostic.line or None,
        code="diagnostic",
    )


def _make_outcome(name: str, fact: Counterexample | None) -> CheckOutcome:
    return CheckOutcome(
        check_id=name,
        status="passed" if fact is None else "failed",
        provenance="tool",
        evidence="report",
        counterexample=fact,
    )


def _check_suppressions(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> CheckOutcome:
    """Return whether a change leaves all rules on; the fact names what switches one off, and the first such file."""
    found: list[tuple[str, str]] = []
    for path, content in after.items():
        if before.get(path) == content:
            continue
        added = find_new_suppressions(decode_text(before.get(path, b"")), decode_text(content))
        if path not in before and path.endswith(STUBS):
            added = ("a new stub file", *added)  # type checkers read it in place of the code
        found += ((path, text) for text in added)
    if not found:
        return _make_outcome(SUPPRESSION_CHECK, None)
    names = ", ".join(text for _, text in found[:MAX_NAMED_SUPPRESSIONS])
    return _make_outcome(
        SUPPRESSION_CHECK, make_failure(SUPPRESSION_CHECK, "suppressed", file=found[0][0], names=names)
    )
