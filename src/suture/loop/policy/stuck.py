"""Is the run going in circles? Pure functions of what was tried: code and failures count, words never."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Literal

from suture.core.records import content_hash
from suture.loop.policy.progress import Attempt

Circling = Literal["no", "nudge", "stuck"]
"""Whether the run goes on as it does, goes about it in another way once, or ends."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BARREN_ROUNDS = 2
"""Rounds without any new code after which a run is stuck; half as many nudge it."""
SAME_FAILURE_ROUNDS = 4
"""Rounds with the very same failure, and nothing gained, after which a run is stuck."""
NUDGE_ROUNDS = 3
"""Such rounds after which it is nudged."""


def circling(tried: Sequence[Attempt], rounds: int, since: int = 0) -> Circling:
    """Whether a run goes in circles: no new code, or new code that fails as the code before did.

    Args:
        tried: Candidates in the order of proposal; a repeated one stands there once, under its first round.
        rounds: Rounds that have ended.
        since: The first round that counts: those before it were another model's.
    """
    own = rounds - since
    barren, same = min(barren_rounds(tried, rounds), own), min(same_failure_rounds(tried, rounds), own)
    if barren >= BARREN_ROUNDS or same > SAME_FAILURE_ROUNDS:
        return "stuck"
    return "nudge" if barren or same == NUDGE_ROUNDS else "no"


def barren_rounds(tried: Sequence[Attempt], rounds: int) -> int:
    """How many of the last rounds brought no code that was not seen before, layout and comments aside."""
    seen: set[str] = set()
    last = -1
    for one in tried:
        if (one.fingerprint or one.candidate) not in seen:
            seen.add(one.fingerprint or one.candidate)
            last = max(last, one.round)
    return rounds - 1 - last


def same_failure_rounds(tried: Sequence[Attempt], rounds: int) -> int:
    """How many rounds in a row, up to the last, gained nothing and failed only in ways seen before."""
    count = 0
    for number in range(rounds - 1, 0, -1):
        now = [t for t in tried if t.round == number]
        before = [t for t in tried if t.round < number]
        known = {t.signature for t in before}
        gained = max((t.passed for t in now), default=0) > max((t.passed for t in before), default=0)
        if gained or any(t.signature not in known for t in now):
            break
        count += 1
    return count


def rounds_without_gain(tried: Sequence[Attempt], rounds: int) -> int:
    """How many rounds have ended since the one in which the most checks were first passed."""
    most = max((t.passed for t in tried), default=0)
    return rounds - 1 - min((t.round for t in tried if t.passed == most), default=-1)


def code_fingerprint(files: Mapping[str, str]) -> str:
    """A hash of what the files say to a computer: without comments, layout and docstrings of Python."""
    return content_hash(
        {path: _plain(text) if path.endswith(".py") else text for path, text in files.items()}
    )


def _plain(text: str) -> str:
    try:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        return ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
