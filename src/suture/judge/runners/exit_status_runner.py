"""A test command that is judged as a whole, by its exit status."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, VerdictNote
from suture.errors import UsageError
from suture.judge.failures import decode_output, make_ending_failure, make_failure
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.run_inputs import RunInputs
from suture.project.languages import LANGUAGES, bypass_npm
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox

NPM_BANNER_RE = re.compile(rb"\A(?:\s*> [^\n]*\n)*")
"""The lines that npm prints before a script begins."""
NUMBER_RE = re.compile(rb"\d+")
"""Times and other numbers differ between two runs of the same code."""
CANNOT_START_CODES = (126, 127)
"""Exit codes of a shell, and of the sandbox, for a program that cannot be started."""

NO_TESTS_TEXTS = (b"Ran 0 tests", b"NO TESTS RAN")
"""What unittest prints when it runs no tests."""
LOAD_FAILURE = b"_FailedTest"
"""The class that unittest puts in place of a module that it cannot load."""
TEST_COUNT_RE = re.compile(rb"^Ran (\d{1,9}) tests? in ", re.MULTILINE)
SKIP_COUNT_RE = re.compile(rb"^(?:OK|FAILED) \(.*?skipped=(\d{1,9})", re.MULTILINE)


class ExitStatusRunner:
    """Runs a command whose exit status is its only result.

    Args:
        base: The result of the *base run*, a run on the task's own files, if there was one.
    """

    def __init__(self, line: CommandLine, sandbox: Sandbox, base: RunResult | None = None) -> None:
        self._line = line
        self._sandbox = sandbox
        self._base = base
        self._inputs = RunInputs(line.task)
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
        files = self._line.task.files
        result = await self._sandbox.run(self._line.link_packages(self._line.request(files, watched=files)))
        if result.exit_code in CANNOT_START_CODES:
            await self._require_program()
            self._line.refuse_start(result)
        if self._is_unittest and any(text in result.stdout + result.stderr for text in NO_TESTS_TEXTS):
            raise UsageError(
                f"{self._line.shown!r} runs no tests", remedy="name a test module or folder in the command"
            )
        self._base = result

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run the command on a project's files, or return the base run if the files are the task's own."""
        base = self._base
        if is_base and base is not None:
            result = base
        else:
            request = self._line.request(files, watched=self._inputs.files)
            result = await self._sandbox.run(self._line.link_packages(request))
        weaker_run = None
        if result.status == "ok" and not is_base:
            weaker_run = self._inputs.find_change(self._line.shown, result, base)
        if result.status == "ok" and base is not None and weaker_run is None:
            weaker_run = self._explain_fewer_tests(result, base)
        return CommandRun(
            outcomes=(self._make_outcome(result, weaker_run),),
            output=decode_output(result),
            notes=(VerdictNote(code="exit_status_only", subjects=(self._line.shown,)),),
            wall_s=result.wall_s,
        )

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run the command outside of a verdict.

        Args:
            tests: Ids of the tests of interest. The command cannot select tests, so it runs whole.
        """
        if self._trial_argv is None:
            self._trial_argv, trial = await self._find_trial_argv()
            if trial is not None and dict(files) == dict(self._line.task.files):
                return (self._make_outcome(trial),)
        request = self._request(files, self._trial_argv, wall_s)
        return (self._make_outcome(await self._sandbox.run(self._line.link_packages(request))),)

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
        """Return (argv, result): the arguments of a trial run, and the result of trying them if they were tried.

        Trial runs skip npm, which takes a while to start, if the task's own files then print the same.
        """
        task, base = self._line.task, self._base
        full_argv = tuple(self._line.request(task.files).argv)
        direct_argv = bypass_npm(task.test_command, task.files)
        # Only a base run that completed and failed has an output to compare with.
        if direct_argv is None or base is None or base.status != "failed":
            return full_argv, None
        trial = await self._sandbox.run(self._line.link_packages(self._request(task.files, direct_argv)))
        output, base_output = (
            NUMBER_RE.sub(b"", NPM_BANNER_RE.sub(b"", run.stdout)).strip() for run in (trial, base)
        )
        is_equal = trial.exit_code == base.exit_code and output == base_output != b""
        return (direct_argv, trial) if is_equal else (full_argv, None)

    def _make_outcome(self, result: RunResult, weaker_run: Counterexample | None = None) -> CheckOutcome:
        """Return the outcome of the command as a whole."""
        status: CheckStatus = "passed" if result.status == "ok" and weaker_run is None else "failed"
        if result.status == "timeout":
            status = "timeout"
        command, counterexample = self._line.shown, None
        if status != "passed":
            counterexample = weaker_run or make_ending_failure(command, result, call=command)
        return CheckOutcome(
            check_id=command, status=status, evidence="exit_status", counterexample=counterexample
        )

    def _explain_fewer_tests(self, result: RunResult, base: RunResult) -> Counterexample | None:
        """Return why a success decides less than the base run; `None` if it does not."""
        if self._is_unittest:
            return self._explain_fewer_unittests(result, base)
        ran, base_ran = self._count_tests(result), self._count_tests(base)
        return self._make_fewer_tests(ran, base_ran) if ran < base_ran else None

    def _explain_fewer_unittests(self, result: RunResult, base: RunResult) -> Counterexample | None:
        """Return why a success of unittest decides less than the base run; `None` if it does not."""
        (ran, skipped), (base_ran, base_skipped) = _count_unittests(result), _count_unittests(base)
        # A module that cannot be loaded counts as one test, whatever it contains. So the base run says neither how
        # many tests have to run nor how many may be skipped: it is enough that one runs and is not skipped.
        if LOAD_FAILURE in base.stderr:
            base_ran, base_skipped = 1, max(base_skipped, ran - 1)
        if ran < base_ran:
            return self._make_fewer_tests(ran, base_ran)
        command = self._line.shown
        return make_failure(command, "skipped_by_code", call=command) if skipped > base_skipped else None

    def _make_fewer_tests(self, ran: int, expected: int) -> Counterexample:
        command = self._line.shown
        return make_failure(command, "fewer_tests", call=command, ran=ran, expected=expected)

    def _count_tests(self, result: RunResult) -> int:
        """Return how many tests ran; 0 if the output does not say."""
        total = 0
        for match in LANGUAGES[self._line.task.language].test_count_pattern.finditer(result.stdout):
            # A pattern without groups matches once for each test.
            total += int(next(group for group in match.groups() if group)) if match.groups() else 1
        return total

    @property
    def _is_unittest(self) -> bool:
        return "unittest" in self._line.task.test_command

    async def _require_program(self) -> None:
        request = self._line.request(self._line.task.files)
        find_program = ("/bin/sh", "-c", 'command -v -- "$1"', "sh", request.argv[0])
        result = await self._sandbox.run(replace(request, argv=find_program))
        if result.status == "failed":
            reason = f"there is no program {request.argv[0]!r}"
            raise UsageError(
                f"the test command {self._line.shown!r} cannot start: {reason}",
                remedy="write it as you would run it in the project's folder",
            )


def _count_unittests(result: RunResult) -> tuple[int, int]:
    """Return (ran, skipped): how many tests unittest ran, and how many of them it skipped."""
    ran, skipped = TEST_COUNT_RE.findall(result.stderr), SKIP_COUNT_RE.findall(result.stderr)
    return int(ran[-1]) if ran else 0, int(skipped[-1]) if skipped else 0
