"""A patch graded by the hidden tests of a task, after the run and outside of its reach.

As the original does: the patch is applied to the commit, the tests of `test_patch` are laid over it, and it
has resolved the task where every test of FAIL_TO_PASS and of PASS_TO_PASS passes. Stricter than the original,
files that decide how tests run (`conftest.py`, `pytest.ini`) and tests stay as the repository has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from suture.bench.swe.records import SweTask
from suture.bench.swe.trees import patched
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import check_candidate, prepare_suite
from suture.judge import protected_files as refused_files
from suture.project.languages import Interpreter
from suture.project.workspace import PatchRefused, text_of
from suture.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """How a patch is graded.

    Attributes:
        resolved: Whether every test that must pass does.
        applied: Whether it applies at all, and is not empty.
        failed: Ids of tests that had to pass and did not, sorted.
        left_out: Files of the patch that were not taken: tests, and files that say how they run.
        note: Why it was not run, where it was not.
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
) -> Resolved:
    """Grade one patch.

    Args:
        task: The record.
        files: Its repository's files at its commit.
        patch: What a solver made.
        sandbox: The wall for the tests.
        settings: Its limits.
        interpreter: The Python that has what the repository needs.
        command: What runs the tests; ids are those of pytest.

    Raises:
        UsageError: The record's own `test_patch` does not apply.
        SandboxError: The wall failed.
    """
    try:
        base = patched(files, task.test_patch)
    except PatchRefused as fault:
        raise UsageError(f"{task.instance_id}: its test_patch does not apply: {fault}") from fault
    wanted = (*task.fail_to_pass, *task.pass_to_pass)
    if not patch.strip():
        return Resolved(resolved=False, applied=False, note="the patch is empty")
    try:
        after = patched(files, patch)
    except PatchRefused as fault:
        return Resolved(resolved=False, applied=False, note=f"the patch does not apply: {fault}")
    suite = await prepare_suite(
        Task(statement="", kind="heal", files=base, test_command=command), sandbox, settings, interpreter
    )
    texts = {path: text_of(content) for path, content in after.items() if files.get(path) != content}
    refused = refused_files(texts, suite)
    gone = tuple(path for path in files if path not in after)
    candidate = Candidate(files={k: v for k, v in texts.items() if k not in refused}, origin="user")
    verdict = await check_candidate(candidate, suite)
    failed = tuple(sorted(set(wanted) - verdict.passed))
    return Resolved(
        resolved=not failed and bool(wanted), applied=True, failed=failed, left_out=(*refused, *gone)
    )
