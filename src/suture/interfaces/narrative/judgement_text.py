"""Render a judgement for people: the verdict first, then the facts that matter, then each finding in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from suture.core.records import encode_record
from suture.core.records.judgement import (
    ChangeFinding,
    FindingCode,
    Judgement,
    JudgementOutcome,
    JudgeStep,
    NotComparableReason,
)
from suture.judge.unmeasured import render_unmeasured

MAX_SUMMARY_FINDINGS = 8
"""Findings on the first screen, which has at most 25 lines."""
MAX_NAMED = 3
OUTCOME_TEXTS: Mapping[JudgementOutcome, str] = {
    "accepted": "Accepted",
    "accepted_with_remarks": "Accepted, with remarks",
    "rejected": "Rejected",
    "not_comparable": "Not comparable",
}
REASON_TEXTS: Mapping[NotComparableReason, str] = {
    "": "",
    "no_change": "",
    "base_does_not_run": "the tests do not run without the change",
    "no_tests": "no test was reported",
    "fails_anyway": "the command fails without and with the change, and does not say which test fails",
}
STEP_TEXTS: Mapping[JudgeStep, str] = {
    "tests_without_change": "running the tests without the change",
    "tests_with_change": "running the tests with the change",
    "repeating": "repeating tests that end differently",
    "guards": "measuring which changed lines the tests guard",
    "signs": "looking for signs that the change games its tests",
}
SIGN_TEXTS: Mapping[str, str] = {
    "compares_with_test_literals": "compares with {names}, which the tests use",
    "adds_test_literals": "adds {names}, which the tests use",
    "encodes_test_values": "adds {names}: texts or hashes of values in the tests",
    "compares_with_test_lengths": "compares with {names}, which are lengths of values in the tests",
    "serves_examples_only": "changes what {names} does on the examples of the tests, but not on inputs near them",
    "dead_code": "leaves code that never runs, or a condition that is always the same",
    "calls_removed": "no longer calls {names}",
    "raise_removed": "no longer raises",
    "hides_exceptions": "hides exceptions",
    "names_unused": "leaves {names} unused",
    "changes_argument": "newly changes its argument {names}",
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


def render_judgement(judgement: Judgement, *, explain: bool = False) -> str:
    """Return a judgement as text of at most 25 lines; with `explain` with everything that was found."""
    facts = (f"  {label:<10}{text}" for label, text in list_facts(judgement))
    lines = [render_headline(judgement), *facts]
    shown = [f for f in judgement.findings if explain or f.severity != "note"]
    limit = len(shown) if explain else MAX_SUMMARY_FINDINGS
    lines += [line for finding in shown[:limit] for line in _render_finding_lines(finding, explain)]
    rest = len(judgement.findings) - len(shown[:limit])
    if rest:
        lines.append(f"  {rest} more with --explain")
    return "\n".join(lines)


def render_headline(judgement: Judgement) -> str:
    """Return the verdict and the gravest finding in one line."""
    if judgement.outcome == "not_comparable":
        detail = judgement.detail.strip().splitlines()
        return f"Not comparable: {REASON_TEXTS[judgement.reason]}" + (f": {detail[-1]}" if detail else "")
    text = OUTCOME_TEXTS[judgement.outcome]
    gravest = next(iter(judgement.findings), None)
    if judgement.reason == "no_change":
        return "Nothing to judge: nothing has changed."
    if judgement.outcome == "accepted" or gravest is None:
        return f"{text}."
    return f"{text}: {render_finding(gravest)}"


def list_facts(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Yield the facts that matter as (label, text): what the tests say, what proves the change, what guards it."""
    if judgement.base:
        files = len(judgement.files)
        yield "Change", f"{files} file{_s(files)} against {judgement.base}"
    if judgement.evidence is None:
        return
    tests, guards = judgement.tests, judgement.guards
    counts = [f"{len(tests.passed)} pass"]
    named = (
        ("fixed", tests.fixed),
        ("newly failing", tests.newly_failing),
        ("still failing", tests.still_failing),
        ("skipped", tests.skipped),
        ("removed", tests.removed),
        ("flaky", tests.flaky),
    )
    counts += [f"{len(names)} {label}" for label, names in named if names]
    yield "Tests", ", ".join(counts)
    proof = len(tests.fixed) + len(tests.proving)
    proven = (
        "1 test fails without the change and passes with it"
        if proof == 1
        else f"{proof} tests fail without the change and pass with it"
    )
    yield "Proof", proven if proof else "no test fails without the change"
    if guards.unmeasured == "no_changed_code" or (guards.unmeasured is None and not guards.changed):
        guarded = "nothing has changed that tests of the code could notice"
    elif guards.unmeasured is None:
        ran = guards.changed - sum(map(len, guards.not_run.values()))
        guarded = f"the tests run {ran} of {guards.changed} changed statements"
    else:
        guarded = f"coverage is not measured: {render_unmeasured(guards.unmeasured)}"
    if guards.mistakes:
        guarded += f" and notice {guards.noticed} of {guards.mistakes} deliberate mistakes"
    yield "Guard", guarded


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _render_finding_lines(finding: ChangeFinding, explain: bool) -> Iterator[str]:
    label = {"reject": "reject", "remark": "remark", "note": "note  "}[finding.severity]
    yield f"  {label}    {render_place(finding)}{render_finding(finding)}"
    if explain and finding.before:
        yield f"            - {finding.before}"
    if explain and finding.after:
        yield f"            + {finding.after}"


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


