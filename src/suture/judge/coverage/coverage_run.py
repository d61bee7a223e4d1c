"""Coverage of a change: one more run of the test command that records the touched statements that run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from suture.core.records import UnmeasuredReason
from suture.judge import Suite
from suture.judge.coverage.changed_statements import find_touched_statements
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files, make_program_limits
from suture.project.languages import LANGUAGES, Interpreter, program_environment, resolve_command
from suture.project.workspace import decode_text
from suture.sandbox import BOX, RunRequest, mounts_for_interpreter

MAX_SOURCE_BYTES = 512 << 10
"""A larger file is data rather than code, and parsing it would block the event loop."""
RECORD_FILE = f"{PRIVATE_FOLDER}/lines"
"""The file in which `line_recorder.py` writes the lines that ran."""


@dataclass(frozen=True, kw_only=True)
class CoverageResult:
    """Which changed statements the tests run.

    Attributes:
        unmeasured: Why there is no measurement; `None` if there is one.
        changed: Path -> first lines of the changed statements, in the changed file.
        covered: Path -> those of them that ran.
    """

    unmeasured: UnmeasuredReason | None = None
    changed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    covered: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def changed_count(self) -> int:
        """The number of changed statements."""
        return sum(map(len, self.changed.values()))

    @property
    def covered_count(self) -> int:
        """The number of changed statements that ran."""
        return sum(map(len, self.covered.values()))


def find_touched_by_file(
    before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> dict[str, tuple[range, ...]]:
    """Return path -> the statements that a change touched, as line ranges of `after`.

    Only Python files that have touched statements are in the result.
    """
    touched = {
        path: find_touched_statements(decode_text(before.get(path, b"")), decode_text(content))
        for path, content in sorted(after.items())
        if path.endswith(".py") and before.get(path) != content and len(content) <= MAX_SOURCE_BYTES
    }
    return {path: statements for path, statements in touched.items() if statements}


async def measure_coverage(suite: Suite, after: Mapping[str, bytes]) -> CoverageResult:
    """Run a suite's test command on changed files, and record which of the touched statements run.

    Args:
        after: The project with the change.
    """
    statements_by_path = find_touched_by_file(suite.task.files, after)
    changed = {
        path: tuple(lines.start for lines in statements) for path, statements in statements_by_path.items()
    }
    if not changed:
        is_python = LANGUAGES[suite.task.language].parsed
        return CoverageResult(unmeasured="no_changed_code" if is_python else "python_only")
    if suite.command is None:
        return CoverageResult(unmeasured="separate_checks", changed=changed)
    interpreter = suite.command.interpreter
    argv = resolve_command(suite.task.test_command, interpreter)
    files = drop_private_files(after)
    executed = await record_executed_lines(argv, files, statements_by_path, suite, interpreter)
    if executed is None:
        return CoverageResult(unmeasured="no_python_started", changed=changed)
    covered = {
        path: tuple(lines.start for lines in statements if any((path, line) in executed for line in lines))
        for path, statements in statements_by_path.items()
    }
    return CoverageResult(changed=changed, covered=covered)


async def record_executed_lines(
    argv: Sequence[str],
    files: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    suite: Suite,
    interpreter: Interpreter,
) -> set[tuple[str, int]] | None:
    """Run a command that starts Python in the sandbox, and record which lines of some statements run.

    Args:
        statements: Path -> the statements, each as its line numbers.

    Returns:
        (path, line) of each line that ran; `None` if no process of the command loaded the recorder.
    """
    lines = {f"{BOX}/{path}": [list(numbers) for numbers in ranges] for path, ranges in statements.items()}
    recorder = resources.files("suture.judge.coverage").joinpath("line_recorder.py").read_bytes()
    environment = program_environment(interpreter, BOX)
    import_paths = (f"{BOX}/{PRIVATE_FOLDER}", environment.get("PYTHONPATH"))
    result = await suite.sandbox.run(
        RunRequest(
            argv=tuple(argv),
            files={**files, f"{PRIVATE_FOLDER}/sitecustomize.py": recorder},
            env={
                **environment,
                "PYTHONPATH": ":".join(path for path in import_paths if path),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_ADDOPTS": "-p no:cacheprovider",
                "SUTURE_LINES": json.dumps(lines),
                "SUTURE_NOTES": f"{BOX}/{RECORD_FILE}",
            },
            mounts=mounts_for_interpreter(interpreter),
            limits=make_program_limits(suite.settings, suite.settings.test_timeout_s),
            collect=(RECORD_FILE,),
        )
    )
    return _parse_record(result.files[RECORD_FILE]) if RECORD_FILE in result.files else None


def _parse_record(content: bytes) -> set[tuple[str, int]]:
    executed: set[tuple[str, int]] = set()
    for line in content.splitlines():
        try:
            path, number = json.loads(line)
            executed.add((str(path).removeprefix(f"{BOX}/"), int(number)))
        except (ValueError, TypeError):
            continue  # the first line, or something that the code under test wrote
    return executed
