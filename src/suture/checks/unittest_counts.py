"""What unittest's last lines tell about how much it ran; it exits with 0 for tests that never ran, too."""

from __future__ import annotations

import re

from suture.sandbox import RunResult

__all__ = ["NO_TESTS", "kept_from_running"]

NO_TESTS = (b"Ran 0 tests", b"NO TESTS RAN")
UNLOADABLE = b"_FailedTest"
RAN_RE = re.compile(rb"^Ran (\d+) tests? in ", re.MULTILINE)
SKIPPED_RE = re.compile(rb"^(?:OK|FAILED) \(.*?skipped=(\d+)", re.MULTILINE)


def kept_from_running(result: RunResult, base: RunResult) -> str:
    """Why a success decides less than the run on the task's own files did; empty where it does not."""
    (ran, skipped), (ran_before, skipped_before) = _counts(result), _counts(base)
    if UNLOADABLE in base.stderr:  # a module that could not be loaded counts as one test
        ran_before, skipped_before = 1, max(skipped_before, ran - 1)
    if ran < ran_before:
        return f"only {ran} of {ran_before} tests ran"
    return "skipped by the code under test" if skipped > skipped_before else ""


def _counts(result: RunResult) -> tuple[int, int]:
    ran, skipped = RAN_RE.findall(result.stderr), SKIPPED_RE.findall(result.stderr)
    return int(ran[-1]) if ran else 0, int(skipped[-1]) if skipped else 0
