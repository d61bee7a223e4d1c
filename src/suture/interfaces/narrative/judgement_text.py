"""Render a judgement for people: the verdict first, then the facts that matter, then each finding in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from suture.core.records import encode_record
from suture.core.records.finding_text import render_finding, render_place
from suture.core.records.judgement import (
    ChangeFinding,
    FindingCode,
    Judgement,
    JudgementOutcome,
    JudgeStep,
    NotComparableReason,
    ScopeKind,
)
from suture.core.records.unmeasured_text import render_unmeasured
from suture.interfaces.narrative.plain_text import escape_line_breaks, format_count

MAX_SUMMARY_FINDINGS = 8
"""Findings on the first screen, which has at most 25 lines."""
MAX_NAMED_FILES = 2
"""Changed files that a fact names, so that it fits into one line. Both limits are chosen by judgement; not measured."""
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
    "nothing_passes": "no test passes, without the change or with it",
}
SCOPE_TEXTS: Mapping[ScopeKind, str] = {
    "all": "",
    "quick": "{0.ran} of {0.total} ran: ",
    "verdict_certain": "{0.ran} of {0.total} ran, which suffices to reject the change: ",
}
STEP_TEXTS: Mapping[JudgeStep, str] = {
    "tests_without_change": "running the tests without the change",
    "tests_with_change": "running the tests with the change",
    "repeating": "repeating tests that end differently",
    "guards": "measuring which changed lines the tests guard",
    "signs": "looking for signs that the change games its tests",
}
DOUBTFUL_PASS_CODES: frozenset[FindingCode] = frozenset(
    {
        "memorises_examples",
        "games_tests",
        "capability",
        "test_hook_added",
        "test_support_changed",
        "configuration_changed",
    }
)
"""Findings that can themselves be why tests pass, so that a change which they reject fixes and proves nothing."""


def render_judgement(judgement: Judgement, *, explain: bool = False) -> str:
    """Return a judgement as text of at most 25 lines; with `explain` with everything that was found."""
    headline, listed = render_headline(judgement), judgement.findings
    if leads_with_finding(judgement):  # each finding is shown once; the list with `explain` has all details
        rest = "." if explain else f": {_render_with_place(judgement.findings[0])}"
        headline = f"{render_verdict(judgement)}{rest}"
        listed = listed if explain else listed[1:]
    lines = [headline]
    for label, text in list_facts(judgement):
        lines.append(f"  {label:<10}{text}")
        if explain and label == "Proof":
            lines += [f"            {test}" for test in _list_proof(judgement)]
        if explain and label == "Guard":
            lines += [f"            {line}" for line in missed_mistake_lines(judgement.guards.missed)]
    shown = [f for f in listed if explain or f.severity != "note"]
    limit = len(shown) if explain else MAX_SUMMARY_FINDINGS
    lines += [line for finding in shown[:limit] for line in _render_finding_lines(finding, explain)]
    if more := len(listed) - len(shown[:limit]):
        lines.append(f"  {more} more with --explain")
    return "\n".join(lines)


def render_headline(judgement: Judgement) -> str:
    """Return the verdict and the gravest finding, with its place, in one line."""
    if judgement.outcome == "not_comparable":
        detail = judgement.detail.strip().splitlines()
        return f"Not comparable: {REASON_TEXTS[judgement.reason]}" + (f": {detail[-1]}" if detail else "")
    if judgement.reason == "no_change":
        return "Nothing to judge: nothing has changed."
    text = render_verdict(judgement)
    if not leads_with_finding(judgement):
        return f"{text}."
    return f"{text}: {_render_with_place(judgement.findings[0])}"


def leads_with_finding(judgement: Judgement) -> bool:
    """Return whether the headline has the gravest finding."""
    return judgement.outcome in ("rejected", "accepted_with_remarks") and bool(judgement.findings)


def render_verdict(judgement: Judgement) -> str:
    """Return the verdict in a few words.

    It says so if it does not rest on all tests, or if tests fail with an accepted change that failed before, too. If
    there are remarks, how many tests are fixed comes before them.
    """
    text, scope = OUTCOME_TEXTS[judgement.outcome], judgement.scope
    if judgement.outcome == "accepted_with_remarks" and judgement.tests.fixed:
        text = f"Accepted ({len(judgement.tests.fixed)} fixed), with remarks"
    if judgement.ok and (failing := len(judgement.tests.still_failing)):
        text += f", but {format_count(failing, 'test')} still fail{'s' if failing == 1 else ''}, as before"
    if scope.kind != "quick":
        return text
    return f"{text} (quick judgement, {scope.ran} of {scope.total} tests ran)"


def list_facts(judgement: Judgement, *, suggest_commands: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the facts that matter as (label, text): what the tests say, what proves the change, what guards it."""
    if judgement.base:
        yield "Change", f"{_name_files(judgement.files)} against {judgement.base}"
    if judgement.reason == "base_does_not_run":
        option = ": --test COMMAND" if suggest_commands else ""
        yield "Next", f"name a test command that runs the tests of the state before the change{option}"
    if judgement.reason == "nothing_passes":
        yield (
            "Next",
            "check that the Python of .venv, VIRTUAL_ENV or sandbox.python has the project and its packages",
        )
    if judgement.evidence is None:
        return
    guards = judgement.guards
    yield "Tests", SCOPE_TEXTS[judgement.scope.kind].format(judgement.scope) + _render_counts(judgement)
    yield "Proof", _render_proof(judgement)
    if guards.unmeasured == "no_changed_code" or (guards.unmeasured is None and not guards.changed):
        guarded = "no code has changed that tests could guard"
    elif guards.unmeasured is None:
        ran = guards.changed - sum(map(len, guards.not_run.values()))
        guarded = f"the tests run {ran} of {guards.changed} changed statements"
    else:
        guarded = f"coverage is not measured: {render_unmeasured(guards.unmeasured)}"
    if guards.mistakes:
        guarded += f" and notice {guards.noticed} of {guards.mistakes} deliberate mistakes"
    yield "Guard", guarded


