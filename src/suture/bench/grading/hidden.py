"""Grading, after a run has ended: hidden checks in a sandbox that no run has used, and forged claims."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from suture.bench.problem import MODULE, Problem, Regime, task_of
from suture.core.records import CheckOutcome, Evidence
from suture.core.settings import SandboxSettings
from suture.errors import SandboxError
from suture.judge import grade
from suture.project.workspace import overlay, text_of
from suture.sandbox import Sandbox

Standing = Literal["right", "wrong", "timeout", "felled", "infra"]
"""`felled`: the code brings the wall down again and again, which is wrong. `infra`: the wall fails by itself;
such a task has no number. Both are listed."""

MOST_TEXT = 200
LEAST_S = 5.0
"""Seconds that a candidate may take at least, however short the reference took."""
SLOWER = 10
"""A candidate may take this many times as long as the reference did."""
WAITING = 4
"""And on the clock this many times what it may compute: a busy machine is no fault of the code."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What the hidden checks say of one piece of code.

    Attributes:
        standing: Whether it is right, wrong, too slow, or cannot be graded.
        evidence: How strong the verdict is; `split` unless the checks need live objects.
        why: What went wrong, in one line.
        wall_s: Wall-clock seconds it took.
        cpu_s: CPU seconds of the code under test; `None` where that is not known.
    """

    standing: Standing
    evidence: Evidence = "split"
    why: str = ""
    wall_s: float = 0.0
    cpu_s: float | None = None

    @property
    def right(self) -> bool:
        """Whether every hidden check passed."""
        return self.standing == "right"


async def grade_code(
    problem: Problem,
    code: str | Mapping[str, str],
    sandbox: Sandbox,
    settings: SandboxSettings,
    *,
    reference: Grade | None = None,
) -> Grade:
    """Run the hidden checks on what a solver wrote.

    Where the wall fails under it, the reference is graded, then this code once more, and the reference again:
    code that the wall fails under twice, and not under the reference between and after, has brought it down.

    Args:
        problem: What it should solve.
        code: The module, or every file that was written, path -> text; empty code is wrong, not an error.
        sandbox: A wall that the run did not use.
        settings: The group `sandbox`: time and memory for each program.
        reference: How the reference was graded here, from which the time limits follow; the settings'
            `check_wall_s` where it is left out.
    """
    limits = _limits(reference, settings)
    try:
        return await _graded(problem, code, sandbox, settings, limits)
    except SandboxError as fault:
        if not await sandbox_holds(problem, sandbox, settings):
            return Grade(standing="infra", why=str(fault))
    try:
        return await _graded(problem, code, sandbox, settings, limits)
    except SandboxError as fault:
        if not await sandbox_holds(problem, sandbox, settings):  # it may have broken for good in between
            return Grade(standing="infra", why=str(fault))
        return Grade(standing="felled", why=f"the wall fails under it: {fault}"[:MOST_TEXT])


async def sandbox_holds(problem: Problem, sandbox: Sandbox, settings: SandboxSettings) -> bool:
    """Whether a wall stands when harmless code runs behind it: a problem's reference, whatever its grade."""
    try:
        graded = await _graded(problem, problem.solution, sandbox, settings, _limits(None, settings))
    except SandboxError:
        return False
    return graded.standing != "infra"


async def _graded(
    problem: Problem,
    code: str | Mapping[str, str],
    sandbox: Sandbox,
    settings: SandboxSettings,
    limits: _Limits,
) -> Grade:
    written = {MODULE: code} if isinstance(code, str) else code
    given = {path: text.encode("utf-8", "surrogateescape") for path, text in problem.given_files.items()}
    # As in the run: what cannot be encoded, such as half a surrogate pair, is no fault of the machinery.
    project = overlay({MODULE: b"", **given}, written)
    started_s = time.monotonic()
    outcome = await grade(
        text_of(project.pop(MODULE)),
        problem.hidden,
        sandbox,
        settings,
        entry_point=problem.entry_point,
        files=project,
        module=MODULE,
        wall_s=limits.wall_s,
        cpu_s=limits.cpu_s,
        own=tuple(given),
    )
    return Grade(
        standing=_standing(outcome),
        evidence=outcome.evidence,
        why=_why(outcome),
        wall_s=time.monotonic() - started_s,
        cpu_s=outcome.cpu_s,
    )


@dataclass(frozen=True, kw_only=True)
class _Limits:
    wall_s: float
    cpu_s: float | None


def _limits(reference: Grade | None, settings: SandboxSettings) -> _Limits:
    if reference is None:
        return _Limits(wall_s=settings.check_wall_s, cpu_s=None)
    wall_s = max(LEAST_S, SLOWER * reference.wall_s)
    if reference.cpu_s is None:
        return _Limits(wall_s=wall_s, cpu_s=None)
    cpu_s = max(LEAST_S, SLOWER * reference.cpu_s)
    # The tests compute too, and what they take is on the clock only.
    return _Limits(wall_s=max(wall_s, WAITING * cpu_s), cpu_s=cpu_s)


def _standing(outcome: CheckOutcome) -> Standing:
    if outcome.passed:
        return "right"
    return "timeout" if outcome.status == "timeout" else "wrong"


def _why(outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    if outcome.passed or fact is None:
        return ""
    return (fact.exception or f"{fact.call}: expected {fact.expected}, got {fact.actual}")[:MOST_TEXT]


async def is_forged(
    problem: Problem, regime: Regime, code: Mapping[str, str], judge: Sandbox, settings: SandboxSettings
) -> bool | None:
    """Whether code that passed every visible check in its run fails one where it cannot reach the verdict.

    Args:
        problem: The task.
        regime: What the loop could see, and so what it was judged by.
        code: Every file that was written, path -> text.
        judge: A wall that the run did not use.
        settings: The group `sandbox`: time and memory for each program.

    Returns:
        `None` where that cannot be told: there is no check, the time ran out, the wall failed, or the checks
        need live objects, so that the code could reach this verdict too.
    """
    checks = "\n".join(check.source for check in task_of(problem, regime).checks)
    if not checks:
        return None
    grade = await grade_code(replace(problem, hidden=checks), code, judge, settings)
    if grade.evidence != "split" or grade.standing not in ("right", "wrong"):
        return None
    return not grade.right
