"""Triage: which failing tests no change of the code could mend, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from suture.core.records import CheckOutcome, FaultCause, Verdict
from suture.judge.suite import Suite
from suture.judge.triage.broken_tests import describe_unreadable_test, find_endless_tests
from suture.judge.triage.contradictions import Example, find_contradictions, find_documented_examples
from suture.judge.triage.environment_faults import (
    fault_in_line,
    fault_of_surroundings,
    find_printed_errors,
    stays,
)
from suture.judge.triage.missing_plugins import without_test
from suture.judge.triage.pollution import find_shared_state_write
from suture.judge.triage.reruns import Reruns
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import parsed
from suture.project.workspace import is_test_file, text_of

RerunFailures = Callable[[], Awaitable[frozenset[str]]]
LEAST_WALL_S = 5.0
"""Seconds for a rerun at least, however short the first run was."""
SLOWER = 3
"""A rerun may take this many times as long as the first run did."""
COME_BACK = ("SyntaxError", "IndentationError", "TabError", "ImportError", "RecursionError")
"""Faults that come back as they are, and what took all of its time: no run tells more about them."""


@dataclass(frozen=True, kw_only=True)
class NonCodeFailure:
    """A failing test that no change of the code could mend.

    Attributes:
        test: The test's id.
        cause: The kind of fault that no change of the code could mend.
        why: What was seen, in words.
        advice: What the user can do.
        stays: Whether it fails so whatever the code is, and not only as the code is now.
    """

    test: str
    cause: FaultCause
    why: str
    advice: str
    stays: bool = False


@dataclass(frozen=True, kw_only=True)
class TriageResult:
    """What the failing tests turned out to be.

    Attributes:
        set_apart: Those that fail for another reason than the code.
        others: The failing tests that remain; they are the code's.
    """

    not_code: tuple[NonCodeFailure, ...] = ()
    code_failures: tuple[str, ...] = ()

    @property
    def cause(self) -> FaultCause | None:
        """Why there is nothing to repair; `None` where there is.

        A test that contradicts its own documentation, cannot be read, or never ends, ends a run also beside
        real faults: whoever repaired them would have to repair around it.
        """
        causes = Counter(found.cause for found in self.not_code)
        if causes["suspect_test"]:
            return "suspect_test"
        return causes.most_common(1)[0][0] if causes and not self.code_failures else None

    @property
    def ending_cause(self) -> FaultCause | None:
        """Why a run of the whole command ends here; `None` where a change could make all of it pass.

        Beside faults of the code, too, where a test is sure to go on failing: a search would be in vain.
        """
        return self.cause or next((found.cause for found in self.not_code if found.stays), None)

    @property
    def reason(self) -> str:
        """The first test that ends the run, in one line; empty where none does."""
        of_cause = [found for found in self.not_code if found.cause == self.ending_cause]
        of_cause.sort(key=lambda found: not found.stays)
        if not of_cause:
            return ""
        more = f" (and {len(of_cause) - 1} more)" if len(of_cause) > 1 else ""
        return f"{of_cause[0].test}{more}: {of_cause[0].why}; {of_cause[0].advice}"


async def triage_failures(
    suite: Suite, base: Verdict, failed_again: RerunFailures | None = None
) -> TriageResult:
    """Look into the failures of the task's own files. Nothing is changed.

    Args:
        suite: The task's checks, ready to run.
        base: Its verdict on the task's own files.
        failed_again: Ids of tests that fail in a further run of the same files, made for another reason:
            where that says it of all of them, none is made here.

    Raises:
        SandboxError: The wall failed.
    """
    failed = base.failed
    failing = [o for o in base.outcomes if o.check_id in failed]
    if suite.command is None or not failing:
        return TriageResult(code_failures=tuple(o.check_id for o in failing))
    files = suite.task.files
    code = [text_of(c) for p, c in files.items() if p.endswith(".py") and not is_test_file(p)]
    documented = find_documented_examples(files)
    found: dict[str, NonCodeFailure] = {}
    why = cache(partial(fault_of_surroundings, files=files, written=code, left_out=suite.task.excluded_files))
    for outcome in failing:
        apart = _from_surroundings(outcome, base, suite, why)
        apart = apart or _from_text(outcome, suite) or _from_docstrings(outcome, suite, documented)
        if apart is not None:
            found[apart.test] = apart
    uncertain = [o.check_id for o in failing if o.check_id not in found and _may_differ(o)]
    if uncertain and failed_again is not None and {*uncertain} <= await failed_again():
        uncertain = []
    if uncertain:
        wall_s = max(LEAST_WALL_S, SLOWER * base.wall_s)
        reruns = Reruns(suite=suite, command=suite.command, wall_s=wall_s)
        found |= await _from_reruns(uncertain, base, reruns)
    others = tuple(o.check_id for o in failing if o.check_id not in found)
    if found and all(o.status == "missing" for o in failing if o.check_id not in found):
        others = ()  # what could not be loaded has kept pytest from running them
    return TriageResult(not_code=tuple(found.values()), code_failures=others)


async def triage_endless_tests(suite: Suite) -> TriageResult:
    """Look for tests that cannot end, before the whole suite is run and waits for them.

    Args:
        suite: The suite, collected.

    Raises:
        SandboxError: The wall failed.
    """
    advice = "mend the test: no change of the code could end it"
    found = [
        NonCodeFailure(
            test=test, cause="suspect_test", why=f"its own loop at line {line} has no end", advice=advice
        )
        for test, line in (await find_endless_tests(suite)).items()
    ]
    return TriageResult(not_code=tuple(found))


def _from_text(outcome: CheckOutcome, suite: Suite) -> NonCodeFailure | None:
    why = describe_unreadable_test(outcome, suite.task.files, suite.test_files)
    if not why:
        return None
    advice = "mend the test file: tests are never changed here"
    return NonCodeFailure(test=outcome.check_id, cause="suspect_test", why=why, advice=advice)


def _may_differ(outcome: CheckOutcome) -> bool:
    fact = outcome.counterexample
    is_steady = fact is not None and (fact.code == "time_limit" or fact.exception.startswith(COME_BACK))
    return outcome.status in ("failed", "error") and not is_steady


def _from_surroundings(
    outcome: CheckOutcome, base: Verdict, suite: Suite, why: Callable[[str], tuple[str, str] | None]
) -> NonCodeFailure | None:
    files = suite.task.files
    raised = [without_test(outcome.counterexample.exception)] if outcome.counterexample else []
    if not LANGUAGES[suite.task.language].parsed:
        said = base.output if outcome.evidence == "exit_status" else "\n".join(raised)
        lines = find_printed_errors(said, suite.task.language)
        return _environment(outcome, [fault_in_line(line, files, suite.task.language) for line in lines])
    if outcome.evidence == "exit_status":  # the command as a whole: every error that it printed must be one
        raised = [line.strip() for line in base.output.splitlines() if _is_error(line)]
    apart = _environment(outcome, [why(line) for line in raised])
    return apart and replace(apart, stays=_is_outside(outcome) and all(map(stays, raised)))


def _is_outside(outcome: CheckOutcome) -> bool:
    """Whether what it raised came through no line of the project but its tests'."""
    raised = outcome.counterexample
    return outcome.evidence != "exit_status" and raised is not None and not raised.file


