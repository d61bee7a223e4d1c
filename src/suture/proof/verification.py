"""Replay a certificate: what it says of the code is found out anew, in a clean sandbox, without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from suture.checks import Suite, check_candidate, is_made_here, prepare_suite, refused_files
from suture.errors import UsageError
from suture.languages import Interpreter, languages_of_files
from suture.packages import PackagesRefused, asks_in, is_lock, packages_of
from suture.proof.certificate import Certificate
from suture.proof.certified_task import new_failures, statuses
from suture.proof.changed_coverage import measure_coverage, touched
from suture.proof.confidence import confidence_in
from suture.proof.mutant_runner import notices
from suture.proof.mutation_testing import draw_mutants, replay_mutants
from suture.proof.sealing import digest
from suture.records import Candidate, Task, Verdict, content_hash
from suture.sandbox import Sandbox
from suture.settings import Settings
from suture.tasks.commands import files_deciding
from suture.workspace import (
    PatchRefused,
    apply_diff,
    default_protected,
    is_protected,
    is_test_file,
    overlay,
    text_of,
)

MOST_LISTED = 5
BUILT = frozenset((".pyi", ".pyc", ".pyd", ".so"))
NOWHERE = Path("/nowhere")
"""A certificate names files by their paths in the project; a folder of some machine means nothing in it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a certificate says, and whether it is so.

    Attributes:
        name: What it is about.
        ok: Whether the claim holds.
        detail: What was found in its place, for people.
    """

    name: str
    ok: bool
    detail: str


async def verify_certificate(
    certificate: Certificate,
    project: Mapping[str, bytes],
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> AsyncIterator[Finding]:
    """Find out anew what a certificate says; the first finding that is not ok is the last.

    Args:
        certificate: Of one change; each of its claims is found out anew.
        project: The files before the change, and maybe others, path -> content; see `project_before`.
        sandbox: A wall, in which nothing of the run that made the certificate is left.
        settings: Whose limits and threshold hold; the certificate's own are only claims.
        interpreter: What `python` means in the test command.

    Raises:
        SandboxError: The wall failed.
        PrerequisiteError: The change needs packages that are not kept here; none are fetched.
    """
    try:
        files = _files_of(certificate, project)
        yield Finding(name="project", ok=True, detail=f"{len(files)} files, each by its hash")
        after = _after(certificate, files)
        yield Finding(name="diff", ok=True, detail=f"it leads to {', '.join(sorted(certificate.result))}")
        task = certificate.task.with_files(files)
        suite = await _suite(certificate, task, sandbox, settings, interpreter)
        candidate = Candidate(
            files={path: text_of(after[path]) for path in certificate.result}, origin="repair"
        )
        ready, _ = await suite.with_packages(after)  # a lock is allowed where its packages are kept
        _require_allowed(certificate, candidate, suite, after)
        yield Finding(name="files", ok=True, detail="no test and no protected file is changed")
        before = await _replay_before(certificate, suite)
        if before is not None:
            detail = f"{len(before.failed)} failing, {len(before.passed)} passing, as certified"
            yield Finding(name="before", ok=True, detail=detail)
        verdict = await check_candidate(candidate, suite)
        _require_after(certificate, before, verdict, settings.loop.trust_threshold)
        detail = f"{len(verdict.passed)} passing, {len(certificate.fixed)} of them newly; none newly failing"
        yield Finding(name="after", ok=True, detail=f"{detail}; evidence: {verdict.evidence}")
        yield await _coverage(certificate, ready, after)
        yield await _mutation(certificate, ready, candidate, after, verdict)
        yield _confidence(certificate, before, verdict, settings)
    except _Refuted as refuted:
        yield Finding(name=refuted.name, ok=False, detail=refuted.detail)
    except UsageError as fault:
        yield Finding(name="checks", ok=False, detail=f"they cannot be run: {fault.message}")
    except PackagesRefused as fault:
        yield Finding(name="packages", ok=False, detail=fault.why)


class _Refuted(Exception):
    """What a certificate says is not so."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail


def _require(holds: bool, name: str, detail: str) -> None:
    if not holds:
        raise _Refuted(name, detail)


def _require_equal(name: str, said: Mapping[str, object], found: Mapping[str, object]) -> None:
    keys = sorted(key for key in said.keys() | found.keys() if said.get(key) != found.get(key))
    differences = [
        f"{key} (certified {said.get(key)!r}, found {found.get(key)!r})" for key in keys[:MOST_LISTED]
    ]
    more = f" and {len(keys) - MOST_LISTED} more" if len(keys) > MOST_LISTED else ""
    _require(not keys, name, "; ".join(differences) + more)


