"""Replay a certificate: verify each of its statements in a clean sandbox, without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suture.core.records import Candidate, Task, UnmeasuredReason, Verdict
from suture.core.records.unmeasured_text import render_unmeasured
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.judge import Suite, prepare_suite
from suture.judge.capabilities import find_change_capabilities, is_rule_relevant
from suture.judge.certificates.certificate import Certificate, check_statuses, find_new_failures, strip_task
from suture.judge.certificates.flaky_claims import (
    check_with_flaky_tests,
    list_flaky_tests,
    require_flaky_tests,
)
from suture.judge.certificates.static_checks import (
    MAX_LISTED,
    ClaimName,
    ClaimRefuted,
    check_certified_diff,
    check_changed_paths,
    check_links,
    check_project_files,
    find_deciding_paths,
    find_further_files,
    require,
    require_equal,
)
from suture.judge.confidence import compute_certified_confidence, limit_confidence_for_signs
from suture.judge.coverage.coverage_run import find_touched_by_file, measure_coverage
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.mutation_testing.mutant_runs import (
    find_mutable_lines,
    open_mutant_detector,
    replay_mutants,
    select_mutants,
)
from suture.judge.signs import (
    CALL_CODES,
    FileSign,
    TamperingCode,
    TamperingWarning,
    find_change_signs,
    find_test_support_signs,
    find_verdict_signs,
    read_test_texts,
    render_tampering_warning,
)
from suture.judge.signs.diagnostic_signs import find_diagnostic_signs
from suture.judge.trials.changed_code import ChangedCode, open_changed_code
from suture.project.languages import Interpreter
from suture.project.workspace import DiffDoesNotApply, decode_text
from suture.sandbox import Sandbox
from suture.sandbox.packages import PackagesRefused, packages_for_task

UNNAMED_CAPABILITIES = "the certificate does not name what it newly uses"


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
    *,
    left_out: Iterable[str] = (),
    links: Mapping[str, str] | None = None,
) -> AsyncIterator[ReplayedClaim]:
    """Verify what a certificate says, and yield each statement with what was found.

    The first statement that does not hold is the last one that is yielded.

    Args:
        project: The files before the change, path -> content; see `revert_certified_change`. There may be
            more files than the certificate names.
        sandbox: A sandbox in which nothing of the original run is left.
        settings: The limits and the trust threshold; those in the certificate are only claims.
        interpreter: What `python` means in the test command.
        left_out: Paths in the project's folder that `project` does not have, such as caches and ignored files.
            The replay does not read them; those that may decide for the user are named.
        links: The project's links to its own folders; `None` if they are not known.

    Raises:
        PrerequisiteError: The change needs packages that are not kept here; none are fetched.
    """
    try:
        files = check_project_files(certificate, project, interpreter)
        counts = f"{len(files)} files have the certified hashes"
        further = _render_further(find_further_files(certificate, project))
        shown_links = check_links(certificate.task.links, {*files, *certificate.result}, links)
        yield confirm("project", f"{counts}{further}{shown_links}{render_left_out(left_out)}")
        after = check_certified_diff(certificate, files)
        yield confirm(
            "diff", f"applied to these files, it gives the certified {', '.join(sorted(certificate.result))}"
        )
        task = replace(strip_task(certificate.task), files=files)
        prepared = await _prepare_certified_suite(certificate, task, sandbox, settings, interpreter)
        suite = replace(prepared, flaky_tests=frozenset(certificate.flaky_tests))
        changed_files = {path: decode_text(after[path]) for path in certificate.result}
        candidate = Candidate(files=changed_files, origin="repair")
        # This refuses a change whose packages are not kept here; a lock file is allowed only with its packages.
        suite_with_packages, _ = await suite.install_packages(after)
        check_changed_paths(certificate, candidate, suite, after)
        capabilities = find_change_capabilities(files, changed_files)
        # Whether the checks of new code share a process with it is known only after they have run.
        possible = (capabilities,) if is_rule_relevant(task) else (capabilities, ())
        require(certificate.capabilities in possible, "files", UNNAMED_CAPABILITIES)
        newly_used = "".join(
            f"; newly uses {use.name} ({use.path}:{use.line})" for use in certificate.capabilities
        )
        yield confirm("files", f"it changes no test and no protected file{newly_used}")
        complete_before, before = await _replay_before(certificate, suite)
        if before is not None:
            failing, passing = _count_checks(certificate, before.failed, "fail"), len(before.passed)
            yield confirm(
                "before", f"{failing}, and {passing} {'passes' if passing == 1 else 'pass'}, as certified"
            )
        complete_after, verdict = await check_with_flaky_tests(candidate, suite)
        _require_after(certificate, before, verdict, settings.loop.trust_threshold)
        await require_flaky_tests(suite_with_packages, after, complete_before, complete_after)
        found = capabilities if is_rule_relevant(task, verdict) else ()
        require(found == certificate.capabilities, "after", UNNAMED_CAPABILITIES)
        yield confirm("after", _render_after(certificate, verdict, settings.loop.trust_threshold))
        opened = open_changed_code(suite_with_packages, changed_files, certificate.fixed, verdict.passed)
        async with opened as code:
            yield await _replay_coverage(certificate, suite_with_packages, after, code)
            yield await _replay_mutation(certificate, suite_with_packages, candidate, after, verdict, code)
            signs = await _find_signs(certificate, candidate, suite_with_packages, verdict, code)
        yield _replay_signs(certificate, signs)
        yield _replay_confidence(certificate, before, verdict, signs, settings)
    except ClaimRefuted as refuted:
        yield ReplayedClaim(name=refuted.name, ok=False, detail=refuted.detail)
    except UsageError as fault:
        yield ReplayedClaim(name="checks", ok=False, detail=f"the checks cannot be run: {fault.message}")
    except PackagesRefused as fault:
        yield ReplayedClaim(name="packages", ok=False, detail=fault.reason)


def confirm(name: ClaimName, detail: str) -> ReplayedClaim:
    """Return a claim that holds."""
    return ReplayedClaim(name=name, ok=True, detail=detail)


def _render_further(paths: Sequence[str]) -> str:
    """Return which files of the user's project were not there when new code was judged; empty if none."""
    return f"; new code, judged without your own {_list_paths(paths)}" if paths else ""


