"""Replay the certificate of a judgement: judge the change again from its sources, and compare what is found."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from suture.core.records import Task, encode_record
from suture.core.records.finding_text import render_place
from suture.core.records.judgement import ChangeFinding, FindingCode, JudgedRun, Judgement
from suture.core.records.unmeasured_text import render_unmeasured
from suture.core.settings import JudgeSettings, Settings
from suture.errors import UsageError
from suture.judge.certificates.certificate import (
    JudgementCertificate,
    TestEnvironment,
    describe_environment,
    hash_tree,
    sha256_hex,
)
from suture.judge.certificates.certificate_replay import ReplayedClaim, confirm, render_left_out
from suture.judge.certificates.static_checks import (
    MAX_LISTED,
    ClaimName,
    ClaimRefuted,
    check_links,
    check_project_files,
    require,
    require_equal,
    revert_certified_change,
)
from suture.loop.intake.heal_task import build_task_from_snapshot
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.judge_change import apply_policy, decide, judge_change
from suture.loop.judgement.judgement_evidence import dump_policy
from suture.loop.judgement.test_runs import JudgeTools
from suture.project.languages import find_working_folder
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.workspace import DiffDoesNotApply, Snapshot, apply_diff, take_snapshot_with_parents
from suture.sandbox import Sandbox, discover_interpreter, discover_programs

RUN_TEXTS: Mapping[JudgedRun, str] = {
    "before": "without the change",
    "guarded": "by the old tests on the new code",
    "unhelped": "by the new tests on the old code",
    "after": "with the change",
}
VARYING_FINDINGS: tuple[FindingCode, ...] = ("memorises_examples", "tests_do_not_run")
"""Findings whose values depend on the time that a search took, or quote the message of a tool."""
MISTAKES_TIMEOUT_S = 3600.0
"""Seconds for the certified number of mistakes, of at most 12, each with its own limit: no limit in practice."""


async def replay_judgement(
    certificate: JudgementCertificate, project: Path | None, sandbox: Sandbox, settings: Settings
) -> AsyncIterator[ReplayedClaim]:
    """Judge the certified change again, and yield each statement of the certificate with what was found.

    The first statement that does not hold is the last one that is yielded.

    Args:
        project: The project, with or without the change; by default the files in the certificate.
        sandbox: A sandbox in which nothing of the judgement is left.
        settings: The limits of the sandbox, and the verifier's own policy.

    Raises:
        UsageError: The certificate does not hold all files, and no project is named.
        PrerequisiteError: The interpreter or another program is missing.
        SandboxError: The sandbox failed.
    """
    certified = certificate.judgement
    given, left_out = _find_files(certificate, project, settings)
    python = settings.sandbox.python
    try:
        files = check_project_files(
            certificate, given.files, discover_interpreter(given.root, os.environ, python)
        )
        links = check_links(certificate.links, {*files, *certificate.result}, given.links)
        shown = f"{links}{render_left_out(left_out)}"
        yield confirm("project", f"{len(files)} files have the certified hashes{shown}")
        change = ProposedChange(files, _apply_change(certificate, files))
        yield confirm(
            "diff", f"it changes {_list_texts(certified.files) or 'nothing'}, with the certified result"
        )
        task = _build_task(certificate, replace(given, files=files), settings)
        yield confirm("checks", _render_command(certificate))
        working_folder = find_working_folder(task.test_command)
        interpreter = discover_programs(
            given.root, os.environ, find_runtime_language(task), python, folder=working_folder
        )
        interpreter = replace(interpreter, source_roots=certificate.source_roots)
        yield confirm(
            "environment", _compare_environments(certificate.environment, describe_environment(interpreter))
        )
        policy = _read_policy(certificate, settings)
        tools = JudgeTools(sandbox=sandbox, settings=settings.sandbox, interpreter=interpreter)
        found = await judge_change(change, task, tools, _choose_replay_settings(certified, policy, settings))
        _require_same("tests", _list_outcomes(certified), _list_outcomes(found))
        require(
            certified.scope == found.scope, "tests", f"{found.scope.ran} of {found.scope.total} tests ran"
        )
        require(certified.evidence == found.evidence, "tests", f"the evidence is {found.evidence}")
        yield confirm("tests", _render_tests(found))
        require_equal("guards", _list_guards(certified), _list_guards(found, certified))
        yield confirm("guards", _render_guards(certified))
        judged = _apply_policy(found, policy)
        _require_same("findings", _list_findings(certified), _list_findings(judged))
        yield confirm("findings", _list_texts(_list_findings(judged).values()) or "none")
        require(certified.reason == judged.reason, "verdict", f"the reason is {judged.reason or 'none'}")
        require(certified.outcome == judged.outcome, "verdict", f"the verdict is {judged.outcome}")
        yield confirm(
            "policy", _compare_policies(certificate, _apply_policy(found, settings.judge), settings)
        )
        yield confirm("verdict", certified.outcome)
    except ClaimRefuted as refuted:
        yield ReplayedClaim(name=refuted.name, ok=False, detail=refuted.detail)
    except UsageError as fault:
        yield ReplayedClaim(name="checks", ok=False, detail=f"the change cannot be judged: {fault.message}")


def _find_files(
    certificate: JudgementCertificate, project: Path | None, settings: Settings
) -> tuple[Snapshot, Collection[str]]:
    """Return the files to check against the certified hashes, and the paths of a project that were not read."""
    if project is not None:
        snapshot = take_snapshot_with_parents(project, secrets=settings.sandbox.secrets)
        left_out = [path for path, reason in snapshot.skipped.items() if reason != "version_control"]
        return replace(snapshot, files=revert_certified_change(certificate, snapshot.files)), left_out
    missing = sorted(certificate.project.keys() - certificate.contents.keys())
    if missing:
        raise UsageError(
            f"the certificate leaves out the content of {len(missing)} file(s), such as {missing[0]!r}",
            remedy="name the project, with or without the change: --project PATH",
        )
    return Snapshot(root=Path.cwd(), files=certificate.contents, links=certificate.links), ()


def _apply_change(certificate: JudgementCertificate, before: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files after the change, checked by their hashes."""
    state = certificate.judgement.state
    try:
        after = apply_diff(before, certificate.diff)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("diff", str(fault)) from fault
    hashes = {path: sha256_hex(content) for path, content in after.items()}
    changed = ProposedChange(before, after).changed
    require_equal("diff", state.files, {path: hashes[path] for path in changed if path in after})
    require(certificate.judgement.files == changed, "diff", "it changes other files than the certified ones")
    has_digest = state.tree == hash_tree(hashes)
    require(has_digest, "diff", "the files after the change do not have the certified digest")
    return after