def project_before(certificate: Certificate, project: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """A project as the certificate needs it: where the change is in it already, it is taken back.

    Args:
        certificate: Of one change; each of its claims is found out anew.
        project: The files, with the change or without.
    """
    hashes = {path: digest(project[path]) for path in certificate.result if path in project}
    if hashes != certificate.result:
        return project
    try:
        return apply_diff(project, certificate.diff, reverse=True)
    except PatchRefused:
        return project


def _files_of(certificate: Certificate, project: Mapping[str, bytes]) -> dict[str, bytes]:
    _require(
        certificate.project_hash == content_hash(dict(certificate.project)),
        "project",
        "the hash of the list of files is not that of the list",
    )
    wrong = [
        path
        for path, hash_ in certificate.project.items()
        if path not in project or digest(project[path]) != hash_
    ]
    listed = ", ".join(sorted(wrong)[:MOST_LISTED])
    _require(not wrong, "project", f"{len(wrong)} files are missing, or not as certified: {listed}")
    more = sorted(path for path in project.keys() - certificate.project.keys() if _decides(path))
    listed = ", ".join(more[:MOST_LISTED])
    _require(
        not more or certificate.task.kind == "write",
        "project",
        f"not proved for {len(more)} files more: {listed}",
    )
    return {path: project[path] for path in certificate.project}


def _decides(path: str) -> bool:
    """Whether a file may change what the tests say: code, a test, a setting of the project's."""
    is_code = PurePosixPath(path).suffix in BUILT or bool(languages_of_files((path,)))
    return is_code or is_protected(path, default_protected())


def _after(certificate: Certificate, files: Mapping[str, bytes]) -> dict[str, bytes]:
    try:
        after = apply_diff(files, certificate.diff)
    except PatchRefused as fault:
        raise _Refuted("diff", str(fault)) from fault
    changed = {path: digest(content) for path, content in after.items() if files.get(path) != content}
    _require(bool(changed), "diff", "it changes nothing")
    _require(files.keys() <= after.keys(), "diff", "it deletes a file")
    _require_equal("diff", certificate.result, changed)
    return after


async def _suite(
    certificate: Certificate,
    task: Task,
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> Suite:
    started = task.project is not None and task.project.kind is not None
    _require(
        bool(task.checks or task.test_command or started), "checks", "nothing is said to have been checked"
    )
    _require(
        all(check.provenance != "oracle" for check in task.checks), "checks", "a hidden check was in the run"
    )
    if interpreter is not None:
        interpreter = replace(interpreter, source_roots=certificate.task.source_roots)
    packages = packages_of(task, settings, may_fetch=False)
    return await prepare_suite(task, sandbox, settings.sandbox, interpreter, packages=packages)


def _require_allowed(
    certificate: Certificate, candidate: Candidate, suite: Suite, after: Mapping[str, bytes]
) -> None:
    """A diff that changes what decides proves nothing, whatever the certificate calls protected."""
    task = suite.task
    paths = candidate.files.keys()
    _require(
        task.kind == "heal" or task.project is not None or not paths & task.files.keys(),
        "files",
        "code that was there is no new code",
    )
    closed = {path for path in paths if is_protected(path, default_protected())}
    if task.kind == "heal":
        closed |= paths & set(files_deciding(task.test_command, after, NOWHERE))
    elif not task.test_command:
        closed -= set(task.modules)  # asserts run apart from them, whatever they are called
        if task.project is not None and task.project.is_new:
            closed = {path for path in closed if not is_test_file(path)}  # they decide nothing
    if task.project is not None and task.project.is_new:  # it says which packages there are, and no more
        closed = {path for path in closed if path != asks_in(task.language) and not is_lock(path)}
    closed = {path for path in closed if not is_made_here(path, candidate.files, suite)}
    closed |= set(refused_files(candidate.files, suite))
    _require(
        not task.test_command or not any(is_protected(path, default_protected()) for path in task.modules),
        "files",
        f"the module {task.module!r} decides, or one beside it",
    )
    _require(not closed, "files", f"the diff changes what decides: {', '.join(sorted(closed)[:MOST_LISTED])}")
    _require(
        overlay(task.files, candidate.files) == dict(after), "files", "the result is not what a run can make"
    )


async def _replay_before(certificate: Certificate, suite: Suite) -> Verdict | None:
    if suite.task.kind == "write":
        _require(not certificate.before, "before", "there was no code to check yet")
        return None
    verdict = await check_candidate(Candidate(files={}, origin="user"), suite)
    _require_equal("before", certificate.before, statuses(verdict))
    return verdict


def _require_after(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, threshold: float
) -> None:
    _require_equal("after", certificate.after, statuses(verdict))
    deciding = [o for o in verdict.outcomes if o.trust >= threshold and o.status != "skipped"]
    _require(bool(deciding) and all(o.passed for o in deciding), "after", "not every test passes")
    fixed = tuple(sorted(verdict.passed - (before.passed if before else frozenset())))
    _require(bool(fixed) and certificate.fixed == fixed, "after", "other tests are fixed than it says")
    _require(not new_failures(before, verdict), "after", "a test fails that passed before")
    _require(not certificate.newly_failing, "after", "it says itself that a test fails that passed before")
    _require(certificate.evidence == verdict.evidence, "after", f"the evidence is {verdict.evidence}")


async def _coverage(certificate: Certificate, suite: Suite, after: Mapping[str, bytes]) -> Finding:
    said = certificate.coverage
    statements = touched(suite.task.files, after)
    changed = {path: tuple(spot.start for spot in spots) for path, spots in statements.items()}
    if said.unmeasured:
        _require(not said.covered, "coverage", "it is unmeasured and measured")
        _require(not said.changed or said.changed == changed, "coverage", "other statements were changed")
        return Finding(name="coverage", ok=True, detail=f"not measured: {said.unmeasured}")
    _require_equal("coverage", said.changed, changed)
    found = await measure_coverage(suite, after)
    _require(not found.unmeasured, "coverage", f"it cannot be measured here: {found.unmeasured}")
    _require_equal("coverage", said.covered, found.covered)
    total, ran = (sum(map(len, part.values())) for part in (changed, found.covered))
    return Finding(name="coverage", ok=True, detail=f"the tests run {ran} of {total} changed statements")


async def _mutation(
    certificate: Certificate, suite: Suite, candidate: Candidate, after: Mapping[str, bytes], verdict: Verdict
) -> Finding:
    said = certificate.mutation
    if said.drawn is None:
        _require(bool(said.unmeasured) and not said.generated and not said.mutants, "mutation", "it is torn")
        return Finding(name="mutation", ok=True, detail=f"not measured: {said.unmeasured}; it counts as none")
    draw = await draw_mutants(after, touched(suite.task.files, after))
    run = [replace(run, killed=False) for run in said.mutants]
    is_drawn = (said.generated, said.drawn) == (draw.generated, len(draw.mutants))
    _require(
        is_drawn and run == list(draw.mutants[: len(run)]),
        "mutation",
        f"the mutants are not those that come first (said to be of Suture {certificate.claims.suture})",
    )
    in_full = len(run) == said.drawn > 0
    _require(in_full != bool(said.unmeasured), "mutation", "it is not said whether it was measured in full")
    _require(all(one.path in candidate.files for one in run), "mutation", "a mutant is of another file")
    noticed = await notices(suite, candidate.files, verdict, certificate.fixed)
    try:
        found = await replay_mutants(after, run, noticed)
    except PatchRefused as fault:
        raise _Refuted("mutation", str(fault)) from fault
    wrong = [one.label for one, replayed in zip(said.mutants, found, strict=True) if one != replayed]
    _require(not wrong, "mutation", f"the tests say otherwise of: {'; '.join(wrong[:MOST_LISTED])}")
    if not said.drawn:
        return Finding(name="mutation", ok=True, detail=f"not measured: {said.unmeasured}")
    missing = "" if in_full else f"; {said.drawn - len(run)} were not run and count as not noticed"
    detail = f"the tests notice {said.killed} of {said.drawn} mutants drawn from {said.generated}{missing}"
    return Finding(name="mutation", ok=True, detail=detail)


def _confidence(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, settings: Settings
) -> Finding:
    score, threshold = certificate.mutation.least_score, settings.loop.trust_threshold
    found = confidence_in(verdict, threshold, before=before, mutation_score=score)
    _require(certificate.confidence == found, "confidence", f"the evidence is worth {found:.2f}")
    _require(
        found >= settings.loop.abstain_below,
        "confidence",
        f"{found:.2f} is too little: no result is called healed for it (loop.abstain_below)",
    )
    return Finding(
        name="confidence",
        ok=True,
        detail=f"{found:.2f}, by the model of docs/proof.md, from all of the above",
    )
