"""Records of trials: candidates, the tests that ran on them, and what was observed.

Trials only order and filter candidates. They never decide a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from suture.core.ledger.kinds import TrialDisagreement
from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import ObservedKinds

TestLines = Mapping[str, Mapping[str, frozenset[int]]]
"""Test id -> path -> the lines that the test runs."""
TestOutcome = Literal["passed", "failed", "skipped", "timeout"]


@dataclass(frozen=True, kw_only=True)
class ObservedCall:
    """A call of the project's code that a test made.

    Attributes:
        function: The name of what is called, as `trials/inside/call_names.py` describes it.
        arguments: The source of the tuple of arguments; empty if the call cannot be made again.
    """

    path: str
    function: str
    line: int
    arguments: str


@dataclass(frozen=True, kw_only=True)
class FailurePoint:
    """How far a failing test got.

    Attributes:
        error: Class and message of the exception.
        traceback: (path, line) of the exception's frames in the project, tests included, outermost first.
    """

    test: str
    error: str = ""
    traceback: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TestRun:
    """One run of a test.

    Attributes:
        id: The test's id, as pytest in the sandbox names it.
        seconds: CPU seconds, measured without tracing if it also ran without.
        lines: Path -> the lines that ran; empty if the test was not traced.
        frames: (path, line) where an exception or the time-out was in the project's code, outermost first.
        wall_s: Wall-clock seconds, measured like `seconds`.
        fastest_s: CPU seconds of its fastest run, traced or not. The first run in a process takes several times as
            long as the others.
        waited_s: Wall-clock seconds in which it waited, in the run that waited least.
        error: See `FailurePoint`.
        traceback: See `FailurePoint`.
    """

    __test__ = False

    id: str
    outcome: TestOutcome
    seconds: float
    lines: Mapping[str, frozenset[int]]
    frames: tuple[tuple[str, int], ...] = ()
    wall_s: float = 0.0
    fastest_s: float = 0.0
    waited_s: float = 0.0
    error: str = ""
    traceback: tuple[tuple[str, int], ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the test failed or timed out."""
        return self.outcome in ("failed", "timeout")

    @property
    def failure_point(self) -> FailurePoint:
        """How far the test got before it failed."""
        return FailurePoint(test=self.id, error=self.error, traceback=self.traceback)


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """What trials of the unchanged code showed.

    Attributes:
        import_lines: Path -> the lines that ran while the tests were collected.
        kinds: Path -> first line of a function -> variable -> the kind of its values, where that is clear.
        collect_s: CPU seconds of the collection.
        collection_errors: Number of files that could not be collected.
        collected: Ids of all tests, in the order of the run.
        failing_in_suite: Ids of tests that fail in the user's run; empty if that is not known.
        target_tests: Ids of the tests that also fail without the others, in the order in which candidates run
            them.
        disagreements: Tests that a trial does not judge, because their outcome differs from the user's run.
        compared: Number of tests whose outcome was compared with the user's run.
        traced: Number of tests whose lines are known.
        untraced: Number of collected tests whose lines are not known, because the time was up.
        suite_s: Wall-clock seconds of all tests in their order, as far as they ran.
    """

    tests: tuple[TestRun, ...] = ()
    import_lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    kinds: Mapping[str, ObservedKinds] = field(default_factory=dict)
    collect_s: float = 0.0
    collection_errors: int = 0
    calls: tuple[ObservedCall, ...] = ()
    collected: tuple[str, ...] = ()
    failing_in_suite: frozenset[str] = frozenset()
    target_tests: tuple[str, ...] = ()
    disagreements: tuple[TrialDisagreement, ...] = ()
    compared: int = 0
    traced: int = 0
    untraced: int = 0
    suite_s: float = 0.0

    @property
    def failing(self) -> tuple[TestRun, ...]:
        """The failing tests, without those that fail only when they run alone."""
        failed = tuple(test for test in self.tests if test.failed)
        return tuple(test for test in failed if test.id in self.failing_in_suite) or failed


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate change of one file that can be tried.

    Attributes:
        score: How likely it is a repair, for ordering.
        is_swappable: Whether a process that has imported the file can be given the new code.
    """

    path: str
    edits: tuple[Edit, ...]
    label: str
    score: float
    operators: tuple[str, ...]
    is_swappable: bool = True


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The outcome of trying one candidate.

    Attributes:
        passing: Number of target tests that pass.
        failing: Number of target tests that still fail.
        broken: 1 if another test fails, otherwise 0.
        broken_test: Id of that test; empty if it is not known.
        is_plausible: Whether all tests ran and none failed.
        timed_out: Whether the trial was killed because a test did not end.
        failures: How far the failing tests got, in the order of the run.
        now_passing: Ids of target tests that pass.
        is_pending: Whether the target tests pass and the others could not be run yet.
        lines: The lines that failing tests ran with the candidate, if they were recorded.
        is_unsettled: Whether the candidate must be tried again, alone.
    """

    passing: int
    failing: int
    broken: int
    is_plausible: bool
    timed_out: bool
    failures: tuple[FailurePoint, ...] = ()
    now_passing: frozenset[str] = frozenset()
    is_pending: bool = False
    broken_test: str = ""
    lines: TestLines = field(default_factory=dict)
    is_unsettled: bool = False