def render_left_out(paths: Iterable[str]) -> str:
    """Return what the replay did not read although it may decide in the user's own folder; empty if nothing."""
    deciding = find_deciding_paths(paths)
    return f"; not read, and not certified: {_list_paths(deciding)}" if deciding else ""


def _list_paths(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MAX_LISTED} more" if len(paths) > MAX_LISTED else ""
    return f"{', '.join(paths[:MAX_LISTED])}{more}"


async def _prepare_certified_suite(
    certificate: Certificate,
    task: Task,
    sandbox: Sandbox,
    settings: Settings,
    interpreter: Interpreter | None,
) -> Suite:
    has_smoke_checks = task.project is not None and task.project.kind is not None
    has_checks = bool(task.checks or task.full_command or has_smoke_checks)
    require(has_checks, "checks", "the certificate names nothing that was checked")
    has_hidden_check = any(check.provenance == "oracle" for check in task.checks)
    require(not has_hidden_check, "checks", "the run had a hidden check")
    has_unique_ids = len({check.id for check in task.checks}) == len(task.checks)
    require(has_unique_ids, "checks", "two checks have the same id")
    if interpreter is not None:
        interpreter = replace(interpreter, source_roots=certificate.source_roots)
    packages = packages_for_task(task, settings, may_fetch=False)
    # The run that collects the tests also shows what imports find, so it must be the one of the original run.
    return await prepare_suite(
        task, sandbox, settings.sandbox, interpreter, run=task.kind == "heal", packages=packages
    )


