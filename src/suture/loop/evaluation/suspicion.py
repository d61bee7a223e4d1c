"""What is suspicious about a change, whoever made it: signs that it games the tests."""

from __future__ import annotations

from suture.loop.context import RunContext
from suture.records import Candidate
from suture.repair import literals_of, warnings_about
from suture.workspace import text_of


def suspicious_signs(candidate: Candidate, context: RunContext) -> tuple[str, ...]:
    """Signs that a change of Python code games the tests, each with its file; new code has none."""
    before = context.task.files
    if context.task.kind != "heal" or candidate.origin == "user":
        return ()
    literals = literals_of(context.test_sources())
    return tuple(
        f"{path}: {sign}"
        for path, text in sorted(candidate.files.items())
        if path.endswith(".py")
        for sign in warnings_about(text_of(before.get(path, b"")), text, literals)
    )
