"""Certify a repaired candidate: minimise it, measure how well the tests guard it, and write the certificate.

A measurement that there is no time for is marked as unmeasured in the certificate.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TypeVar

from suture.agents.context.failure_causes import count_deciding_checks
from suture.core.ledger import select_events
from suture.core.ledger.kinds import CertificateWritten, ModelCalled
from suture.core.records import Candidate, FailingGeneratedTest, Verdict, content_hash
from suture.errors import BudgetExceeded
from suture.judge import Suite, check_candidate
from suture.judge.certificates.certificate import (
    CERTIFICATE_FILE,
    FORMAT,
    Certificate,
    UnverifiedClaims,
    check_statuses,
    find_new_failures,
    list_sign_codes,
    render_certificate,
    seal_certificate,
    sha256_hex,
    strip_task,
)
from suture.judge.confidence import (
    compute_certified_confidence,
    estimate_confidence,
    limit_confidence_for_weak_tests,
)
from suture.judge.coverage.coverage_run import CoverageResult, measure_coverage
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.minimisation.delta_debugging import (
    ChangeOracle,
    MinimisationSummary,
    MinimisedChange,
    find_unneeded_removals,
    minimise,
    minimise_lines,
)
from suture.judge.minimisation.equivalence import ChangeBehaviour
from suture.judge.mutation_testing.mutant_runs import (
    MutationResult,
    build_mutant_detector,
    find_mutable_lines,
    measure_mutation_score,
)
from suture.judge.quality.built_in_evaluators import LintResult, lint_changes
from suture.judge.signs import FileSign, TamperingWarning
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import (
    ChangeWarnings,
    describe_unfinished_search,
    find_capabilities,
    find_warnings,
)
from suture.loop.evaluation.flaky_repairs import list_diagnoses
from suture.loop.evaluation.judging import judge
from suture.loop.tuning import MAX_LISTED_FINDINGS
from suture.project.recorded_task import get_accepted_files
from suture.project.workspace import decode_text, overlay_candidate, unified_diff

FULL_DIFF_FILE = "full.diff"
"""The complete change, in the run folder, if minimisation left out a part of it."""
CODE_ASKERS = ("coder", "escalate", "subtask_coder")
"""Who asks for the code of a candidate, as `ModelCalled.role` names it. Why the optimiser is not among them is not
recorded."""
MAX_EXAMPLES_SHARE = 0.5
"""Share of the time that is left for the search for memorised examples; the rest is for the mutants. By judgement."""

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


class CertificationClock:
    """The share of the run's time that certification may use."""

    def __init__(self, context: RunContext) -> None:
        left_s = context.budget.remaining_s()
        limit_s = context.settings.certification.seconds
        self._end_s = time.monotonic() + (limit_s if left_s is None else min(limit_s, left_s))

    def left_s(self) -> float:
        """Return the seconds that are left."""
        return max(0.0, self._end_s - time.monotonic())

    async def within(
        self, measure: Callable[[], Awaitable[MeasureT]], default: DefaultT, *, reserve_s: float = 0.0
    ) -> MeasureT | DefaultT:
        """Return what `measure` returns, or `default` if the time is up first.

        Args:
            reserve_s: Seconds to keep for what comes after.
        """
        left_s = self.left_s() - reserve_s
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
    clock = CertificationClock(context)
    minimal = MinimisationSummary()
    proposal = context.candidates.find_proposal(candidate.hash)
    removals: list[FileSign] = []
    # A flaky test may pass by chance without a part that the repair needs.
    if baseline is not None and clock.left_s() > 0 and not list_diagnoses(context):
        oracle = _PartOracle(
            candidate=candidate, verdict=verdict, baseline=baseline, suite=suite, clock=clock, context=context
        )
        candidate, verdict, minimal = await _minimise(oracle)
        removals = await _find_unneeded_removals(candidate, oracle)
    base = context.task.files
    after = overlay_candidate(base, candidate.files)
    fixed = _find_fixed(verdict, baseline)
    # Before the mutants, which take all the time that is left. What is found within the time counts.
    memorised = await find_memorised_examples(
        candidate, suite, fixed, total_s=clock.left_s() * MAX_EXAMPLES_SHARE
    )
    coverage, mutation, lint = await _measure(candidate, verdict, baseline, suite, clock, context)
    threshold, score = context.trust_threshold, mutation.min_score
    rivals, share = context.candidates.count_rivals(proposal)
    certified_share = (share or 0.0) if rivals else 0.0  # In a certificate, 0 says that there is no share.
    confidence = estimate_confidence(
        verdict,
        threshold,
        checks=suite.task.checks,
        before=baseline,
        mutation_score=score,
        rivals=rivals,
        share=share,
    )
    has_weak_tests = context.task.kind == "heal" and mutation.shows_weak_tests
    confidence = limit_confidence_for_weak_tests(confidence) if has_weak_tests else confidence
    warnings = find_warnings(candidate, verdict, context, (*removals, *memorised.signs), suite=suite)
    if context.settings.certification.seconds > 0:
        remarks = (*warnings.remarks, *describe_unfinished_search(memorised))
        warnings = replace(warnings, remarks=remarks)
    capabilities = find_capabilities(candidate, verdict, context)
    # Unlike the confidence of the result, `suture verify` can compute it from the certificate alone.
    certified_confidence = compute_certified_confidence(
        verdict,
        threshold,
        checks=suite.task.checks,
        before=baseline,
        mutation_score=score,
        rivals=rivals or 0,
        share=certified_share,
        has_warnings=bool(warnings.texts),
        has_capabilities=bool(capabilities),
        has_limiting_signs=warnings.limits_confidence,
        has_failing_tests=bool(failing_tests),
        has_weak_tests=has_weak_tests,
    )
    is_undetermined = context.candidates.find_choice(candidate) is None and bool(rivals or has_weak_tests)
    certified = CertifiedCandidate(
        candidate=candidate,
        verdict=verdict,
        confidence=confidence,
        warnings=warnings,
        is_undetermined=is_undetermined,
        mutation=mutation,
        failing_tests=failing_tests,
    )
    rival_labels = context.candidates.describe_rivals(candidate)
    is_refused = is_undetermined and context.settings.loop.strict
    # A certificate of a flaky test could not be replayed: the test may pass before the change.
    is_flaky = bool(list_diagnoses(context))
    if certified_confidence < context.settings.loop.abstain_below or is_refused or is_flaky:
        return certified
    hashes = {path: sha256_hex(content) for path, content in base.items()}
    certificate = Certificate(
        task=strip_task(suite.task),
        source_roots=suite.command.interpreter.source_roots if suite.command else (),
        project=hashes,
        project_hash=content_hash(hashes),
        diff=unified_diff(base, after),
        result={path: sha256_hex(content) for path, content in after.items() if base.get(path) != content},
        evidence=verdict.evidence,
        before=check_statuses(baseline),
        after=check_statuses(verdict),
        fixed=fixed,
        newly_failing=find_new_failures(baseline, verdict),
        flaky_tests=tuple(sorted(suite.flaky_tests)),
        coverage=coverage,
        mutation=mutation,
        capabilities=capabilities,
        confidence=certified_confidence,
        claims=replace(
            _collect_claims(context, candidate, minimal, lint),
            rivals=rivals or 0,
            share=certified_share,
            rival_labels=rival_labels,
            warnings=warnings.texts,
            failing_tests=tuple(test.test for test in failing_tests[:MAX_LISTED_FINDINGS]),
            signs=list_sign_codes(warnings.signs),
            examples_unmeasured=memorised.unmeasured,
            agreement=proposal.agreement if proposal else None,
        ),
    )
    _write_certificate(context, seal_certificate(certificate))
    return certified


