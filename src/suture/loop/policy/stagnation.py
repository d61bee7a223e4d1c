"""Detect a run that goes in circles, from its code and its failures."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal

from suture.core.records import content_hash
from suture.loop.policy.attempts import Attempt
from suture.loop.tuning import NUDGE_ROUNDS, ROUNDS_WITHOUT_NEW_CODE, SAME_FAILURE_ROUNDS

Stagnation = Literal["no", "nudge", "stuck"]
"""Whether a run continues as it is, changes its approach once, or ends."""

NODES_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def detect_stagnation(attempts: Sequence[Attempt], rounds: int, since: int = 0) -> Stagnation:
    """Return whether a run goes in circles: no new code, or new code that fails as the code before did.

    Args:
        attempts: The judged candidates in the order of proposal; a repeated one counts in its first round.
        rounds: The number of rounds that have ended.
        since: The first round of the present model; earlier rounds do not count.
    """
    counted_rounds = rounds - since
    without_new_code = min(count_rounds_without_new_code(attempts, rounds), counted_rounds)
    same_failure = min(count_rounds_with_same_failure(attempts, rounds), counted_rounds)
    if without_new_code >= ROUNDS_WITHOUT_NEW_CODE or same_failure > SAME_FAILURE_ROUNDS:
        return "stuck"
    # Equality, so that the same failure changes the approach once and not in each later round.
    return "nudge" if without_new_code or same_failure == NUDGE_ROUNDS else "no"


def count_rounds_without_new_code(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many of the last rounds brought only known code, apart from layout and comments."""
    first_rounds: dict[str, int] = {}
    for attempt in attempts:
        first_rounds.setdefault(attempt.fingerprint or attempt.candidate, attempt.round)
    newest_code_round = max(first_rounds.values(), default=-1)
    return rounds - 1 - newest_code_round


def count_rounds_with_same_failure(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds in a row, up to the last, made no progress and failed only in known ways."""
    for number in range(rounds - 1, 0, -1):
        current = [attempt for attempt in attempts if attempt.round == number]
        earlier = [attempt for attempt in attempts if attempt.round < number]
        earlier_signatures = {attempt.signature for attempt in earlier}
        made_progress = _max_passed(current) > _max_passed(earlier)
        if made_progress or any(attempt.signature not in earlier_signatures for attempt in current):
            return rounds - 1 - number
    return max(0, rounds - 1)


def _max_passed(attempts: Sequence[Attempt]) -> int:
    return max((attempt.passed for attempt in attempts), default=0)


def count_rounds_without_gain(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds have ended since the one that first passed the most checks."""
    max_passed = _max_passed(attempts)
    best_rounds = (attempt.round for attempt in attempts if attempt.passed == max_passed)
    return rounds - 1 - min(best_rounds, default=-1)


def code_fingerprint(files: Mapping[str, str]) -> str:
    """Return a hash of the code alone: without the comments, layout and docstrings of Python files."""
    return content_hash(
        {path: _without_prose(text) if path.endswith(".py") else text for path, text in files.items()}
    )


def _without_prose(text: str) -> str:
    """Return the syntax tree of Python code as text, without docstrings; other text as it is."""
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, NODES_WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
