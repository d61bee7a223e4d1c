"""A test command that is not pytest: judged as a whole, by its exit status."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Language
from suture.errors import UsageError
from suture.judge.failures import render_run_ending, get_last_line, decode_output
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.project.languages import LANGUAGES, without_npm
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox

BANNER = re.compile(rb"\A(?:\s*> [^\n]*\n)*")
"""What npm prints before a script begins."""
DIGITS = re.compile(rb"\d+")
"""What may differ between two runs of one code: times, mostly."""
CANNOT_START = (126, 127)
"""What a shell, and our wall, exit with where a program cannot be started."""


class PlainCommand:
    """A command whose exit status is its verdict.

    Args:
        line: The command.
        sandbox: The wall.
        base: How it ended on the task's own files, where that is known.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox, base: RunResult | None = None) -> None:
        self._line = line
        self._sandbox = sandbox
        self._base = base
        self._quick: tuple[str, ...] | None = None
        """How a trial is started, once that is known."""

    def within(self, line: CommandLine) -> PlainCommand:
        """The same with other limits; how it ended on the task's own files stays known."""
        return PlainCommand(line, self._sandbox, self._base)

    async def try_out(self) -> None:
        """Run it on the task's own files: it must start, and unittest must find something.

        Raises:
            UsageError: It does not start, or runs no tests.
        """
        result = await self._sandbox.run(self._line.launched(self._line.request(self._line.task.files)))
        if result.exit_code in CANNOT_START:
            await self._require_program()
            self._line.refuse_start(result)
        if self._is_unittest and any(said in result.stdout + result.stderr for said in NO_TESTS):
            raise UsageError(
                f"{self._line.shown!r} runs no tests", remedy="name a test module or folder in the command"
            )
        self._base = result

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run it on a project's files; on the task's own ones the first run answers.

        Raises:
            SandboxError: The wall failed.
        """
        base = self._base
        if is_base and base is not None:
            result = base
        else:
            result = await self._sandbox.run(self._line.launched(self._line.request(files)))
        idle = ""
        if result.status == "ok" and base is not None and self._is_unittest:
            idle = kept_from_running(result, base)
        elif result.status == "ok" and base is not None:
            idle = fewer_ran(result, base, self._line.task.language)
        return CommandRun(
            outcomes=(self._outcome(result, idle),),
            output=decode_output(result),
            notes=(f"{self._line.shown!r} is judged by its exit status alone",),
            wall_s=result.wall_s,
        )

    async def run_some(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run it to learn about it; no verdict is made of it.

        Args:
            files: A project.
            tests: Ids, of which it knows none: it runs whole.
            wall_s: The most seconds; the settings' `test_wall_s` where it is left out.

        Raises:
            SandboxError: The wall failed.
        """
        if self._quick is None:
            self._quick, tried = await self._quick_argv()
            if tried is not None and dict(files) == dict(self._line.task.files):
                return (self._outcome(tried),)
        request = self._request(files, self._quick, wall_s)
        return (self._outcome(await self._sandbox.run(self._line.launched(request))),)

    def _request(
        self, files: Mapping[str, bytes], argv: tuple[str, ...], wall_s: float | None = None
    ) -> RunRequest:
        request = self._line.request(files, wall_s=wall_s)
        if argv == request.argv:
            return request
        # As npm has it: the programs of the project's packages first.
        folder = LANGUAGES[self._line.task.language].packages
        path = f"{BOX}/{folder}/.bin:/{folder}/.bin:{request.env.get('PATH', '')}"
        return replace(request, argv=argv, env={**request.env, "PATH": path})

    async def _quick_argv(self) -> tuple[tuple[str, ...], RunResult | None]:
        """How trials start the command: without npm, where the unchanged code then says the same.

        What it said is answered too: it is a run of the task's own files.
        """
        task, base = self._line.task, self._base
        whole = tuple(self._line.request(task.files).argv)
        quick = without_npm(task.test_command, task.files)
        if quick is None or base is None or base.status != "failed":
            return whole, None
        tried = await self._sandbox.run(self._line.launched(self._request(task.files, quick)))
        said, before = (DIGITS.sub(b"", BANNER.sub(b"", run.stdout)).strip() for run in (tried, base))
        agrees = tried.exit_code == base.exit_code and said == before != b""
        return (quick, tried) if agrees else (whole, None)

    def _outcome(self, result: RunResult, idle: str = "") -> CheckOutcome:
        """The outcome of the command as a whole; `idle` says what kept its tests from running."""
        status: CheckStatus = "passed" if result.status == "ok" and not idle else "failed"
        if result.status == "timeout":
            status = "timeout"
        fact, shown = None, self._line.shown
        if status != "passed":
            why = idle or f"{render_run_ending(result)}: {get_last_line(result)}".rstrip(": ")
            fact = Counterexample(check_id=shown, call=shown, exception=why)
        return CheckOutcome(check_id=shown, status=status, evidence="exit_status", counterexample=fact)

    @property
    def _is_unittest(self) -> bool:
        return "unittest" in self._line.task.test_command

    async def _require_program(self) -> None:
        request = self._line.request(self._line.task.files)
        look = ("/bin/sh", "-c", 'command -v -- "$1"', "sh", request.argv[0])
        result = await self._sandbox.run(replace(request, argv=look))
        if result.status == "failed":
            why = f"there is no program {request.argv[0]!r}"
            raise UsageError(
                f"the test command {self._line.shown!r} cannot start: {why}",
                remedy="write it as you would run it in the project's folder",
            )


NO_TESTS = (b"Ran 0 tests", b"NO TESTS RAN")
"""Of unittest."""
UNLOADABLE = b"_FailedTest"
RAN_RE = re.compile(rb"^Ran (\d+) tests? in ", re.MULTILINE)
SKIPPED_RE = re.compile(rb"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)


def kept_from_running(result: RunResult, base: RunResult) -> str:
    """Why a success of unittest decides less than the run before; empty where it does not."""
    (ran, skipped), (ran_before, skipped_before) = _unittest_counts(result), _unittest_counts(base)
    if UNLOADABLE in base.stderr:  # a module that could not be loaded counts as one test
        ran_before, skipped_before = 1, max(skipped_before, ran - 1)
    if ran < ran_before:
        return f"only {ran} of {ran_before} tests ran"
    return "skipped by the code under test" if skipped > skipped_before else ""


def _unittest_counts(result: RunResult) -> tuple[int, int]:
    ran, skipped = RAN_RE.findall(result.stderr), SKIPPED_RE.findall(result.stderr)
    return int(ran[-1]) if ran else 0, int(skipped[-1]) if skipped else 0


def fewer_ran(result: RunResult, base: RunResult, language: Language) -> str:
    """Why a success decides less than the run before; empty where it does not."""
    ran, before = _total(result.stdout, language), _total(base.stdout, language)
    return f"only {ran} of {before} tests ran" if ran < before else ""


def _total(output: bytes, language: Language) -> int:
    """How many ran; 0 where the output does not tell."""
    total = 0
    for match in LANGUAGES[language].ran.finditer(output):
        total += int(next(group for group in match.groups() if group)) if match.groups() else 1
    return total
