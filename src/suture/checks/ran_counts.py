"""How many tests node and Go ran, as they print it; code that ends the process early exits with 0, too."""

from __future__ import annotations

import re
from collections.abc import Mapping

from suture.records import Language
from suture.sandbox import RunResult

__all__ = ["fewer_ran"]

TOTALS: Mapping[Language, re.Pattern[bytes]] = {
    # node:test, jest and vitest, mocha: each package of a workspace prints its own.
    "javascript": re.compile(
        rb"^(?:#|\xe2\x84\xb9) tests (\d+)|^\s*Tests:?\s.*?(\d+) total|^\s+Tests\s.*\((\d+)\)"
        rb"|^\s+(\d+) (?:passing|failing)",
        re.MULTILINE,
    ),
    "go": re.compile(rb"^=== RUN ", re.MULTILINE),
}


def fewer_ran(result: RunResult, base: RunResult, language: Language) -> str:
    """Why a success decides less than the run on the task's own files did; empty where it does not."""
    ran, before = _ran(result.stdout, language), _ran(base.stdout, language)
    return f"only {ran} of {before} tests ran" if ran < before else ""


def _ran(output: bytes, language: Language) -> int:
    """How many ran; 0 where the output does not tell."""
    found = TOTALS[language].finditer(output)
    if language == "go":
        return sum(1 for _ in found)
    return sum(int(next(group for group in match.groups() if group)) for match in found)
