"""What trials are about: candidates, the tests that were run on them, and what was seen.

What trials say orders and sorts out candidates; no verdict is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.kinds import TrialDisagreement
from suture.mutation.edits import Edit

TestLines = Mapping[str, Mapping[str, frozenset[int]]]
TestOutcome = Literal["passed", "failed", "skipped", "timeout"]


@dataclass(frozen=True, kw_only=True)
class ObservedCall:
    """A call out of the tests: where the function that was called begins, and the arguments as source."""

    path: str
    function: str
    line: int
    arguments: str


@dataclass(frozen=True, kw_only=True)
class FailurePoint:
    """How far a failing test got.

    Attributes:
        test: Its node id.
        fault: The class of the exception that it failed with, and what that said.
        reached: Where that came from, the test's own lines included, the outermost first.
    """

    test: str
    error: str = ""
    traceback: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """One test, seen once.

    Attributes:
        id: Its node id, as pytest here calls it.
        outcome: How it ended.
        seconds: CPU seconds, without tracing where it was run so.
        lines: Path -> the lines that ran; empty where it was not traced.
        frames: Where an exception, or the time-out, went through the project's code, the outermost first.
        wall_s: Wall-clock seconds, likewise.
        fault: As in `FailurePoint`.
        reached: Likewise.
    """

    __test__ = False

    id: str
    outcome: TestOutcome
    seconds: float
    lines: Mapping[str, frozenset[int]]
    frames: tuple[tuple[str, int], ...] = ()
    wall_s: float = 0.0
    error: str = ""
    traceback: tuple[tuple[str, int], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it failed or did not end."""
        return self.outcome in ("failed", "timeout")

    @property
    def failure_point(self) -> FailurePoint:
        """How far it got, where it failed."""
        return FailurePoint(test=self.id, error=self.error, traceback=self.traceback)


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """What trials of the unchanged code showed.

    Attributes:
        tests: The tests that were run.
        imported: Path -> lines that ran while the tests were collected.
        collect_s: CPU seconds until then.
        errors: Files that could not be collected.
        calls: Calls out of the tests.
        collected: Ids of all tests, in their order.
        known: Ids of tests that fail when all are run in their order; empty where that is not known.
        guiding: Ids of tests that fail also in a trial without the others: those that candidates run first.
        disagreements: Tests that are left to the verdict.
        compared: Tests whose outcome was compared with the run of the user's command.
        traced: Tests whose lines are known.
        partly: Why not all were, where they were not.
        suite_s: Wall-clock seconds of all tests in their order, as far as they were run.
    """

    tests: tuple[TestRun, ...] = ()
    import_lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    collect_s: float = 0.0
    collection_errors: int = 0
    calls: tuple[ObservedCall, ...] = ()
    collected: tuple[str, ...] = ()
    failing_in_suite: frozenset[str] = frozenset()
    target_tests: tuple[str, ...] = ()
    disagreements: tuple[TrialDisagreement, ...] = ()
    compared: int = 0
    traced: int = 0
    partly: str = ""
    suite_s: float = 0.0

    @property
    def failing(self) -> tuple[TestRun, ...]:
        """Tests that fail; of those that fail only when they are run alone, none."""
        failed = tuple(test for test in self.tests if test.failed)
        return tuple(test for test in failed if test.id in self.failing_in_suite) or failed


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate to be tried.

    Attributes:
        path: The file that it changes.
        edits: How.
        label: In a few words.
        score: How likely it is a repair.
        operators: The operators that made it.
        swap: Whether it can be put into a process that has imported the file.
    """

    path: str
    edits: tuple[Edit, ...]
    label: str
    score: float
    operators: tuple[str, ...]
    is_swappable: bool = True


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What one candidate showed: failing tests that pass now, that still fail, and others that it broke.

    Attributes:
        plausible: Whether it came to the end of all tests and none failed.
        late: Whether it was killed because a test did not end.
        marks: How far tests got that failed, in the order in which they were run.
        passed: Failing tests that pass now, by their ids.
        held: Whether it made the failing tests pass, and what the others take is not known yet.
        lines: Failing test -> path -> the lines that it runs now, where they were noted.
    """

    passing: int
    failing: int
    broken: int
    is_plausible: bool
    timed_out: bool
    failures: tuple[FailurePoint, ...] = ()
    now_passing: frozenset[str] = frozenset()
    is_pending: bool = False
    lines: TestLines = field(default_factory=dict)
