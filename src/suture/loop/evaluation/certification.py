"""From a healed candidate to its certificate: shrink it, measure how well it is guarded, write it all down.

Only the certificate itself is a must; what there was no time to measure is marked as unmeasured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from suture.core.ledger import select_events
from suture.core.ledger.kinds import CertificateWritten, ModelCalled
from suture.core.records import Candidate, Verdict, content_hash
from suture.errors import BudgetExceeded
from suture.judge import Suite, check_candidate
from suture.judge.certificates.certificate import (
    CERTIFICATE_FILE,
    FORMAT,
    Certificate,
    UnverifiedClaims,
    check_statuses,
    find_new_failures,
    strip_task,
)
from suture.judge.certificates.certificate_format import (
    render_certificate,
    seal_certificate,
    sha256_hex,
)
from suture.judge.confidence import compute_certified_confidence, estimate_confidence
from suture.judge.coverage.coverage_run import CoverageResult, measure_coverage
from suture.judge.minimisation.delta_debugging import (
    ChangeOracle,
    MinimisationSummary,
    MinimisedChange,
    minimise,
    minimise_lines,
)
from suture.judge.minimisation.equivalence import ChangeBehaviour
from suture.judge.mutation_testing.mutant_generation import find_mutable_lines
from suture.judge.mutation_testing.mutant_runs import (
    MutationResult,
    build_mutant_detector,
    measure_mutation_score,
)
from suture.judge.quality.linting import LintResult, lint_changes
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import find_warnings
from suture.loop.evaluation.judging import judge
from suture.loop.evaluation.proof_clock import CertificationClock, ended_together
from suture.loop.policy.attempts import count_deciding_checks
from suture.project.recorded_task import get_accepted_files
from suture.project.workspace import overlay_candidate, text_of, unified_diff

FULL_DIFF = "full.diff"
"""The change as it was written, where a part of it was left out."""
WRITERS = ("coder", "escalate", "subtask_coder")
"""Roles that write the code of a candidate."""
MOST_TOLD = 20
"""Findings that the ledger's event names."""


@dataclass(frozen=True, kw_only=True)
class CertifiedCandidate:
    """A healed candidate once more: the smallest part of it that heals.

    Attributes:
        candidate: What is left of the healed one when all that is not needed is taken out.
        verdict: Its verdict.
        confidence: In [0, 1].
    """

    candidate: Candidate
    verdict: Verdict
    confidence: float