def _build_task(certificate: JudgementCertificate, before: Snapshot, settings: Settings) -> Task:
    """Return how to test the files before the change, which is derived from them and from the given command."""
    command = certificate.judgement.command
    task = build_task_from_snapshot(
        replace(before, built_files=certificate.built_files, folder=certificate.folder),
        test=certificate.given_command or None,
        protect=certificate.protect,
        python=settings.sandbox.python,
        protects_outside=False,
    )
    found = " ".join(task.test_command)
    require(task.test_command == command, "checks", f"the command is {found!r} here")
    require(task.language == certificate.language, "checks", f"the command tests {task.language} here")
    return replace(task, earlier_versions=(), services=settings.project.services)


def _render_command(certificate: JudgementCertificate) -> str:
    """Return the command and its origin, and which files whoever judged took out of the code."""
    given = certificate.given_command
    origin = f"given as {given!r}" if given else "suggested by the project's files"
    protected = (*certificate.protect, *certificate.built_files)
    protect = f"; also protected: {_list_texts(protected)}" if protected else ""
    return f"{' '.join(certificate.judgement.command)} ({origin}){protect}"


def _compare_environments(certified: TestEnvironment, here: TestEnvironment) -> str:
    """Return how two environments differ. A difference refutes nothing, but may explain other outcomes."""
    pairs = [
        ("platform", certified.platform, here.platform),
        ("Python", certified.python, here.python),
        *((name, version, here.packages.get(name, "")) for name, version in certified.packages.items()),
    ]
    differences = [
        f"{name} {ours or 'missing'} here, {theirs or 'missing'} certified"
        for name, theirs, ours in pairs
        if theirs != ours
    ]
    further = here.packages.keys() - certified.packages.keys()
    differences += [f"{len(further)} further packages here"] if further else []
    if differences:
        return f"it differs: {_list_texts(differences)}"
    return f"Python {here.python} on {here.platform} with {len(here.packages)} packages, as certified"


def _read_policy(certificate: JudgementCertificate, settings: Settings) -> JudgeSettings:
    """Return the policy of a certificate, whose safety rules must be those of the verifier."""
    try:
        policy = JudgeSettings.model_validate(certificate.policy["judge"])
    except (KeyError, ValidationError) as fault:
        raise ClaimRefuted("policy", f"it cannot be read ({type(fault).__name__})") from fault
    expected = dump_policy(settings.model_copy(update={"judge": policy}))
    differences = [*_list_differences(certificate.policy, expected)]
    require(not differences, "policy", f"{_list_texts(differences)}; verify with the same settings: --set")
    return policy


