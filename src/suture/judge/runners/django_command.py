"""Django's own test command, whose tests pytest runs one by one with Suture's plugin.

The command decides together with these tests: it must agree with them on the task's own files, and confirm each
candidate that passes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from suture.core.records import CheckOutcome
from suture.judge.failures import make_inconsistent_ending
from suture.judge.runners.command_line import CommandLine
from suture.judge.runners.pytest_report import PytestReport
from suture.project.languages import find_django_tests, pytest_equivalent, split_prefix
from suture.sandbox import RunResult, Sandbox, lend_pytest

TEST_COUNT = re.compile(rb"^Ran (\d{1,9}) tests? in ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class DjangoCommand:
    """The user's command `manage.py test`, and the pytest command that runs the same tests.

    Attributes:
        line: The user's command.
        pytest_line: The pytest command, with an interpreter that has pytest.
        base: The result of the user's command on the task's own files.
    """

    line: CommandLine
    pytest_line: CommandLine
    sandbox: Sandbox
    base: RunResult

    @classmethod
    async def try_base(cls, line: CommandLine, sandbox: Sandbox) -> DjangoCommand | None:
        """Run the user's command on the task's own files; `None` if it is not Django's, or pytest cannot run it."""
        pytest_line = _make_pytest_line(line)
        if pytest_line is None:
            return None
        base = await sandbox.run(line.request(line.task.files))
        return cls(line=line, pytest_line=pytest_line, sandbox=sandbox, base=base)

    def copy_with_line(self, line: CommandLine) -> DjangoCommand:
        """Return the same command for another line; the result on the task's own files stays known."""
        return replace(self, line=line, pytest_line=_make_pytest_line(line) or self.pytest_line)

    def agrees_with(self, result: RunResult, report: PytestReport) -> bool:
        """Return whether pytest found and judged the tests as the user's command did."""
        count = TEST_COUNT.search(self.base.stderr)
        if count is not None and int(count[1]) != len(report.items) and not report.uncollectable:
            return False
        return (self.base.status == "ok") == (result.status == "ok")

    async def confirm(
        self, files: Mapping[str, bytes], outcomes: Iterable[CheckOutcome]
    ) -> list[CheckOutcome]:
        """Return a failure of the whole command if it fails although all of its tests pass."""
        if any(outcome.status not in ("passed", "skipped") for outcome in outcomes):
            return []
        result = await self.sandbox.run(self.line.request(files))
        if result.status == "ok":
            return []
        fact = make_inconsistent_ending(self.line.shown, result, call=self.line.shown)
        return [
            CheckOutcome(
                check_id=self.line.shown, status="error", evidence="exit_status", counterexample=fact
            )
        ]


def _make_pytest_line(line: CommandLine) -> CommandLine | None:
    command = line.task.test_command
    interpreter = lend_pytest(line.interpreter)
    argv = pytest_equivalent(command)
    if interpreter is None or argv is None or find_django_tests(split_prefix(command)[1]) is None:
        return None
    return replace(line, task=replace(line.task, test_command=argv), interpreter=interpreter)
