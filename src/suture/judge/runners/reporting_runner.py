"""A test command in another language than Python whose runner reports on each test."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Evidence, VerdictNote
from suture.judge.failures import (
    decode_output,
    get_last_line,
    make_failure,
    make_inconsistent_ending,
    render_run_ending,
)
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.signed_lines import verified_events
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.judge.tuning import MAX_MACHINERY_NAME_CHARS
from suture.project.languages import (
    LANGUAGES,
    Report,
    ReportedTest,
    Runner,
    RunnerOutput,
    add_report_arguments,
    find_runner,
)
from suture.project.workspace import is_test_file
from suture.sandbox import BOX, RunResult, Sandbox

REPORT = f"{PRIVATE_FOLDER}/report"
FOLDER = f"{BOX}/{PRIVATE_FOLDER}"
REPORTERS = "suture.project.languages.reporters"


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """One run: how it ended, and what its runner reported."""

    result: RunResult
    report: Report
    vouches: bool = False
    """Whether a test program itself confirmed that its tests came to their end, or that one failed."""


class ReportingRunner:
    """Runs a command whose test runner reports on each test.

    Args:
        line: The test command.
        sandbox: Runs the command.
        runner: The test runner that the command starts.
        base: The run on the task's own files, if there was one.
        vouching: Files with which the test programs confirm their own results; empty if they do not.
    """

    def __init__(
        self,
        line: CommandLine,
        sandbox: Sandbox,
        runner: Runner,
        base: ReportedRun | None = None,
        vouching: Mapping[str, bytes] | None = None,
    ) -> None:
        self._line = line
        self._sandbox = sandbox
        self._runner = runner
        self._base = base
        self._vouching = vouching or {}

    @classmethod
    async def try_base(cls, line: CommandLine, sandbox: Sandbox) -> ReportingRunner | None:
        """Return the runner after a run on the task's own files, or `None` if nothing reports on its tests.

        Raises:
            SandboxError: The sandbox failed.
        """
        runner = find_runner(line.task.test_command, line.task.files, line.task.language)
        if runner is None:
            return None
        toolchain = line.interpreter.toolchain
        vouching = (
            runner.attestation
            if runner.attestation and runner.attestation.supports_command(line.shown)
            else None
        )
        own = vouching.files(toolchain.program, FOLDER) if vouching and toolchain else {}
        command = cls(line, sandbox, runner, vouching=own)
        base = await command._run(line.task.files)
        if own and not base.vouches and not await command._vouches():
            own = {}
            base = await cls(line, sandbox, runner)._run(line.task.files)
        return cls(line, sandbox, runner, base, own) if base.report.tests or _was_silent(base) else None

    async def _vouches(self) -> bool:
        """Whether a probe program of ours confirms its result; a program that does not build cannot tell."""
        vouching = self._runner.attestation
        assert vouching is not None
        task = replace(self._line.task, files=vouching.probe, test_command=vouching.probe_command)
        probe = ReportingRunner(
            replace(self._line, task=task), self._sandbox, self._runner, vouching=self._vouching
        )
        return (await probe._run(task.files)).vouches

    @property
    def test_files(self) -> tuple[str, ...]:
        """The project's files that hold the tests, as far as the report names them."""
        files = self._line.task.files
        owners = {test.id.partition("::")[0] for test in self._base.report.tests} if self._base else set()
        if self._is_silent:
            endings = LANGUAGES[self._line.task.language].extensions
            owners = {path for path in files if path.endswith(endings) and is_test_file(path)}
        return tuple(sorted(owners & files.keys()))

    def copy_with_line(self, line: CommandLine) -> ReportingRunner:
        """Return the same runner for another command line; the base run stays known."""
        return ReportingRunner(line, self._sandbox, self._runner, self._base, self._vouching)

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run the command on a project's files, or return the base run if the files are the task's own.

        Raises:
            SandboxError: The sandbox failed.
        """
        ran = self._base if is_base and self._base is not None else await self._run(files)
        runner = (self._runner.name,)
        notes = [VerdictNote(code="signed_report" if self._signed else "unsigned_report", subjects=runner)]
        if self._runner.watches_state and self._unwatched(ran):
            notes.append(VerdictNote(code="unwatched_runner", subjects=runner))
        return CommandRun(
            outcomes=self._outcomes(ran),
            output=decode_output(ran.result),
            notes=tuple(notes),
            wall_s=ran.result.wall_s,
        )

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run the command outside of a verdict, and return the outcomes of some of its tests.

        Args:
            files: The project's files.
            tests: Ids of the tests of interest; empty for all. The command runs whole.
            wall_s: The time limit in seconds; the setting `test_timeout_s` by default.

        Raises:
            SandboxError: The sandbox failed.
        """
        outcomes = self._outcomes(await self._run(files, wall_s))
        return tuple(outcome for outcome in outcomes if not tests or outcome.check_id in tests)

    async def _run(self, files: Mapping[str, bytes], wall_s: float | None = None) -> ReportedRun:
        key, folder, runner = secrets.token_bytes(32), FOLDER, self._runner
        own = drop_private_files(files)
        reporters = resources.files(REPORTERS)
        vouching = runner.attestation if self._vouching else None
        tokens = vouching.tokens(own) if vouching else {}
        beside = {name: reporters.joinpath(name).read_bytes() for name in runner.reporters}
        beside |= {**self._vouching, **tokens}
        asking = vouching.environment(folder) if vouching else runner.environment(folder)
        parameters = {"report": f"{BOX}/{REPORT}", "key": key.hex()} if runner.signed else None
        request = self._line.request(
            {**own, **{f"{PRIVATE_FOLDER}/{name}": content for name, content in beside.items()}},
            {**self._line.environment(), **asking},
            stdin=json.dumps(parameters).encode("ascii") if parameters else b"",
            wall_s=wall_s,
            collect=(REPORT,) if self._signed else (),
        )
        argv = add_report_arguments(request.argv, runner.arguments(folder))
        result = await self._sandbox.run(self._line.launched(replace(request, argv=argv)))
        written = result.files.get(REPORT, b"")
        report = runner.read(
            RunnerOutput(
                stdout=result.stdout,
                stderr=result.stderr,
                events=() if vouching else tuple(verified_events(written, key)),
                files=own,
                root=BOX,
                attested=vouching.read(written, {*tokens.values()}) if vouching else None,
            )
        )
        if report.printed is not None:
            result = replace(result, stdout=report.printed)
        return ReportedRun(result=result, report=report, vouches=bool(vouching and written))

    def _outcomes(self, ran: ReportedRun) -> tuple[CheckOutcome, ...]:
        """Return an outcome for each reported or missing test, and one for an inconsistent exit status."""
        shown = self._line.shown
        tests = {test.id: test for test in ran.report.tests}
        base_skipped = {test.id for test in self._expected() if test.status == "skipped"}
        outcomes = [
            self._outcome(test, ran, base_skipped)
            for test in _drop_groups(tests, self._runner.group_separator)
        ]
        files = {name.partition("::")[0] for name in tests if "::" in name}
        for test in self._expected():
            if test.id not in tests and not ("::" not in test.id and test.id in files):
                outcomes.append(self._make_missing(test.id, ran, with_fact=all(o.passed for o in outcomes)))
        if ran is not self._base:
            outcomes += self._find_machinery_changes(ran)
        if ran.result.status == "ok" and ran.report.has_finished:
            return tuple(outcomes) or (self._fail("missing", make_failure(shown, "no_tests_reported")),)
        if all(outcome.status in ("passed", "skipped") for outcome in outcomes):
            outcomes.append(self._fail("error", make_inconsistent_ending(shown, ran.result)))
        return tuple(outcomes)

    def _find_machinery_changes(self, ran: ReportedRun) -> list[CheckOutcome]:
        """Return a failure for each test file that was not watched, or whose test machinery was changed."""
        before = self._base.report.changed_state if self._base else {}
        own = frozenset[str]().union(*before.values())
        faults = []
        for file in sorted(get_reported_files(ran.report) - self._unwatched(ran)):
            names = ran.report.changed_state.get(file)
            if names is None:
                faults.append(self._fail("error", make_failure(file, "machinery_unwatched")))
            elif changed := sorted(name for name in names - own if not self._is_replaced_by_tests(name)):
                fact = make_failure(file, "machinery_changed", name=changed[0][:MAX_MACHINERY_NAME_CHARS])
                faults.append(self._fail("error", fact))
        return faults

    def _unwatched(self, ran: ReportedRun) -> frozenset[str]:
        return find_unwatched_files(self._base.report if self._base else None, ran.report)

    def _is_replaced_by_tests(self, name: str) -> bool:
        """Whether the user's tests replace this name; some tests get that far only with correct code."""
        return any(is_replaced_in(text, name) for text in self._test_texts)

    @cached_property
    def _test_texts(self) -> tuple[str, ...]:
        files = self._line.task.files
        paths = [path for path in files if is_test_file(path) or path in self.test_files]
        return tuple(files[path].decode("utf-8", "replace") for path in paths)

    def _expected(self) -> tuple[ReportedTest, ...]:
        tests = self._base.report.tests if self._base else ()
        return tuple(_drop_groups({test.id: test for test in tests}, self._runner.group_separator))

    def _outcome(self, test: ReportedTest, ran: ReportedRun, base_skipped: Collection[str]) -> CheckOutcome:
        base_ran = {one.id for one in self._expected()} - {*base_skipped}
        if test.status == "skipped" and test.id in base_ran:
            return self._fail("failed", make_failure(test.id, "skipped_by_code"))
        if test.status != "failed":
            # Only the exit status of a file without reported tests is known: it may have skipped its tests.
            is_bare = self._is_silent and "::" not in test.id
            evidence: Evidence = "exit_status" if is_bare else self._evidence
            return CheckOutcome(check_id=test.id, status=test.status, evidence=evidence)
        error_line = LANGUAGES[self._line.task.language].error_pattern
        printed = next(
            (line for line in decode_output(ran.result).splitlines() if error_line.search(line)), ""
        )
        fact = Counterexample(
            check_id=test.id,
            expected=test.expected,
            actual=test.actual,
            exception="" if test.actual else test.message or printed.strip() or get_last_line(ran.result),
            file=test.file,
            line=test.line,
        )
        return CheckOutcome(check_id=test.id, status="failed", evidence=self._evidence, counterexample=fact)

    def _make_missing(self, test: str, ran: ReportedRun, *, with_fact: bool) -> CheckOutcome:
        if ran.result.status == "timeout":
            return self._fail("timeout", make_failure(test, "test_timeout", seconds=ran.result.wall_s))
        ending = render_run_ending(ran.result)
        fact = make_failure(test, "not_reported", runner=self._runner.name, ending=ending)
        return self._fail("missing", fact if with_fact else None, check_id=test)

    def _fail(self, status: CheckStatus, fact: Counterexample | None, check_id: str = "") -> CheckOutcome:
        test = fact.check_id if fact is not None else check_id
        return CheckOutcome(check_id=test, status=status, evidence=self._evidence, counterexample=fact)

    @property
    def _evidence(self) -> Evidence:
        return "nonce" if self._signed else "report"

    @property
    def _is_silent(self) -> bool:
        """Whether the run on the task's own files was stopped before it reported any test."""
        return self._base is not None and not self._base.report.tests

    @property
    def _signed(self) -> bool:
        return self._runner.signed or bool(self._vouching)


