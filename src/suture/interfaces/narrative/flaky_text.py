"""Text about flaky tests: why they are flaky, and how a repair holds in further runs."""

from __future__ import annotations

from collections.abc import Iterator

from suture.core.ledger import kinds
from suture.core.records.flakiness import CONDITION_TEXTS, render_flaky_cause, render_flaky_statistics
from suture.interfaces.narrative.plain_text import format_count


def list_flaky_tests(investigated: kinds.FlakyTestsInvestigated) -> Iterator[str]:
    """Yield why each flaky test is flaky, with the experiments that show it, and which ones were not investigated."""
    for diagnosis in investigated.diagnoses:
        statistics = render_flaky_statistics(diagnosis)
        yield f"{diagnosis.test} is flaky: {render_flaky_cause(diagnosis)} (passed {statistics})"
    if investigated.not_investigated:
        tests = format_count(len(investigated.not_investigated), "flaky test")
        yield f"{tests} not investigated: only tests of pytest are, and only a few in one run"


def render_flaky_repair(tried: kinds.FlakyRepairTried) -> str:
    """Return how many runs under adverse conditions a candidate passed, and the condition that it failed under."""
    text = (
        f"candidate {tried.candidate[:8]} passes {tried.clean} of {tried.runs} runs under adverse conditions"
    )
    if tried.condition is not None:
        return f"{text}, and fails {CONDITION_TEXTS[tried.condition]}: {', '.join(tried.tests)}"
    return text if tried.clean == tried.runs else f"{text}; there was no time for the others"
