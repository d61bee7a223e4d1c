"""Replay a certificate: verify each of its statements in a clean sandbox, without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Task, UnmeasuredReason, Verdict
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.certificates.certificate import Certificate, check_statuses, find_new_failures, strip_task
from suture.judge.certificates.static_checks import (
    MAX_LISTED,
    ClaimName,
    ClaimRefuted,
    check_certified_diff,
    check_changed_paths,
    check_project_files,
    require,
    require_equal,
)
from suture.judge.confidence import compute_certified_confidence
from suture.judge.coverage.coverage_run import find_touched_by_file, measure_coverage
from suture.judge.mutation_testing.mutant_generation import find_mutable_lines
from suture.judge.mutation_testing.mutant_runs import build_mutant_detector, replay_mutants, select_mutants
from suture.judge.unmeasured import render_unmeasured
from suture.project.languages import Interpreter
from suture.project.workspace import DiffDoesNotApply, decode_text
from suture.sandbox import Sandbox
from suture.sandbox.packages import PackagesRefused, packages_for_task


@dataclass(frozen=True, kw_only=True)
class ReplayedClaim:
    """One statement of a certificate, and whether a replay confirmed it.

    Attributes:
        name: What the statement is about.
        ok: Whether it holds.
        detail: What was found, for people.
    """

    name: ClaimName
    ok: bool
    detail: str


async def replay_certificate(
    certificate: Certificate,
    project: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> AsyncIterator[ReplayedClaim]:
    """Verify what a certificate says, statement by statement.

    The first statement that does not hold is the last one that is yielded.

    Args:
        project: The files before the change, path -> content; see `revert_certified_change`. It may have
            more.
        sandbox: A sandbox in which nothing of the original run is left.
        settings: The limits and the trust threshold; those in the certificate are only claims.
        interpreter: What `python` means in the test command.

    Raises:
        PrerequisiteError: The change needs packages that are not kept here; none are fetched.
    """
    try:
        files = check_project_files(certificate, project)
        yield ReplayedClaim(name="project", ok=True, detail=f"{len(files)} files have the certified hashes")
        after = check_certified_diff(certificate, files)
        yield ReplayedClaim(
            name="diff",
            ok=True,
            detail=f"it results in the certified {', '.join(sorted(certificate.result))}",
        )
        task = replace(strip_task(certificate.task), files=files)
        suite = await _suite(certificate, task, sandbox, settings, interpreter)
        candidate = Candidate(
            files={path: decode_text(after[path]) for path in certificate.result}, origin="repair"
        )
        ready, _ = await suite.install_packages(after)  # a lock is allowed where its packages are kept
        check_changed_paths(certificate, candidate, suite, after)
        yield ReplayedClaim(name="files", ok=True, detail="it changes no test and no protected file")
        before = await _replay_before(certificate, suite)
        if before is not None:
            detail = f"{len(before.failed)} checks fail and {len(before.passed)} pass, as certified"
            yield ReplayedClaim(name="before", ok=True, detail=detail)
        verdict = await check_candidate(candidate, suite)
        _require_after(certificate, before, verdict, settings.loop.trust_threshold)
        detail = (
            f"{len(verdict.passed)} checks pass, {len(certificate.fixed)} of them newly, and none newly fails"
        )
        yield ReplayedClaim(name="after", ok=True, detail=f"{detail}; evidence: {verdict.evidence}")
        yield await _coverage(certificate, ready, after)
        yield await _mutation(certificate, ready, candidate, after, verdict)
        yield _confidence(certificate, before, verdict, settings)
    except ClaimRefuted as refuted:
        yield ReplayedClaim(name=refuted.name, ok=False, detail=refuted.detail)
    except UsageError as fault:
        yield ReplayedClaim(name="checks", ok=False, detail=f"the checks cannot be run: {fault.message}")
    except PackagesRefused as fault:
        yield ReplayedClaim(name="packages", ok=False, detail=fault.reason)


async def _suite(
    certificate: Certificate,
    task: Task,
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> Suite:
    started = task.project is not None and task.project.kind is not None
    require(
        bool(task.checks or task.test_command or started),
        "checks",
        "the certificate names nothing that was checked",
    )
    require(
        all(check.provenance != "oracle" for check in task.checks), "checks", "the run had a hidden check"
    )
    if interpreter is not None:
        interpreter = replace(interpreter, source_roots=certificate.source_roots)
    packages = packages_for_task(task, settings, may_fetch=False)
    return await prepare_suite(task, sandbox, settings.sandbox, interpreter, packages=packages)


async def _replay_before(certificate: Certificate, suite: Suite) -> Verdict | None:
    if suite.task.kind == "write":
        require(not certificate.before, "before", "new code has no state before the change")
        return None
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    require_equal("before", certificate.before, check_statuses(verdict))
    return verdict


def _require_after(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, threshold: float
) -> None:
    require_equal("after", certificate.after, check_statuses(verdict))
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    require(bool(deciding) and all(o.passed for o in deciding), "after", "not every deciding check passes")
    fixed = tuple(sorted(verdict.passed - (before.passed if before else frozenset())))
    require(
        bool(fixed) and certificate.fixed == fixed, "after", "the fixed checks are not the certified ones"
    )
    require(not find_new_failures(before, verdict), "after", "a check fails that passed before")
    require(not certificate.newly_failing, "after", "the certificate itself names a check that newly fails")
    require(certificate.evidence == verdict.evidence, "after", f"the evidence is {verdict.evidence}")


async def _coverage(certificate: Certificate, suite: Suite, after: Mapping[str, bytes]) -> ReplayedClaim:
    stated = certificate.coverage
    statements = find_touched_by_file(suite.task.files, after)
    changed = {path: tuple(lines.start for lines in found) for path, found in statements.items()}
    if stated.unmeasured:
        require(not stated.covered, "coverage", "it is called unmeasured and has results")
        is_consistent = not stated.changed or stated.changed == changed
        require(is_consistent, "coverage", "the changed statements are not the certified ones")
        return _not_measured("coverage", stated.unmeasured)
    require_equal("coverage", stated.changed, changed)
    found = await measure_coverage(suite, after)
    if found.unmeasured:
        raise ClaimRefuted("coverage", f"it cannot be measured here: {render_unmeasured(found.unmeasured)}")
    require_equal("coverage", stated.covered, found.covered)
    detail = f"the tests run {found.covered_count} of {found.changed_count} changed statements"
    return ReplayedClaim(name="coverage", ok=True, detail=detail)


def _not_measured(name: ClaimName, reason: UnmeasuredReason) -> ReplayedClaim:
    return ReplayedClaim(name=name, ok=True, detail=f"not measured: {render_unmeasured(reason)}")


async def _mutation(
    certificate: Certificate, suite: Suite, candidate: Candidate, after: Mapping[str, bytes], verdict: Verdict
) -> ReplayedClaim:
    stated = certificate.mutation
    if stated.selected is None:
        is_empty = not stated.generated and not stated.mutants
        if not stated.unmeasured or not is_empty:
            raise ClaimRefuted("mutation", "the mutation results are inconsistent")
        return _not_measured("mutation", stated.unmeasured)
    language = suite.task.language
    mutable = find_mutable_lines(suite.task.files, after, language)
    selection = await select_mutants(after, mutable, language)
    run = [replace(run, killed=False) for run in stated.mutants]
    is_selection = (stated.generated, stated.selected) == (selection.generated, len(selection.mutants))
    require(
        is_selection and run == list(selection.mutants[: len(run)]),
        "mutation",
        f"the mutants are not the first ones of the selection (made by Suture {certificate.claims.suture})",
    )
    in_full = len(run) == stated.selected > 0
    require(
        in_full == (stated.unmeasured is None), "mutation", "it is not stated whether all mutants were run"
    )
    is_of_change = all(one.path in candidate.files for one in run)
    require(is_of_change, "mutation", "a mutant is in a file that the change does not touch")
    is_noticed = await build_mutant_detector(suite, candidate.files, verdict, certificate.fixed)
    try:
        replayed = await replay_mutants(after, run, is_noticed)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("mutation", str(fault)) from fault
    wrong = [one.label for one, again in zip(stated.mutants, replayed, strict=True) if one != again]
    require(not wrong, "mutation", f"the tests answer differently for: {'; '.join(wrong[:MAX_LISTED])}")
    if not stated.selected and stated.unmeasured:
        return _not_measured("mutation", stated.unmeasured)
    missing = "" if in_full else f"; {stated.selected - len(run)} were not run and count as not noticed"
    counts = f"{stated.killed} of {stated.selected} mutants, selected from {stated.generated}"
    return ReplayedClaim(name="mutation", ok=True, detail=f"the tests notice {counts}{missing}")


def _confidence(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, settings: Settings
) -> ReplayedClaim:
    claims = certificate.claims
    found = compute_certified_confidence(
        verdict,
        settings.loop.trust_threshold,
        before=before,
        mutation_score=certificate.mutation.min_score,
        rivals=claims.rivals,
        share=claims.share,
        has_warnings=bool(claims.warnings),
    )
    require(certificate.confidence == found, "confidence", f"the evidence supports {found:.2f}")
    require(
        found >= settings.loop.abstain_below,
        "confidence",
        f"{found:.2f} is below loop.abstain_below, so no result would be called healed",
    )
    return ReplayedClaim(
        name="confidence", ok=True, detail=f"at least {found:.2f}, computed from all of the above"
    )
