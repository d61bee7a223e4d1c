"""Certify a repaired candidate: minimise it, measure how well the tests guard it, and write the certificate.

A measurement that there is no time for is marked as unmeasured in the certificate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from suture.agents.context.failure_causes import count_deciding_checks
from suture.core.records import Candidate, FailingGeneratedTest, UnmeasuredReason, Verdict
from suture.errors import BudgetExceeded
from suture.judge import Suite, check_candidate
from suture.judge.coverage.coverage_run import CoverageResult, measure_coverage
from suture.judge.differential.memorised_examples import ExampleSearch, find_memorised_examples
from suture.judge.minimisation.delta_debugging import (
    MinimisationSummary,
    MinimisedChange,
    find_unneeded_removals,
    minimise,
    minimise_lines,
)
from suture.judge.minimisation.equivalence import ChangeBehaviour
from suture.judge.mutation_testing.mutant_runs import (
    MutationResult,
    find_mutable_lines,
    measure_mutation_score,
    open_mutant_detector,
)
from suture.judge.quality.built_in_evaluators import LintResult, lint_changes
from suture.judge.signs import FileSign, TamperingWarning
from suture.judge.trials.changed_code import ChangedCode, open_changed_code
from suture.loop.context import RunContext
from suture.loop.evaluation.certificate_building import (
    CertificationFindings,
    build_certificate,
    estimate_result_confidence,
    rate_certificate,
    write_certificate,
)
from suture.loop.evaluation.change_warnings import (
    ChangeWarnings,
    describe_unfinished_search,
    find_capabilities,
    find_warnings,
)
from suture.loop.evaluation.flaky_repairs import list_diagnoses
from suture.loop.evaluation.judging import judge
from suture.project.workspace import decode_text, overlay_candidate, unified_diff

FULL_DIFF_FILE = "full.diff"
"""The complete change, in the run folder, if minimisation left out a part of it."""
MAX_EXAMPLES_SHARE = 0.5
"""Share of the time that is left for the search for memorised examples; the rest is for the mutants. By judgement."""
MAX_CONCURRENT_SUITE_S = 2.0
"""Wall-clock seconds of the suite up to which the search for memorised examples and the mutants run side by side. By
judgement: the mutants of a slow suite would take the time of the search."""

MeasureT = TypeVar("MeasureT")
DefaultT = TypeVar("DefaultT")


@dataclass(frozen=True, kw_only=True)
class CertifiedCandidate:
    """The smallest part of a repaired candidate that still passes, its verdict, and the confidence in it.

    Attributes:
        warnings: Why the result is worth less than its checks say.
        is_undetermined: Whether the tests do not decide that this repair is right.
        mutation: How well the tests guard the change.
        failing_tests: Tests by a model that fail on the candidate and decided nothing.
    """

    candidate: Candidate
    verdict: Verdict
    confidence: float
    warnings: ChangeWarnings
    is_undetermined: bool = False
    mutation: MutationResult = field(default_factory=MutationResult)
    failing_tests: tuple[FailingGeneratedTest, ...] = ()


class CertificationDeadline:
    """The share of the run's time that certification may use.

    Attributes:
        cause: Why something cannot be measured once the time is up: the setting's limit, or the run's own.
    """

    def __init__(self, context: RunContext) -> None:
        left_s = context.budget.remaining_s()
        limit_s = context.settings.certification.seconds
        is_run_over_first = left_s is not None and left_s < limit_s
        self.cause: UnmeasuredReason = "no_time" if is_run_over_first else "certification_seconds"
        self._end_s = time.monotonic() + (left_s if left_s is not None and is_run_over_first else limit_s)

    def remaining_s(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self._end_s - time.monotonic())

    async def within(
        self, measure: Callable[[], Awaitable[MeasureT]], default: DefaultT, *, reserve_s: float = 0.0
    ) -> MeasureT | DefaultT:
        """Return what `measure` returns, or `default` if the time is up first.

        Args:
            reserve_s: Seconds to keep for what comes after.
        """
        left_s = self.remaining_s() - reserve_s
        if left_s <= 0:
            return default
        try:
            async with asyncio.timeout(left_s) as scope:
                return await measure()
        except TimeoutError:
            if not scope.expired():
                raise
            return default


async def certify(
    candidate: Candidate,
    verdict: Verdict,
    baseline: Verdict | None,
    suite: Suite,
    context: RunContext,
    failing_tests: tuple[FailingGeneratedTest, ...] = (),
) -> CertifiedCandidate:
    """Minimise a candidate that passes every deciding check, and write its certificate into the run folder.

    There is no certificate if a setting (`loop.abstain_below`, `loop.strict`) rejects the repair, or if it repairs a
    flaky test.

    Args:
        baseline: The verdict on the user's code, if there is any.
        failing_tests: Tests by a model that fail on the candidate and decided nothing. The certificate claims
            them.
    """
    findings = await _investigate(candidate, verdict, baseline, suite, context, failing_tests)
    candidate, threshold = findings.candidate, context.trust_threshold
    has_rivals = bool(findings.rivals or findings.has_weak_tests)
    certified = CertifiedCandidate(
        candidate=candidate,
        verdict=findings.verdict,
        confidence=estimate_result_confidence(findings, threshold),
        warnings=findings.warnings,
        is_undetermined=context.candidates.find_choice(candidate) is None and has_rivals,
        mutation=findings.mutation,
        failing_tests=failing_tests,
    )
    confidence = rate_certificate(findings, threshold)
    is_refused = certified.is_undetermined and context.settings.loop.strict
    # A certificate of a flaky test could not be replayed: the test may pass before the change.
    is_flaky = bool(list_diagnoses(context))
    if confidence >= context.settings.loop.abstain_below and not is_refused and not is_flaky:
        write_certificate(context, build_certificate(findings, confidence, context))
    return certified


async def _investigate(
    candidate: Candidate,
    verdict: Verdict,
    baseline: Verdict | None,
    suite: Suite,
    context: RunContext,
    failing_tests: tuple[FailingGeneratedTest, ...],
) -> CertificationFindings:
    """Minimise a candidate, and measure what its certificate states, as far as the time allows."""
    deadline = CertificationDeadline(context)
    minimal = MinimisationSummary()
    proposal = context.candidates.find_proposal(candidate.hash)
    removals: list[FileSign] = []
    # A flaky test may pass by chance without a part that the repair needs.
    if baseline is not None and deadline.remaining_s() > 0 and not list_diagnoses(context):
        check = _PartCheck(
            candidate=candidate,
            verdict=verdict,
            baseline=baseline,
            suite=suite,
            deadline=deadline,
            context=context,
        )
        candidate, verdict, minimal = await _minimise(check)
        removals = await _list_removal_signs(candidate, check)
    fixed = _find_fixed(verdict, baseline)
    memorised, coverage, mutation, lint = await _measure(
        candidate, verdict, baseline, suite, deadline, context
    )
    rivals, share = context.candidates.count_rivals(
        context.candidates.without_equal_rival(proposal, candidate)
    )
    warnings = find_warnings(candidate, verdict, context, (*removals, *memorised.signs), suite=suite)
    if context.settings.certification.seconds > 0:
        remarks = (*warnings.remarks, *describe_unfinished_search(memorised))
        warnings = replace(warnings, remarks=remarks)
    return CertificationFindings(
        candidate=candidate,
        verdict=verdict,
        baseline=baseline,
        suite=suite,
        fixed=fixed,
        minimal=minimal,
        memorised=memorised,
        coverage=coverage,
        mutation=mutation,
        lint=lint,
        rivals=rivals,
        share=share,
        agreement=proposal.agreement if proposal else None,
        warnings=warnings,
        capabilities=find_capabilities(candidate, verdict, context),
        has_weak_tests=context.task.kind == "heal" and mutation.shows_weak_tests,
        failing_tests=failing_tests,
    )


async def measure_mutants(
    candidate: Candidate,
    verdict: Verdict,
    baseline: Verdict | None,
    suite: Suite,
    context: RunContext,
    *,
    timeout_s: float,
    code: ChangedCode | None = None,
) -> MutationResult:
    """Return how well the tests guard a candidate that passes; a complete measurement is made once in a run.

    Args:
        baseline: The verdict on the user's code, if there is any.
        timeout_s: Wall-clock seconds.
        code: The changed code, if it is open already.
    """
    known = context.mutation_results.get(candidate.hash)
    if known is not None:
        return known
    if suite.diagnostics is not None and (suite.command is None or candidate.origin == "fix"):
        return MutationResult(unmeasured="no_tests" if suite.command is None else "tool_fix")
    base, language = context.task.files, context.task.language
    after = overlay_candidate(base, candidate.files)
    fixed = _find_fixed(verdict, baseline)
    suite_with_packages, _ = await suite.install_packages(after)
    async with open_mutant_detector(
        suite_with_packages, candidate.files, verdict, fixed, code=code
    ) as find_noticed:
        result = await measure_mutation_score(
            after,
            find_mutable_lines(base, after, language),
            find_noticed,
            max_mutants=context.settings.certification.mutants,
            timeout_s=timeout_s,
            language=language,
        )
    if result.unmeasured is None:
        context.mutation_results[candidate.hash] = result
    return result


def _find_fixed(verdict: Verdict, baseline: Verdict | None) -> tuple[str, ...]:
    """Return the ids of the checks that pass only with the candidate."""
    return tuple(sorted(verdict.passed - (baseline.passed if baseline else frozenset())))


async def _measure(
    candidate: Candidate,
    verdict: Verdict,
    baseline: Verdict | None,
    suite: Suite,
    deadline: CertificationDeadline,
    context: RunContext,
) -> tuple[ExampleSearch, CoverageResult, MutationResult, LintResult]:
    """Measure coverage and lint findings beside the search for memorised examples, and then the mutation score."""
    base, fixed = context.task.files, _find_fixed(verdict, baseline)
    after = overlay_candidate(base, candidate.files)
    suite_with_packages, _ = await suite.install_packages(after)

    async def measure_mutation(code: ChangedCode | None) -> MutationResult:
        result = await measure_mutants(
            candidate, verdict, baseline, suite, context, timeout_s=deadline.remaining_s(), code=code
        )
        return replace(result, unmeasured=deadline.cause) if result.unmeasured == "no_time" else result

    async with open_changed_code(suite_with_packages, candidate.files, fixed, verdict.passed) as code:
        coverage = asyncio.create_task(
            deadline.within(
                lambda: measure_coverage(suite_with_packages, after, fixed=fixed, code=code),
                CoverageResult(unmeasured=deadline.cause),
            )
        )
        lint = asyncio.create_task(
            deadline.within(
                lambda: lint_changes(base, after, suite.sandbox, suite.settings, context.interpreter),
                LintResult(unmeasured=deadline.cause),
            )
        )
        examples_s = deadline.remaining_s() * MAX_EXAMPLES_SHARE
        # What is found within the time counts.
        memorised = asyncio.create_task(
            find_memorised_examples(candidate, suite, fixed, total_s=examples_s, code=code)
        )
        try:
            if verdict.wall_s > MAX_CONCURRENT_SUITE_S:
                await asyncio.wait([memorised])  # the mutants take all the time that is left
            mutation = await deadline.within(
                lambda: measure_mutation(code), MutationResult(unmeasured=deadline.cause)
            )
            return await memorised, await coverage, mutation, await lint
        finally:
            for task in (memorised, coverage, lint):
                task.cancel()
            await asyncio.gather(memorised, coverage, lint, return_exceptions=True)


@dataclass(kw_only=True)
class _PartCheck:
    """Checks whether parts of a candidate that passes still pass."""

    candidate: Candidate
    verdict: Verdict
    baseline: Verdict
    suite: Suite
    deadline: CertificationDeadline
    context: RunContext
    ran_out_of_time: bool = False

    def accepts(self, verdict: Verdict) -> bool:
        """Return whether everything passes that passes with the whole candidate."""
        _, failed, regressed = count_deciding_checks(verdict, self.baseline, self.context.trust_threshold)
        return not failed and not regressed and self.verdict.passed <= verdict.passed

    async def __call__(self, files: Mapping[str, str]) -> bool:
        """Return whether a part passes; false if there is no time to know."""
        part = replace(self.candidate, files=dict(files))
        # The time of two runs is kept, because the smallest part is judged once more.
        verdict = await self.deadline.within(
            lambda: check_candidate(part, self.suite), None, reserve_s=2 * self.verdict.wall_s
        )
        self.ran_out_of_time = self.ran_out_of_time or verdict is None
        return verdict is not None and self.accepts(verdict)


async def _list_removal_signs(candidate: Candidate, check: _PartCheck) -> list[FileSign]:
    """Return a sign for code that an author's change removes although all tests pass with it, too."""
    if candidate.origin in ("mutation", "fix"):  # it is minimal, or what the user's own tool does
        return []
    before, files = check.context.task.files, dict(candidate.files)
    removals = await find_unneeded_removals(before, files, check)
    return [
        (path, TamperingWarning(code="removal_unneeded", names=(f"line {line}",))) for path, line in removals
    ]


