"""Plausible is not correct: repairs that pass are told apart by what they do beyond the tests, and ranked."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

from suture.judge.command.test_command import TestCommand
from suture.judge.tampering.warnings import literals_of, warnings_about
from suture.mutation.python.editing.edits import Edit
from suture.search.answering import (
    LATE,
    NOTHING_SEEN,
    Answered,
    answers_of,
    broken_examples,
    calls_near,
    examples_in,
)
from suture.search.ordering.expressions import apart, needless
from suture.search.scoring import COMPARE_S, MOST_COMPARED, Asked, Difference, Reading, Repair, rank_asked
from suture.search.search_result import Findings

FAR = 0.5
"""What a change takes away that is as far from the code as it is as one of an expression can be."""
NEEDLESS = 0.3
"""What each operation leaves of it that it writes and that changes nothing: nobody writes `+ 0`."""


async def rank_repairs(
    findings: Findings,
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
    calls = calls_near(findings.spectrum, proposals, findings.texts, random.Random(seed))
    changed = {proposal.path: findings.texts[proposal.path] for proposal in proposals}
    examples = examples_in(changed)
    made = [*calls, *(call for call, _ in examples)]
    answered: list[Answered] = [Answered() for _ in proposals]
    if made and len(proposals) > 1:
        answered = await answers_of(proposals, made, findings.texts, command, min(seconds, COMPARE_S))
    broken = [broken_examples(one.answers, examples, len(calls)) for one in answered]
    literals = literals_of(tests)
    reading = Reading(
        warnings=lambda path, before, after: warnings_about(before, after, literals),
        distance=_distance,
        is_python=True,
    )
    asked = Asked(calls=made, answered=answered, broken=broken)
    return await rank_asked(findings, proposals, asked, reading, _shown)


def _distance(path: str, before: str, edits: Sequence[Edit], after: str) -> float:
    return (1 - FAR * apart(before, edits, ())) * NEEDLESS ** max(0, needless(after) - needless(before))


def _shown(answer: str) -> str:
    """An answer without the arguments behind it, where it can be read."""
    if answer.startswith("!"):
        return "no end in time" if answer == LATE else f"raises {answer[1:]}"
    try:
        return repr(ast.literal_eval(answer.removeprefix(NOTHING_SEEN))[0])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return answer.removeprefix(NOTHING_SEEN)
