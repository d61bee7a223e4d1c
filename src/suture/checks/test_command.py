"""The user's test command: pytest with a signed report, anything else by its exit status."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources

from suture.checks.programs import PRIVATE, program_limits, without_private
from suture.checks.pytest_report import PytestReport, outcome_of, read_report, tests_written_in
from suture.errors import UsageError
from suture.languages import Interpreter, is_pytest_command, program_environment, resolve_command
from suture.records import CheckOutcome, CheckStatus, Counterexample, Task
from suture.sandbox import BOX, RunRequest, RunResult, Sandbox, interpreter_mounts
from suture.settings import SandboxSettings

__all__ = ["CommandRun", "TestCommand"]

PLUGIN = "suture_report"
REPORT = f"{PRIVATE}/report"
PRELOAD = """
import os, sys
import pytest
sys.stdout = open(os.devnull, "w")
try:
    pytest.main("-q -s -p no:cacheprovider --rootdir=/etc -c /dev/null --collect-only /etc/hosts".split())
finally:
    sys.stdout = sys.__stdout__
"""
"""Import pytest and its plugins the way pytest itself does; nothing is collected."""
NOT_FOUND = 127
NO_TESTS = 5
LONGEST_OUTPUT = 8000
IN_PROCESS = "pytest ran in the candidate's own process: code that forges the signed report is not ruled out"


@dataclass(frozen=True, kw_only=True)
class CommandRun:
    """What one run of the test command said."""

    outcomes: tuple[CheckOutcome, ...]
    output: str
    notes: tuple[str, ...] = ()


class TestCommand:
    """A task's test command behind the wall.

    Args:
        task: A task with a test command.
        sandbox: The wall.
        settings: Its limits.
        interpreter: What `python` means in the command.
    """

    __test__ = False  # pytest must not collect it

    def __init__(
        self, task: Task, sandbox: Sandbox, settings: SandboxSettings, interpreter: Interpreter
    ) -> None:
        self._task = task
        self._sandbox = sandbox
        self._settings = settings
        self.interpreter = interpreter
        self.is_pytest = is_pytest_command(task.test_command)
        self._shown = " ".join(task.test_command)
        self._expected: tuple[str, ...] = ()

    async def collect(self) -> None:
        """Learn, before any candidate is there, which tests must be reported.

        Raises:
            UsageError: The command cannot start, or there are no tests.
        """
        if not self.is_pytest:
            await self._require_program()
            return
        result, report = await self._pytest(self._task.files, {"PYTEST_ADDOPTS": "--collect-only"})
        self._require_start(result)
        if report.exit_code is None and not report.items and not report.uncollectable:
            self._refuse_start(result)
        written = [
            test
            for path in report.uncollectable
            for test in tests_written_in(path, self._task.files.get(path, b""))
        ]
        self._expected = (*report.items, *written)
        if not self._expected:
            raise UsageError(
                f"{self._shown!r} collects no tests", remedy="name a test file or folder in the command"
            )

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Run the command on a project's files.

        Raises:
            UsageError: The command cannot start.
        """
        if not self.is_pytest:
            return await self._plain(files)
        result, report = await self._pytest(files, {})
        self._require_start(result)
        outcomes = [*self._reported(report, result), *self._missing(report, result)]
        outcomes += self._disagreement(result, outcomes)
        return CommandRun(outcomes=tuple(outcomes), output=_output(result), notes=(IN_PROCESS,))

    def _reported(self, report: PytestReport, result: RunResult) -> list[CheckOutcome]:
        outcomes = [outcome_of(test, phases) for test, phases in report.phases.items()]
        last = report.started[-1] if report.started else None
        if last is None or report.exit_code is not None:
            return outcomes
        # Pytest did not get to its end: the test that ran then is what ended it.
        status: CheckStatus = "timeout" if result.status == "timeout" else "error"
        why = f"no end within {self._settings.test_wall_s:g} s" if status == "timeout" else _ending(result)
        culprit = CheckOutcome(
            check_id=last,
            status=status,
            evidence="nonce",
            counterexample=Counterexample(check_id=last, exception=why),
        )
        before = [outcome for outcome in outcomes if outcome.check_id != last]
        own = [o for o in outcomes if o.check_id == last and o.status in ("passed", "failed", "skipped")]
        return [*before, *(own or [culprit])]

    def _missing(self, report: PytestReport, result: RunResult) -> list[CheckOutcome]:
        seen = set(report.phases) | set(report.started)
        plain = {test.partition("[")[0] for test in seen}
        missing = [test for test in self._expected if test not in seen and test not in plain]
        outcomes: list[CheckOutcome] = []
        for test in missing:
            path = test.partition("::")[0]
            complaint = report.uncollectable.get(path, "").strip()
            fact = _collect_fault(test, complaint) if complaint else None
            if fact is None and not outcomes:  # one fact is enough: it is the same for all of them
                fact = Counterexample(check_id=test, exception=f"pytest never ran it ({_ending(result)})")
            status: CheckStatus = "error" if complaint else "missing"
            outcomes.append(CheckOutcome(check_id=test, status=status, evidence="nonce", counterexample=fact))
        return outcomes

    def _disagreement(self, result: RunResult, outcomes: Iterable[CheckOutcome]) -> list[CheckOutcome]:
        if result.status == "ok" or any(o.status not in ("passed", "skipped") for o in outcomes):
            return []
        fact = Counterexample(
            check_id=self._shown, call=self._shown, exception=f"{_ending(result)} though no test failed"
        )
        return [CheckOutcome(check_id=self._shown, status="error", evidence="nonce", counterexample=fact)]

    async def _pytest(
        self, files: Mapping[str, bytes], extra: Mapping[str, str]
    ) -> tuple[RunResult, PytestReport]:
        key = secrets.token_bytes(32)
        plugin = resources.files("suture.checks").joinpath("report_plugin.py").read_bytes()
        environment = self._environment()
        paths = (environment.get("PYTHONPATH"), f"{BOX}/{PRIVATE}")
        options = f"-p {PLUGIN} -p no:cacheprovider {self._unwanted()} {extra.get('PYTEST_ADDOPTS', '')}"
        result = await self._sandbox.run(
            self._request(
                {**without_private(files), f"{PRIVATE}/{PLUGIN}.py": plugin},
                {
                    **environment,
                    "PYTHONPATH": ":".join(path for path in paths if path),
                    "PYTEST_ADDOPTS": options.strip(),
                },
                stdin=f"{BOX}/{REPORT}\n{key.hex()}".encode("ascii"),
            )
        )
        return result, read_report(result.files.get(REPORT, b""), key)

    def _unwanted(self) -> str:
        """A plugin in Suture's own environment that costs seconds, and that no project asked for."""
        return "-p no:langsmith_plugin" if self.interpreter.prefix == sys.prefix else ""

    async def _plain(self, files: Mapping[str, bytes]) -> CommandRun:
        result = await self._sandbox.run(self._request(files, self._environment()))
        self._require_start(result)
        status: CheckStatus = "passed" if result.status == "ok" else "failed"
        if result.status == "timeout":
            status = "timeout"
        fact = None
        if status != "passed":
            tail = _output(result).strip().splitlines()[-1:] or [""]
            fact = Counterexample(
                check_id=self._shown, call=self._shown, exception=f"{_ending(result)}: {tail[0]}".rstrip(": ")
            )
        outcome = CheckOutcome(
            check_id=self._shown, status=status, evidence="exit_status", counterexample=fact
        )
        return CommandRun(
            outcomes=(outcome,),
            output=_output(result),
            notes=(f"{self._shown!r} is judged by its exit status alone",),
        )

    def _environment(self) -> dict[str, str]:
        return {**program_environment(self.interpreter, BOX), "PYTHONDONTWRITEBYTECODE": "1"}

    def _request(
        self, files: Mapping[str, bytes], environment: Mapping[str, str], stdin: bytes = b""
    ) -> RunRequest:
        return RunRequest(
            argv=resolve_command(self._task.test_command, self.interpreter),
            files=files,
            preload=PRELOAD if self.is_pytest else "",
            stdin=stdin,
            env=environment,
            mounts=interpreter_mounts(self.interpreter),
            limits=program_limits(self._settings, self._settings.test_wall_s),
            collect=(REPORT,) if self.is_pytest else (),
        )

    async def _require_program(self) -> None:
        request = self._request(self._task.files, self._environment())
        look = ("/bin/sh", "-c", 'command -v -- "$1"', "sh", request.argv[0])
        result = await self._sandbox.run(replace(request, argv=look))
        if result.status == "failed":
            raise UsageError(
                f"the test command {self._shown!r} cannot start: there is no program {request.argv[0]!r}",
                remedy="write it as you would run it in the project's folder",
            )

    def _require_start(self, result: RunResult) -> None:
        no_pytest = b"No module named pytest" in result.stderr and result.exit_code == 1
        if result.exit_code == NOT_FOUND or no_pytest:
            self._refuse_start(result)

    def _refuse_start(self, result: RunResult) -> None:
        said = _output(result).strip().splitlines()[-1:] or [_ending(result)]
        raise UsageError(
            f"the test command {self._shown!r} cannot start: {said[0][:300]}",
            remedy=f"run it yourself in the project first; `python` means {self.interpreter.executable}",
        )


def _collect_fault(test: str, complaint: str) -> Counterexample:
    errors = [line.removeprefix("E").strip() for line in complaint.splitlines() if line.startswith("E ")]
    places = [line for line in errors if line.startswith('File "')]
    file, line = "", None
    if places:
        path, _, rest = places[-1].removeprefix('File "').partition('", line ')
        file = path.removeprefix(f"{BOX}/")
        line = int(rest) if rest.isdigit() else None
    named = [text for text in errors if ":" in text and not text.startswith("File ")]
    exception = (named or errors or complaint.splitlines())[-1]
    return Counterexample(check_id=test, exception=exception[:500], file=file, line=line)


def _ending(result: RunResult) -> str:
    if result.status == "timeout":
        return "the time was up"
    if result.signal is not None:
        return f"ended by signal {result.signal}"
    return f"exit code {result.exit_code}"


def _output(result: RunResult) -> str:
    text = (result.stdout + result.stderr).decode("utf-8", "replace")
    if len(text) <= LONGEST_OUTPUT:
        return text
    return f"{text[: LONGEST_OUTPUT // 2]}\n[...]\n{text[-LONGEST_OUTPUT // 2 :]}"
