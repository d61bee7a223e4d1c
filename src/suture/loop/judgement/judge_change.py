"""Judge a change: run the tests, collect the findings, and decide by the policy of the settings."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from suture.core.records import Task, Verdict
from suture.core.records.judgement import (
    ChangeFinding,
    ComparedTests,
    FindingSeverity,
    GuardedLines,
    JudgeDepth,
    Judgement,
    JudgementOutcome,
)
from suture.core.settings import JudgeSettings, Settings
from suture.errors import UsageError
from suture.judge.certificates.certificate import check_statuses
from suture.judge.coverage.coverage_run import find_touched_by_file, measure_coverage
from suture.judge.mutation_testing.mutant_runs import (
    MutationResult,
    find_mutable_lines,
    measure_mutation_score,
    open_mutant_detector,
)
from suture.judge.trials.changed_code import ChangedCode, open_changed_code
from suture.loop.judgement.affected_tests import AffectedTests
from suture.loop.judgement.base_results import ProposedChange
from suture.loop.judgement.code_findings import find_code_findings, find_guard_findings, find_size_findings
from suture.loop.judgement.test_findings import TestSources, find_test_findings, read_test_sources
from suture.loop.judgement.test_runs import (
    Base,
    BaseDiffers,
    JudgeTools,
    TestRuns,
    TestsDoNotRun,
    compare_runs,
    prepare_base,
    run_tests,
)
from suture.project.python_source.behaviour_changes import find_behaviour_lines
from suture.project.workspace import unified_diff

SEVERITIES: tuple[FindingSeverity, ...] = ("reject", "remark", "note")
"""From the gravest to the mildest."""
UNTESTED_PATHS = re.compile(r"(?:docs?|documentation)/|(?:setup|noxfile|conf)\.py$")
"""Matches files of documentation and packaging, which tests do not run."""
MAX_AFFECTED_SHARE = 0.5
"""Of the tests. Where a change can affect more of them, selecting them saves too little. Chosen by judgement."""
MIN_STOPPABLE_S, MIN_STOPPABLE_TESTS, MAX_FIRST_SHARE = 10.0, 50, 0.2
"""Seconds and tests of a suite, and the share of these, for which the affected tests run first, and again with all.

Chosen by judgement: that costs at most a fifth of a run more, and may save nearly all of it.
"""
LEFT_OUT = GuardedLines(unmeasured="left_out", mistakes_unmeasured="left_out")
MAX_DETAIL_CHARS = 2000
"""Length of a command's output in a judgement, from its end."""


async def judge_change(
    change: ProposedChange,
    task: Task,
    tools: JudgeTools,
    settings: Settings,
    *,
    base: str = "",
    depth: JudgeDepth = "complete",
) -> Judgement:
    """Return the verdict on a change.

    Args:
        task: Says how to test, and which files decide; its files are not used.
        settings: `judge.*` is the policy.
        base: What the change is compared with, for people.
        depth: How much is found out.

    Raises:
        SandboxError: The sandbox failed.
    """
    started_s = time.monotonic()
    diff = unified_diff(change.before, change.after)
    judgement = Judgement(
        outcome="not_comparable", base=base, command=task.test_command, files=change.changed, diff=diff
    )
    if not change.changed:
        return replace(judgement, outcome="accepted", reason="no_change")
    try:
        judgement = await _judge_against_base(judgement, change, task, tools, settings, depth)
    except TestsDoNotRun as fault:
        finding = ChangeFinding(code="tests_do_not_run", severity="reject", names=(fault.message,))
        judgement = replace(judgement, outcome="rejected", findings=(finding,))
    except UsageError as fault:
        judgement = replace(judgement, reason="base_does_not_run", detail=fault.message)
    return replace(judgement, seconds=round(time.monotonic() - started_s, 3))


async def _judge_against_base(
    judgement: Judgement,
    change: ProposedChange,
    task: Task,
    tools: JudgeTools,
    settings: Settings,
    depth: JudgeDepth,
) -> Judgement:
    """Judge a change. A result of an earlier judgement that no longer holds is found out again."""
    base = await prepare_base(change, task, tools)
    try:
        return await _judge_tests(judgement, change, base, tools, settings, depth)
    except BaseDiffers:
        base.forget()
    base = await prepare_base(change, task, tools)
    return await _judge_tests(judgement, change, base, tools, settings, depth)


