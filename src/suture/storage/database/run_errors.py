"""What went wrong in a verdict: its kind in a word, and the smallest fact in a line."""

from __future__ import annotations

import re

from suture.core.records import CheckOutcome, Verdict

EXCEPTION = re.compile(r"(?:^|[\s.])([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Iteration|Warning))\b")
WRONG = "wrong answer"
STATUS_WORDS = {"timeout": "timeout", "missing": "not collected", "error": "error"}
MOST_CHARS = 2000


def error_of(verdict: Verdict) -> tuple[str, str]:
    """The kind and the text of the first failure; both empty where nothing failed."""
    failed = [outcome for outcome in verdict.outcomes if not outcome.passed and outcome.status != "skipped"]
    if not failed:
        return "", ""
    first = min(failed, key=lambda outcome: outcome.counterexample is None)  # one that says something, if any
    return error_kind(first), _text(first)[:MOST_CHARS]


def error_kind(outcome: CheckOutcome) -> str:
    """An exception's type, `wrong answer`, `timeout` or `not collected`."""
    fact = outcome.counterexample
    if outcome.status in ("timeout", "missing"):
        return STATUS_WORDS[outcome.status]
    if fact is not None and fact.exception:
        found = EXCEPTION.search(fact.exception)
        kind = found[1] if found else fact.exception.partition(":")[0].strip()
        return WRONG if kind == "AssertionError" else kind[:80] or "error"
    return STATUS_WORDS.get(outcome.status, WRONG)


def _text(outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    if fact is None:
        return f"{outcome.check_id}: {outcome.status}"
    where = f" ({fact.file} line {fact.line})" if fact.line else ""
    said = (
        fact.call,
        f"expected {fact.expected}" if fact.expected else "",
        f"got {fact.got}" if fact.got else "",
        f"raised {fact.exception}{where}" if fact.exception else "",
    )
    return f"{outcome.check_id}: " + "; ".join(part for part in said if part)