def _list_differences(certified: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the settings of two policies differ."""
    for group in sorted(certified.keys() | ours.keys()):
        theirs, own = certified.get(group), ours.get(group)
        if not isinstance(theirs, Mapping) or not isinstance(own, Mapping):
            yield f"{group} is no group of a policy"
            continue
        for name in sorted(theirs.keys() | own.keys()):
            values = theirs.get(name), own.get(name)
            if values[0] != values[1]:
                yield f"{group}.{name} is {json.dumps(values[0])} in the certificate and {json.dumps(values[1])} here"


def _choose_replay_settings(certified: Judgement, policy: JudgeSettings, settings: Settings) -> Settings:
    """Return settings that give each finding its usual severity, and try as many mistakes as certified."""
    guards = certified.guards
    mistakes = max(0, guards.mistakes) if guards.mistakes_unmeasured == "no_time" else policy.mistakes
    neutral = JudgeSettings(mistakes=mistakes, mistakes_seconds=MISTAKES_TIMEOUT_S)
    return settings.model_copy(update={"judge": neutral})


def _apply_policy(found: Judgement, policy: JudgeSettings) -> Judgement:
    """Return a judgement with the severities and the verdict of a policy; unchanged if no test ran."""
    if found.evidence is None:
        return found
    findings = tuple(apply_policy(found.findings, policy))
    return replace(found, findings=findings, outcome=decide(findings))


def _compare_policies(certificate: JudgementCertificate, own: Judgement, settings: Settings) -> str:
    """Return how the policy differs from the verifier's, which must not reject what the certificate accepts."""
    differences = _list_texts([*_list_differences(certificate.policy, dump_policy(settings))])
    if not differences:
        return "it is yours"
    if certificate.judgement.ok and not own.ok:
        raise ClaimRefuted(
            "policy", f"by your settings the verdict is {own.outcome}: {differences}; to accept it, use --set"
        )
    return f"by yours the verdict is {own.outcome}: {differences}"


def _list_outcomes(judgement: Judgement) -> dict[str, str]:
    """Return how each test ended in each run, and what follows from it, as strings."""
    texts = [
        f"{test} {status} {RUN_TEXTS.get(run, run)}"
        for run, statuses in judgement.runs.items()
        for test, status in statuses.items()
    ]
    texts += [f"{test} is {name}" for name, tests in vars(judgement.tests).items() for test in tests]
    return dict(zip(texts, texts, strict=True))


def _render_tests(judgement: Judgement) -> str:
    if judgement.evidence is None:
        return f"no comparison, as certified ({judgement.reason or 'the tests do not run'})"
    tests = judgement.tests
    proof = len({*tests.fixed, *tests.proving})
    return f"each ends as certified; {len(tests.passed)} pass with the change, {proof} of them only with it"


def _list_guards(judgement: Judgement, certified: Judgement | None = None) -> dict[str, object]:
    """Return what the tests guard; why not all mistakes were tried is left out if the certified reason is the time."""
    values = encode_record(judgement.guards)
    not_run = values.pop("not_run")
    if (certified or judgement).guards.mistakes_unmeasured == "no_time":
        values.pop("mistakes_unmeasured")
    return {**values, **{f"lines of {path} that no test runs": lines for path, lines in not_run.items()}}


def _render_guards(judgement: Judgement) -> str:
    guards = judgement.guards
    if judgement.evidence is None:
        return "not measured, as certified"
    runs = guards.changed - sum(map(len, guards.not_run.values()))
    coverage = f"the tests run {runs} of {guards.changed} changed statements"
    if guards.unmeasured:
        coverage = f"coverage is not measured: {render_unmeasured(guards.unmeasured)}"
    late = ", and there was no time for more" if guards.mistakes_unmeasured == "no_time" else ""
    mistakes = f"{guards.noticed} of {guards.mistakes} deliberate mistakes are noticed{late}"
    return f"{coverage}; {mistakes}" if guards.mistakes or late else coverage


def _list_findings(judgement: Judgement) -> dict[str, str]:
    """Return the findings as JSON, by which they are compared, with the text that names each."""
    return {
        json.dumps(encode_record(_drop_varying(found))): _name_finding(found) for found in judgement.findings
    }


def _drop_varying(finding: ChangeFinding) -> ChangeFinding:
    return replace(finding, names=(), count=0, total=0) if finding.code in VARYING_FINDINGS else finding


def _name_finding(finding: ChangeFinding) -> str:
    # Not its sentence: the values of a forged finding need not fit into one.
    return f"{finding.severity} {finding.code} {render_place(finding)}{finding.test}".rstrip(" :")


def _require_same(name: ClaimName, certified: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Raise `ClaimRefuted` unless the keys of two mappings are the same; their values name them."""
    missing = [certified[key] for key in certified if key not in found]
    further = [found[key] for key in found if key not in certified]
    texts = [f"certified, not found: {_list_texts(missing)}"] if missing else []
    texts += [f"found, not certified: {_list_texts(further)}"] if further else []
    require(not texts, name, "; ".join(texts))


def _list_texts(texts: Collection[str]) -> str:
    shown = list(texts)[:MAX_LISTED]
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return ", ".join(shown) + more
