"""The records of a task, of the candidates that may solve it, and of the checks that decide.

A task is what the user wants. A candidate is a set of files that may solve it. A check is one test. A verdict
says which checks a candidate passes, and a counterexample shows why it fails one of them.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from suture.core.records.task_service import TaskService

TaskKind = Literal["write", "heal"]
ProjectKind = Literal["web_app", "data_pipeline", "cli_tool", "library"]
Provenance = Literal["user", "visible", "tool", "smoke", "spec", "adversarial", "property", "oracle"]
"""Who wrote a check. A `tool` check is a diagnostic of a linter, type checker or compiler; a `smoke` check is
Suture's own check of a new project (see docs/projects.md)."""
Origin = Literal["user", "mutation", "fix", "sample", "repair", "edit"]
"""How a candidate was produced. `user` is the original code, `fix` is what a linter or formatter itself changed, `edit`
is a person's edit of a candidate."""
Evidence = Literal["split", "nonce", "report", "exit_status"]
"""How a verdict was obtained, strongest first (see docs/verdicts.md)."""
CheckStatus = Literal["passed", "failed", "error", "timeout", "missing", "skipped"]
FailureCode = Literal[
    "time_limit",
    "signal",
    "exit_code",
    "test_timeout",
    "not_run",
    "not_reported",
    "no_tests_reported",
    "fewer_tests",
    "skipped_by_code",
    "example_changed",
    "machinery_changed",
    "machinery_unwatched",
    "inputs_changed",
    "hidden_use",
    "secret_reached",
    "failure_lost",
    "unconfirmed_pass",
    "packages_refused",
    "no_answer",
    "cpu_limit",
    "malformed_answer",
    "process_ended",
    "judge_ended",
    "changed_argument",
    "not_repeated",
    "diagnostic",
    "suppressed",
]
"""Why a check did not pass, if Suture itself observed the reason (`suture.judge.failures` renders it)."""
VerdictNoteCode = Literal[
    "protected_file",
    "live_objects",
    "shared_process",
    "unwatched_processes",
    "cut_off",
    "exit_status_only",
    "signed_report",
    "unsigned_report",
    "unwatched_runner",
    "smoke_checks_only",
    "passed_once",
    "not_repeated",
    "answers_by_order",
    "assert_not_reached",
    "flaky_tests",
    "diagnostics",
    "guard_tests_failing",
    "no_guard_tests",
    "scan_refused",
    "scan_asks",
]
"""A limit of a verdict that the user should know (`suture.interfaces.narrative` renders it)."""

UnmeasuredReason = Literal[
    "certification_seconds",
    "disabled",
    "left_out",
    "linter_failed",
    "mutant_limit",
    "no_changed_code",
    "no_linter",
    "no_mutants",
    "no_python_file",
    "no_python_started",
    "no_tests",
    "no_time",
    "python_only",
    "separate_checks",
    "tool_fix",
    "unsupported_language",
]
"""Why something about a change was not measured (`suture.core.records.unmeasured_text` renders it)."""

ExclusionReason = Literal[
    "version_control",
    "installed_packages",
    "cache",
    "suture_files",
    "unprintable_name",
    "unreadable",
    "not_a_regular_file",
    "may_hold_secrets",
    "unusable_link",
    "link_to_no_file",
    "ignored",
    "ignored_not_imported",
    "ignored_too_large",
    "ignored_may_hold_secrets",
]
"""Why a file of the user's project is not part of a task (`suture.project.workspace` renders it)."""

Language = str
"""The name of a programming language, built-in or from a plugin (see `suture.project.languages`)."""


