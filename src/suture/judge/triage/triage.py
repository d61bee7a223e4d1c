"""Triage: find failing tests that no change of the code can fix, and say why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from suture.core.ledger.kinds import NonCodeFailure
from suture.core.records import CheckOutcome, FaultCause, Verdict
from suture.judge.suite import Suite
from suture.judge.triage.environment_faults import (
    EnvironmentFault,
    find_environment_fault,
    find_fault_in_line,
    find_internal_error,
    find_printed_errors,
    is_permanent_fault,
    strip_test_name,
)
from suture.judge.triage.order_dependence import Reruns, find_state_change
from suture.judge.triage.suspect_tests import (
    DocumentedResult,
    describe_unreadable_test,
    find_contradictions,
    find_documented_examples,
    find_endless_tests,
)
from suture.judge.tuning import MIN_RERUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR
from suture.project.languages import LANGUAGES
from suture.project.languages.diagnostics import TOOLS
from suture.project.workspace import decode_text, is_test_file

RerunFailures = Callable[[], Awaitable[frozenset[str]]]
"""Returns the ids of tests that fail in a further run of the same files."""
REPEATABLE_ERRORS = ("SyntaxError", "IndentationError", "TabError", "ImportError", "RecursionError")
"""Exceptions that occur again in every run, so that a rerun shows nothing new."""


@dataclass(frozen=True, kw_only=True)
class TriageResult:
    """The causes of the failing tests.

    Attributes:
        not_code: Failing tests for which the code is not at fault.
        code_failures: Ids of the other failing tests.
    """

    not_code: tuple[NonCodeFailure, ...] = ()
    code_failures: tuple[str, ...] = ()

    @property
    def cause(self) -> FaultCause | None:
        """Why there is nothing to repair; `None` if there is something.

        A suspect test ends a run even if there are real faults too: a repair of those would have to work
        around the test.
        """
        causes = Counter(failure.cause for failure in self.not_code)
        if causes["suspect_test"]:
            return "suspect_test"
        return causes.most_common(1)[0][0] if causes and not self.code_failures else None

    @property
    def ending_cause(self) -> FaultCause | None:
        """Why a run of the whole command ends here; `None` if a change could make all of it pass.

        A test that fails with any code ends the run too, because a search would find nothing.
        """
        permanent = (failure.cause for failure in self.not_code if failure.is_permanent)
        return self.cause or next(permanent, None)

    @property
    def reason(self) -> str:
        """The first test that ends the run, in one line for people; empty if none does."""
        failures = [failure for failure in self.not_code if failure.cause == self.ending_cause]
        if not failures:
            return ""
        shown = min(failures, key=lambda failure: not failure.is_permanent)  # a permanent one explains more
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        return f"{shown.test}{more}: {shown.explanation}; {shown.advice}"


async def triage_failures(
    suite: Suite, base: Verdict, rerun_failures: RerunFailures | None = None
) -> TriageResult:
    """Find the failing tests for which the unchanged code is not at fault.

    Args:
        suite: The task's checks, ready to run.
        base: The verdict on the unchanged files.
        rerun_failures: Returns the failing tests of a further run that was made for another reason. If it has
            all uncertain tests, no rerun is made here.

    Raises:
        SandboxError: The sandbox failed.
    """
    failed_ids = base.failed
    failing = [outcome for outcome in base.outcomes if outcome.check_id in failed_ids]
    reported = [outcome for outcome in failing if outcome.provenance == "tool"]
    if reported:
        tests = replace(base, outcomes=tuple(o for o in base.outcomes if o.provenance != "tool"))
        return _add_diagnostics(await triage_failures(suite, tests, rerun_failures), reported)
    if suite.command is None or not failing:
        return TriageResult(code_failures=tuple(outcome.check_id for outcome in failing))
    internal_error = None if base.passed else find_internal_error(base.output)
    if internal_error is not None:
        return TriageResult(
            not_code=tuple(
                NonCodeFailure(
                    test=outcome.check_id,
                    cause="environment",
                    explanation=internal_error.explanation,
                    advice=internal_error.advice,
                    is_permanent=True,
                )
                for outcome in failing
            )
        )
    files = suite.task.files
    code_texts = [
        decode_text(content)
        for path, content in files.items()
        if path.endswith(".py") and not is_test_file(path)
    ]
    documented = find_documented_examples(files)
    not_code: dict[str, NonCodeFailure] = {}
    find_fault = cache(
        partial(
            find_environment_fault, files=files, code_texts=code_texts, excluded=suite.task.excluded_files
        )
    )
    for outcome in failing:
        failure = (
            _check_environment(outcome, base, suite, find_fault)
            or _check_test_file(outcome, suite)
            or _check_docstrings(outcome, suite, documented)
        )
        if failure is not None:
            not_code[failure.test] = failure
    remaining = [outcome for outcome in failing if outcome.check_id not in not_code]
    uncertain = [outcome.check_id for outcome in remaining if _may_vary(outcome)]
    if uncertain and rerun_failures is not None and set(uncertain) <= await rerun_failures():
        uncertain = []
    if uncertain:
        timeout_s = max(MIN_RERUN_TIMEOUT_S, RERUN_TIMEOUT_FACTOR * base.wall_s)
        reruns = Reruns(suite=suite, command=suite.command, timeout_s=timeout_s)
        not_code |= await _check_by_reruns(uncertain, base, reruns)
        remaining = [outcome for outcome in remaining if outcome.check_id not in not_code]
    if not_code and all(outcome.status == "missing" for outcome in remaining):
        remaining = []  # the files that could not be loaded kept pytest from running them
    return TriageResult(
        not_code=tuple(not_code.values()), code_failures=tuple(outcome.check_id for outcome in remaining)
    )


async def triage_endless_tests(suite: Suite) -> TriageResult:
    """Find tests that never end, before the whole suite runs and waits for them.

    Args:
        suite: The suite, collected.

    Raises:
        SandboxError: The sandbox failed.
    """
    failures = [
        NonCodeFailure(
            test=test,
            cause="suspect_test",
            explanation=f"its own loop at line {line} has no end",
            advice="fix the test: no change of the code could end it",
        )
        for test, line in (await find_endless_tests(suite)).items()
    ]
    return TriageResult(not_code=tuple(failures))


def _add_diagnostics(tests: TriageResult, reported: Sequence[CheckOutcome]) -> TriageResult:
    """Return the causes of failing tests and of diagnostics, of which some report a package that is not installed."""
    codes = frozenset[str]().union(*(tool.missing_codes for tool in TOOLS))
    missing = [
        outcome for outcome in reported
        if outcome.counterexample is not None and outcome.counterexample.exception_type in codes
    ]  # fmt: skip
    not_code = tuple(
        NonCodeFailure(
            test=outcome.check_id,
            cause="environment",
            explanation="the tool finds no types of a package",
            advice="install the package, or its types, where the tool is installed",
            is_permanent=True,
        )
        for outcome in missing
    )
    code_failures = tuple(outcome.check_id for outcome in reported if outcome not in missing)
    return TriageResult(
        not_code=(*tests.not_code, *not_code), code_failures=(*tests.code_failures, *code_failures)
    )


def _check_test_file(outcome: CheckOutcome, suite: Suite) -> NonCodeFailure | None:
    explanation = describe_unreadable_test(outcome, suite.task.files, suite.test_files)
    if not explanation:
        return None
    return NonCodeFailure(
        test=outcome.check_id,
        cause="suspect_test",
        explanation=explanation,
        advice="fix the test file: Suture never changes tests",
    )


def _may_vary(outcome: CheckOutcome) -> bool:
    """Return whether a rerun could show another outcome."""
    fact = outcome.counterexample
    is_repeatable = fact is not None and (
        fact.code == "time_limit" or fact.exception.startswith(REPEATABLE_ERRORS)
    )
    return outcome.status in ("failed", "error") and not is_repeatable


def _check_environment(
    outcome: CheckOutcome, base: Verdict, suite: Suite, find_fault: Callable[[str], EnvironmentFault | None]
) -> NonCodeFailure | None:
    files, language = suite.task.files, suite.task.language
    fact = outcome.counterexample
    errors = [strip_test_name(fact.exception)] if fact else []
    if not LANGUAGES[language].parsed:
        output = base.output if outcome.evidence == "exit_status" else "\n".join(errors)
        lines = find_printed_errors(output, language)
        faults = [find_fault_in_line(line, files, language) for line in lines]
        return _make_environment_failure(outcome, faults)
    if outcome.evidence == "exit_status":
        # The command fails as a whole, so every error that it printed must be an environment fault.
        errors = [line.strip() for line in base.output.splitlines() if _is_error_line(line)]
    failure = _make_environment_failure(outcome, [find_fault(error) for error in errors])
    if failure is None:
        return None
    # An exception with a file went through the project's code, which another version may not do.
    is_outside_code = outcome.evidence != "exit_status" and fact is not None and not fact.file
    return replace(failure, is_permanent=is_outside_code and all(map(is_permanent_fault, errors)))


def _make_environment_failure(
    outcome: CheckOutcome, faults: Sequence[EnvironmentFault | None]
) -> NonCodeFailure | None:
    """Return the failure with its first fault, if every error of it is an environment fault."""
    first_fault = faults[0] if faults and all(faults) else None
    if first_fault is None:
        return None
    return NonCodeFailure(
        test=outcome.check_id,
        cause="environment",
        explanation=first_fault.explanation,
        advice=first_fault.advice,
    )


def _is_error_line(line: str) -> bool:
    kind = line.strip().partition(":")[0]
    return kind.isidentifier() and kind.endswith(("Error", "Exception"))


def _check_docstrings(
    outcome: CheckOutcome, suite: Suite, documented: Mapping[str, DocumentedResult]
) -> NonCodeFailure | None:
    contradictions = find_contradictions(outcome.check_id, suite.task.files, documented)
    if not contradictions:
        return None
    return NonCodeFailure(
        test=outcome.check_id,
        cause="suspect_test",
        explanation=contradictions[0].explanation,
        advice="one of the two is wrong: fix the test or the docstring",
    )


async def _check_by_reruns(
    tests: Sequence[str], base: Verdict, reruns: Reruns
) -> Mapping[str, NonCodeFailure]:
    """Find flaky and order-dependent tests. The code is at fault for tests that fail again, also alone."""
    failed, passed_alone = await reruns.split_failing_and_passing_alone(tests)
    failures: dict[str, NonCodeFailure] = {}
    varying = [test for test in tests if test not in failed]
    order_dependent: frozenset[str] = frozenset()
    if varying and reruns.command.is_pytest:  # other commands ran whole, with the tests in the same order
        failed_again = await reruns.find_failing(tests)
        order_dependent = await reruns.find_failing(()) - failed_again
    for test in varying:
        depends = test in order_dependent
        failures |= await _check_order(test, base, reruns) if depends else {test: _make_flaky(test)}
    for test in passed_alone - set(varying):
        # For a single test the two runs were the same, so its outcome varies.
        passes_again = len(tests) > 1 and not await reruns.find_failing([test])
        failures |= await _check_order(test, base, reruns) if passes_again else {test: _make_flaky(test)}
    steady = failed - passed_alone
    if steady and reruns.command.is_pytest:
        passed = await reruns.find_passing_with_other_hash_seed(steady)
        failures |= {test: _make_flaky(test) for test in tests if test in passed}
    return failures


async def _check_order(victim: str, base: Verdict, reruns: Reruns) -> Mapping[str, NonCodeFailure]:
    """Return the failure of a test that passes alone, if another test visibly changes the state it needs.

    If no test writes the shared state, the code itself keeps it between tests, and that is a fault of the code.
    """
    order = [outcome.check_id for outcome in base.outcomes]
    polluters = await reruns.find_polluters(victim, order[: order.index(victim)])
    statement = find_state_change(polluters, reruns.suite.task.files)
    if not statement:
        return {}
    failure = NonCodeFailure(
        test=victim,
        cause="order_dependent",
        explanation=f"it passes alone, and fails after {' and '.join(polluters)}, leaving `{statement}` behind",
        advice="let that test restore what it changes",
    )
    return {victim: failure}


def _make_flaky(test: str) -> NonCodeFailure:
    return NonCodeFailure(
        test=test,
        cause="flaky",
        explanation="it failed, and passed when it ran again on the same files",
        advice="make it deterministic first: otherwise a fix cannot be told from luck",
    )
