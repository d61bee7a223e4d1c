"""Render a judgement for people: the verdict first, then the facts that matter, then each finding in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from suture.core.records import encode_record
from suture.core.records.finding_text import render_finding, render_place
from suture.core.records.judgement import (
    ChangeFinding,
    Judgement,
    JudgementOutcome,
    JudgeStep,
    NotComparableReason,
    ScopeKind,
)
from suture.judge.unmeasured import render_unmeasured

MAX_SUMMARY_FINDINGS = 8
"""Findings on the first screen, which has at most 25 lines."""
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
    "verdict_certain": "{0.ran} of {0.total} ran, because these reject the change: ",
}
STEP_TEXTS: Mapping[JudgeStep, str] = {
    "tests_without_change": "running the tests without the change",
    "tests_with_change": "running the tests with the change",
    "repeating": "repeating tests that end differently",
    "guards": "measuring which changed lines the tests guard",
    "signs": "looking for signs that the change games its tests",
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
    text = render_verdict(judgement)
    gravest = next(iter(judgement.findings), None)
    if judgement.reason == "no_change":
        return "Nothing to judge: nothing has changed."
    if judgement.outcome == "accepted" or gravest is None:
        return f"{text}."
    return f"{text}: {render_finding(gravest)}"


def render_verdict(judgement: Judgement) -> str:
    """Return the verdict in a few words; one that does not rest on all tests says so."""
    text, scope = OUTCOME_TEXTS[judgement.outcome], judgement.scope
    if scope.kind != "quick":
        return text
    return f"{text} (quick judgement, {scope.ran} of {scope.total} tests ran)"


def list_facts(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """Yield the facts that matter as (label, text): what the tests say, what proves the change, what guards it."""
    if judgement.base:
        files = len(judgement.files)
        yield "Change", f"{files} file{_s(files)} against {judgement.base}"
    if judgement.reason == "base_does_not_run":
        yield "Next", "name a command that runs the tests of the state before the change: --test COMMAND"
    if judgement.reason == "nothing_passes":
        yield (
            "Next",
            "does the Python of .venv, VIRTUAL_ENV or sandbox.python have the project and its packages?",
        )
    if judgement.evidence is None:
        return
    tests, guards, scope = judgement.tests, judgement.guards, judgement.scope
    is_rejected = judgement.outcome == "rejected"
    counts = [f"{len(tests.passed)} pass"]
    named = (
        ("failed before" if is_rejected else "fixed", tests.fixed),
        ("newly failing", tests.newly_failing),
        ("still failing", tests.still_failing),
        ("skipped", tests.skipped),
        ("removed", tests.removed),
        ("flaky", tests.flaky),
    )
    counts += [f"{len(names)} {label}" for label, names in named if names]
    yield "Tests", SCOPE_TEXTS[scope.kind].format(scope) + ", ".join(counts)
    proof = len({*tests.fixed, *tests.proving})
    proven = (
        "1 test fails without the change and passes with it"
        if proof == 1
        else f"{proof} tests fail without the change and pass with it"
    )
    if not is_rejected:  # what a rejected change did to the tests is no proof of anything
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
    code = f" [{finding.code}]" if explain else ""
    yield f"  {label}    {render_place(finding)}{render_finding(finding)}{code}"
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
        "facts": dict(list_facts(judgement)),
        **{key: value for key, value in encode_record(judgement).items() if key != "runs"},
        "findings": findings,
    }
