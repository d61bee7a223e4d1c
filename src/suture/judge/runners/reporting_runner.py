"""A test command in a language other than Python whose runner reports on each test.

The *base run* is the run on the task's own files. What the user's tests do there is legitimate; but a candidate must
not add to it. *Attestation* means that test programs confirm their results themselves, with secrets that the code under
test does not know (see `suture.project.languages.Attestation`).
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources

from suture.core.records import (
    CheckOutcome,
    CheckStatus,
    CodeFrame,
    Counterexample,
    Evidence,
    VerdictNote,
)
from suture.judge.failures import (
    decode_output,
    get_last_line,
    make_failure,
    make_inconsistent_ending,
    render_run_ending,
)
from suture.judge.runners.caught_assertions import LOST_ASSERTION, CaughtAssertions
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.report_files import add_archive, read_archive
from suture.judge.runners.run_inputs import RunInputs
from suture.judge.runners.signed_lines import streams, verified_events
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

REPORT_PATH = f"{PRIVATE_FOLDER}/report"
FOLDER_PATH = f"{BOX}/{PRIVATE_FOLDER}"
REPORTERS_PACKAGE = "suture.project.languages.reporters"


@dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """One run of the command.

    Attributes:
        is_attested: Whether a test program confirmed that its tests came to their end, or that one failed.
    """

    result: RunResult
    report: Report
    is_attested: bool = False


class ReportingRunner:
    """Runs a command whose test runner reports on each test.

    Args:
        base: The run on the task's own files, if there was one.
        attestation_files: Files with which the test programs attest their results; empty if they do not.
    """

    def __init__(
        self,
        line: CommandLine,
        sandbox: Sandbox,
        runner: Runner,
        base: ReportedRun | None = None,
        attestation_files: Mapping[str, bytes] | None = None,
    ) -> None:
        self._line = line
        self._sandbox = sandbox
        self._runner = runner
        self._base = base
        self._attestation_files = attestation_files or {}

    @classmethod
    async def try_base(cls, line: CommandLine, sandbox: Sandbox) -> ReportingRunner | None:
        """Return the runner after a run on the task's own files, or `None` if nothing reports on its tests."""
        runner = find_runner(line.task.test_command, line.task.files, line.task.language)
        if runner is None:
            return None
        toolchain = line.interpreter.toolchain
        attestation = runner.attestation
        attestation_files: Mapping[str, bytes] = {}
        if attestation is not None and toolchain is not None and attestation.supports_command(line.shown):
            attestation_files = attestation.files(toolchain.program, FOLDER_PATH)
        attesting = cls(line, sandbox, runner, attestation_files=attestation_files)
        base = await attesting._run(line.task.files)
        if attestation_files and not base.is_attested and not await attesting._can_attest():
            attestation_files = {}
            base = await cls(line, sandbox, runner)._run(line.task.files)
        was_stopped_early = base.result.status == "timeout" and base.report.has_started
        if not base.report.tests and not was_stopped_early:
            return None
        return cls(line, sandbox, runner, base, attestation_files)

    async def _can_attest(self) -> bool:
        """Whether a test that must pass attests its result.

        The user's own tests cannot show it if they do not build.
        """
        attestation = self._runner.attestation
        assert attestation is not None
        task = replace(self._line.task, files=attestation.probe, test_command=attestation.probe_command)
        line = replace(self._line, task=task)
        probe = ReportingRunner(line, self._sandbox, self._runner, attestation_files=self._attestation_files)
        return (await probe._run(task.files)).is_attested

    @property
    def test_files(self) -> tuple[str, ...]:
        """The project's files that hold the tests, as far as the report names them."""
        files = self._line.task.files
        owners = {test.id.partition("::")[0] for test in self._base.report.tests} if self._base else set()
        if self._has_no_base_tests:
            endings = LANGUAGES[self._line.task.language].extensions
            owners = {path for path in files if path.endswith(endings) and is_test_file(path)}
        return tuple(sorted(owners & files.keys()))

    def copy_with_line(self, line: CommandLine) -> ReportingRunner:
        """Return the same runner for another command line; the base run stays known."""
        return ReportingRunner(line, self._sandbox, self._runner, self._base, self._attestation_files)

    async def run(self, files: Mapping[str, bytes], *, is_base: bool) -> CommandRun:
        """Run the command on a project's files, or return the base run if the files are the task's own."""
        run = self._base if is_base and self._base is not None else await self._run(files)
        runner_name = (self._runner.name,)
        notes = [
            VerdictNote(code="signed_report" if self._is_signed else "unsigned_report", subjects=runner_name)
        ]
        if self._runner.watches_state and self._find_unwatched(run):
            notes.append(VerdictNote(code="unwatched_runner", subjects=runner_name))
        return CommandRun(
            outcomes=self._make_outcomes(run),
            output=decode_output(run.result),
            notes=tuple(notes),
            wall_s=run.result.wall_s,
        )

    async def run_selected(
        self, files: Mapping[str, bytes], tests: Collection[str], wall_s: float | None = None
    ) -> tuple[CheckOutcome, ...]:
        """Run the command outside of a verdict, and return the outcomes of some of its tests.

        Args:
            tests: Ids of the tests of interest; empty for all. The command runs whole.
        """
        outcomes = self._make_outcomes(await self._run(files, wall_s))
        return tuple(outcome for outcome in outcomes if not tests or outcome.check_id in tests)

    async def _run(self, files: Mapping[str, bytes], wall_s: float | None = None) -> ReportedRun:
        key, runner = secrets.token_bytes(32), self._runner
        project_files = drop_private_files(files)
        attestation = runner.attestation if self._attestation_files else None
        tokens = attestation.tokens(project_files) if attestation else {}
        reporters = resources.files(REPORTERS_PACKAGE)
        private_files = {name: reporters.joinpath(name).read_bytes() for name in runner.reporters}
        private_files |= {**runner.files(FOLDER_PATH), **self._attestation_files, **tokens}
        project_inputs = project_files if self._base is None else self._inputs.files
        own_inputs = {f"{PRIVATE_FOLDER}/{name}" for name in private_files if name not in tokens}
        variables = (attestation or runner).environment(FOLDER_PATH)
        parameters = {"report": f"{BOX}/{REPORT_PATH}", "key": key.hex()} if runner.signed else None
        request = self._line.request(
            {
                **project_files,
                **{f"{PRIVATE_FOLDER}/{name}": content for name, content in private_files.items()},
            },
            {**self._line.environment(), **variables},
            stdin=json.dumps(parameters).encode("ascii") if parameters else b"",
            wall_s=wall_s,
            collect=(REPORT_PATH,) if self._is_signed or runner.report_globs else (),
            watched=(*project_inputs, *own_inputs),  # test programs remove their tokens
        )
        argv = add_report_arguments(
            request.argv, runner.arguments(FOLDER_PATH), before_separator=runner.takes_arguments_first
        )
        argv = add_archive(argv, runner.report_globs, REPORT_PATH) if runner.report_globs else argv
        result = await self._sandbox.run(self._line.link_packages(replace(request, argv=argv)))
        written = result.files.get(REPORT_PATH, b"")
        reported = streams(written if runner.signed else b"", key)
        output = RunnerOutput(
            stdout=result.stdout,
            stderr=result.stderr,
            events=tuple(verified_events(*reported.pop(""))),
            process_events=tuple(event for stream in reported.values() for event in verified_events(*stream)),
            files=project_files,
            root=BOX,
            attested=attestation.read(written, {*tokens.values()}) if attestation else None,
            reports=read_archive(written) if runner.report_globs else {},
        )
        try:
            report = runner.read(output)
        except ValueError:
            # The code under test can print anything, such as a number that is too long for `int`.
            report = Report()
        if report.printed is not None:
            result = replace(result, stdout=report.printed)
        return ReportedRun(result=result, report=report, is_attested=bool(attestation and written))

    def _make_outcomes(self, run: ReportedRun) -> tuple[CheckOutcome, ...]:
        """Return an outcome for each reported or missing test, and one for an inconsistent exit status."""
        command = self._line.shown
        tests = {test.id: test for test in run.report.tests}
        base_skipped = {test.id for test in self._list_expected_tests() if test.status == "skipped"}
        outcomes = [
            self._make_outcome(test, run, base_skipped)
            for test in _drop_groups(tests, self._runner.group_separator)
        ]
        files_with_tests = {test_id.partition("::")[0] for test_id in tests if "::" in test_id}
        for test in self._list_expected_tests():
            # A file that the base run reported as a whole may report its single tests now.
            if test.id not in tests and test.id not in files_with_tests:
                all_passed = all(outcome.passed for outcome in outcomes)
                outcomes.append(self._make_missing(test.id, run, with_fact=all_passed))
        if run is not self._base:
            outcomes += self._find_machinery_changes(run)
            outcomes += self._find_changed_input(run)
        if run.result.status == "ok" and run.report.has_finished:
            return tuple(outcomes) or (self._fail("missing", make_failure(command, "no_tests_reported")),)
        if all(outcome.status in ("passed", "skipped") for outcome in outcomes):
            outcomes.append(self._fail("error", make_inconsistent_ending(command, run.result)))
        return tuple(outcomes)

    def _find_machinery_changes(self, run: ReportedRun) -> list[CheckOutcome]:
        """Return a failure for each test file that was not watched, or whose test machinery was changed."""
        base_state = self._base.report.changed_state if self._base else {}
        base_names = frozenset[str]().union(*base_state.values())
        failures = []
        for file in sorted(get_reported_files(run.report) - self._find_unwatched(run)):
            names = run.report.changed_state.get(file)
            if names is None:
                failures.append(self._fail("error", make_failure(file, "machinery_unwatched")))
                continue
            # The base run does not show all replacements: some tests get that far only with correct code.
            new_names = [
                name
                for name in names - base_names
                if not any(is_replaced_in(text, name) for text in self._test_texts.values())
            ]
            lost = {name for name in new_names if name.startswith(LOST_ASSERTION)}
            changed = sorted(set(new_names) - lost)
            if changed:
                name = changed[0][:MAX_MACHINERY_NAME_CHARS]
                failures.append(self._fail("error", make_failure(file, "machinery_changed", name=name)))
            elif any(not self._caught_assertions.contain(name) for name in lost):
                failures.append(self._fail("error", make_failure(file, "failure_lost")))
        return failures

    def _find_changed_input(self, run: ReportedRun) -> list[CheckOutcome]:
        base = self._base.result if self._base else None
        fact = self._inputs.find_change(self._line.shown, run.result, base)
        return [self._fail("error", fact)] if fact is not None else []

    @cached_property
    def _inputs(self) -> RunInputs:
        return RunInputs(self._line.task, self.test_files)

    def _find_unwatched(self, run: ReportedRun) -> frozenset[str]:
        return find_unwatched_files(self._base.report if self._base else None, run.report)

    @cached_property
    def _caught_assertions(self) -> CaughtAssertions:
        return CaughtAssertions(self._test_texts)

    @cached_property
    def _test_texts(self) -> Mapping[str, str]:
        """Path -> text of the user's tests."""
        files = self._line.task.files
        paths = [path for path in files if is_test_file(path) or path in self.test_files]
        return {path: files[path].decode("utf-8", "replace") for path in paths}

    def _list_expected_tests(self) -> tuple[ReportedTest, ...]:
        tests = self._base.report.tests if self._base else ()
        return tuple(_drop_groups({test.id: test for test in tests}, self._runner.group_separator))

    def _make_outcome(
        self, test: ReportedTest, run: ReportedRun, base_skipped: Collection[str]
    ) -> CheckOutcome:
        ran_at_base = {expected.id for expected in self._list_expected_tests()} - {*base_skipped}
        if test.status == "skipped" and test.id in ran_at_base:
            return self._fail("failed", make_failure(test.id, "skipped_by_code"))
        if test.status != "failed":
            # Only the exit status of a file without reported tests is known: it may have skipped its tests.
            is_whole_file = self._has_no_base_tests and "::" not in test.id
            has_exit_status_only = is_whole_file or test.has_exit_status_only
            evidence: Evidence = "exit_status" if has_exit_status_only else self._evidence
            return CheckOutcome(check_id=test.id, status=test.status, evidence=evidence)
        error_pattern = LANGUAGES[self._line.task.language].error_pattern
        error_lines = (line for line in decode_output(run.result).splitlines() if error_pattern.search(line))
        error_line = next(error_lines, "").strip()
        fact = Counterexample(
            check_id=test.id,
            expected=test.expected,
            actual=test.actual,
            exception="" if test.actual else test.message or error_line or get_last_line(run.result),
            file=test.file,
            line=test.line,
            message=test.details,
            frames=tuple(CodeFrame(file=file, line=line, function=name) for file, line, name in test.frames),
        )
        return CheckOutcome(check_id=test.id, status="failed", evidence=self._evidence, counterexample=fact)

    def _make_missing(self, test: str, run: ReportedRun, *, with_fact: bool) -> CheckOutcome:
        if run.result.status == "timeout":
            return self._fail("timeout", make_failure(test, "test_timeout", seconds=run.result.wall_s))
        ending = render_run_ending(run.result)
        fact = make_failure(test, "not_reported", runner=self._runner.name, ending=ending)
        return self._fail("missing", fact if with_fact else None, check_id=test)

    def _fail(self, status: CheckStatus, fact: Counterexample | None, check_id: str = "") -> CheckOutcome:
        check_id = fact.check_id if fact is not None else check_id
        return CheckOutcome(check_id=check_id, status=status, evidence=self._evidence, counterexample=fact)

    @property
    def _evidence(self) -> Evidence:
        return "nonce" if self._is_signed else "report"

    @property
    def _has_no_base_tests(self) -> bool:
        """Whether the run on the task's own files was stopped before it reported any test."""
        return self._base is not None and not self._base.report.tests

    @property
    def _is_signed(self) -> bool:
        return self._runner.signed or bool(self._attestation_files)