async def _replay_before(
    certificate: Certificate, suite: Suite
) -> tuple[Verdict, Verdict] | tuple[None, None]:
    """Return (verdict on all tests, verdict on those that decide) before the change; `None` for new code."""
    if suite.task.kind == "write":
        require(not certificate.before, "before", "new code has no state before the change")
        return None, None
    complete, verdict = await check_with_flaky_tests(Candidate(files={}, origin="user"), suite)
    require_equal("before", certificate.before, check_statuses(verdict))
    return complete, verdict


def _render_after(certificate: Certificate, verdict: Verdict, threshold: float) -> str:
    """Return how the checks end after the change; those that do not decide are counted separately."""
    deciding = [outcome for outcome in verdict.outcomes if outcome.trust >= threshold]
    others = [outcome for outcome in verdict.outcomes if outcome.trust < threshold]
    failing = sum(not outcome.passed for outcome in others)
    aside = f"; {len(others)} more do not decide, and {failing} of these do not pass" if others else ""
    passing = [outcome.check_id for outcome in deciding if outcome.passed]
    text = _count_checks(certificate, passing, "pass")
    if certificate.before:
        fixed = len({outcome.check_id for outcome in deciding} & {*certificate.fixed})
        text += f", {fixed} of them only with the change; none fails that passed before"
    flaky = (
        f"; flaky, and not certified: {list_flaky_tests(certificate.flaky_tests)}"
        if certificate.flaky_tests
        else ""
    )
    return f"{text}{aside}{flaky}"


def _count_checks(certificate: Certificate, checks: Collection[str], verb: Literal["pass", "fail"]) -> str:
    """Return how many checks pass or fail; those of a repair are called tests, as in its run."""
    noun = "test" if certificate.task.kind == "heal" else "check"
    if len(checks) == 1:
        return f"1 {noun} {'passes' if verb == 'pass' else 'fails'}"
    return f"{len(checks)} {noun}s {verb}"


def _require_after(
    certificate: Certificate, before: Verdict | None, verdict: Verdict, threshold: float
) -> None:
    require_equal("after", certificate.after, check_statuses(verdict))
    deciding = [
        outcome for outcome in verdict.outcomes if outcome.trust >= threshold and outcome.status != "skipped"
    ]
    is_accepted = bool(deciding) and all(outcome.passed for outcome in deciding)
    require(is_accepted, "after", "not every deciding check passes")
    fixed = tuple(sorted(verdict.passed - (before.passed if before else frozenset())))
    is_fixed = bool(fixed) and certificate.fixed == fixed
    require(is_fixed, "after", "the fixed checks are not the certified ones")
    require(not find_new_failures(before, verdict), "after", "a check fails that passed before")
    require(not certificate.newly_failing, "after", "the certificate itself names a check that newly fails")
    require(certificate.evidence == verdict.evidence, "after", f"the evidence is {verdict.evidence}")


async def _replay_coverage(
    certificate: Certificate, suite: Suite, after: Mapping[str, bytes], code: ChangedCode | None
) -> ReplayedClaim:
    certified = certificate.coverage
    statements = find_touched_by_file(suite.task.files, after)
    changed = {path: tuple(lines.start for lines in ranges) for path, ranges in statements.items()}
    if certified.unmeasured:
        require(not certified.covered, "coverage", "it is called unmeasured and has results")
        is_consistent = not certified.changed or certified.changed == changed
        require(is_consistent, "coverage", "the changed statements are not the certified ones")
        return _confirm_unmeasured("coverage", certified.unmeasured)
    require_equal("coverage", certified.changed, changed)
    measured = await measure_coverage(suite, after, fixed=certificate.fixed, code=code)
    if measured.unmeasured:
        reason = render_unmeasured(measured.unmeasured)
        raise ClaimRefuted("coverage", f"it cannot be measured here: {reason}")
    require_equal("coverage", certified.covered, measured.covered)
    counts = f"{measured.covered_count} of {measured.changed_count}"
    return confirm("coverage", f"the tests run {counts} changed statements")


