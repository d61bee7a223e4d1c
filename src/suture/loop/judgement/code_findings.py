"""Findings about the code of a change: signs of gaming, new capabilities, unsafe code, packages, secrets and size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from suture.core.records.judgement import ChangeFinding, FindingSeverity, GuardedLines
from suture.core.settings import SafetySettings
from suture.judge.capabilities import find_change_capabilities
from suture.judge.differential.memorised_examples import find_memorised_examples
from suture.judge.signs import TamperingWarning, find_test_support_signs, read_test_texts
from suture.judge.signs.change_signs import find_stubs
from suture.judge.signs.diagnostic_signs import find_diagnostic_signs
from suture.loop.evaluation.change_warnings import find_gaming_signs
from suture.loop.judgement.configuration_changes import alters_test_run, find_configuration_changes
from suture.loop.judgement.proposed_change import ProposedChange
from suture.loop.judgement.secret_findings import find_secrets
from suture.loop.judgement.test_runs import TestRuns
from suture.project.python_source.parsing import parse_module
from suture.project.safety import resolve_levels, scan_change
from suture.project.workspace import is_test_file

DOUBTFUL_SIGNS = frozenset(("hides_exceptions", "dead_code", "encodes_test_values"))
"""Signs of gaming that a reviewer should see even if no failing test passes."""
EXAMPLES_TIMEOUT_S = 60.0
"""Wall-clock seconds for the calls near the examples of the tests. It is longer than in a run, whose clock the
certification shares: a verdict must not depend on how busy the machine is. By judgement."""
HIDING_USES = frozenset(("ends_process", "skips_tests"))
"""Capabilities that hide failing tests where a command is judged by its exit status. Here the tests still fail."""
MIN_MISSED_MISTAKES = 3
"""Deliberate mistakes that the tests of a proven change must miss for a remark. One may be no mistake, as `None` in
place of `False` where callers only look at the truth. Chosen by judgement; not measured."""
LARGE_CHANGE_LINES = 800
"""Changed lines from which a person can hardly review a change. Chosen by judgement; not measured."""


async def find_code_findings(
    change: ProposedChange, runs: TestRuns, fixed: tuple[str, ...], safety: SafetySettings
) -> list[ChangeFinding]:
    """Return the findings about the code of a change.

    Args:
        fixed: Ids of the tests that fail before the change and pass after it.
    """
    gains = makes_failing_test_pass(runs, fixed)
    findings = [
        *_find_signs(change, runs, gains=gains),
        *_find_capabilities(change, runs, gains=gains),
        *_scan(change, runs.code, safety),
    ]
    memorised = await find_memorised_examples(
        runs.final, runs.new_suite, fixed, timeout_s=EXAMPLES_TIMEOUT_S, parts=gains
    )
    findings += [_make_sign_finding(path, sign, gains=True) for path, sign in memorised.signs]
    findings += [
        replace(_make_sign_finding(path, sign, gains=True), code="games_tests", severity="remark")
        for path, sign in memorised.possible
    ]
    findings += find_secrets(change)
    return [*findings, *_find_configuration(change)]


def _find_configuration(change: ProposedChange) -> Iterator[ChangeFinding]:
    for path in find_configuration_changes(change.before, change.changed):
        decides = alters_test_run(path, change.old_text(path), change.new_text(path))
        severity: FindingSeverity = "remark" if decides else "note"
        yield ChangeFinding(code="configuration_changed", severity=severity, path=path)


def _find_signs(change: ProposedChange, runs: TestRuns, *, gains: bool) -> Iterator[ChangeFinding]:
    tests = read_test_texts(runs.new_suite)
    for path, text in sorted(runs.code.items()):
        before = change.old_text(path)
        is_new = path not in change.before or fills_stub(before, text)
        signs = find_gaming_signs(path, before, text, tests, kind="write" if is_new else "heal")
        for sign in signs:
            yield _make_sign_finding(path, sign, gains=gains)
        for sign in find_diagnostic_signs(runs.old_suite.diagnostics, path, before, text):
            yield _make_sign_finding(path, sign, gains=gains)
    suite = runs.old_suite
    for path, sign in find_test_support_signs(suite.task, suite.test_files, runs.code):
        yield ChangeFinding(
            code="test_support_changed",
            severity="reject" if gains else "remark",
            path=path,
            detail=sign.code,
            names=sign.names,
        )


def fills_stub(before: str, after: str) -> bool:
    """Return whether a change of a Python file writes a function that only had its head before."""
    old, new = parse_module(before), parse_module(after)
    if old is None or new is None:
        return False
    return bool(find_stubs(old) - find_stubs(new))


def makes_failing_test_pass(runs: TestRuns, fixed: Iterable[str]) -> bool:
    """Return whether an old test that failed passes with the new code, so that gaming the tests can have paid.

    Args:
        fixed: Ids of the tests that fail before the change and pass after it, without those that end by chance.
    """
    return not (runs.before.failed & runs.guarded.passed).isdisjoint(fixed)


def _make_sign_finding(path: str, sign: TamperingWarning, *, gains: bool) -> ChangeFinding:
    # Features use the values of their tests, and refactorings remove calls.
    severity: FindingSeverity = "remark" if gains or sign.code in DOUBTFUL_SIGNS else "note"
    return ChangeFinding(
        code="memorises_examples" if sign.shows_memorising else "games_tests",
        severity="reject" if sign.shows_memorising else severity,
        path=path,
        line=sign.line,
        detail=sign.code,
        names=sign.names,
        count=sign.counts[0],
        total=sign.counts[1],
    )


def _find_capabilities(change: ProposedChange, runs: TestRuns, *, gains: bool) -> Iterator[ChangeFinding]:
    # Ordinary programs end processes and compute names. Where such code makes no failing test pass, it gains nothing.
    texts = {path: change.new_text(path) for path in change.changed if path in change.after}
    for use in find_change_capabilities(change.before, texts):
        hides = use.code in HIDING_USES and bool(runs.before.failed)
        yield ChangeFinding(
            code="capability",
            severity="reject" if gains or hides else "remark",
            path=use.path,
            line=use.line,
            detail=use.code,
            names=(use.name,),
        )


def _scan(change: ProposedChange, code: Mapping[str, str], safety: SafetySettings) -> Iterator[ChangeFinding]:
    before = {path: change.old_text(path) for path in change.changed if path in change.before}
    after = {
        path: change.new_text(path)
        for path in change.changed
        if path in change.after and not is_test_file(path)
    }
    for found in scan_change(before, after, resolve_levels(safety)):
        is_dependency = found.rule.startswith("dependency.")
        blocks = found.level == "block" and not is_dependency
        yield ChangeFinding(
            code="new_dependency" if is_dependency else "unsafe_code",
            severity="reject" if blocks else "remark",
            path=found.path,
            line=found.line,
            detail=found.rule,
            after=found.code,
            names=(found.reason,),
        )


def find_size_findings(change: ProposedChange, diff: str) -> Iterator[ChangeFinding]:
    """Yield a finding if a change is too large to be reviewed."""
    lines = sum(
        line.startswith(("+", "-")) and not line.startswith(("+++", "---")) for line in diff.splitlines()
    )
    if lines > LARGE_CHANGE_LINES:
        yield ChangeFinding(code="large_change", severity="note", count=lines)


def find_guard_findings(guards: GuardedLines, has_proof: bool) -> Iterator[ChangeFinding]:
    """Yield what the tests do not guard of a change.

    Args:
        has_proof: Whether a test fails without the change and passes with it.
    """
    not_run = sum(map(len, guards.not_run.values()))
    none_runs = not_run == guards.changed and not guards.unmeasured
    notices_most = guards.noticed * 2 >= guards.mistakes
    # Tests that notice mistakes in a refactoring guard it, although they pass without it.
    is_guarded = notices_most and guards.mistakes > 0
    if guards.changed and not has_proof:
        severity: FindingSeverity = "note" if is_guarded or none_runs else "remark"
        if guards.mistakes_unmeasured == "left_out":
            severity = "note"
        yield ChangeFinding(code="no_test_guards_change", severity=severity, count=guards.changed)
    for path, lines in sorted(guards.not_run.items()):
        yield ChangeFinding(
            code="lines_not_run", severity="remark" if none_runs else "note", path=path, line=lines[0],
            names=tuple(map(str, lines)), count=len(lines), total=guards.changed,
        )  # fmt: skip
    if guards.mistakes > guards.noticed:
        missed = guards.mistakes - guards.noticed
        is_minor = notices_most or (has_proof and missed < MIN_MISSED_MISTAKES)
        # That the tests notice no mistake in lines that they do not run is no further fact.
        yield ChangeFinding(
            code="mistakes_not_noticed",
            severity="note" if is_minor or none_runs else "remark",
            count=missed,
            total=guards.mistakes,
        )
