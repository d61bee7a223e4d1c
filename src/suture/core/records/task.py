"""The nouns of the design as records: task, check, candidate, verdict; `results.py` has the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

TaskKind = Literal["write", "heal"]
ProjectKind = Literal["web_app", "data_pipeline", "cli_tool", "library"]
Provenance = Literal["user", "visible", "smoke", "spec", "adversarial", "property", "oracle"]
"""Who says it; `smoke` is what we see ourselves of a project that is started (see docs/projects.md)."""
Origin = Literal["user", "mutation", "sample", "repair", "edit"]
"""How a candidate came to be; `user` is the code as it was, `edit` what a person made of a candidate."""
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
    "unconfirmed_pass",
    "packages_refused",
    "no_answer",
    "cpu_limit",
    "malformed_answer",
    "process_ended",
    "judge_ended",
    "not_repeated",
]
"""Why a check did not pass, where Suture itself saw the reason (`suture.judge.failures` renders it)."""
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
    "scan_refused",
    "scan_asks",
]
"""A limit of a verdict that the user should know (`suture.interfaces.narrative` renders it)."""

UnmeasuredReason = Literal[
    "disabled",
    "linter_failed",
    "mutant_limit",
    "no_changed_code",
    "no_linter",
    "no_mutants",
    "no_python_file",
    "no_python_started",
    "no_time",
    "python_only",
    "separate_checks",
    "unsupported_language",
]
"""Why something about a change was not measured (`suture.judge.unmeasured` renders it)."""

Language = str
"""What code is written in, by its name; `suture.project.languages` knows them, those of packages too."""


def content_hash(value: Any) -> str:
    """The SHA-256 of a JSON value in canonical form, as 64 hex digits."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Check:
    """One test with its provenance.

    Attributes:
        id: Unique inside a task; for a pytest test its node id.
        provenance: Who wrote it. `oracle` checks are never mounted inside a run.
        source: Python source of the test program; empty where the test lives in the task's files.
        trust: In [0, 1]; a check below the threshold may inform, never decide.
    """

    id: str
    provenance: Provenance
    source: str = ""
    trust: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Project:
    """What a `write` task makes of a folder, or adds to one.

    Attributes:
        kind: What it is, and so how it is started; `None` where its own tests alone decide.
        name: Of the package and of its command.
        scaffold: Paths of the task's files that are new with it, and handed over with the code.
        sample: Path of the data that a pipeline is run on; empty for none.
        is_feature_untested: Whether nothing that decides shows the feature that is asked for.
    """

    kind: ProjectKind | None
    name: str
    scaffold: tuple[str, ...] = ()
    sample: str = ""
    is_feature_untested: bool = False

    @property
    def is_new(self) -> bool:
        """Whether it begins with this task, and its author may write all of it."""
        return bool(self.scaffold)


@dataclass(frozen=True, kw_only=True)
class EarlierVersion:
    """A project's files as they were at a commit.

    Attributes:
        commit: The commit's hash, 12 digits of it.
        subject: The first line of its message.
        files: Path relative to the project -> text, of files that are otherwise now.
    """

    commit: str
    subject: str
    files: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is wanted: code for a statement, or a mended project, and the checks that decide.

    Attributes:
        statement: In plain words, or a signature with a docstring.
        kind: `write` new code, or `heal` code that exists.
        language: What the code is written in; candidates that heal write files of that language alone.
        module: The file a `write` task's code goes to, relative to the project root; checks that import
            nothing mean its names.
        beside: Further files that a `write` task asks for by name.
        several: Whether a `write` task may end in other files too, such as a package.
        entry_point: The function or class that the checks call, where known.
        files: The given files, path relative to the project root -> bytes.
        checks: Function-level checks.
        test_command: The user's test command as an argument vector; empty where there is none.
        test_origin: Why it is that command, where the user gave none.
        protected: Globs of paths that no candidate may write.
        only: Globs of the paths that candidates may write; any that is not protected where there are none.
        earlier: The project's files at its last commits, the newest first.
        since: The oldest of these, where the user named it.
        left_out: Files of modules that are in the project's folder and were not copied -> why.
        project: Where a `write` task asks for a whole project, or for more of one: which.
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
    protected: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    earlier_versions: tuple[EarlierVersion, ...] = ()
    since: str = ""
    excluded_files: Mapping[str, str] = field(default_factory=dict)
    project: Project | None = None

    @property
    def given_files(self) -> dict[str, bytes]:
        """The files that were there before the task: all but a new project's scaffold."""
        new = self.project.scaffold if self.project else ()
        return {path: content for path, content in self.files.items() if path not in new}

    @property
    def modules(self) -> tuple[str, ...]:
        """The files that a `write` task asks for, that of the checks first."""
        return (self.module, *self.extra_modules)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A set of files that may solve the task.

    Attributes:
        files: The files that this candidate writes over the task's own, path -> text.
        origin: How it came to be.
        parent: The hash of the candidate it was made from.
        label: A few words for people, such as `sample 2 at T=0.8`.
    """

    files: Mapping[str, str]
    origin: Origin
    parent: str | None = None
    label: str = ""

    @property
    def hash(self) -> str:
        """The content hash over the files alone: two ways to the same code are the same candidate."""
        return content_hash(dict(self.files))


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The smallest fact we have about a failure.

    Attributes:
        check_id: The check that said so.
        call: The call that went wrong, as source.
        expected: What the check wanted, as source or in words.
        got: What came back instead; empty where an exception was raised.
        exception: Type and message of the exception; empty where there was none.
        file: The candidate's file in which it was raised.
        line: The line in that file, counted from 1.
        code: Why the check did not pass, if Suture itself saw the reason; `exception` then renders it.
    """

    check_id: str
    call: str = ""
    expected: str = ""
    actual: str = ""
    exception: str = ""
    file: str = ""
    line: int | None = None
    code: FailureCode | None = None


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """What one check said of one candidate."""

    check_id: str
    status: CheckStatus
    provenance: Provenance = "user"
    trust: float = 1.0
    evidence: Evidence = "split"
    counterexample: Counterexample | None = None

    @property
    def passed(self) -> bool:
        """Whether the check passed; a skipped check did not."""
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
        candidate: The candidate's hash.
        outcomes: One per check, in the order of the suite.
        evidence: The weakest kind among the outcomes.
        output: Head and tail of what the program or the test command printed.
        wall_s: Wall-clock seconds it took.
        notes: Limits of this verdict that the user should know.
    """

    candidate: str
    outcomes: tuple[CheckOutcome, ...]
    evidence: Evidence
    output: str = ""
    wall_s: float = 0.0
    notes: tuple[VerdictNote, ...] = ()

    @property
    def passed(self) -> frozenset[str]:
        """Ids of the checks that passed."""
        return frozenset(outcome.check_id for outcome in self.outcomes if outcome.passed)

    @property
    def failed(self) -> frozenset[str]:
        """Ids of the checks that neither passed nor were skipped."""
        return frozenset(o.check_id for o in self.outcomes if not o.passed and o.status != "skipped")

    @property
    def all_passed(self) -> bool:
        """Whether at least one check passed and none failed; no checks at all is not a pass."""
        return bool(self.passed) and not self.failed

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        """The facts, in the order of the suite."""
        return tuple(o.counterexample for o in self.outcomes if o.counterexample is not None)
