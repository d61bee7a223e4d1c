"""Grade code by hidden checks after a run has ended, and detect passes that a candidate forged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from suture.bench.problem import MODULE, Problem, Regime, build_task
from suture.core.records import CheckOutcome, Evidence
from suture.core.settings import SandboxSettings
from suture.errors import SandboxError
from suture.judge import grade_program
from suture.project.workspace import decode_text, overlay_candidate
from suture.sandbox import Sandbox

GradeStatus = Literal["right", "wrong", "timeout", "broke_sandbox", "infra"]
"""The result of grading.

`broke_sandbox`: the code makes the sandbox fail again and again, which counts as wrong. `infra`: the sandbox itself
fails, so the task has no result. Both are listed in reports.
"""

MAX_REASON_CHARS = 200
"""Length of a grade's reason. Chosen by judgement; not measured."""
MIN_LIMIT_S = 5.0
"""Minimum time limit of a candidate in seconds, however little time the reference took. Chosen by judgement; not
measured."""
MAX_SLOWDOWN = 10
"""Maximum time of a candidate as a multiple of the reference's. Chosen by judgement; not measured."""
WALL_PER_CPU_S = 4
"""Wall-clock seconds per CPU second: a busy machine must not fail the code. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class Grade:
    """What the hidden checks say about one piece of code.

    Attributes:
        evidence: How strong the verdict is: `split` if a process other than the candidate's decided, and weaker if
            the checks need the candidate's own objects, so that they ran in its process.
        reason: What went wrong, in one line.
        cpu_s: CPU seconds of the code under test; `None` if unknown.
    """

    status: GradeStatus
    evidence: Evidence = "split"
    reason: str = ""
    wall_s: float = 0.0
    cpu_s: float | None = None

    @property
    def right(self) -> bool:
        """Whether every hidden check passed."""
        return self.status == "right"


async def grade_code(
    problem: Problem,
    code: str | Mapping[str, str],
    sandbox: Sandbox,
    settings: SandboxSettings,
    *,
    reference: Grade | None = None,
) -> Grade:
    """Run the hidden checks on what a solver wrote.

    If the sandbox fails, the reference is graded, then this code again, and then the reference again.
    Code under which the sandbox fails twice, while it works for the reference between and after, has broken
    it.

    Args:
        problem: The task.
        code: The module, or every file that was written, path -> text; empty code is wrong, not an error.
        sandbox: A sandbox that the run did not use.
        settings: The sandbox limits.
        reference: The grade of the reference on this machine, from which the time limits follow; the setting
            `check_timeout_s` applies without it.
    """
    limits = _time_limits(reference, settings)
    try:
        return await _run_checks(problem, code, sandbox, settings, limits)
    except SandboxError as fault:
        if not await sandbox_holds(problem, sandbox, settings):
            return Grade(status="infra", reason=str(fault))
    try:
        return await _run_checks(problem, code, sandbox, settings, limits)
    except SandboxError as fault:
        # The sandbox may have failed permanently in the meantime.
        if not await sandbox_holds(problem, sandbox, settings):
            return Grade(status="infra", reason=str(fault))
        return Grade(status="broke_sandbox", reason=f"the sandbox fails under it: {fault}"[:MAX_REASON_CHARS])


async def sandbox_holds(problem: Problem, sandbox: Sandbox, settings: SandboxSettings) -> bool:
    """Return whether the sandbox works for harmless code: a problem's reference, whatever its grade."""
    try:
        await _run_checks(problem, problem.solution, sandbox, settings, _time_limits(None, settings))
    except SandboxError:
        return False
    return True


async def _run_checks(
    problem: Problem,
    code: str | Mapping[str, str],
    sandbox: Sandbox,
    settings: SandboxSettings,
    limits: tuple[float, float | None],
) -> Grade:
    """Run the hidden checks once; `limits` is (wall-clock seconds, CPU seconds or `None`)."""
    written_files = {MODULE: code} if isinstance(code, str) else code
    given_files = {
        path: text.encode("utf-8", "surrogateescape") for path, text in problem.given_files.items()
    }
    # As in the run, text that cannot be encoded, such as half a surrogate pair, must not break the grading.
    # The empty module stands for a solver that wrote none.
    project = overlay_candidate({MODULE: b"", **given_files}, written_files)
    started_s = time.monotonic()
    wall_s, cpu_s = limits
    graded = await grade_program(
        decode_text(project.pop(MODULE)),
        problem.hidden,
        sandbox,
        settings,
        entry_point=problem.entry_point,
        files=project,
        module=MODULE,
        wall_s=wall_s,
        cpu_s=cpu_s,
        importable=tuple(given_files),  # the tests cannot use a file that only this solver wrote
    )
    return Grade(
        status=_grade_status(graded.outcome),
        evidence=graded.outcome.evidence,
        reason=_failure_reason(graded.outcome),
        wall_s=time.monotonic() - started_s,
        cpu_s=graded.cpu_s,
    )


def _time_limits(reference: Grade | None, settings: SandboxSettings) -> tuple[float, float | None]:
    """Return (wall-clock seconds, CPU seconds), which follow from the times that the reference took."""
    if reference is None:
        return settings.check_timeout_s, None
    wall_s = max(MIN_LIMIT_S, MAX_SLOWDOWN * reference.wall_s)
    if reference.cpu_s is None:
        return wall_s, None
    cpu_s = max(MIN_LIMIT_S, MAX_SLOWDOWN * reference.cpu_s)
    # The tests compute too, but their CPU time is limited by the clock only.
    return max(wall_s, WALL_PER_CPU_S * cpu_s), cpu_s


def _grade_status(outcome: CheckOutcome) -> GradeStatus:
    if outcome.passed:
        return "right"
    return "timeout" if outcome.status == "timeout" else "wrong"


def _failure_reason(outcome: CheckOutcome) -> str:
    fact = outcome.counterexample
    if outcome.passed or fact is None:
        return ""
    return (fact.exception or f"{fact.call}: expected {fact.expected}, got {fact.actual}")[:MAX_REASON_CHARS]


async def is_forged_pass(
    problem: Problem, regime: Regime, code: Mapping[str, str], judge: Sandbox, settings: SandboxSettings
) -> bool | None:
    """Return whether code that passed every visible check in its run fails one in another sandbox.

    Return `None` if that cannot be decided: there is no check, the time ran out, the sandbox failed, or the
    checks ran in the candidate's own process, so that the code could forge this verdict too.
    """
    checks = "\n".join(check.source for check in build_task(problem, regime).checks)
    if not checks:
        return None
    grade = await grade_code(replace(problem, hidden=checks), code, judge, settings)
    if grade.evidence != "split" or grade.status not in ("right", "wrong"):
        return None
    return not grade.right
