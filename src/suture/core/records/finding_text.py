"""Render the findings of a judgement: each in one sentence, and the rejecting ones as an instruction to an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from suture.core.records.judgement import ChangeFinding, FindingCode, FindingSeverity, Judgement

AGENT_HOOKS = "agent_hooks"
"""`ChangeFinding.detail` of a `configuration_changed` about the hooks of a coding agent."""
MAX_NAMED = 3
"""Names that one sentence lists."""
SIGN_TEXTS: Mapping[str, tuple[str, str]] = {
    "compares_with_test_literals": (
        "newly compares with {names}, which the tests use, too",
        "check that it is right for other inputs than those of the tests",
    ),
    "adds_test_literals": (
        "newly contains {names}, which the tests use, too",
        "check that it does not hold prepared answers for the tests",
    ),
    "chooses_by_checksum": (
        "chooses its answer by a checksum ({names})",
        "code that only recognises prepared inputs does this, so check what other inputs give",
    ),
    "encodes_test_values": (
        "newly contains {names}, texts or hashes of values in the tests",
        "code can recognise the inputs of the tests by them, so check what other inputs give",
    ),
    "compares_with_test_lengths": (
        "newly compares with {names}, lengths of values in the tests",
        "check that it does not recognise the inputs of the tests by their length",
    ),
    "serves_examples_only": (
        "{names} answers {count} of the tests' inputs in a new way, but not {total} similar inputs",
        "it seems to be right only for the tests, so try other inputs",
    ),
    "special_case": (
        "a branch or table in {names} serves an input of the tests and no similar input",
        "check that it is meant for more than the tests",
    ),
    "counts_calls": (
        "what {names} returns depends on how often it was called",
        "it can be right in the tests and wrong later",
    ),
    "equals_everything": (
        "{names} returns different values that compare as equal, in {count} of {total} pairs",
        "a test that compares them passes with a wrong value, too",
    ),
    "own_scalar_type": (
        "returns numbers or texts of its own class {names}, which itself decides what they equal",
        "a test that compares them can pass with a wrong value",
    ),
    "argument_altered": (
        "newly alters the argument {names}, although it also returns a value",
        "check that callers expect this",
    ),
    "unchanged_outside_tests": (
        "{names} answers the inputs of the tests in the new way only during a test run",
        "elsewhere it still does what it did before the change",
    ),
    "answers_by_order": (
        "gives different answers to the same calls in another order",
        "look for what it keeps from one call to the next",
    ),
    "dead_code": (
        "leaves code that never runs, or a condition that is always the same",
        "check that nothing was switched off instead of corrected",
    ),
    "calls_removed": ("no longer calls {names}", "check that nothing else relied on it"),
    "raise_removed": ("no longer raises an exception", "check that no caller relied on it"),
    "hides_exceptions": ("catches exceptions and goes on", "check that no fault is hidden"),
    "names_unused": ("no longer uses {names}", "check that it was not needed"),
    "changes_argument": ("newly changes its argument {names}", "check that callers expect this"),
    "statement_removed": ("removes a statement", "check that nothing else relied on it"),
    "removal_unneeded": (
        "removes code ({names} before the change) with which all tests pass, too",
        "check that nothing else needs it",
    ),
    "widens_types": (
        "widens or asserts types ({names})",
        "the type checker reports less there, so check these types yourself",
    ),
    "removes_definitions": (
        "removes {names}, with all that was reported there",
        "check that the program does not need it",
    ),
    "silences_tools": (
        "switches off what a compiler or linter reports ({names})",
        "repair the code that it reports instead",
    ),
    "never_runs": (
        "makes {names} lazy, and nobody iterates or awaits what it returns",
        "its work is never done",
    ),
    "answers_by_property": (
        "adds a Proxy that decides what it answers by the property that is read",
        "code can recognise a test by this, so check what other properties give",
    ),
    "changes_test_support": (
        "changes {names}, by which the tests compute what they expect",
        "a test can pass because of this and not because of the code",
    ),
}
"""Code of a sign -> (what was found, why it matters or what to check). The first part continues the name of a file."""
TEST_CHANGE_TEXTS: Mapping[str, str] = {
    "test_removed": "is removed",
    "test_skipped": "is skipped",
    "assertion_removed": "lost an assertion",
    "assertion_loosened": "has a weaker assertion",
    "assertion_guarded": "has an assertion whose failure can go unnoticed",
    "tolerance_widened": "has a wider tolerance",
    "exception_broadened": "accepts more exceptions",
    "expectation_changed": "now expects another result",
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


def render_sign(code: str, names: str, count: int, total: int, place: str = "") -> str:
    """Return a sign that a change games its tests, with what to check.

    Args:
        code: A key of `SIGN_TEXTS`; any other text is returned as it is.
        names: What it is about, separated by commas.
        count: See `ChangeFinding.count`.
        total: See `ChangeFinding.total`.
        place: Text to insert after what was found, such as ` (line 2)`.
    """
    if code not in SIGN_TEXTS:
        return f"{code}{place}"
    found, advice = SIGN_TEXTS[code]
    return f"{found.format(names=names, count=count, total=total)}{place}{f': {advice}' if advice else ''}"


def _render_sign(finding: ChangeFinding) -> str:
    return render_sign(finding.detail, _names(finding), finding.count, finding.total)


def _render_support(finding: ChangeFinding) -> str:
    if finding.detail == "changes_test_support":
        return _render_sign(finding)
    if not finding.count:
        return (
            "a helper, a fixture or data of the tests has changed: check that the tests still test the same"
        )
    tests = "1 test passes" if finding.count == 1 else f"{finding.count} tests pass"
    return f"{tests} only because data, helpers or preparations of the tests changed, too: {_names(finding)}"


def _render_followed_code(finding: ChangeFinding) -> str:
    if finding.detail == "test_support_changed":
        changed = "this file" if len(finding.names) == 1 else _names(finding)
        return f"{_test(finding)} passes with the old code, too, because {changed} changed: correct the code instead"
    return (
        f"{_what_happened(finding)}, which the code returned before the change, too: the test was changed, not "
        "the code"
    )


_RENDERERS: Mapping[FindingCode, Callable[[ChangeFinding], str]] = {
    "test_newly_fails": lambda f: f"{_test(f)} fails with the change and passed without it",
    "tests_do_not_run": lambda f: f"the tests no longer run with the change: {_names(f)}",
    "failing_test_weakened": lambda f: (
        f"{_what_happened(f)}, and its old version still fails with the change: the fault is not mended"
    ),
    "broken_test_weakened": lambda f: (
        f"{_what_happened(f)}, and its old version fails with the change: something that worked is broken"
    ),
    "test_removed_with_code": lambda f: f"{_what_happened(f)}, and so is code that it uses" + _after_colon(f),
    "passing_test_weakened": lambda f: (
        f"{_what_happened(f)}, although its old version passes with the change, too: check why it is weaker"
    ),
    "expectation_follows_code": _render_followed_code,
    "expectation_changed": lambda f: f"{_what_happened(f)}: check that the new result is the right one",
    "test_not_run_any_more": lambda f: (
        f"{_test(f)} no longer runs, although its source is as it was: look for what leaves it out"
    ),
    "test_hook_added": lambda f: (
        f"the hook {f.after} can change which tests run or how they end: check what it does"
    ),
    "test_support_changed": _render_support,
    "test_proves_nothing": lambda f: (
        f"the new test {_test(f)} passes without the change, too, so it does not show that the change works"
    ),
    "asserts_nothing": lambda f: f"the new test {_test(f)} asserts nothing, so it can hardly fail",
    "assert_not_reached": lambda f: (
        f"{_test(f)} passes without reaching the assertion at which it failed before: check what ends it earlier"
    ),
    "configuration_changed": lambda f: (
        "this file holds the hooks of a coding agent: check that the gate is still there"
        if f.detail == AGENT_HOOKS
        else "this file decides which tests run, or what their failure stops: check that nothing is left out"
    ),
    "capability": lambda f: (
        f"new code uses {_names(f)}, with which code can pass its tests although it is wrong: check what it is for"
    ),
    "memorises_examples": _render_sign,
    "games_tests": _render_sign,
    "unsafe_code": lambda f: f"{_names(f)}: {f.after}",
    "new_dependency": lambda f: _names(f),
    "secret": lambda f: "contains what looks like a password or a key: remove it",
    "no_test_guards_change": lambda f: (
        "no test fails without the change, so nothing shows that it is needed: add a test that does"
    ),
    "lines_not_run": lambda f: (
        f"no test runs {f.count} of {f.total} changed statements (line{'' if f.count == 1 else 's'} {_names(f)})"
    ),
    "mistakes_not_noticed": lambda f: (
        f"the tests do not notice {f.count} of {f.total} deliberate mistakes in the changed lines, so they would "
        "not notice a real one there either"
    ),
    "flaky": lambda f: f"{_test(f)} ended differently in two runs on the same files, so it shows nothing",
    "large_change": lambda f: f"{f.count} changed lines are hard to review: consider smaller changes",
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