def _test(finding: ChangeFinding) -> str:
    return finding.test or "a test"


def _what_happened(finding: ChangeFinding) -> str:
    return f"{_test(finding)} {TEST_CHANGE_TEXTS.get(finding.detail, 'is changed')}"


def _render_sign(finding: ChangeFinding) -> str:
    return SIGN_TEXTS.get(finding.detail, finding.detail).format(names=_names(finding))


def _render_support(finding: ChangeFinding) -> str:
    if not finding.count:
        return "a helper, a fixture or data of the tests has changed"
    tests = f"{finding.count} test{_s(finding.count)}"
    return f"with the change, {tests} pass only with other data, helpers or preparations: {_names(finding)}"


_RENDERERS: Mapping[FindingCode, Callable[[ChangeFinding], str]] = {
    "test_newly_fails": lambda f: f"{_test(f)} fails with the change and passed without it",
    "tests_do_not_run": lambda f: f"the tests no longer run with the change: {_names(f)}",
    "failing_test_weakened": lambda f: f"{_what_happened(f)}, and the old test still fails on the new code",
    "broken_test_weakened": lambda f: f"{_what_happened(f)}, and the old test fails on the new code",
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
        f"no test runs {f.count} of the {f.total} changed statements (lines {_names(f)})"
    ),
    "mistakes_not_noticed": lambda f: (
        f"the tests do not notice {f.count} of {f.total} deliberate mistakes in the changed lines"
    ),
    "flaky": lambda f: f"{_test(f)} ends by chance: it ended differently in two runs",
    "large_change": lambda f: f"{f.count} changed lines are hard to review",
}


def judgement_as_json(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as JSON values, with its headline and a sentence for each finding."""
    findings = [
        {**encode_record(finding), "sentence": render_finding(finding)} for finding in judgement.findings
    ]
    return {
        "ok": judgement.ok,
        "headline": render_headline(judgement),
        **encode_record(judgement),
        "findings": findings,
    }


def render_reasons(judgement: Judgement, limit: int) -> str:
    """Return why a change is rejected, as an instruction to the agent that made it.

    Args:
        limit: Max number of findings.
    """
    rejecting = [finding for finding in judgement.findings if finding.severity == "reject"]
    lines = [f"- {render_place(finding)}{render_finding(finding)}" for finding in rejecting[:limit]]
    if len(rejecting) > limit:
        lines.append(f"- and {len(rejecting) - limit} more (`suture judge --explain`)")
    intro = "The change is not accepted yet. Correct the code, not the tests:"
    return "\n".join([intro, *lines])
