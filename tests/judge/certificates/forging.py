"""Certificates of somebody who makes them without a run: all hashes and verdicts are real, the claims are free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from suture.core.records import Candidate, Check, Task, content_hash
from suture.core.settings import Settings
from suture.judge import check_candidate, prepare_suite
from suture.judge.certificates.certificate import (
    Certificate,
    UnverifiedClaims,
    check_statuses,
    render_certificate,
    seal_certificate,
    sha256_hex,
    strip_task,
)
from suture.judge.confidence import compute_certified_confidence
from suture.judge.coverage.coverage_run import CoverageResult
from suture.judge.mutation_testing.mutant_runs import MutationResult
from suture.project.workspace import unified_diff
from suture.sandbox import Sandbox, discover_interpreter


def make_checks(*sources: str, trust: float = 1.0, prefix: str = "check") -> tuple[Check, ...]:
    return tuple(
        Check(id=f"{prefix} {number}", provenance="user", source=f"{source}\n", trust=trust)
        for number, source in enumerate(sources)
    )


async def forge_certificate(
    task: Task,
    changes: Mapping[str, str],
    sandbox: Sandbox,
    settings: Settings,
    *,
    claims: UnverifiedClaims | None = None,
) -> Certificate:
    """Return the certificate of a change of the task's files that claims no coverage and no mutants."""
    claims = claims or UnverifiedClaims()
    after = {**task.files, **{path: text.encode() for path, text in changes.items()}}
    interpreter = discover_interpreter(None, {"PATH": "/usr/bin"})
    suite = await prepare_suite(task, sandbox, settings.sandbox, interpreter, run=task.kind == "heal")
    unchanged = Candidate(files={}, origin="user")
    before = await check_candidate(unchanged, suite) if task.kind == "heal" else None
    verdict = await check_candidate(Candidate(files=dict(changes), origin="repair"), suite)
    hashes = {path: sha256_hex(content) for path, content in task.files.items()}
    confidence = compute_certified_confidence(
        verdict,
        settings.loop.trust_threshold,
        checks=task.checks,
        before=before,
        mutation_score=0.0,
        rivals=0,
        share=0.0,
        has_warnings=bool(claims.warnings or claims.signs),
        has_limiting_signs=claims.limits_confidence,
    )
    certificate = Certificate(
        task=strip_task(task),
        project=hashes,
        project_hash=content_hash(hashes),
        diff=unified_diff(task.files, after),
        result={path: sha256_hex(after[path]) for path in changes},
        evidence=verdict.evidence,
        before=check_statuses(before),
        after=check_statuses(verdict),
        fixed=tuple(sorted(verdict.passed - (before.passed if before else frozenset()))),
        coverage=CoverageResult(unmeasured="no_time"),
        mutation=MutationResult(unmeasured="no_time"),
        confidence=confidence,
        claims=claims,
    )
    return seal_certificate(certificate)


def write_project(folder: Path, certificate: Certificate, files: Mapping[str, bytes]) -> Path:
    """Write a project into a folder, and the certificate beside it; return the certificate's path."""
    folder.mkdir()
    for path, content in files.items():
        (folder / path).write_bytes(content)
    certificate_path = folder.with_suffix(".json")
    certificate_path.write_text(render_certificate(certificate))
    return certificate_path


def change_claims(certificate: Certificate, **changes: object) -> Certificate:
    """Return a certificate with other claims, sealed again."""
    return seal_certificate(replace(certificate, claims=replace(certificate.claims, **changes)))  # type: ignore[arg-type]