def _was_silent(ran: ReportedRun) -> bool:
    """Whether the runner began and was stopped before its first test ended."""
    return ran.result.status == "timeout" and ran.report.has_started and not ran.report.tests


def _drop_groups(tests: Mapping[str, ReportedTest], mark: str) -> list[ReportedTest]:
    """Return the tests without the groups that only sum them up; a group that fails by itself is kept.

    Args:
        tests: Id -> test.
        mark: The separator between the name of a group and that of a test in it.
    """
    groups: dict[str, list[ReportedTest]] = {}
    for name, test in tests.items():
        file, _, inner = name.partition("::")
        parts = inner.split(mark)
        for depth in range(1, len(parts)):
            group = f"{file}::{mark.join(parts[:depth])}"
            if group in tests:
                groups.setdefault(group, []).append(test)
    return [
        test
        for name, test in tests.items()
        if name not in groups
        or (test.status == "failed" and all(inner.status != "failed" for inner in groups[name]))
    ]


GLOBAL = r"(?:global|globalThis|window|self)"


def get_reported_files(report: Report) -> frozenset[str]:
    """Return the files whose tests a report mentions."""
    return frozenset(test.id.partition("::")[0] for test in report.tests if "::" in test.id)


def find_unwatched_files(before: Report | None, now: Report) -> frozenset[str]:
    """Return the test files that nothing can watch: on the user's own code they reported without a watch.

    Args:
        before: The report of the user's own code. If nothing could be loaded there, `now` decides.
        now: The report of this run.
    """
    reported, watched = (
        (get_reported_files(before), before.changed_state) if before else (frozenset[str](), {})
    )
    if not (watched or (now.changed_state and not reported)):
        return reported | get_reported_files(now)
    return reported - watched.keys()


def is_replaced_in(text: str, name: str) -> bool:
    """Whether a test's text replaces a name, as in `spyOn(JSON, 'parse')` or `JSON.parse = `.

    Args:
        text: The text of the user's tests. Some tests reach the replacement only once the code is correct.
        name: The name that a guard watches, such as `JSON.parse`, `Promise` or `expect's testers of
            equality`.
    """
    if name.startswith("expect's testers"):
        return "addEqualityTesters" in text
    owner, _, key = (re.escape(part) for part in name.rpartition("."))
    place = rf"{GLOBAL}\.{owner}|{owner}" if owner else GLOBAL
    quoted = rf"""["'`]{key}["'`]"""
    ways = [rf"\b(?:{place})\s*,\s*{quoted}", rf"(?:^|[^.\w$])(?:{place})\.{key}\s*=(?!=)"]
    if not owner:
        ways.append(rf"\bstubGlobal\(\s*{quoted}")
    return re.search("|".join(ways), text) is not None
