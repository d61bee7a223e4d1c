"""How many tests ran, as runners print it: code that ends its process early exits with 0, too."""

from __future__ import annotations

import re

from suture.languages import LANGUAGES
from suture.records import Language
from suture.sandbox import RunResult

NO_TESTS = (b"Ran 0 tests", b"NO TESTS RAN")
"""Of unittest."""
UNLOADABLE = b"_FailedTest"
RAN_RE = re.compile(rb"^Ran (\d+) tests? in ", re.MULTILINE)
SKIPPED_RE = re.compile(rb"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)


def kept_from_running(result: RunResult, base: RunResult) -> str:
    """Why a success of unittest decides less than the run before; empty where it does not."""
    (ran, skipped), (ran_before, skipped_before) = _unittest_counts(result), _unittest_counts(base)
    if UNLOADABLE in base.stderr:  # a module that could not be loaded counts as one test
        ran_before, skipped_before = 1, max(skipped_before, ran - 1)
    if ran < ran_before:
        return f"only {ran} of {ran_before} tests ran"
    return "skipped by the code under test" if skipped > skipped_before else ""


def _unittest_counts(result: RunResult) -> tuple[int, int]:
    ran, skipped = RAN_RE.findall(result.stderr), SKIPPED_RE.findall(result.stderr)
    return int(ran[-1]) if ran else 0, int(skipped[-1]) if skipped else 0


def fewer_ran(result: RunResult, base: RunResult, language: Language) -> str:
    """Why a success of node or Go decides less than the run before; empty where it does not."""
    ran, before = _total(result.stdout, language), _total(base.stdout, language)
    return f"only {ran} of {before} tests ran" if ran < before else ""


def _total(output: bytes, language: Language) -> int:
    """How many ran; 0 where the output does not tell."""
    total = 0
    for match in LANGUAGES[language].ran.finditer(output):
        total += int(next(group for group in match.groups() if group)) if match.groups() else 1
    return total
