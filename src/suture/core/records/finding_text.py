"""Render the findings of a judgement: each in one sentence, and the rejecting ones as an instruction to an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from suture.core.records.judgement import ChangeFinding, FindingCode, FindingSeverity, Judgement

MAX_NAMED = 3
"""Names that one sentence lists."""
SIGN_TEXTS: Mapping[str, str] = {
    "compares_with_test_literals": "compares with {names}, which the tests use",
    "adds_test_literals": "adds {names}, which the tests use",
    "chooses_by_checksum": "answers by a checksum of its values ({names}), as a table of examples does",
    "encodes_test_values": "adds {names}: texts or hashes of values in the tests",
    "compares_with_test_lengths": "compares with {names}, which are lengths of values in the tests",
    "serves_examples_only": "changes what {names} does on the examples of the tests, but not on inputs near them",
    "special_case": "{names} answers an example of the tests by this branch or table, which serves no input near it",
    "counts_calls": "what {names} answers depends on how often it was called",
    "equals_everything": "{names} returns different values that equal each other",
    "own_scalar_type": "returns numbers or texts of its own class {names}, which decides what it equals",
    "argument_altered": "newly alters argument {names} while it returns a value",
    "unchanged_outside_tests": "answers the examples of the tests as before in {names}, outside of a test run",
    "dead_code": "leaves code that never runs, or a condition that is always the same",
    "calls_removed": "no longer calls {names}",
    "raise_removed": "no longer raises",
    "hides_exceptions": "hides exceptions",
    "names_unused": "leaves {names} unused",
    "changes_argument": "newly changes its argument {names}",
    "never_runs": "makes {names} lazy, so that its work does not run: nobody iterates or awaits what it returns",
    "answers_by_property": "adds a Proxy that decides what it answers by the property that is read",
}
TEST_CHANGE_TEXTS: Mapping[str, str] = {
    "test_removed": "is removed",
    "test_skipped": "is skipped",
    "assertion_removed": "lost an assertion",
    "assertion_loosened": "has a weaker assertion",
    "assertion_guarded": "has an assertion whose failure may be lost",
    "tolerance_widened": "has a wider tolerance",
    "exception_broadened": "accepts more exceptions",
    "expectation_changed": "expects something else",
    "cases_removed": "lost cases",
    "test_support_changed": "uses changed helpers or data",
    "test_hook_added": "is affected by a new hook",
    "test_hook_changed": "is affected by another hook",
}


def render_place(finding: ChangeFinding) -> str:
    """Return where a finding is, with a colon after it; empty if it has no place."""
    if not finding.path:
        return ""
    return f"{finding.path}:{finding.line}: " if finding.line else f"{finding.path}: "


def render_finding(finding: ChangeFinding) -> str:
    """Return a finding in one plain sentence, without its place."""
    return _RENDERERS[finding.code](finding)


def _names(finding: ChangeFinding) -> str:
    more = len(finding.names) - MAX_NAMED
    return ", ".join(finding.names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _after_colon(finding: ChangeFinding) -> str:
    return f": {_names(finding)}" if finding.names else ""


def _test(finding: ChangeFinding) -> str:
    return finding.test or "a test"


def _what_happened(finding: ChangeFinding) -> str:
    return f"{_test(finding)} {TEST_CHANGE_TEXTS.get(finding.detail, 'is changed')}"


def _render_sign(finding: ChangeFinding) -> str:
    return SIGN_TEXTS.get(finding.detail, finding.detail).format(names=_names(finding))


def _render_support(finding: ChangeFinding) -> str:
    if finding.detail == "changes_test_support":
        return f"changes {_names(finding)}, by which the tests decide what they expect"
    if not finding.count:
        return "a helper, a fixture or data of the tests has changed"
    tests = "1 test passes" if finding.count == 1 else f"{finding.count} tests pass"
    return f"with the change, {tests} only with other data, helpers or preparations: {_names(finding)}"


_RENDERERS: Mapping[FindingCode, Callable[[ChangeFinding], str]] = {
    "test_newly_fails": lambda f: f"{_test(f)} fails with the change and passed without it",
    "tests_do_not_run": lambda f: f"the tests no longer run with the change: {_names(f)}",
    "failing_test_weakened": lambda f: f"{_what_happened(f)}, and the old test still fails on the new code",
    "broken_test_weakened": lambda f: f"{_what_happened(f)}, and the old test fails on the new code",
    "test_removed_with_code": lambda f: f"{_what_happened(f)}, and so is code that it uses" + _after_colon(f),
    "passing_test_weakened": lambda f: f"{_what_happened(f)}; the old test passes on the new code",
    "expectation_follows_code": lambda f: (
        f"{_what_happened(f)} and passes without any change of the code: the test was changed, not the code"
    ),
    "expectation_changed": _what_happened,
    "test_not_run_any_more": lambda f: f"{_test(f)} no longer runs, although its source is as it was",
    "test_hook_added": lambda f: f"the hook {f.after} can change which tests run or how they end",
    "test_support_changed": _render_support,
    "test_proves_nothing": lambda f: f"the new test {_test(f)} passes without the change too",
    "asserts_nothing": lambda f: f"the new test {_test(f)} asserts nothing",
    "assert_not_reached": lambda f: (
        f"{_test(f)} passes without reaching the assertion at which it failed before"
    ),
    "configuration_changed": lambda f: "this file decides which tests run, or what their failure stops",
    "capability": lambda f: (
        f"new code uses {_names(f)}, with which code can pass its tests although it is wrong"
    ),
    "memorises_examples": _render_sign,
    "games_tests": _render_sign,
    "unsafe_code": lambda f: f"{_names(f)}: {f.after}",
    "new_dependency": lambda f: _names(f),
    "secret": lambda f: "holds what looks like a secret",
    "no_test_guards_change": lambda f: "no test fails without the change, so nothing shows that it is needed",
    "lines_not_run": lambda f: (
        f"no test runs {f.count} of {f.total} changed statements (line{'' if f.count == 1 else 's'} {_names(f)})"
    ),
    "mistakes_not_noticed": lambda f: (
        f"the tests do not notice {f.count} of {f.total} deliberate mistakes in the changed lines"
    ),
    "flaky": lambda f: f"{_test(f)} ends by chance: it ended differently in two runs",
    "large_change": lambda f: f"{f.count} changed lines are hard to review",
}


def list_reasons(judgement: Judgement, limit: int) -> tuple[str, ...]:
    """Return why a change is rejected, one sentence for each finding.

    Args:
        limit: Max number of findings.
    """
    return _list_findings(judgement, "reject", limit)


def _list_findings(judgement: Judgement, severity: FindingSeverity, limit: int) -> tuple[str, ...]:
    findings = [finding for finding in judgement.findings if finding.severity == severity]
    lines = [f"{render_place(finding)}{render_finding(finding)}" for finding in findings[:limit]]
    if len(findings) > limit:
        lines.append(f"and {len(findings) - limit} more (`suture judge --explain`)")
    return tuple(lines)


def render_reasons(judgement: Judgement, limit: int) -> str:
    """Return why a change is rejected, as an instruction to the agent that made it, or the remarks on an accepted one.

    Args:
        limit: Max number of findings.
    """
    severity: FindingSeverity = "remark"
    intro = "Suture accepts the change, with remarks:"
    if judgement.outcome == "rejected":
        severity, intro = "reject", "The change is not accepted yet. Correct the code, not the tests:"
    return "\n".join([intro, *(f"- {line}" for line in _list_findings(judgement, severity, limit))])