def _drop_groups(tests: Mapping[str, ReportedTest], separator: str) -> list[ReportedTest]:
    """Return the tests without the groups that only sum them up; a group that fails on its own stays."""
    members: dict[str, list[ReportedTest]] = {}
    for test_id, test in tests.items():
        file, _, name = test_id.partition("::")
        parts = name.split(separator)
        for depth in range(1, len(parts)):
            group = f"{file}::{separator.join(parts[:depth])}"
            if group in tests:
                members.setdefault(group, []).append(test)
    return [
        test
        for test_id, test in tests.items()
        if test_id not in members
        or (test.status == "failed" and all(member.status != "failed" for member in members[test_id]))
    ]


GLOBAL_OBJECT = r"(?:global|globalThis|window|self)"
"""The names of JavaScript's global object."""
REQUESTS = {
    "expect's testers": "addEqualityTesters",
    "the expected failure of": r"\.fail(?:s|ing)\b|\bfails\s*:",
    "the retries of": r"\bretry(?:Times)?\b|\brepeats\b",
    "how a value is compared": "asymmetricMatch",
}
"""Prefix of the name of something that a guard noticed -> what a test's source contains if the test asks for it."""


def get_reported_files(report: Report) -> frozenset[str]:
    """Return the files whose tests a report mentions."""
    return frozenset(test.id.partition("::")[0] for test in report.tests if "::" in test.id)


