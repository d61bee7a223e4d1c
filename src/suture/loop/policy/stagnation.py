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
        since: The first round that counts: those before it were another model's.
    """
    own = rounds - since
    without_new_code = min(count_rounds_without_new_code(attempts, rounds), own)
    same_failure = min(count_rounds_with_same_failure(attempts, rounds), own)
    if without_new_code >= ROUNDS_WITHOUT_NEW_CODE or same_failure > SAME_FAILURE_ROUNDS:
        return "stuck"
    return "nudge" if without_new_code or same_failure == NUDGE_ROUNDS else "no"


def count_rounds_without_new_code(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many of the last rounds brought only known code, apart from layout and comments."""
    known: set[str] = set()
    last = -1
    for attempt in attempts:
        if (attempt.fingerprint or attempt.candidate) not in known:
            known.add(attempt.fingerprint or attempt.candidate)
            last = max(last, attempt.round)
    return rounds - 1 - last


def count_rounds_with_same_failure(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds in a row, up to the last, made no progress and failed only in known ways."""
    count = 0
    for number in range(rounds - 1, 0, -1):
        now = [attempt for attempt in attempts if attempt.round == number]
        before = [attempt for attempt in attempts if attempt.round < number]
        known = {attempt.signature for attempt in before}
        best_now = max((attempt.passed for attempt in now), default=0)
        best_before = max((attempt.passed for attempt in before), default=0)
        if best_now > best_before or any(attempt.signature not in known for attempt in now):
            break
        count += 1
    return count


def count_rounds_without_gain(attempts: Sequence[Attempt], rounds: int) -> int:
    """Return how many rounds have ended since the one that first passed the most checks."""
    most = max((attempt.passed for attempt in attempts), default=0)
    return rounds - 1 - min((attempt.round for attempt in attempts if attempt.passed == most), default=-1)


def code_fingerprint(files: Mapping[str, str]) -> str:
    """Return a hash of the code alone: without the comments, layout and docstrings of Python files."""
    return content_hash(
        {path: _without_prose(text) if path.endswith(".py") else text for path, text in files.items()}
    )


def _without_prose(text: str) -> str:
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, NODES_WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