def missed_mistake_lines(missed: Sequence[str]) -> Iterator[str]:
    """Yield a line for each deliberate mistake that no test notices."""
    yield from (f"not noticed: {mistake}" for mistake in missed)


def _name_files(files: Sequence[str]) -> str:
    """Return the first changed files, and how many more there are: `cart.py, shop.py and 3 more files`."""
    names = list(map(escape_line_breaks, files[:MAX_NAMED_FILES]))
    if len(files) == len(names):
        return " and ".join(names) or "no files"
    return f"{', '.join(names)} and {format_count(len(files) - len(names), 'more file')}"


def _render_counts(judgement: Judgement) -> str:
    """Return how many tests ended in which way: `7 pass (2 fixed, 1 new), 1 newly failing`."""
    tests, before = judgement.tests, judgement.runs.get("before", {})
    passed, settled = {*tests.passed}, {*tests.fixed, *tests.flaky}
    failed_before = {name for name in passed if before.get(name, "passed") not in ("passed", "skipped")}
    ways = {
        "newly passing" if _is_pass_doubtful(judgement) else "fixed": passed & {*tests.fixed},
        "new": _find_new_tests(judgement) - settled,
        "only with the changed tests": failed_before - settled,
    }
    named = {
        "newly failing": tests.newly_failing,
        "still failing": tests.still_failing,
        "skipped": tests.skipped,
        "removed": tests.removed,
        "flaky": tests.flaky,
    }
    among = ", ".join(f"{len(names)} {label}" for label, names in ways.items() if names)
    counts = [f"{len(passed)} pass{f' ({among})' if among else ''}"]
    return ", ".join(counts + [f"{len(names)} {label}" for label, names in named.items() if names])


def _render_proof(judgement: Judgement) -> str:
    """Return which tests fail without the change and pass with it."""
    tests, proof = judgement.tests, {*_list_proof(judgement)}
    if not proof:
        return "no test fails without the change and passes with it"
    if _is_pass_doubtful(judgement):
        return "none: the tests may pass only because of what rejects the change"
    new = _find_new_tests(judgement) & proof
    kinds = {
        "fixed test": {*tests.fixed} - new,
        "new test": new,
        "changed test": proof - {*tests.fixed} - new,
    }
    *others, last = [format_count(len(names), kind) for kind, names in kinds.items() if names]
    subject = f"{', '.join(others)} and {last}" if others else last
    verbs = ("fails", "passes") if len(proof) == 1 else ("fail", "pass")
    return f"{subject} {verbs[0]} without the change and {verbs[1]} with it"


def _list_proof(judgement: Judgement) -> list[str]:
    """Return the tests that fail without the change and pass with it, sorted."""
    return sorted({*judgement.tests.fixed, *judgement.tests.proving})


def _find_new_tests(judgement: Judgement) -> set[str]:
    """Return the passing tests that did not run without the change."""
    before = judgement.runs.get("before", {})
    # The parameters of a test are unknown while its file cannot be imported.
    return {
        name
        for name in judgement.tests.passed
        if before and name not in before and name.partition("[")[0] not in before
    }


def _is_pass_doubtful(judgement: Judgement) -> bool:
    """Return whether a finding that rejects the change can be why tests pass."""
    return any(one.severity == "reject" and one.code in DOUBTFUL_PASS_CODES for one in judgement.findings)


def _render_with_place(finding: ChangeFinding) -> str:
    return f"{render_place(finding)}{render_finding(finding)}"


def _render_finding_lines(finding: ChangeFinding, explain: bool) -> Iterator[str]:
    label = {"reject": "reject", "remark": "remark", "note": "note  "}[finding.severity]
    code = f" [{finding.code}]" if explain else ""
    yield f"  {label}    {_render_with_place(finding)}{code}"
    if explain and finding.before:
        yield f"            - {finding.before}"
    if explain and finding.after:
        yield f"            + {finding.after}"


def judgement_as_json(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as JSON values, with its headline, the facts that matter and a sentence for each finding.

    How each test ended in each run is left out, because `tests` says what follows from it.
    """
    findings = [
        {**encode_record(finding), "sentence": render_finding(finding)} for finding in judgement.findings
    ]
    return {
        "ok": judgement.ok,
        "headline": render_headline(judgement),
        "verdict": render_verdict(judgement),
        "facts": dict(list_facts(judgement, suggest_commands=False)),
        **{key: value for key, value in encode_record(judgement).items() if key != "runs"},
        "findings": findings,
    }
