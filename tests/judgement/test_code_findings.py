"""Findings about the code of a change that need no run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from suture.core.records.judgement import GuardedLines
from suture.loop.judgement.code_findings import fills_stub, find_guard_findings, makes_failing_test_pass


@pytest.mark.parametrize(
    ("fixed", "gains"),
    [(("test_a",), True), (("test_a", "test_new"), True), (("test_new",), False), ((), False)],
)
def test_a_test_that_ends_by_chance_or_is_new_is_no_gain(fixed: tuple[str, ...], gains: bool) -> None:
    runs: Any = SimpleNamespace(
        before=SimpleNamespace(failed=frozenset({"test_a", "test_by_chance"})),
        guarded=SimpleNamespace(passed=frozenset({"test_a", "test_by_chance"})),
    )
    assert makes_failing_test_pass(runs, fixed) == gains


@pytest.mark.parametrize(
    ("before", "after", "fills"),
    [
        ("def f(n):\n    raise NotImplementedError\n", "def f(n):\n    return n\n", True),
        ('def f(n):\n    """Say n."""\n    ...\n', "def f(n):\n    return n\n", True),
        ("def f(n):\n    raise ValueError\n", "def f(n):\n    return n\n", False),
        ("def f(n):\n    pass\n", "def f(n):\n    pass\n\n\ndef g():\n    return 1\n", False),
    ],
)
def test_code_for_a_function_that_had_only_its_head_is_new_code(before: str, after: str, fills: bool) -> None:
    assert fills_stub(before, after) == fills


@pytest.mark.parametrize(
    ("mistakes", "noticed", "has_proof", "severity"),
    [
        (1, 0, True, "note"),  # it may be no mistake
        (3, 0, True, "remark"),
        (1, 0, False, "remark"),
        (5, 3, True, "note"),
    ],
)
def test_mistakes_that_the_tests_miss_are_a_remark_if_they_are_many_or_no_test_proves_the_change(
    mistakes: int, noticed: int, has_proof: bool, severity: str
) -> None:
    guards = GuardedLines(changed=2, mistakes=mistakes, noticed=noticed)
    findings = find_guard_findings(guards, has_proof)
    assert [finding.severity for finding in findings if finding.code == "mistakes_not_noticed"] == [severity]


def test_lines_that_no_test_runs_come_before_the_mistakes_that_are_missed_there() -> None:
    guards = GuardedLines(changed=4, not_run={"invoice.py": (28, 29)}, mistakes=8, noticed=2)
    findings = list(find_guard_findings(guards, has_proof=True))
    assert [(finding.code, finding.severity) for finding in findings] == [
        ("lines_not_run", "remark"),
        ("mistakes_not_noticed", "remark"),
    ]