async def measure_mutants(
    candidate: Candidate,
    verdict: Verdict,
    baseline: Verdict | None,
    suite: Suite,
    context: RunContext,
    *,
    timeout_s: float,
) -> MutationResult:
    """Return how well the tests guard a candidate that passes; a complete measurement is made once in a run.

    Args:
        baseline: The verdict on the user's code, if there is any.
        timeout_s: Wall-clock seconds.
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
    detector = await build_mutant_detector(suite_with_packages, candidate.files, verdict, fixed)
    result = await measure_mutation_score(
        after,
        find_mutable_lines(base, after, language),
        detector,
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
    clock: CertificationClock,
    context: RunContext,
) -> tuple[CoverageResult, MutationResult, LintResult]:
    """Measure coverage, mutation score and lint findings side by side."""
    base = context.task.files
    after = overlay_candidate(base, candidate.files)
    suite_with_packages, _ = await suite.install_packages(after)

    async def measure_mutation() -> MutationResult:
        return await measure_mutants(candidate, verdict, baseline, suite, context, timeout_s=clock.left_s())

    no_coverage = CoverageResult(unmeasured="no_time")
    coverage = asyncio.create_task(
        clock.within(
            lambda: measure_coverage(suite_with_packages, after, fixed=_find_fixed(verdict, baseline)),
            no_coverage,
        )
    )
    mutation = asyncio.create_task(clock.within(measure_mutation, MutationResult(unmeasured="no_time")))
    try:
        lint = await clock.within(
            lambda: lint_changes(base, after, suite.sandbox, suite.settings, context.interpreter),
            LintResult(unmeasured="no_time"),
        )
        return await coverage, await mutation, lint
    finally:
        coverage.cancel()
        mutation.cancel()
        await asyncio.gather(coverage, mutation, return_exceptions=True)


@dataclass(kw_only=True)
class _PartOracle:
    """Judges parts of a candidate that passes."""

    candidate: Candidate
    verdict: Verdict
    baseline: Verdict
    suite: Suite
    clock: CertificationClock
    context: RunContext
    ran_out_of_time: bool = False

    def accepts(self, verdict: Verdict) -> bool:
        """Return whether everything passes that passes with the whole candidate."""
        _, failed, regressed = count_deciding_checks(verdict, self.baseline, self.context.trust_threshold)
        return not failed and not regressed and self.verdict.passed <= verdict.passed

    async def __call__(self, files: Mapping[str, str]) -> bool:
        """Return whether a part passes; false if there is no time to know."""
        part = replace(self.candidate, files=dict(files))
        # The smallest part is judged once more, so the time of two runs is kept. Why two is not recorded.
        verdict = await self.clock.within(
            lambda: check_candidate(part, self.suite), None, reserve_s=2 * self.verdict.wall_s
        )
        self.ran_out_of_time = self.ran_out_of_time or verdict is None
        return verdict is not None and self.accepts(verdict)


async def _find_unneeded_removals(candidate: Candidate, oracle: _PartOracle) -> list[FileSign]:
    """Return a sign for code that an author's change removes although all tests pass with it, too."""
    if candidate.origin in ("mutation", "fix"):  # it is minimal, or what the user's own tool does
        return []
    before, files = oracle.context.task.files, dict(candidate.files)
    removals = await find_unneeded_removals(before, files, oracle)
    return [
        (path, TamperingWarning(code="removal_unneeded", names=(f"line {line}",))) for path, line in removals
    ]