def _confirm_unmeasured(name: ClaimName, reason: UnmeasuredReason) -> ReplayedClaim:
    return confirm(name, f"not measured: {render_unmeasured(reason)}")


async def _replay_mutation(
    certificate: Certificate,
    suite: Suite,
    candidate: Candidate,
    after: Mapping[str, bytes],
    verdict: Verdict,
    code: ChangedCode | None,
) -> ReplayedClaim:
    certified = certificate.mutation
    if certified.selected is None:
        is_empty = not certified.generated and not certified.mutants
        if not certified.unmeasured or not is_empty:
            raise ClaimRefuted("mutation", "the mutation results are inconsistent")
        return _confirm_unmeasured("mutation", certified.unmeasured)
    language = suite.task.language
    mutable_lines = find_mutable_lines(suite.task.files, after, language)
    selection = await select_mutants(after, mutable_lines, language)
    # A quick judgement has not run the mutants, so it claims of none that a test noticed it.
    runs = [replace(run, killed=False) for run in certified.mutants]
    counts_match = (certified.generated, certified.selected) == (selection.generated, len(selection.mutants))
    require(
        counts_match and runs == list(selection.mutants[: len(runs)]),
        "mutation",
        f"the deliberate mistakes are not the first ones of the selection (made by Suture {certificate.claims.suture})",
    )
    ran_all = len(runs) == certified.selected > 0
    is_consistent = ran_all == (certified.unmeasured is None)
    require(is_consistent, "mutation", "it is not stated whether all deliberate mistakes were tried")
    are_in_change = all(run.path in candidate.files for run in runs)
    require(are_in_change, "mutation", "a deliberate mistake is in a file that the change does not touch")
    detector = open_mutant_detector(suite, candidate.files, verdict, certificate.fixed, code=code)
    try:
        async with detector as find_noticed:
            replayed_runs = await replay_mutants(after, runs, find_noticed)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("mutation", str(fault)) from fault
    pairs = zip(certified.mutants, replayed_runs, strict=True)
    wrong = [run.label for run, replayed_run in pairs if run != replayed_run]
    require(not wrong, "mutation", f"the tests answer differently for: {'; '.join(wrong[:MAX_LISTED])}")
    if not certified.selected and certified.unmeasured:
        return _confirm_unmeasured("mutation", certified.unmeasured)
    missing = "" if ran_all else f"; {certified.selected - len(runs)} were not tried and count as not noticed"
    counts = (
        f"{certified.killed} of {certified.selected} deliberate mistakes, selected from {certified.generated}"
    )
    return confirm("mutation", f"the tests notice {counts}{missing}")


async def _find_signs(
    certificate: Certificate, candidate: Candidate, suite: Suite, verdict: Verdict, code: ChangedCode | None
) -> list[FileSign]:
    """Return the signs that the change games the tests.

    What only calls show, such as memorised examples, is not searched for if the certificate names it: the time may
    not suffice here, and the confidence has its limit already.
    """
    base, tests = suite.task.files, read_test_texts(suite)
    shares_process = is_rule_relevant(suite.task, verdict)
    signs = [
        (path, sign)
        for path, text in sorted(candidate.files.items())
        if path.endswith(".py")
        for sign in find_change_signs(
            suite.task.kind,
            decode_text(base.get(path, b"")),
            text,
            tests,
            shares_process=shares_process,
        )
    ]
    signs += [
        (path, sign)
        for path, text in candidate.files.items()
        for sign in find_diagnostic_signs(suite.diagnostics, path, decode_text(base.get(path, b"")), text)
    ]
    signs += find_test_support_signs(suite.task, tests, candidate.files)
    signs += find_verdict_signs(suite.task, verdict)
    if certificate.claims.shows_memorising:
        return signs
    return [*signs, *(await find_memorised_examples(candidate, suite, certificate.fixed, code=code)).signs]