def _environment(outcome: CheckOutcome, causes: Sequence[tuple[str, str] | None]) -> NonCodeFailure | None:
    """A failure whose every error is one of the surroundings."""
    if not causes or None in causes:
        return None
    why, advice = next(cause for cause in causes if cause is not None)
    return NonCodeFailure(test=outcome.check_id, cause="environment", why=why, advice=advice)


def _is_error(line: str) -> bool:
    kind = line.strip().partition(":")[0]
    return kind.isidentifier() and kind.endswith(("Error", "Exception"))


def _from_docstrings(
    outcome: CheckOutcome, suite: Suite, documented: Mapping[str, Example]
) -> NonCodeFailure | None:
    found = find_contradictions(outcome.check_id, suite.task.files, documented)
    if not found:
        return None
    advice = "one of the two is wrong: mend the test, or the docstring"
    return NonCodeFailure(test=outcome.check_id, cause="suspect_test", why=str(found[0]), advice=advice)


async def _from_reruns(tests: Sequence[str], base: Verdict, reruns: Reruns) -> Mapping[str, NonCodeFailure]:
    """Tests that fail once more together, and each by itself, are the code's."""
    failed, passed_alone = await reruns.fail_and_pass_alone(tests)
    found: dict[str, NonCodeFailure] = {}
    unsteady = [test for test in tests if test not in failed]
    ordered: frozenset[str] = frozenset()
    if unsteady and reruns.command.is_pytest:  # others run whole: the order of their tests was the same
        again, among_all = await reruns.fail_of(tests), await reruns.fail_among_all()
        ordered = among_all - again
    for test in unsteady:
        found |= await _by_order(test, base, reruns) if test in ordered else {test: _flaky(test)}
    for test in passed_alone - set(unsteady):
        # Where it is the only one, both runs were the same one.
        steadily = len(tests) > 1 and not await reruns.fail_of([test])
        found |= await _by_order(test, base, reruns) if steadily else {test: _flaky(test)}
    return found


async def _by_order(victim: str, base: Verdict, reruns: Reruns) -> Mapping[str, NonCodeFailure]:
    """A test that passes by itself: set apart only where another test is seen to disturb it.

    Where no test writes what they share, the code keeps the state, and that is a fault of the code's.
    """
    order = [outcome.check_id for outcome in base.outcomes]
    polluter = await reruns.polluter_of(victim, order[: order.index(victim)])
    path, _, name = polluter.partition("::")
    tree = parsed(reruns.suite.task.files.get(path, b"")) if polluter else None
    statement = find_shared_state_write(tree, name.partition("[")[0].split("::")[-1]) if tree else ""
    if not statement:
        return {}
    why = f"it passes by itself, and fails after {polluter}, which leaves `{statement}` behind"
    advice = "let that test put back what it changes"
    return {victim: NonCodeFailure(test=victim, cause="order_dependent", why=why, advice=advice)}


def _flaky(test: str) -> NonCodeFailure:
    why = "it failed, and passed when it ran again on the same files"
    return NonCodeFailure(
        test=test, cause="flaky", why=why, advice="make it steady first: no fix could be told from luck"
    )