async def _judge_tests(
    judgement: Judgement,
    change: ProposedChange,
    base: Base,
    tools: JudgeTools,
    settings: Settings,
    depth: JudgeDepth,
) -> Judgement:
    sources = read_test_sources(change)
    if depth == "first_rejection" and _is_worth_selecting(base, settings.judge):
        runs = await run_tests(change, base, tools, is_partial=True)
        tests = await compare_runs(runs, sources.changed_ids(runs.after))
        if tests.newly_failing:
            judgement = replace(judgement, scope=runs.describe_scope("verdict_certain"))
            return await _judge_runs(judgement, change, sources, runs, tests, tools, settings, depth)
    runs = await run_tests(change, base, tools, is_partial=depth == "quick")
    judgement = replace(judgement, scope=runs.describe_scope("quick" if depth == "quick" else "all"))
    if not base.verdict.outcomes and not runs.after.outcomes:
        return replace(judgement, reason="no_tests", detail=runs.before.output[-MAX_DETAIL_CHARS:])
    if runs.before.evidence == "exit_status" and not runs.before.passed and not runs.after.passed:
        return replace(judgement, reason="fails_anyway", detail=runs.after.output[-MAX_DETAIL_CHARS:])
    tools.on_step("repeating")
    tests = await compare_runs(runs, sources.changed_ids(runs.after))
    return await _judge_runs(judgement, change, sources, runs, tests, tools, settings, depth)


def _is_worth_selecting(base: Base, policy: JudgeSettings) -> bool:
    """Return whether to run the affected tests first, because a failure of one rejects the change."""
    decides = "test_newly_fails" not in (*policy.remarks, *policy.ignores)
    is_long = base.verdict.wall_s >= MIN_STOPPABLE_S and len(base.verdict.outcomes) >= MIN_STOPPABLE_TESTS
    return decides and is_long and base.affected_share <= MAX_FIRST_SHARE


async def _judge_runs(
    judgement: Judgement,
    change: ProposedChange,
    sources: TestSources,
    runs: TestRuns,
    tests: ComparedTests,
    tools: JudgeTools,
    settings: Settings,
    depth: JudgeDepth,
) -> Judgement:
    proof = (*tests.fixed, *tests.proving)
    reaching, is_quick = _find_reaching(runs), depth == "quick"
    passed = () if is_quick else reaching if reaching is not None else runs.after.passed
    tools.on_step("guards")
    guards = LEFT_OUT
    async with open_changed_code(runs.new_suite, runs.final.files or runs.code, proof, passed) as code:
        if judgement.scope.kind != "verdict_certain":
            guards = await _measure_guards(change, runs, proof, settings.judge, code, is_quick=is_quick)
        tools.on_step("signs")
        findings = [
            *find_test_findings(sources, runs, tests),
            *await find_code_findings(change, runs, proof, settings.safety, code),
            *find_guard_findings(guards, has_proof=bool(proof)),
            *find_size_findings(change, judgement.diff),
        ]
    findings = apply_policy(findings, settings.judge)
    outcome = decide(findings)
    if outcome != "rejected" and not runs.base.verdict.passed and not runs.after.passed:
        # Something other than the code is missing, or the change does not reach its goal.
        judgement = replace(judgement, reason="nothing_passes", detail=_describe_failure(runs.after))
        outcome = "not_comparable"
    return replace(
        judgement,
        outcome=outcome,
        findings=tuple(findings),
        tests=tests,
        guards=guards,
        evidence=runs.after.evidence,
        runs={
            "before": check_statuses(runs.before),
            "guarded": check_statuses(runs.guarded),
            "unhelped": check_statuses(runs.unhelped),
            "after": check_statuses(runs.after),
        },
    )


def _describe_failure(verdict: Verdict) -> str:
    """Return what most failing tests saw."""
    seen = Counter(fact.exception for fact in verdict.counterexamples if fact.exception)
    return seen.most_common(1)[0][0][:MAX_DETAIL_CHARS] if seen else ""


def apply_policy(findings: Iterable[ChangeFinding], policy: JudgeSettings) -> list[ChangeFinding]:
    """Return the findings with the severity that a policy gives them, the gravest first."""
    judged: list[ChangeFinding] = []
    for finding in findings:
        severity = finding.severity
        if finding.code in policy.rejects:
            severity = "reject"
        elif finding.code in policy.remarks or (severity == "reject" and _is_accepted(finding, policy)):
            severity = "remark"
        elif finding.code in policy.ignores:
            continue
        judged.append(replace(finding, severity=severity))
    return sorted(judged, key=lambda finding: SEVERITIES.index(finding.severity))