async def certify(
    candidate: Candidate, verdict: Verdict, before: Verdict | None, suite: Suite, context: RunContext
) -> CertifiedCandidate:
    """Prove a candidate that passes every check that decides; the certificate goes into the run folder.

    There is none where that is no healed result: by `loop.abstain_below`, or `loop.abstain_on_rivals`.

    Raises:
        SandboxError: The wall failed.
        StorageError: The run folder cannot be written.
    """
    clock = CertificationClock(context)
    minimal, found = MinimisationSummary(), candidate
    if before is not None and clock.left_s() > 0:
        candidate, verdict, minimal = await _smaller(context, clock, candidate, verdict, before, suite)
    base = context.task.files
    after = overlay_candidate(base, candidate.files)
    ready, _ = await suite.install_packages(after)
    settings = context.settings.certification

    fixed = tuple(sorted(verdict.passed - (before.passed if before else frozenset())))

    async def guard() -> MutationResult:
        noticed = await build_mutant_detector(ready, candidate.files, verdict, fixed)
        spots = find_mutable_lines(base, after, context.task.language)
        return await measure_mutation_score(
            after,
            spots,
            noticed,
            max_mutants=settings.mutants,
            timeout_s=clock.left_s(),
            language=context.task.language,
        )

    async with ended_together() as begin:
        covering = begin(
            clock.within(lambda: measure_coverage(ready, after), CoverageResult(unmeasured="no_time"))
        )
        guarding = begin(clock.within(guard, MutationResult(unmeasured="no_time")))
        lint = await clock.within(
            lambda: lint_changes(base, after, suite.sandbox, suite.settings, context.interpreter),
            LintResult(unmeasured="no_time"),
        )
        coverage, mutation = await covering, await guarding
    threshold = context.settings.loop.trust_threshold
    score, (rivals, share) = mutation.min_score, context.rivalry_of(found.hash)
    claimed = (share or 0.0) if rivals else 0.0
    confidence = estimate_confidence(
        verdict, threshold, before=before, mutation_score=score, rivals=rivals, share=share
    )
    warnings = find_warnings(candidate, verdict, context)
    certified = compute_certified_confidence(
        verdict,
        threshold,
        before=before,
        mutation_score=score,
        rivals=rivals or 0,
        share=claimed,
        has_warnings=bool(warnings),
    )
    rival_labels = context.undetermined(candidate)
    if certified < context.settings.loop.abstain_below or abstains(rival_labels, context):
        return CertifiedCandidate(candidate=candidate, verdict=verdict, confidence=confidence)
    certificate = seal_certificate(
        Certificate(
            task=strip_task(suite.task),
            source_roots=suite.command.interpreter.source_roots if suite.command else (),
            project={path: sha256_hex(content) for path, content in base.items()},
            project_hash=content_hash({path: sha256_hex(content) for path, content in base.items()}),
            diff=unified_diff(base, after),
            result={
                path: sha256_hex(content) for path, content in after.items() if base.get(path) != content
            },
            evidence=verdict.evidence,
            before=check_statuses(before),
            after=check_statuses(verdict),
            fixed=fixed,
            newly_failing=find_new_failures(before, verdict),
            coverage=coverage,
            mutation=mutation,
            confidence=certified,
            claims=replace(
                _claims(context, candidate, minimal, lint),
                rivals=rivals or 0,
                share=claimed,
                rival_labels=rival_labels,
                warnings=warnings,
            ),
        )
    )
    _write(context, certificate)
    return CertifiedCandidate(candidate=candidate, verdict=verdict, confidence=confidence)


def abstains(rivals: Sequence[str], context: RunContext) -> bool:
    """Whether what the tests do not tell from its rivals is no healed result here."""
    return bool(rivals) and context.settings.loop.abstain_on_rivals


async def _smaller(
    context: RunContext,
    clock: CertificationClock,
    candidate: Candidate,
    verdict: Verdict,
    before: Verdict,
    suite: Suite,
) -> tuple[Candidate, Verdict, MinimisationSummary]:
    """The smallest part of a candidate that passes, judged like any other candidate."""
    base = context.task.files
    threshold = context.settings.loop.trust_threshold
    laid = overlay_candidate(base, candidate.files)
    changed = {path: text_of(laid[path]) for path in candidate.files if base.get(path) != laid[path]}

    def passes(found: Verdict) -> bool:
        _, failed, regressed = count_deciding_checks(found, before, threshold)
        return not failed and not regressed and verdict.passed <= found.passed

    cut = False

    async def oracle(files: Mapping[str, str]) -> bool:
        nonlocal cut
        part = replace(candidate, files=dict(files))
        # What is found must be judged once more, and there must be time for that too.
        judged = await clock.within(lambda: check_candidate(part, suite), None, spare_s=2 * verdict.wall_s)
        cut = cut or judged is None
        return judged is not None and passes(judged)

    found = await _minimised(context, candidate, changed, oracle, suite, clock)
    minimal = replace(found.summary, is_minimal=found.summary.is_minimal and not cut)
    if overlay_candidate(base, found.files) == laid:
        return candidate, verdict, minimal
    label = f"{candidate.label}, {minimal.edits} of {minimal.edits_found} edits".lstrip(", ")
    smaller = Candidate(files=found.files, origin=candidate.origin, parent=candidate.hash, label=label)
    try:
        again = await clock.within(lambda: judge(smaller, suite, context, confirm=False), None)
    except BudgetExceeded:
        again = None
    if not again or not passes(again):
        return candidate, verdict, MinimisationSummary()  # a test that is not always the same let too much go
    if minimal.left_out:
        context.folder.write_text(FULL_DIFF, unified_diff(base, laid))
    return smaller, again, minimal


