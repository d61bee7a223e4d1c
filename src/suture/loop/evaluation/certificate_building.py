"""What certification found out about a candidate, and the certificate that is made of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import version

from suture.core.ledger import select_events
from suture.core.ledger.kinds import CertificateWritten, ModelCalled
from suture.core.records import Candidate, CapabilityUse, FailingGeneratedTest, Verdict, content_hash
from suture.judge import Suite
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
from suture.judge.coverage.coverage_run import CoverageResult
from suture.judge.differential.memorised_examples import ExampleSearch
from suture.judge.minimisation.delta_debugging import MinimisationSummary
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.judge.quality.built_in_evaluators import LintResult
from suture.loop.context import RunContext
from suture.loop.evaluation.change_warnings import ChangeWarnings
from suture.loop.tuning import MAX_LISTED_FINDINGS
from suture.project.recorded_task import get_accepted_files
from suture.project.workspace import overlay_candidate, unified_diff

WRITING_ROLES = ("coder", "escalate", "subtask_coder")
"""Roles that write the code of a candidate, as `ModelCalled.role` names them."""


@dataclass(frozen=True, kw_only=True)
class CertificationFindings:
    """What certification found out about a candidate.

    Attributes:
        fixed: Ids of the checks that pass only with the candidate.
        rivals: Number of repairs that pass the same checks; `None` if none were looked for.
        share: Share of the rivals that behave as the candidate does.
        agreement: Share of the other plausible repairs that behave like the candidate; `None` if there are none.
        has_weak_tests: Whether mutants show that the tests hardly guard the change.
    """

    candidate: Candidate
    verdict: Verdict
    baseline: Verdict | None
    suite: Suite
    fixed: tuple[str, ...]
    minimal: MinimisationSummary
    memorised: ExampleSearch
    coverage: CoverageResult
    mutation: MutationResult
    lint: LintResult
    rivals: int | None
    share: float | None
    agreement: float | None
    warnings: ChangeWarnings
    capabilities: tuple[CapabilityUse, ...]
    has_weak_tests: bool
    failing_tests: tuple[FailingGeneratedTest, ...]

    @property
    def certified_share(self) -> float:
        """The share as a certificate states it, where 0 means that there is none."""
        return (self.share or 0.0) if self.rivals else 0.0


def estimate_result_confidence(findings: CertificationFindings, threshold: float) -> float:
    """Return the confidence in the result of a run, in [0, 1]."""
    confidence = estimate_confidence(
        findings.verdict,
        threshold,
        checks=findings.suite.task.checks,
        before=findings.baseline,
        mutation_score=findings.mutation.min_score,
        rivals=findings.rivals,
        share=findings.share,
    )
    return limit_confidence_for_weak_tests(confidence) if findings.has_weak_tests else confidence


def rate_certificate(findings: CertificationFindings, threshold: float) -> float:
    """Return a confidence that, unlike that of the result, `suture verify` can compute from the certificate alone."""
    return compute_certified_confidence(
        findings.verdict,
        threshold,
        checks=findings.suite.task.checks,
        before=findings.baseline,
        mutation_score=findings.mutation.min_score,
        rivals=findings.rivals or 0,
        share=findings.certified_share,
        has_warnings=bool(findings.warnings.texts),
        has_capabilities=bool(findings.capabilities),
        has_limiting_signs=findings.warnings.limits_confidence,
        has_failing_tests=bool(findings.failing_tests),
        has_weak_tests=findings.has_weak_tests,
    )


def build_certificate(findings: CertificationFindings, confidence: float, context: RunContext) -> Certificate:
    """Return the sealed certificate of a candidate, with a confidence from `rate_certificate`."""
    candidate, verdict, baseline, suite = (
        findings.candidate, findings.verdict, findings.baseline, findings.suite,
    )  # fmt: skip
    base = context.task.files
    after = overlay_candidate(base, candidate.files)
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
        fixed=findings.fixed,
        newly_failing=find_new_failures(baseline, verdict),
        flaky_tests=tuple(sorted(suite.flaky_tests)),
        coverage=findings.coverage,
        mutation=findings.mutation,
        capabilities=findings.capabilities,
        confidence=confidence,
        claims=_collect_claims(context, findings),
    )
    return seal_certificate(certificate)


def _collect_claims(context: RunContext, findings: CertificationFindings) -> UnverifiedClaims:
    settings, spend, candidate = context.settings, context.budget.spend(), findings.candidate
    calls = [call for _, call in select_events(context.ledger.events, ModelCalled)]
    # There is more than one writing model if a stronger one has taken over.
    writing_models = dict.fromkeys(call.model for call in calls if call.role in WRITING_ROLES and call.model)
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
        minimal=findings.minimal,
        lint=findings.lint,
        rivals=findings.rivals or 0,
        share=findings.certified_share,
        rival_labels=context.candidates.describe_rivals(candidate),
        warnings=findings.warnings.texts,
        failing_tests=tuple(test.test for test in findings.failing_tests[:MAX_LISTED_FINDINGS]),
        signs=list_sign_codes(findings.warnings.signs),
        examples_unmeasured=findings.memorised.unmeasured,
        agreement=findings.agreement,
    )


def write_certificate(context: RunContext, certificate: Certificate) -> None:
    """Write a certificate into the run folder, and record it in the ledger."""
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