def _replay_signs(certificate: Certificate, signs: Sequence[FileSign]) -> ReplayedClaim:
    """Refute a certificate that leaves out a sign that its run must have found."""
    left_out = [
        (path, sign)
        for path, sign in signs
        if sign.code not in certificate.claims.signs.get(path, ()) and not _is_late(certificate, sign)
    ]
    listed = "; ".join(_render_sign(path, sign) for path, sign in left_out[:MAX_LISTED])
    require(not left_out, "signs", f"the certificate does not name what is suspicious: {listed}")
    if not signs and not certificate.claims.signs:
        return confirm("signs", "nothing suggests that the change games the tests")
    found = {(path, sign.code): _render_sign(path, sign) for path, sign in signs}
    claimed = _render_claimed_signs(certificate, found)
    return confirm("signs", f"suspicious: {'; '.join((*found.values(), *claimed))}")


def _render_claimed_signs(
    certificate: Certificate, found: Mapping[tuple[str, TamperingCode], str]
) -> Iterator[str]:
    """Yield signs that only the certificate names, in the words of its warnings, which alone say what they are about.

    Args:
        found: Path and code of each sign that the replay found -> its text.
    """
    texts = set(certificate.claims.warnings) - set(found.values())
    for path, codes in sorted(certificate.claims.signs.items()):
        missed = sorted(code for code in codes if (path, code) not in found)
        warnings = sorted(text for text in texts if text.startswith(f"{path}: ")) if missed else []
        listed = warnings or [f"{path}: {code.replace('_', ' ')}" for code in missed]
        yield from (f"{text} (only claimed)" for text in listed)


def _is_late(certificate: Certificate, sign: TamperingWarning) -> bool:
    """Whether the certificate says that there was no time to find a sign, which only calls show."""
    return sign.code in CALL_CODES and certificate.claims.examples_unmeasured is not None


def _render_sign(path: str, sign: TamperingWarning) -> str:
    return f"{path}: {render_tampering_warning(sign)}"


def _replay_confidence(
    certificate: Certificate,
    before: Verdict | None,
    verdict: Verdict,
    signs: Sequence[FileSign],
    settings: Settings,
) -> ReplayedClaim:
    claims = certificate.claims
    confidence = compute_certified_confidence(
        verdict,
        settings.loop.trust_threshold,
        checks=certificate.task.checks,
        before=before,
        mutation_score=certificate.mutation.min_score,
        rivals=claims.rivals,
        share=claims.share,
        has_warnings=bool(claims.warnings or claims.signs),
        has_capabilities=bool(certificate.capabilities),
        has_limiting_signs=claims.limits_confidence,
        has_failing_tests=bool(claims.failing_tests),
        has_weak_tests=certificate.task.kind == "heal" and certificate.mutation.shows_weak_tests,
    )
    require(certificate.confidence == confidence, "confidence", f"the evidence supports {confidence:.2f}")
    require(
        confidence >= settings.loop.abstain_below,
        "confidence",
        f"{confidence:.2f} is below loop.abstain_below, so no result would be called healed",
    )
    limited = limit_confidence_for_signs(confidence)
    if limited < confidence and any(_is_late(certificate, sign) for _, sign in signs):
        reason = "this replay found memorised examples; the run had no time to search for them"
        return confirm("confidence", f"at most {limited:.2f} instead of {confidence:.2f}: {reason}")
    text = f"{confidence:.2f}, computed from all of the above"
    if not claims.rivals and not claims.calls:  # the search made the change
        text += (
            ". The run itself may show more: it knows that its search found no other repair, and this replay "
            "does not search again"
        )
    return confirm("confidence", text)