async def _minimised(
    context: RunContext,
    candidate: Candidate,
    changed: Mapping[str, str],
    oracle: ChangeOracle,
    suite: Suite,
    clock: CertificationClock,
) -> MinimisedChange:
    """What a search put together, line by line; what somebody wrote, only in parts that stand alone."""
    most = context.settings.certification.minimising_runs
    if candidate.origin == "mutation":
        return await minimise_lines(context.task.files, changed, oracle, max_runs=most)
    behaviour = ChangeBehaviour(suite=suite, files=changed, seed=context.settings.repair.seed)

    async def is_equivalent(files: Mapping[str, str]) -> bool:
        return await clock.within(lambda: behaviour.is_kept_by(files), False)

    return await minimise(context.task.files, changed, oracle, max_runs=most, is_equivalent=is_equivalent)


def _claims(
    context: RunContext, candidate: Candidate, minimal: MinimisationSummary, lint: LintResult
) -> UnverifiedClaims:
    settings, spend = context.settings, context.budget.spend()
    called = [call for _, call in select_events(context.ledger.events, ModelCalled)]
    limits = settings.sandbox.model_dump()
    return UnverifiedClaims(
        run=context.folder.id,
        suture=version("suture"),
        made_at_s=time.time(),
        model=", ".join(_writers(called)) or context.model.name,
        seed=settings.model.seed,
        prompts=tuple(sorted({call.prompt for call in called if call.prompt})),
        calls=tuple(call.call for call in called),
        recipe=context.recipe.name,
        label=candidate.label,
        attempts=spend.attempts,
        tokens=spend.tokens,
        model_calls=spend.model_calls,
        seconds=round(spend.seconds, 3),
        python=context.interpreter.version if context.interpreter else "",
        limits={key: float(value) for key, value in limits.items() if isinstance(value, int | float)},
        agreement=context.agreement_on(candidate.hash),
        accepted_tests=tuple(get_accepted_files(context.ledger.events)),
        minimal=minimal,
        lint=lint,
    )


def _writers(called: Sequence[ModelCalled]) -> list[str]:
    """The models that wrote code, in the order of their first call: a stronger one may have taken over."""
    wrote = [call.model for call in called if call.role in WRITERS]
    return list(dict.fromkeys(filter(None, wrote)))


def _write(context: RunContext, certificate: Certificate) -> None:
    for content in context.task.files.values():
        context.folder.put_blob(content)  # so that the run folder alone is enough to verify
    path = context.folder.write_text(CERTIFICATE_FILE, render_certificate(certificate))
    minimal, lint = certificate.claims.minimal, certificate.claims.lint
    written = CertificateWritten(
        format=FORMAT,
        file=str(path),
        seal=certificate.seal,
        fixed=len(certificate.fixed),
        edits=minimal.edits,
        edits_found=minimal.edits_found,
        is_minimal=minimal.is_minimal,
        left_out=tuple(minimal.left_out[:MOST_TOLD]),
        statements=certificate.coverage.changed_count,
        covered=certificate.coverage.covered_count,
        coverage_unmeasured=certificate.coverage.unmeasured,
        mutants=len(certificate.mutation.mutants),
        selected=certificate.mutation.selected,
        killed=certificate.mutation.killed,
        mutation_unmeasured=certificate.mutation.unmeasured,
        lint=tuple(lint.findings[:MOST_TOLD]),
        lint_unmeasured=lint.unmeasured,
        confidence=certificate.confidence,
    )
    context.ledger.append(written)
