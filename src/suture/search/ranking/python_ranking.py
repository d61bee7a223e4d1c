"""Ranks plausible repairs of a Python project by what they do beyond the tests."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

from suture.judge.runners.test_command import TestCommand
from suture.judge.signs import collect_literals, find_tampering_warnings
from suture.mutation import Edit
from suture.search.ranking.call_outcomes import (
    EXCEPTION,
    NO_VISIBLE_EFFECT,
    TIMED_OUT,
    CallOutcomes,
    collect_outcomes,
    count_broken_examples,
    find_doctest_calls,
    generate_calls,
)
from suture.search.ranking.expression_distance import count_redundant_operations, measure_distance
from suture.search.ranking.repair_scoring import PlausibleRepairs, RankingMethods, RepairAnswers, rank_repairs
from suture.search.search_records import SearchResult
from suture.search.tuning import COMPARE_S, DISTANCE_PENALTY, MAX_COMPARED_REPAIRS, REDUNDANT_OPERATION_FACTOR


async def rank_python_repairs(
    result: SearchResult,
    command: TestCommand,
    tests: Sequence[str],
    *,
    seed: int = 0,
    seconds: float = COMPARE_S,
) -> PlausibleRepairs:
    """Return plausible repairs, one for each behaviour, and calls that distinguish them.

    Args:
        result: The result of the search.
        command: The test command with which it was found.
        tests: Sources of the tests.
        seed: Seed of the generated inputs.
        seconds: Wall-clock seconds for calling the repairs with these inputs, at most `COMPARE_S`.

    Raises:
        SandboxError: The sandbox failed.
    """
    proposals = result.plausible[:MAX_COMPARED_REPAIRS]
    if not proposals:
        return PlausibleRepairs()
    calls = generate_calls(result.spectrum, proposals, result.texts, random.Random(seed))
    paths = dict.fromkeys(proposal.path for proposal in proposals)
    examples = find_doctest_calls({path: result.texts[path] for path in paths})
    all_calls = [*calls, *(call for call, _ in examples)]
    outcomes, unchanged = [CallOutcomes() for _ in proposals], list[str]()
    if all_calls and len(proposals) > 1:
        seconds = min(seconds, COMPARE_S)
        outcomes, unchanged = await collect_outcomes(proposals, all_calls, result.texts, command, seconds)
    broken = [count_broken_examples(outcome.answers, examples, len(calls)) for outcome in outcomes]
    literals = collect_literals(tests)
    methods = RankingMethods(
        find_warnings=lambda path, before, after: find_tampering_warnings(before, after, literals),
        distance_factor=_distance_factor,
        render_answer=_render_answer,
        is_python=True,
    )
    answers = RepairAnswers(calls=all_calls, outcomes=outcomes, broken_examples=broken, unchanged=unchanged)
    return await rank_repairs(result, proposals, answers, methods)


def _distance_factor(path: str, before: str, edits: Sequence[Edit], after: str) -> float:
    """Return the factor on a score: lower for a change far from the original, or with redundant operations."""
    added = count_redundant_operations(after) - count_redundant_operations(before)
    distance = measure_distance(before, edits, ())
    return (1 - DISTANCE_PENALTY * distance) * REDUNDANT_OPERATION_FACTOR ** max(0, added)


def _render_answer(answer: str) -> str:
    """Return an answer as people read it.

    An answer without an exception is the `repr` of `(result, arguments)`; only the result is shown.
    """
    if answer.startswith(EXCEPTION):
        return "no end in time" if answer == TIMED_OUT else f"raises {answer[1:]}"
    text = answer.removeprefix(NO_VISIBLE_EFFECT)
    try:
        return repr(ast.literal_eval(text)[0])
    except (SyntaxError, ValueError, TypeError, IndexError):
        return text