async def _minimise(oracle: _PartOracle) -> tuple[Candidate, Verdict, MinimisationSummary]:
    """Return the smallest part of a candidate that passes, judged like any other candidate."""
    candidate, verdict, suite, context = oracle.candidate, oracle.verdict, oracle.suite, oracle.context
    base, clock = context.task.files, oracle.clock
    files = overlay_candidate(base, candidate.files)
    changed = {path: decode_text(files[path]) for path in candidate.files if base.get(path) != files[path]}
    minimised = await _find_minimal_change(context, candidate, changed, oracle, suite, clock)
    is_minimal = minimised.summary.is_minimal and not oracle.ran_out_of_time
    summary = replace(minimised.summary, is_minimal=is_minimal)
    if overlay_candidate(base, minimised.files) == files:
        return candidate, verdict, summary
    label = f"{candidate.label}, {summary.edits} of {summary.edits_found} edits".lstrip(", ")
    smaller = Candidate(files=minimised.files, origin=candidate.origin, parent=candidate.hash, label=label)
    try:
        smaller_verdict = await clock.within(lambda: judge(smaller, suite, context, confirm=False), None)
    except BudgetExceeded:
        smaller_verdict = None
    if not smaller_verdict or not oracle.accepts(smaller_verdict):
        # There was no time, or a flaky test let the oracle leave out too much.
        return candidate, verdict, MinimisationSummary()
    if summary.left_out:
        context.folder.write_text(FULL_DIFF_FILE, unified_diff(base, files))
    return smaller, smaller_verdict, summary


