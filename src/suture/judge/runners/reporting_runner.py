"""A test command whose runner reports on each test, in another language than Python."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Evidence
from suture.judge.failures import render_run_ending, get_last_line, decode_output
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.signed_lines import verified_events
from suture.judge.runners.watching import replaces, told_by, unwatched_files
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.project.languages import (
    LANGUAGES,
    Report,
    ReportedTest,
    Runner,
    RunnerOutput,
    argv_for_report,
    runner_of,
)
from suture.project.workspace import is_test_file
from suture.sandbox import BOX, RunResult, Sandbox

REPORT = f"{PRIVATE_FOLDER}/report"
FOLDER = f"{BOX}/{PRIVATE_FOLDER}"
REPORTERS = "suture.project.languages.reporters"
SIGNED = "{}'s report is signed, but tests and code share a process: forging it is not ruled out"
UNWATCHED = "this {} lets nothing see whether the code changed what its tests decide with"
UNSIGNED = "{}'s report has no signature: code that prints the like and exits with 0 is not ruled out"


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """One run: how it ended, and what its runner reported."""

    result: RunResult
    report: Report
    vouches: bool = False
    """Whether a test program said of itself that its tests came to their end, or that one failed."""


class RunnerCommand:
    """A command whose runner reports on each test.

    Args:
        line: The command.
        sandbox: The wall.
        runner: What it starts.
        base: Its run on the task's own files, where that is known.
        vouching: Files with which its test programs vouch for their tests; empty where they do not.
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
    async def tried_out(cls, line: CommandLine, sandbox: Sandbox) -> RunnerCommand | None:
        """The command, once it ran on the task's own files; `None` where nothing reports on its tests.

        Raises:
            SandboxError: The wall failed.
        """
        runner = runner_of(line.task.test_command, line.task.files, line.task.language)
        if runner is None:
            return None
        toolchain = line.interpreter.toolchain
        vouching = runner.vouching if runner.vouching and runner.vouching.fits(line.shown) else None
        own = vouching.files(toolchain.program, FOLDER) if vouching and toolchain else {}
        command = cls(line, sandbox, runner, vouching=own)
        base = await command._run(line.task.files)
        if own and not base.vouches and not await command._vouches():
            own = {}
            base = await cls(line, sandbox, runner)._run(line.task.files)
        return cls(line, sandbox, runner, base, own) if base.report.tests or _is_mute(base) else None

    async def _vouches(self) -> bool:
        """Whether a test program of ours vouches for itself: one that is not built says nothing."""
        vouching = self._runner.vouching
        assert vouching is not None
        task = replace(self._line.task, files=vouching.probe, test_command=vouching.probed_by)
        probe = RunnerCommand(
            replace(self._line, task=task), self._sandbox, self._runner, vouching=self._vouching
        )
        return (await probe._run(task.files)).vouches

    @property
    def test_files(self) -> tuple[str, ...]:
        """The project's files that hold the tests, as far as the report tells."""
        files = self._line.task.files
        owners = {test.id.partition("::")[0] for test in self._base.report.tests} if self._base else set()
        if self._is_untold:
            endings = LANGUAGES[self._line.task.language].endings
            owners = {path for path in files if path.endswith(endings) and is_test_file(path)}
        return tuple(sorted(owners & files.keys()))

    def within(self, line: CommandLine) -> RunnerCommand:
        """The same with other limits; how it ended on the task's own files stays known."""
        return RunnerCommand(line, self._sandbox, self._runner, self._base, self._vouching)

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run it on a project's files; on the task's own ones the first run answers.

        Raises:
            SandboxError: The wall failed.
        """
        ran = self._base if is_base and self._base is not None else await self._run(files)
        note = (SIGNED if self._signed else UNSIGNED).format(self._runner.name)
        is_unwatched = self._runner.watches and bool(self._unwatched(ran))
        return CommandRun(
            outcomes=self._outcomes(ran),
            output=decode_output(ran.result),
            notes=(note, UNWATCHED.format(self._runner.name)) if is_unwatched else (note,),
            wall_s=ran.result.wall_s,
        )

    async def run_some(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run it to learn about some of its tests; no verdict is made of it.

        Args:
            files: A project.
            tests: Their ids; all of them where there are none. The command runs whole.
            wall_s: The most seconds; the settings' `test_wall_s` where it is left out.

        Raises:
            SandboxError: The wall failed.
        """
        outcomes = self._outcomes(await self._run(files, wall_s))
        return tuple(outcome for outcome in outcomes if not tests or outcome.check_id in tests)

    async def _run(self, files: Mapping[str, bytes], wall_s: float | None = None) -> ReportedRun:
        key, folder, runner = secrets.token_bytes(32), FOLDER, self._runner
        own = drop_private_files(files)
        reporters = resources.files(REPORTERS)
        vouching = runner.vouching if self._vouching else None
        tokens = vouching.tokens(own) if vouching else {}
        beside = {name: reporters.joinpath(name).read_bytes() for name in runner.reporters}
        beside |= {**self._vouching, **tokens}
        asking = vouching.environment(folder) if vouching else runner.environment(folder)
        given = {"report": f"{BOX}/{REPORT}", "key": key.hex()} if runner.signed else None
        request = self._line.request(
            {**own, **{f"{PRIVATE_FOLDER}/{name}": content for name, content in beside.items()}},
            {**self._line.environment(), **asking},
            stdin=json.dumps(given).encode("ascii") if given else b"",
            wall_s=wall_s,
            collect=(REPORT,) if self._signed else (),
        )
        argv = argv_for_report(request.argv, runner.arguments(folder))
        result = await self._sandbox.run(self._line.launched(replace(request, argv=argv)))
        written = result.files.get(REPORT, b"")
        report = runner.read(
            RunnerOutput(
                stdout=result.stdout,
                stderr=result.stderr,
                events=() if vouching else tuple(verified_events(written, key)),
                files=own,
                root=BOX,
                vouched=vouching.read(written, {*tokens.values()}) if vouching else None,
            )
        )
        if report.printed is not None:
            result = replace(result, stdout=report.printed)
        return ReportedRun(result=result, report=report, vouches=bool(vouching and written))

    def _outcomes(self, ran: ReportedRun) -> tuple[CheckOutcome, ...]:
        """One outcome for each test, for each that should have run, and for an ending that does not fit."""
        tests = {test.id: test for test in ran.report.tests}
        skipped_before = {test.id for test in self._expected() if test.status == "skipped"}
        outcomes = [
            self._outcome(test, ran, skipped_before) for test in _leaves(tests, self._runner.nested_by)
        ]
        files = {name.partition("::")[0] for name in tests if "::" in name}
        for test in self._expected():
            if test.id not in tests and not ("::" not in test.id and test.id in files):
                outcomes.append(self._missing(test.id, ran, with_fact=all(o.passed for o in outcomes)))
        if ran is not self._base:
            outcomes += self._changed(ran)
        if ran.result.status == "ok" and ran.report.ended:
            return tuple(outcomes) or (self._failed(self._line.shown, "no test was reported", "missing"),)
        if all(outcome.status in ("passed", "skipped") for outcome in outcomes):
            why = f"{render_run_ending(ran.result)} though no test failed"
            outcomes.append(self._failed(self._line.shown, why, "error"))
        return tuple(outcomes)

    def _changed(self, ran: ReportedRun) -> list[CheckOutcome]:
        """A failure for each file of tests in which the code changed what decides, or that is unwatched."""
        before = self._base.report.watched if self._base else {}
        own = frozenset[str]().union(*before.values())
        faults = []
        for file in sorted(told_by(ran.report) - self._unwatched(ran)):
            names = ran.report.watched.get(file)
            if names is None:
                faults.append(self._failed(file, "nothing saw what the code under test changed", "error"))
            elif changed := sorted(name for name in names - own if not self._is_replaced_by_tests(name)):
                faults.append(self._failed(file, f"the code under test changed {changed[0][:200]}", "error"))
        return faults

    def _unwatched(self, ran: ReportedRun) -> frozenset[str]:
        return unwatched_files(self._base.report if self._base else None, ran.report)

    def _is_replaced_by_tests(self, name: str) -> bool:
        """Whether the user's tests say that they replace it: some come to that only once code is right."""
        return any(replaces(text, name) for text in self._test_texts)

    @cached_property
    def _test_texts(self) -> tuple[str, ...]:
        files = self._line.task.files
        paths = [path for path in files if is_test_file(path) or path in self.test_files]
        return tuple(files[path].decode("utf-8", "replace") for path in paths)

    def _expected(self) -> tuple[ReportedTest, ...]:
        tests = self._base.report.tests if self._base else ()
        return tuple(_leaves({test.id: test for test in tests}, self._runner.nested_by))

    def _outcome(self, test: ReportedTest, ran: ReportedRun, skipped_before: Collection[str]) -> CheckOutcome:
        ran_before = {one.id for one in self._expected()} - {*skipped_before}
        if test.status == "skipped" and test.id in ran_before:
            return self._failed(test.id, "skipped by the code under test", "failed")
        if test.status != "failed":
            # Of a file that tells of no test only its exit is known: it may have left out the tests in it.
            is_bare = self._is_untold and "::" not in test.id
            evidence: Evidence = "exit_status" if is_bare else self._evidence
            return CheckOutcome(check_id=test.id, status=test.status, evidence=evidence)
        said = LANGUAGES[self._line.task.language].error_line
        printed = next((line for line in decode_output(ran.result).splitlines() if said.search(line)), "")
        fact = Counterexample(
            check_id=test.id,
            expected=test.expected,
            actual=test.got,
            exception="" if test.got else test.message or printed.strip() or get_last_line(ran.result),
            file=test.file,
            line=test.line,
        )
        return CheckOutcome(check_id=test.id, status="failed", evidence=self._evidence, counterexample=fact)

    def _missing(self, test: str, ran: ReportedRun, *, with_fact: bool) -> CheckOutcome:
        if ran.result.status == "timeout":
            return self._failed(test, f"no end within {ran.result.wall_s:.3g} s", "timeout")
        why = f"{self._runner.name} never reported it ({render_run_ending(ran.result)})"
        outcome = self._failed(test, why, "missing")
        return outcome if with_fact else replace(outcome, counterexample=None)

    def _failed(self, test: str, why: str, status: CheckStatus) -> CheckOutcome:
        fact = Counterexample(check_id=test, call="", exception=why)
        return CheckOutcome(check_id=test, status=status, evidence=self._evidence, counterexample=fact)

    @property
    def _evidence(self) -> Evidence:
        return "nonce" if self._signed else "report"

    @property
    def _is_untold(self) -> bool:
        """Whether the task's own files were stopped before any test of theirs was known."""
        return self._base is not None and not self._base.report.tests

    @property
    def _signed(self) -> bool:
        return self._runner.signed or bool(self._vouching)


def _is_mute(ran: ReportedRun) -> bool:
    """Whether the runner began and was stopped before a test of it ended."""
    return ran.result.status == "timeout" and ran.report.begun and not ran.report.tests


def _leaves(tests: Mapping[str, ReportedTest], mark: str) -> list[ReportedTest]:
    """The tests without the groups that only sum them up; a group that fails by itself is one.

    Args:
        tests: Id -> test.
        mark: What stands between the name of a group and that of a test in it.
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
