"""Tests that the code under test keeps from deciding: skipped ones, and examples that it rewrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from posixpath import basename
from typing import Any

from suture.core.records import CheckOutcome, Counterexample, Task
from suture.judge.runners.collection import Collected
from suture.judge.runners.pytest_report import PytestReport, outcome_of
from suture.judge.runners.written_tests import examples_written_in
from suture.project.workspace import DEFAULT_PROTECTED, is_protected, text_of

WORDS = ("skip", "xfail", "expectedfailure")
EMPTY = "[NOTSET]"
"""How pytest names the test of an empty list of parameters."""
BY_CODE = "skipped by the code under test"
CHANGED = "the example in the docstring was changed"


def rule_on_skip(outcome: CheckOutcome, report: PytestReport, base: PytestReport, task: Task) -> CheckOutcome:
    """A skipped test's outcome; it failed unless the task's own files would skip it too.

    Args:
        outcome: Of a candidate; an expected failure counts as skipped.
        report: That candidate's run.
        base: The same run on the task's own files.
        task: The task.
    """
    phases = report.phases.get(outcome.check_id, [])
    if outcome.status != "skipped" or _is_tests_own(outcome.check_id, phases, base, task):
        return outcome
    fact: dict[str, Any] = next(
        (p["fact"] for p in phases if p["outcome"] == "skipped" and p.get("fact")), {}
    )
    counterexample = Counterexample(
        check_id=outcome.check_id,
        call=" ".join(str(fact.get("statement", "")).split()),
        exception=f"{BY_CODE}: {fact.get('text', '')}".rstrip(": "),
        file=str(fact.get("file", "")),
        line=fact.get("line"),
    )
    return replace(outcome, status="failed", counterexample=counterexample)


def _is_tests_own(test: str, phases: Sequence[Mapping[str, Any]], base: PytestReport, task: Task) -> bool:
    before = base.phases.get(test)
    if before:
        expected = any(phase.get("xfail") for phase in before) and any(p.get("xfail") for p in phases)
        # A test marked as an expected failure may also have passed before; it decides nothing either way.
        return outcome_of(test, before).status == "skipped" or (expected and not _calls_xfail(phases))
    if test.endswith(EMPTY):
        return False
    # The task's own files never got to this test, so its text must do: some test has to speak of skipping.
    globs = task.protected or DEFAULT_PROTECTED
    for phase in phases:
        file = (phase.get("fact") or {}).get("file")
        if phase["outcome"] == "skipped" and file and not is_protected(file, globs):
            return False
    own = test.partition("::")[0]
    texts = (text_of(c).lower() for p, c in task.files.items() if p == own or basename(p) == "conftest.py")
    return any(word in text for text in texts for word in WORDS)


def _calls_xfail(phases: Sequence[Mapping[str, Any]]) -> bool:
    return any((phase.get("fact") or {}).get("type") == "XFailed" for phase in phases)


def rule_on_examples(
    outcomes: Sequence[CheckOutcome], report: PytestReport, collected: Collected, files: Mapping[str, bytes]
) -> list[CheckOutcome]:
    """Outcomes in which a docstring's test counts only with the examples of the task's own files.

    Args:
        outcomes: Of a candidate.
        report: That candidate's run.
        collected: The tests of the task.
        files: The candidate's project.
    """
    ruled = []
    for outcome in outcomes:
        wanted = collected.examples.get(outcome.check_id)
        # More examples after the given ones do no harm: each test runs its examples in order.
        kept = wanted is None or report.examples.get(outcome.check_id, [])[: len(wanted)] == wanted
        ruled.append(outcome if kept or outcome.status == "missing" else _changed(outcome))
    reported = {outcome.check_id for outcome in outcomes}
    for path, examples in collected.torn.items():
        if path in reported:
            continue
        found = iter(examples_written_in(text_of(files.get(path, b""))))
        if not all(example in found for example in examples):  # one after the other, in this order
            ruled.append(_changed(CheckOutcome(check_id=path, status="failed", evidence="nonce")))
    return ruled


def _changed(outcome: CheckOutcome) -> CheckOutcome:
    file = outcome.check_id.partition("::")[0]
    fact = Counterexample(check_id=outcome.check_id, exception=CHANGED, file=file)
    return replace(outcome, status="failed", counterexample=fact)
