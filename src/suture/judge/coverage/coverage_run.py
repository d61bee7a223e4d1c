"""Which changed statements the test command runs: one more run of it, with a note of each line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources

from suture.judge import Suite
from suture.judge.certificates.certificate import Coverage
from suture.judge.coverage.changed_statements import find_touched_statements, why_unmeasured
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files, make_program_limits
from suture.project.languages import Interpreter, program_environment, resolve_command
from suture.project.workspace import text_of
from suture.sandbox import BOX, RunRequest, mounts_for_interpreter

LARGEST_BYTES = 512 << 10
"""A larger file is data more than code; to read it would keep everything else waiting."""
NOTES = f"{PRIVATE_FOLDER}/lines"
NO_COMMAND = "checks of functions run apart from the code, where no line can be watched"
NOT_LOADED = "the test command starts no Python, or one that loads nothing beside it (such as with -I)"


def touched(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, tuple[range, ...]]:
    """Path -> the statements that a change touched, as lines of `after`; paths without any are left out."""
    changed = sorted(
        path
        for path, content in after.items()
        if path.endswith(".py") and before.get(path) != content and len(content) <= LARGEST_BYTES
    )
    texts = {path: (text_of(before.get(path, b"")), text_of(after[path])) for path in changed}
    found = {path: find_touched_statements(*pair) for path, pair in texts.items()}
    return {path: statements for path, statements in found.items() if statements}


async def measure_coverage(suite: Suite, after: Mapping[str, bytes]) -> Coverage:
    """Run a suite's test command on changed files, and note which of the touched statements run.

    Args:
        suite: The suite; its task holds the files before the change.
        after: The project with the change.

    Raises:
        SandboxError: The wall failed.
    """
    statements = touched(suite.task.files, after)
    changed = {path: tuple(spot.start for spot in spots) for path, spots in statements.items()}
    if not changed:
        return Coverage(unmeasured=why_unmeasured(suite.task.language))
    if suite.command is None:
        return Coverage(unmeasured=NO_COMMAND, changed=changed)
    interpreter = suite.command.interpreter
    argv = resolve_command(suite.task.test_command, interpreter)
    ran = await record_executed_lines(argv, drop_private_files(after), statements, suite, interpreter)
    if ran is None:
        return Coverage(unmeasured=NOT_LOADED, changed=changed)
    covered = {
        path: tuple(spot.start for spot in spots if any((path, line) in ran for line in spot))
        for path, spots in statements.items()
    }
    return Coverage(changed=changed, covered=covered)


async def record_executed_lines(
    argv: Sequence[str],
    files: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    suite: Suite,
    interpreter: Interpreter,
) -> set[tuple[str, int]] | None:
    """Run a command that starts Python behind the wall, and note which lines of some statements run.

    Args:
        argv: The command as an argument vector.
        files: The project's files, path -> content.
        statements: Path -> the statements, each as its lines.
        suite: Whose wall and limits hold.
        interpreter: What the command runs on.

    Returns:
        Path and line of each line that ran; `None` where the command loaded nothing that could watch.

    Raises:
        SandboxError: The wall failed.
    """
    lines = {f"{BOX}/{path}": [list(spot) for spot in spots] for path, spots in statements.items()}
    tracer = resources.files("suture.judge.coverage").joinpath("line_recorder.py").read_bytes()
    environment = program_environment(interpreter, BOX)
    paths = (f"{BOX}/{PRIVATE_FOLDER}", environment.get("PYTHONPATH"))
    result = await suite.sandbox.run(
        RunRequest(
            argv=tuple(argv),
            files={**files, f"{PRIVATE_FOLDER}/sitecustomize.py": tracer},
            env={
                **environment,
                "PYTHONPATH": ":".join(path for path in paths if path),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_ADDOPTS": "-p no:cacheprovider",
                "SUTURE_LINES": json.dumps(lines),
                "SUTURE_NOTES": f"{BOX}/{NOTES}",
            },
            mounts=mounts_for_interpreter(interpreter),
            limits=make_program_limits(suite.settings, suite.settings.test_wall_s),
            collect=(NOTES,),
        )
    )
    return _noted(result.files[NOTES]) if NOTES in result.files else None


def _noted(content: bytes) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for line in content.splitlines():
        try:
            path, number = json.loads(line)
            found.add((str(path).removeprefix(f"{BOX}/"), int(number)))
        except (ValueError, TypeError):
            continue  # the first line, or what the code under test wrote
    return found
