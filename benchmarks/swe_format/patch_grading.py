"""Grade a patch by the hidden tests of a task, after the run and outside of its reach.

As in the original, the patch is applied to the commit, the tests of `test_patch` are added, and the task is
resolved if every test of FAIL_TO_PASS and PASS_TO_PASS passes. Stricter than the original, tests and files
that decide how tests run (`conftest.py`, `pytest.ini`) stay as the repository has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import check_candidate, find_protected_files, prepare_suite
from suture.project.languages import Interpreter
from suture.project.workspace import DiffDoesNotApply, decode_text
from suture.sandbox import Sandbox
from swe_format.repository_files import apply_patch
from swe_format.swe_tasks import SweTask


@dataclass(frozen=True, kw_only=True)
class PatchGrade:
    """The grade of a patch.

    Attributes:
        applied: Whether the patch applies and is not empty.
        failed: Ids of tests that had to pass and did not, sorted.
        left_out: Files of the patch that were not used: tests, files that decide how they run, deletions.
        note: Why the patch was not run, if it was not.
    """

    resolved: bool
    applied: bool
    failed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    note: str = ""


async def grade_patch(
    task: SweTask,
    files: dict[str, bytes],
    patch: str,
    sandbox: Sandbox,
    settings: SandboxSettings,
    interpreter: Interpreter,
    *,
    command: tuple[str, ...] = ("python", "-m", "pytest", "-q"),
) -> PatchGrade:
    """Grade one patch.

    Args:
        task: The task's record.
        files: The repository's files at the task's commit.
        patch: The solver's patch.
        sandbox: Runs the tests.
        settings: The sandbox limits.
        interpreter: A Python with the repository's dependencies.
        command: The command that runs the tests; ids are those of pytest.

    Raises:
        UsageError: The record's own `test_patch` does not apply.
        SandboxError: The sandbox failed.
    """
    try:
        base = apply_patch(files, task.test_patch)
    except DiffDoesNotApply as fault:
        raise UsageError(f"{task.instance_id}: its test_patch does not apply: {fault}") from fault
    required_tests = {*task.fail_to_pass, *task.pass_to_pass}
    if not patch.strip():
        return PatchGrade(resolved=False, applied=False, note="the patch is empty")
    try:
        after = apply_patch(files, patch)
    except DiffDoesNotApply as fault:
        return PatchGrade(resolved=False, applied=False, note=f"the patch does not apply: {fault}")
    # The suite contains the hidden tests, and the candidate below is the patch without the files that decide.
    suite = await prepare_suite(
        Task(statement="", kind="heal", files=base, test_command=command), sandbox, settings, interpreter
    )
    changed = {path: decode_text(content) for path, content in after.items() if files.get(path) != content}
    protected = find_protected_files(changed, suite)
    deleted = tuple(path for path in files if path not in after)
    used = {path: text for path, text in changed.items() if path not in protected}
    verdict = await check_candidate(Candidate(files=used, origin="user"), suite)
    failed = tuple(sorted(required_tests - verdict.passed))
    return PatchGrade(
        resolved=not failed and bool(required_tests),
        applied=True,
        failed=failed,
        left_out=(*protected, *deleted),
    )
