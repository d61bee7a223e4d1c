"""Plausible is not correct: repairs that pass are told apart by what they do beyond the tests, and ranked."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.tampering import literals_of, warnings_about
from suture.mutation.edits import Edit
from suture.search.ranking.call_outcomes import (
    LATE,
    NOTHING_SEEN,
    CallOutcomes,
    collect_outcomes,
    count_broken_examples,
    generate_calls,
    find_doctest_calls,
)
from suture.search.ranking.expression_distance import measure_distance, count_redundant_operations
from suture.search.ranking.repair_scoring import COMPARE_S, MOST_COMPARED, CallComparison, Difference, LanguageReading, Repair, rank_compared
from suture.search.search_result import SearchResult

FAR = 0.5
"""What a change takes away that is as far from the code as it is as one of an expression can be."""
NEEDLESS = 0.3
"""What each operation leaves of it that it writes and that changes nothing: nobody writes `+ 0`."""


async def rank_python_repairs(
    findings: SearchResult,
    command: TestCommand,
    tests: Sequence[str],
    *,
    seed: int = 0,
    seconds: float = COMPARE_S,
) -> tuple[tuple[Repair, ...], Difference | None]:
    """Plausible repairs, the likeliest first, one for each behaviour; and what tells the first two apart.

    Args:
        findings: What a search found.
        command: The command that it was found with.
        tests: Sources of the tests.
        seed: Of the inputs that are tried.
        seconds: Wall-clock seconds that running them may take; never more than a few.

    Raises:
        SandboxError: The wall failed.
    """
    proposals = findings.plausible[:MOST_COMPARED]
    if not proposals:
        return (), None
    calls = generate_calls(findings.spectrum, proposals, findings.texts, random.Random(seed))
    changed = {proposal.path: findings.texts[proposal.path] for proposal in proposals}
    examples = find_doctest_calls(changed)
    made = [*calls, *(call for call, _ in examples)]
    answered: list[CallOutcomes] = [CallOutcomes() for _ in proposals]
    if made and len(proposals) > 1:
        answered = await collect_outcomes(proposals, made, findings.texts, command, min(seconds, COMPARE_S))
    broken = [count_broken_examples(one.answers, examples, len(calls)) for one in answered]
    literals = literals_of(tests)
    reading = LanguageReading(
        warnings=lambda path, before, after: warnings_about(before, after, literals),
        distance=_distance,
        is_python=True,
    )
    asked = CallComparison(calls=made, answered=answered, broken=broken)
    return await rank_compared(findings, proposals, asked, reading, _shown)


def _distance(path: str, before: str, edits: Sequence[Edit], after: str) -> float:
    return (1 - FAR * measure_distance(before, edits, ())) * NEEDLESS ** max(0, count_redundant_operations(after) - count_redundant_operations(before))


def _shown(answer: str) -> str:
    """An answer without the arguments behind it, where it can be read."""
    if answer.startswith("!"):
        return "no end in time" if answer == LATE else f"raises {answer[1:]}"
    try:
        return repr(ast.literal_eval(answer.removeprefix(NOTHING_SEEN))[0])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return answer.removeprefix(NOTHING_SEEN)