def _is_accepted(finding: ChangeFinding, policy: JudgeSettings) -> bool:
    """Return whether a person has accepted what the change does to the tests."""
    codes = ("failing_test_weakened", "broken_test_weakened", "expectation_follows_code", "test_hook_added",
             "test_not_run_any_more", "test_support_changed")  # fmt: skip
    return policy.accept_tests and finding.code in codes


def decide(findings: Iterable[ChangeFinding]) -> JudgementOutcome:
    """Return the verdict that the severities of the findings give."""
    severities = {finding.severity for finding in findings}
    if "reject" in severities:
        return "rejected"
    return "accepted_with_remarks" if "remark" in severities else "accepted"


def _find_affected(runs: TestRuns) -> AffectedTests | None:
    """Return the tests that the change can affect, if they are known and not nearly all."""
    return runs.base.affected if runs.base.affected_share <= MAX_AFFECTED_SHARE else None


def _find_reaching(runs: TestRuns) -> frozenset[str] | None:
    """Return the ids of those of these tests that pass; `None` for all tests."""
    affected = _find_affected(runs)
    return frozenset(filter(affected.contain, runs.after.passed)) if affected else None


async def _measure_guards(
    change: ProposedChange,
    runs: TestRuns,
    proof: tuple[str, ...],
    policy: JudgeSettings,
    code: ChangedCode | None,
    *,
    is_quick: bool,
) -> GuardedLines:
    """Measure which changed statements the tests run, and which deliberate mistakes in them they notice."""
    affected = _find_affected(runs)
    suite, language = runs.new_suite, runs.new_suite.task.language
    behaviour = _find_behaviour(change, runs.code)
    if not any(lines is None or lines for lines in behaviour.values()):
        return GuardedLines(unmeasured="no_changed_code", mistakes_unmeasured="no_changed_code")
    # The files before the change tell which statements are changed.
    old_suite = replace(suite, task=replace(suite.task, files=change.before))
    code_after = {**change.before, **{path: change.after[path] for path in runs.code}}
    measured_after = {**change.after, **{path: change.before[path] for path in change.removed}}
    coverage = await measure_coverage(
        old_suite,
        measured_after,
        affected.only if affected else (),
        fixed=proof if code is not None else (),
        code=code,
    )
    mutation = MutationResult(unmeasured="left_out")
    if not is_quick:
        mutable = find_mutable_lines(change.before, code_after, language)
        files = runs.final.files or runs.code
        async with open_mutant_detector(
            suite, files, runs.after, proof, _find_reaching(runs), code
        ) as find_noticed:
            mutation = await measure_mutation_score(
                change.after,
                _select_behaviour(mutable, behaviour),
                find_noticed,
                max_mutants=policy.mistakes,
                timeout_s=policy.mistakes_seconds,
                language=language,
            )
    changed = {
        path: tuple(lines.start for lines in ranges)
        for path, ranges in _select_behaviour(
            find_touched_by_file(change.before, code_after), behaviour
        ).items()
    }
    not_run = {
        path: tuple(line for line in lines if line not in coverage.covered.get(path, ()))
        for path, lines in changed.items()
    }
    unmeasured = coverage.unmeasured
    if not_run == changed and (mutation.killed or proof):
        # A tracer of the project's own, such as that of pytest-cov, has taken the place of ours.
        unmeasured = unmeasured or "no_python_started"
    return GuardedLines(
        changed=sum(map(len, changed.values())),
        not_run={path: lines for path, lines in not_run.items() if lines} if not unmeasured else {},
        unmeasured=unmeasured,
        mistakes=len(mutation.mutants),
        noticed=mutation.killed,
        missed=mutation.missed,
        mistakes_unmeasured=mutation.unmeasured,
    )


def _find_behaviour(change: ProposedChange, code: Mapping[str, str]) -> dict[str, frozenset[int] | None]:
    """Return path -> first lines of the statements that the tests should guard; `None` for all changed lines.

    Documentation and packaging have none, because no test runs them.
    """
    return {
        path: find_behaviour_lines(change.old_text(path), text) if path.endswith(".py") else None
        for path, text in code.items()
        if not UNTESTED_PATHS.match(path)
    }


def _select_behaviour(
    statements: Mapping[str, tuple[range, ...]], behaviour: Mapping[str, frozenset[int] | None]
) -> dict[str, tuple[range, ...]]:
    """Return those of the changed statements of each file that the tests should guard."""
    selected: dict[str, tuple[range, ...]] = {}
    for path, ranges in statements.items():
        lines = behaviour.get(path, frozenset())
        chosen = tuple(each for each in ranges if lines is None or each.start in lines)
        if chosen:
            selected[path] = chosen
    return selected
