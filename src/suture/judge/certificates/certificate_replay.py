"""Replay a certificate: what it says of the code is found out anew, in a clean sandbox, without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace

from suture.core.records import Candidate, Task, Verdict
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.judge import Suite, check_candidate, prepare_suite
from suture.judge.certificates.certificate import Certificate, new_failures, statuses
from suture.judge.certificates.static_checks import (
    MOST_LISTED,
    ClaimRefuted,
    check_certified_diff,
    check_changed_paths,
    check_project_files,
    require,
    require_equal,
)
from suture.judge.confidence import compute_certified_confidence, estimate_confidence
from suture.judge.coverage.coverage_run import measure_coverage, touched
from suture.judge.mutation_testing.mutant_generation import find_mutable_lines
from suture.judge.mutation_testing.mutant_runs import build_mutant_detector, replay_mutants, select_mutants
from suture.project.languages import Interpreter
from suture.project.workspace import DiffDoesNotApply, text_of
from suture.sandbox import Sandbox
from suture.sandbox.packages import PackagesRefused, packages_for_task


@dataclass(frozen=True, kw_only=True)
class ReplayedClaim:
    """One thing that a certificate says, and whether it is so.

    Attributes:
        name: What it is about.
        ok: Whether the claim holds.
        detail: What was found in its place, for people.
    """

    name: str
    ok: bool
    detail: str


async def replay_certificate(
    certificate: Certificate,
    project: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> AsyncIterator[ReplayedClaim]:
    """Find out anew what a certificate says; the first finding that is not ok is the last.

    Args:
        certificate: Of one change; each of its claims is found out anew.
        project: The files before the change, and maybe others, path -> content; see `revert_certified_change`.
        sandbox: A wall, in which nothing of the run that made the certificate is left.
        settings: Whose limits and threshold hold; the certificate's own are only claims.
        interpreter: What `python` means in the test command.

    Raises:
        SandboxError: The wall failed.
        PrerequisiteError: The change needs packages that are not kept here; none are fetched.
    """
    try:
        files = check_project_files(certificate, project)
        yield ReplayedClaim(name="project", ok=True, detail=f"{len(files)} files, each by its hash")
        after = check_certified_diff(certificate, files)
        yield ReplayedClaim(
            name="diff", ok=True, detail=f"it leads to {', '.join(sorted(certificate.result))}"
        )
        task = certificate.task.with_files(files)
        suite = await _suite(certificate, task, sandbox, settings, interpreter)
        candidate = Candidate(
            files={path: text_of(after[path]) for path in certificate.result}, origin="repair"
        )
        ready, _ = await suite.install_packages(after)  # a lock is allowed where its packages are kept
        check_changed_paths(certificate, candidate, suite, after)
        yield ReplayedClaim(name="files", ok=True, detail="no test and no protected file is changed")
        before = await _replay_before(certificate, suite)
        if before is not None:
            detail = f"{len(before.failed)} failing, {len(before.passed)} passing, as certified"
            yield ReplayedClaim(name="before", ok=True, detail=detail)
        verdict = await check_candidate(candidate, suite)
        _require_after(certificate, before, verdict, settings.loop.trust_threshold)
        detail = f"{len(verdict.passed)} passing, {len(certificate.fixed)} of them newly; none newly failing"
        yield ReplayedClaim(name="after", ok=True, detail=f"{detail}; evidence: {verdict.evidence}")
        yield await _coverage(certificate, ready, after)
        yield await _mutation(certificate, ready, candidate, after, verdict)
        yield _confidence(certificate, before, verdict, settings)
    except ClaimRefuted as refuted:
        yield ReplayedClaim(name=refuted.name, ok=False, detail=refuted.detail)
    except UsageError as fault:
        yield ReplayedClaim(name="checks", ok=False, detail=f"they cannot be run: {fault.message}")
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
        bool(task.checks or task.test_command or started), "checks", "nothing is said to have been checked"
    )
    require(
        all(check.provenance != "oracle" for check in task.checks), "checks", "a hidden check was in the run"
    )
    if interpreter is not None:
        interpreter = replace(interpreter, source_roots=certificate.task.source_roots)
    packages = packages_for_task(task, settings, may_fetch=False)
    return await prepare_suite(task, sandbox, settings.sandbox, interpreter, packages=packages)


async def _replay_before(certificate: Certificate, suite: Suite) -> Verdict | None:
    if suite.task.kind == "write":
        require(not certificate.before, "before", "there was no code to check yet")
        return None
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    require_equal("before", certificate.before, statuses(verdict))
    return verdict


def _require_after(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, threshold: float
) -> None:
    require_equal("after", certificate.after, statuses(verdict))
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    require(bool(deciding) and all(o.passed for o in deciding), "after", "not every test passes")
    fixed = tuple(sorted(verdict.passed - (before.passed if before else frozenset())))
    require(bool(fixed) and certificate.fixed == fixed, "after", "other tests are fixed than it says")
    require(not new_failures(before, verdict), "after", "a test fails that passed before")
    require(not certificate.newly_failing, "after", "it says itself that a test fails that passed before")
    require(certificate.evidence == verdict.evidence, "after", f"the evidence is {verdict.evidence}")


async def _coverage(certificate: Certificate, suite: Suite, after: Mapping[str, bytes]) -> ReplayedClaim:
    said = certificate.coverage
    statements = touched(suite.task.files, after)
    changed = {path: tuple(spot.start for spot in spots) for path, spots in statements.items()}
    if said.unmeasured:
        require(not said.covered, "coverage", "it is unmeasured and measured")
        require(not said.changed or said.changed == changed, "coverage", "other statements were changed")
        return ReplayedClaim(name="coverage", ok=True, detail=f"not measured: {said.unmeasured}")
    require_equal("coverage", said.changed, changed)
    found = await measure_coverage(suite, after)
    require(not found.unmeasured, "coverage", f"it cannot be measured here: {found.unmeasured}")
    require_equal("coverage", said.covered, found.covered)
    total, ran = (sum(map(len, part.values())) for part in (changed, found.covered))
    return ReplayedClaim(
        name="coverage", ok=True, detail=f"the tests run {ran} of {total} changed statements"
    )


async def _mutation(
    certificate: Certificate, suite: Suite, candidate: Candidate, after: Mapping[str, bytes], verdict: Verdict
) -> ReplayedClaim:
    said = certificate.mutation
    if said.drawn is None:
        require(bool(said.unmeasured) and not said.generated and not said.mutants, "mutation", "it is torn")
        return ReplayedClaim(
            name="mutation", ok=True, detail=f"not measured: {said.unmeasured}; it counts as none"
        )
    language = suite.task.language
    draw = await select_mutants(after, find_mutable_lines(suite.task.files, after, language), language)
    run = [replace(run, killed=False) for run in said.mutants]
    is_drawn = (said.generated, said.drawn) == (draw.generated, len(draw.mutants))
    require(
        is_drawn and run == list(draw.mutants[: len(run)]),
        "mutation",
        f"the mutants are not those that come first (said to be of Suture {certificate.claims.suture})",
    )
    in_full = len(run) == said.drawn > 0
    require(in_full != bool(said.unmeasured), "mutation", "it is not said whether it was measured in full")
    require(all(one.path in candidate.files for one in run), "mutation", "a mutant is of another file")
    noticed = await build_mutant_detector(suite, candidate.files, verdict, certificate.fixed)
    try:
        found = await replay_mutants(after, run, noticed)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("mutation", str(fault)) from fault
    wrong = [one.label for one, replayed in zip(said.mutants, found, strict=True) if one != replayed]
    require(not wrong, "mutation", f"the tests say otherwise of: {'; '.join(wrong[:MOST_LISTED])}")
    if not said.drawn:
        return ReplayedClaim(name="mutation", ok=True, detail=f"not measured: {said.unmeasured}")
    missing = "" if in_full else f"; {said.drawn - len(run)} were not run and count as not noticed"
    detail = f"the tests notice {said.killed} of {said.drawn} mutants drawn from {said.generated}{missing}"
    return ReplayedClaim(name="mutation", ok=True, detail=detail)


def _confidence(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, settings: Settings
) -> ReplayedClaim:
    score, threshold = certificate.mutation.least_score, settings.loop.trust_threshold
    claims = certificate.claims
    proved = estimate_confidence(verdict, threshold, before=before, mutation_score=score)
    found = compute_certified_confidence(
        *(verdict, threshold),
        before=before,
        mutation_score=score,
        rivals=claims.rivals,
        share=claims.share,
        warned=claims.warned,
    )
    # Older certificates say what was proved, whatever they warn of.
    says_no_rivals = not claims.rivals and not claims.share
    is_so = certificate.confidence == found or (certificate.confidence == proved and says_no_rivals)
    require(is_so, "confidence", f"the evidence is worth {found:.2f}")
    require(
        found >= settings.loop.abstain_below,
        "confidence",
        f"{found:.2f} is too little: no result is called healed for it (loop.abstain_below)",
    )
    return ReplayedClaim(
        name="confidence",
        ok=True,
        detail=f"at least {found:.2f}, by the model of docs/proof.md, from all of the above",
    )