async def _find_minimal_change(
    context: RunContext,
    candidate: Candidate,
    changed: Mapping[str, str],
    oracle: ChangeOracle,
    suite: Suite,
    clock: CertificationClock,
) -> MinimisedChange:
    """Minimise a search's change line by line, and an author's change only in parts that stand alone."""
    max_runs = context.settings.certification.minimising_runs
    if candidate.origin == "fix":
        return MinimisedChange(files=changed, summary=MinimisationSummary())
    if candidate.origin == "mutation":
        return await minimise_lines(context.task.files, changed, oracle, max_runs=max_runs)
    behaviour = ChangeBehaviour(suite=suite, files=changed, seed=context.settings.repair.seed)

    async def is_equivalent(files: Mapping[str, str]) -> bool:
        return await clock.within(lambda: behaviour.is_kept_by(files), False)

    return await minimise(context.task.files, changed, oracle, max_runs=max_runs, is_equivalent=is_equivalent)


def _collect_claims(
    context: RunContext, candidate: Candidate, minimal: MinimisationSummary, lint: LintResult
) -> UnverifiedClaims:
    settings, spend = context.settings, context.budget.spend()
    calls = [call for _, call in select_events(context.ledger.events, ModelCalled)]
    # There is more than one writing model if a stronger one has taken over.
    writing_models = dict.fromkeys(call.model for call in calls if call.role in CODE_ASKERS and call.model)
    limits = settings.sandbox.model_dump()
    return UnverifiedClaims(
        run=context.folder.id,
        suture=version("suture"),
        made_at_s=time.time(),
        model=", ".join(writing_models) or context.models.for_role("coder").model.name,
        seed=settings.model.seed,
        prompts=tuple(sorted({call.prompt for call in calls if call.prompt})),
        calls=tuple(call.call for call in calls),
        recipe=context.recipe.name,
        label=candidate.label,
        attempts=spend.attempts,
        tokens=spend.tokens,
        model_calls=spend.model_calls,
        seconds=round(spend.seconds, 3),
        python=context.interpreter.version if context.interpreter else "",
        limits={key: float(value) for key, value in limits.items() if isinstance(value, int | float)},
        accepted_tests=tuple(get_accepted_files(context.ledger.events)),
        minimal=minimal,
        lint=lint,
    )


def _write_certificate(context: RunContext, certificate: Certificate) -> None:
    # The run folder alone has to be enough to verify the certificate. It has the user's files in the task.
    recorded = context.spec.task.files
    for name, content in context.task.files.items():
        if recorded.get(name) != content:
            context.folder.save_blob(content)
    path = context.folder.write_text(CERTIFICATE_FILE, render_certificate(certificate))
    minimal, lint = certificate.claims.minimal, certificate.claims.lint
    context.ledger.append(
        CertificateWritten(
            format=FORMAT,
            file=str(path),
            seal=certificate.seal,
            fixed=len(certificate.fixed),
            edits=minimal.edits,
            edits_found=minimal.edits_found,
            is_minimal=minimal.is_minimal,
            left_out=tuple(minimal.left_out[:MAX_LISTED_FINDINGS]),
            statements=certificate.coverage.changed_count,
            covered=certificate.coverage.covered_count,
            coverage_unmeasured=certificate.coverage.unmeasured,
            mutants=len(certificate.mutation.mutants),
            selected=certificate.mutation.selected,
            killed=certificate.mutation.killed,
            mutation_unmeasured=certificate.mutation.unmeasured,
            lint=tuple(lint.findings[:MAX_LISTED_FINDINGS]),
            lint_unmeasured=lint.unmeasured,
            confidence=certificate.confidence,
        )
    )