def join_commands(commands: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return one command that runs others until one fails; empty if there are none."""
    line = " && ".join(map(shlex.join, commands))
    return ("sh", "-c", line) if line else ()


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a JSON value as 64 hex digits. Equal values have equal hashes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One test with its provenance.

    Attributes:
        id: Unique within a task; the node id of a pytest test.
        provenance: Who wrote it. `oracle` checks never run inside a run.
        source: Python source of the test program; empty if the test is in the task's files.
        trust: Trust in [0, 1]. A check below the threshold informs and never decides.

    Raises:
        ValueError: The trust is not in [0, 1].
    """

    id: str
    provenance: Provenance
    source: str = ""
    trust: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.trust <= 1:
            raise ValueError(f"the trust {self.trust!r} of a check is not in [0, 1]")


@dataclass(frozen=True, kw_only=True)
class Project:
    """The project that a `write` task creates, or extends by a feature.

    Attributes:
        kind: Kind of project, which decides how it is started; `None` if only its own tests decide.
        name: Name of the package and of its command.
        scaffold: Paths of the task's files that Suture created for the project, such as its manifest. They
            are delivered with the code.
        sample: Path of the sample data that a data pipeline runs on; empty if there is none.
        skeleton_file: Path of the only file that the model writes, if Suture created all others; else empty.
        is_feature_untested: Whether no deciding check exercises the requested feature.
    """

    kind: ProjectKind | None
    name: str
    scaffold: tuple[str, ...] = ()
    sample: str = ""
    skeleton_file: str = ""
    is_feature_untested: bool = False

    @property
    def is_new(self) -> bool:
        """Whether this task creates the project, so that its author may write all of it."""
        return bool(self.scaffold)


@dataclass(frozen=True, kw_only=True)
class EarlierVersion:
    """A project's files as they were at an earlier commit.

    Attributes:
        commit: First 12 digits of the commit's hash.
        subject: First line of its message.
        files: Path relative to the project -> text, for the files that have changed since.
    """

    commit: str
    subject: str
    files: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is wanted: code for a statement, or a repaired project, and the checks that decide.

    Attributes:
        statement: The task in plain words, or a signature with a docstring.
        kind: `write` new code, or `heal` existing code.
        language: Language of the code. Candidates that heal write only files of this language.
        module: File for the code of a `write` task, relative to the project root. Checks without imports use
            the names of this module.
        extra_modules: Further files that a `write` task asks for by name.
        allows_more_files: Whether the solution of a `write` task may have other files too, such as a package.
        entry_point: Function or class that the checks call, if known.
        files: Given files, path relative to the project root -> content.
        checks: Function-level checks.
        test_command: Test command as an argument vector; empty if there is none.
        test_origin: How the test command was found; empty if the user gave it.
        tools: Commands of linters, type checkers and compilers, each as an argument vector. Their diagnostics are
            checks.
        tests_only_guard: Whether the user asked for no tests, so that those of `test_command` only must not get
            worse.
        services: Services that start inside the sandbox before each run of the test command, by name.
        protected: Globs of paths that no candidate may write.
        user_protected: Those globs of `protected` that the user gave, which not even a proposer may change.
        writable: Globs of paths that candidates may write; if empty, all paths that are not protected.
        earlier_versions: The project's files at its last commits, the newest first.
        since: The oldest of these commits, if the user named it; otherwise empty.
        excluded_files: Path of a file in the project's folder that is not in `files` -> why it is not.
        links: Path of a link to a folder of the project -> that folder, both relative to the project root.
        project: The project, if a `write` task asks for a whole project or a new feature of one.
    """

    statement: str
    kind: TaskKind = "write"
    language: Language = "python"
    module: str = "solution.py"
    extra_modules: tuple[str, ...] = ()
    allows_more_files: bool = False
    entry_point: str | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    test_command: tuple[str, ...] = ()
    test_origin: str = ""
    tools: tuple[tuple[str, ...], ...] = ()
    tests_only_guard: bool = False
    services: Mapping[str, TaskService] = field(default_factory=dict)
    protected: tuple[str, ...] = ()
    user_protected: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    earlier_versions: tuple[EarlierVersion, ...] = ()
    since: str = ""
    excluded_files: Mapping[str, ExclusionReason] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    project: Project | None = None

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that decide: those of the tools, then that of the tests, unless these only guard."""
        tests = () if self.tests_only_guard or not self.test_command else (self.test_command,)
        return (*self.tools, *tests)

    @property
    def full_command(self) -> tuple[str, ...]:
        """The command that decides, tools included, as the user could have typed it; empty if there is none."""
        return self.commands[0] if len(self.commands) == 1 else join_commands(self.commands)

    @property
    def given_files(self) -> dict[str, bytes]:
        """The files that existed before the task: all but the scaffold of a new project."""
        created = self.project.scaffold if self.project else ()
        return {path: content for path, content in self.files.items() if path not in created}

    @property
    def modules(self) -> tuple[str, ...]:
        """The files that a `write` task asks for; the file that the checks use comes first."""
        return (self.module, *self.extra_modules)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A set of files that may solve the task.

    Attributes:
        files: Files that replace or extend those of the task, path -> text.
        origin: How the candidate was produced.
        parent: Hash of the candidate that it was derived from; `None` if there is none.
        label: Short description for people, such as `sample 2 at T=0.8`.
    """

    files: Mapping[str, str]
    origin: Origin
    parent: str | None = None
    label: str = ""

    @property
    def hash(self) -> str:
        """The content hash of the files alone, so that equal code from two origins is one candidate."""
        return content_hash(dict(self.files))


@dataclass(frozen=True, kw_only=True)
class CodeFrame:
    """A frame of a traceback that is inside the project.

    Attributes:
        file: Path relative to the project.
        line: Line in that file, from 1.
        function: Name of the function; empty if it is not known.
    """

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The smallest known fact about a failure.

    Attributes:
        check_id: Id of the check that failed.
        call: The call that went wrong, as source.
        expected: What the check expected, as source or in words.
        actual: What the call returned instead; empty if an exception was raised.
        exception: The exception as `Type: message`; empty if there was none.
        file: File of the candidate in which it was raised.
        line: Line in that file, from 1.
        code: Why the check did not pass, if Suture itself observed the reason; `exception` then says it in
            words.
        message: The exception's own message with all its lines, as far as it is longer than the other fields.
        frames: The frames of the traceback inside the project, tests included, outermost first.
        inputs: Name -> value, as source, of the test's parameters and of the arguments of the innermost frame in
            the project's code, as far as they are plain data.
    """

    check_id: str
    call: str = ""
    expected: str = ""
    actual: str = ""
    exception: str = ""
    file: str = ""
    line: int | None = None
    code: FailureCode | None = None
    message: str = ""
    frames: tuple[CodeFrame, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def exception_type(self) -> str:
        """The type of the exception; empty if there was none."""
        return self.exception.partition(":")[0]


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """The outcome of one check on one candidate.

    Attributes:
        check_id: Id of the check.
        status: The outcome. `missing` means that the check was not run or not reported.
        provenance: Who wrote the check.
        trust: Trust in the check, in [0, 1].
        evidence: How the outcome was obtained.
        counterexample: Why the check failed, as far as that is known.
    """

    check_id: str
    status: CheckStatus
    provenance: Provenance = "user"
    trust: float = 1.0
    evidence: Evidence = "split"
    counterexample: Counterexample | None = None

    @property
    def passed(self) -> bool:
        """Whether the check passed. A skipped check did not."""
        return self.status == "passed"


@dataclass(frozen=True, kw_only=True)
class VerdictNote:
    """A limit of a verdict that the user should know.

    Attributes:
        code: Which limit it is.
        subjects: What it is about, such as paths, check ids, or the name of a test runner.
    """

    code: VerdictNoteCode
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of checks on one candidate, computed outside the candidate's process.

    Attributes:
        candidate: Hash of the candidate.
        outcomes: Outcome of each check, in the order of the suite.
        evidence: Weakest kind of evidence among the outcomes.
        output: Head and tail of the output of the program or the test command.
        wall_s: Wall-clock seconds that the checks took.
        notes: Limits of this verdict that the user should know.
    """

    candidate: str
    outcomes: tuple[CheckOutcome, ...]
    evidence: Evidence
    output: str = ""
    wall_s: float = 0.0
    notes: tuple[VerdictNote, ...] = ()

    @cached_property
    def passed(self) -> frozenset[str]:
        """Ids of the checks that passed."""
        return frozenset(outcome.check_id for outcome in self.outcomes if outcome.passed)

    @cached_property
    def failed(self) -> frozenset[str]:
        """Ids of the checks that neither passed nor were skipped."""
        return frozenset(
            outcome.check_id
            for outcome in self.outcomes
            if not outcome.passed and outcome.status != "skipped"
        )

    @property
    def all_passed(self) -> bool:
        """Whether at least one check passed and none failed. No checks at all are not a pass."""
        return bool(self.passed) and not self.failed

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        """The counterexamples of all outcomes that have one, in the order of the suite."""
        return tuple(
            outcome.counterexample for outcome in self.outcomes if outcome.counterexample is not None
        )
