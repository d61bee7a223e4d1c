"""A test command that is judged as a whole, by its exit status."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, VerdictNote
from suture.errors import UsageError
from suture.judge.failures import decode_output, make_ending_failure, make_failure
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.project.languages import LANGUAGES, bypass_npm
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox

NPM_BANNER = re.compile(rb"\A(?:\s*> [^\n]*\n)*")
"""The lines that npm prints before a script begins."""
NUMBERS = re.compile(rb"\d+")
"""Times and other numbers differ between two runs of the same code."""
CANNOT_START = (126, 127)
"""Exit codes of a shell, and of the sandbox, for a program that cannot be started."""

NO_TESTS = (b"Ran 0 tests", b"NO TESTS RAN")
"""What unittest prints when it runs no tests."""
UNLOADABLE = b"_FailedTest"
RAN_RE = re.compile(rb"^Ran (\d+) tests? in ", re.MULTILINE)
SKIPPED_RE = re.compile(rb"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)


class ExitStatusRunner:
    """Runs a command whose exit status is its only result.

    Args:
        line: The test command.
        sandbox: Runs the command.
        base: The result of a run on the task's own files, if there was one.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox, base: RunResult | None = None) -> None:
        self._line = line
        self._sandbox = sandbox
        self._base = base
        self._trial_argv: tuple[str, ...] | None = None
        """The arguments that start a trial run, once they are known."""

    def copy_with_line(self, line: CommandLine) -> ExitStatusRunner:
        """Return the same runner for another command line; the base run stays known."""
        return ExitStatusRunner(line, self._sandbox, self._base)

    async def try_base(self) -> None:
        """Run the command on the task's own files: it must start, and unittest must find tests.

        Raises:
            UsageError: The command does not start, or it runs no tests.
        """
        result = await self._sandbox.run(self._line.launched(self._line.request(self._line.task.files)))
        if result.exit_code in CANNOT_START:
            await self._require_program()
            self._line.refuse_start(result)
        if self._is_unittest and any(text in result.stdout + result.stderr for text in NO_TESTS):
            raise UsageError(
                f"{self._line.shown!r} runs no tests", remedy="name a test module or folder in the command"
            )
        self._base = result

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run the command on a project's files, or return the base run if the files are the task's own.

        Raises:
            SandboxError: The sandbox failed.
        """
        base = self._base
        if is_base and base is not None:
            result = base
        else:
            result = await self._sandbox.run(self._line.launched(self._line.request(files)))
        idle: Counterexample | None = None
        if result.status == "ok" and base is not None and self._is_unittest:
            idle = self._explain_fewer_unittests(result, base)
        elif result.status == "ok" and base is not None:
            idle = self._explain_fewer_tests(result, base)
        return CommandRun(
            outcomes=(self._outcome(result, idle),),
            output=decode_output(result),
            notes=(VerdictNote(code="exit_status_only", subjects=(self._line.shown,)),),
            wall_s=result.wall_s,
        )

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run the command outside of a verdict.

        Args:
            files: The project's files.
            tests: Ids of the tests of interest. The command cannot select tests, so it runs whole.
            wall_s: The time limit in seconds; the setting `test_timeout_s` by default.

        Raises:
            SandboxError: The sandbox failed.
        """
        if self._trial_argv is None:
            self._trial_argv, tried = await self._find_trial_argv()
            if tried is not None and dict(files) == dict(self._line.task.files):
                return (self._outcome(tried),)
        request = self._request(files, self._trial_argv, wall_s)
        return (self._outcome(await self._sandbox.run(self._line.launched(request))),)

    def _request(
        self, files: Mapping[str, bytes], argv: tuple[str, ...], wall_s: float | None = None
    ) -> RunRequest:
        request = self._line.request(files, wall_s=wall_s)
        if argv == request.argv:
            return request
        # npm puts the programs of the project's packages first on the path.
        folder = LANGUAGES[self._line.task.language].packages
        path = f"{BOX}/{folder}/.bin:/{folder}/.bin:{request.env.get('PATH', '')}"
        return replace(request, argv=argv, env={**request.env, "PATH": path})

    async def _find_trial_argv(self) -> tuple[tuple[str, ...], RunResult | None]:
        """Return the arguments of a trial run, and the result of trying them if they were tried.

        A trial skips npm if the unchanged code then prints the same. The attempt is a run of the task's own
        files, so its result is returned too.
        """
        task, base = self._line.task, self._base
        whole = tuple(self._line.request(task.files).argv)
        quick = bypass_npm(task.test_command, task.files)
        if quick is None or base is None or base.status != "failed":
            return whole, None
        tried = await self._sandbox.run(self._line.launched(self._request(task.files, quick)))
        output, base_output = (
            NUMBERS.sub(b"", NPM_BANNER.sub(b"", run.stdout)).strip() for run in (tried, base)
        )
        agrees = tried.exit_code == base.exit_code and output == base_output != b""
        return (quick, tried) if agrees else (whole, None)

    def _outcome(self, result: RunResult, idle: Counterexample | None = None) -> CheckOutcome:
        """Return the outcome of the command as a whole; `idle` says why its tests did not run."""
        status: CheckStatus = "passed" if result.status == "ok" and idle is None else "failed"
        if result.status == "timeout":
            status = "timeout"
        shown, fact = self._line.shown, None
        if status != "passed":
            fact = idle or make_ending_failure(shown, result, call=shown)
        return CheckOutcome(check_id=shown, status=status, evidence="exit_status", counterexample=fact)

    def _explain_fewer_unittests(self, result: RunResult, base: RunResult) -> Counterexample | None:
        """Return why a success of unittest decides less than the base run; `None` if it does not."""
        (ran, skipped), (base_ran, base_skipped) = _count_unittests(result), _count_unittests(base)
        if UNLOADABLE in base.stderr:  # a module that cannot be loaded counts as one test
            base_ran, base_skipped = 1, max(base_skipped, ran - 1)
        if ran < base_ran:
            return self._fewer_tests(ran, base_ran)
        shown = self._line.shown
        return make_failure(shown, "skipped_by_code", call=shown) if skipped > base_skipped else None

    def _explain_fewer_tests(self, result: RunResult, base: RunResult) -> Counterexample | None:
        """Return why a success decides less than the base run; `None` if it does not."""
        ran, base_ran = self._count_tests(result), self._count_tests(base)
        return self._fewer_tests(ran, base_ran) if ran < base_ran else None

    def _fewer_tests(self, ran: int, expected: int) -> Counterexample:
        shown = self._line.shown
        return make_failure(shown, "fewer_tests", call=shown, ran=ran, expected=expected)

    def _count_tests(self, result: RunResult) -> int:
        """Return how many tests ran; 0 if the output does not say."""
        total = 0
        for match in LANGUAGES[self._line.task.language].test_count_pattern.finditer(result.stdout):
            total += int(next(group for group in match.groups() if group)) if match.groups() else 1
        return total

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


def _count_unittests(result: RunResult) -> tuple[int, int]:
    """Return how many tests of unittest ran, and how many it skipped."""
    ran, skipped = RAN_RE.findall(result.stderr), SKIPPED_RE.findall(result.stderr)
    return int(ran[-1]) if ran else 0, int(skipped[-1]) if skipped else 0
