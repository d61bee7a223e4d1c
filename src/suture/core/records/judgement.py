"""The records of a judgement: what was found out about somebody's change, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.records.task import CheckStatus, Evidence, UnmeasuredReason

JudgementOutcome = Literal["accepted", "accepted_with_remarks", "rejected", "not_comparable"]
NotComparableReason = Literal[
    "", "no_change", "base_does_not_run", "no_tests", "fails_anyway", "nothing_passes"
]
"""Why a change cannot be compared with its base, or need not be; empty if it was compared."""
FindingSeverity = Literal["reject", "remark", "note"]
"""What a finding does to the verdict: rejects the change, adds a remark, or only informs."""
JudgeStep = Literal["tests_without_change", "tests_with_change", "repeating", "guards", "signs"]
"""What a judgement is busy with, in this order; a step may be left out."""
JudgedRun = Literal["before", "guarded", "unhelped", "after"]
"""A run of the tests: the old code by the old tests, the new code by the old tests, the old code by the new tests,
and the new code by the new tests."""
JudgeDepth = Literal["complete", "first_rejection", "quick"]
"""How much a judgement finds out: everything; nothing more once a test that the change breaks rejects it; only what
the tests say that the change can affect."""
ScopeKind = Literal["all", "quick", "verdict_certain"]
"""Why these tests ran: all of them; those that a quick judgement selects; those that already reject the change."""
FindingCode = Literal[
    "test_newly_fails",
    "tests_do_not_run",
    "failing_test_weakened",
    "broken_test_weakened",
    "passing_test_weakened",
    "test_removed_with_code",
    "expectation_follows_code",
    "expectation_changed",
    "test_not_run_any_more",
    "test_hook_added",
    "test_support_changed",
    "test_proves_nothing",
    "asserts_nothing",
    "assert_not_reached",
    "configuration_changed",
    "capability",
    "memorises_examples",
    "games_tests",
    "unsafe_code",
    "new_dependency",
    "secret",
    "no_test_guards_change",
    "lines_not_run",
    "mistakes_not_noticed",
    "flaky",
    "large_change",
]
"""What was found. `docs/judge.md` has an example of each."""


@dataclass(frozen=True, kw_only=True)
class ChangeFinding:
    """One thing that was found about a change.

    Attributes:
        path: The file it is about; empty if it is about no single file.
        line: Line in the changed file, from 1; 0 if it has no place.
        test: Id of the test it is about; empty for the rest.
        detail: The code of the sign, rule or change of a test that it rests on; empty if `code` says it all.
        before: The old source in one line; empty if there is none.
        after: The new source in one line; empty if there is none.
        names: What it is about, such as files, packages or values.
        count: A number that belongs to it, such as lines that no test runs.
        total: What `count` is a part of; 0 if it is a part of nothing.
    """

    code: FindingCode
    severity: FindingSeverity
    path: str = ""
    line: int = 0
    test: str = ""
    detail: str = ""
    before: str = ""
    after: str = ""
    names: tuple[str, ...] = ()
    count: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class ComparedTests:
    """How the tests ended without and with a change. All are ids of tests.

    Attributes:
        fixed: Failed before and pass now. New tests that fail without the change are in `proving`; a failing test
            that passes only because its expectation was changed is in neither.
        proving: New or changed tests that pass with the change and fail without it.
        unproving: New or changed tests that pass without the change too.
        still_failing: Fail before and after.
        newly_failing: Passed before and fail now, or are new and fail.
        skipped: Ran before and are skipped now.
        removed: Ran before and no longer exist.
        flaky: Ended differently in two runs on the same files.
        passed: Pass with the change.
    """

    fixed: tuple[str, ...] = ()
    proving: tuple[str, ...] = ()
    unproving: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    newly_failing: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GuardedLines:
    """Which changed statements the tests run, and which deliberate mistakes in them they notice.

    Attributes:
        changed: Number of changed statements.
        not_run: Path -> lines of the changed statements that no test runs.
        unmeasured: Why coverage was not measured; `None` if it was.
        mistakes: Number of deliberate mistakes that were tried.
        noticed: How many of them the tests noticed.
        missed: The others, such as `cart.py, line 12: < becomes <=`.
        mistakes_unmeasured: Why not all mistakes were tried; `None` if they were.
    """

    changed: int = 0
    not_run: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unmeasured: UnmeasuredReason | None = None
    mistakes: int = 0
    noticed: int = 0
    missed: tuple[str, ...] = ()
    mistakes_unmeasured: UnmeasuredReason | None = None


@dataclass(frozen=True, kw_only=True)
class JudgedScope:
    """Which of the tests a judgement rests on.

    Attributes:
        kind: Why these.
        ran: Number of the tests that ran with the change.
        total: Number of all tests.
    """

    kind: ScopeKind = "all"
    ran: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class JudgedState:
    """Which files exactly were judged.

    Attributes:
        base_commit: The commit that the change is compared with; empty if it is compared with no commit.
        commit: The commit that holds the files after the change; empty if no commit holds exactly these.
        tree: The digest of all files after the change, as `hash_tree` computes it.
        folder: The project's folder in its repository, with a slash at its end; empty for the repository itself.
        files: Changed path -> SHA-256 of its content after the change; removed files have none.
    """

    base_commit: str = ""
    commit: str = ""
    tree: str = ""
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict on somebody's change, and the facts that it rests on.

    Attributes:
        outcome: The verdict.
        reason: Why the change is not comparable, or that there is none; empty if it was compared.
        detail: For a change that is not comparable, the message of the fault, in the words of the tool.
        base: What the change is compared with, such as `main (1a2b3c4)`.
        command: The test command.
        findings: What was found, the gravest first.
        scope: Which of the tests ran.
        tests: How the tests ended.
        guards: Which changed lines the tests run.
        evidence: How the outcomes of the tests were obtained; `None` if no test ran.
        runs: Run of the tests -> id of a test -> how it ended; empty if no test ran.
        files: Paths of the change, sorted.
        diff: The change as a unified diff.
        state: Which files exactly were judged.
        certificate_sha256: SHA-256 of the file of its certificate; empty if none was written.
        seconds: Wall-clock seconds that the judgement took.
    """

    outcome: JudgementOutcome
    reason: NotComparableReason = ""
    detail: str = ""
    base: str = ""
    command: tuple[str, ...] = ()
    findings: tuple[ChangeFinding, ...] = ()
    scope: JudgedScope = field(default_factory=JudgedScope)
    tests: ComparedTests = field(default_factory=ComparedTests)
    guards: GuardedLines = field(default_factory=GuardedLines)
    evidence: Evidence | None = None
    runs: Mapping[JudgedRun, Mapping[str, CheckStatus]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    diff: str = ""
    state: JudgedState = field(default_factory=JudgedState)
    certificate_sha256: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the change is accepted, with or without remarks."""
        return self.outcome in ("accepted", "accepted_with_remarks")