def find_unwatched_files(base: Report | None, report: Report) -> frozenset[str]:
    """Return the test files for which the reporter cannot watch the test machinery.

    These are the files that reported tests in the base run and were not watched there, or all files if none
    was watched.

    Args:
        base: The report of the base run. If it contains no tests, `report` decides.
    """
    base_files = get_reported_files(base) if base else frozenset[str]()
    base_watched = base.changed_state if base else {}
    is_watched = base_watched or (report.changed_state and not base_files)
    return base_files - base_watched.keys() if is_watched else base_files | get_reported_files(report)


def is_replaced_in(text: str, name: str) -> bool:
    """Whether a test's source replaces a name, as in `spyOn(JSON, 'parse')` or `JSON.parse = `.

    Args:
        text: The source of the user's tests. Some tests reach the replacement only once the code is correct.
        name: The name that a guard watches, such as `JSON.parse`, `Promise` or `expect's testers of
            equality`.
    """
    for beginning, pattern in REQUESTS.items():
        if name.startswith(beginning):
            return re.search(pattern, text) is not None
    owner, _, key = (re.escape(part) for part in name.rpartition("."))
    object_pattern = rf"{GLOBAL_OBJECT}\.{owner}|{owner}" if owner else GLOBAL_OBJECT
    quoted_key = rf"""["'`]{key}["'`]"""
    patterns = [
        rf"\b(?:{object_pattern})\s*,\s*{quoted_key}",
        rf"(?:^|[^.\w$])(?:{object_pattern})\.{key}\s*=(?!=)",
    ]
    if not owner:
        patterns.append(rf"\bstubGlobal\(\s*{quoted_key}")
    return re.search("|".join(patterns), text) is not None