async def _minimise(check: _PartCheck) -> tuple[Candidate, Verdict, MinimisationSummary]:
    """Return the smallest part of a candidate that passes, judged like any other candidate."""
    candidate, verdict, suite, context = check.candidate, check.verdict, check.suite, check.context
    base, deadline = context.task.files, check.deadline
    files = overlay_candidate(base, candidate.files)
    changed = {path: decode_text(files[path]) for path in candidate.files if base.get(path) != files[path]}
    minimised = await _find_minimal_change(check, changed)
    is_minimal = minimised.summary.is_minimal and not check.ran_out_of_time
    summary = replace(minimised.summary, is_minimal=is_minimal)
    if overlay_candidate(base, minimised.files) == files:
        return candidate, verdict, summary
    label = f"{candidate.label}, {summary.edits} of {summary.edits_found} edits".lstrip(", ")
    smaller = Candidate(files=minimised.files, origin=candidate.origin, parent=candidate.hash, label=label)
    try:
        smaller_verdict = await deadline.within(lambda: judge(smaller, suite, context, confirm=False), None)
    except BudgetExceeded:
        smaller_verdict = None
    if not smaller_verdict or not check.accepts(smaller_verdict):
        # There was no time, or a flaky test let the check leave out too much.
        return candidate, verdict, MinimisationSummary()
    if summary.left_out:
        context.folder.write_text(FULL_DIFF_FILE, unified_diff(base, files))
    return smaller, smaller_verdict, summary


async def _find_minimal_change(check: _PartCheck, changed: Mapping[str, str]) -> MinimisedChange:
    """Minimise a search's change line by line, and an author's change only in parts that stand alone."""
    candidate, context = check.candidate, check.context
    max_runs = context.settings.certification.minimising_runs
    if candidate.origin == "fix":
        return MinimisedChange(files=changed, summary=MinimisationSummary())
    if candidate.origin == "mutation":
        return await minimise_lines(context.task.files, changed, check, max_runs=max_runs)
    behaviour = ChangeBehaviour(suite=check.suite, files=changed, seed=context.settings.repair.seed)

    async def is_equivalent(files: Mapping[str, str]) -> bool:
        return await check.deadline.within(lambda: behaviour.is_kept_by(files), False)

    return await minimise(context.task.files, changed, check, max_runs=max_runs, is_equivalent=is_equivalent)
