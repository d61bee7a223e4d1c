"""Coverage of a change: the statements that it touched, and which of them the test command runs.

Mutants of a change are made from the same statements.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from suture.core.records import UnmeasuredReason, Verdict
from suture.judge import Suite
from suture.judge.coverage.reached_functions import Place
from suture.judge.runners.pytest_runner import RunAddition
from suture.judge.runners.test_command import TestCommand
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files, make_program_limits
from suture.judge.trials.changed_code import ChangedCode
from suture.judge.trials.process_reports import unpack_lines
from suture.project.languages import LANGUAGES, Interpreter, program_environment, resolve_command
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import changed_ranges, decode_text, overlay_candidate
from suture.sandbox import BOX, RunRequest, mounts_for_interpreter


def find_changed_lines(before: str, after: str) -> frozenset[int]:
    """Return the new lines of `after`, counted from 1; where lines were deleted, the two lines around the gap."""
    old, new = before.split("\n"), after.split("\n")
    lines: set[int] = set()
    for _, _, start, end in changed_ranges(old, new):
        lines |= {start, start + 1} if start == end else set(range(start + 1, end + 1))
    return frozenset(lines) - {0}


def find_touched_statements(before: str, after: str) -> tuple[range, ...]:
    """Return the statements of a Python file that a change touched, each as its line range.

    A compound statement counts with its head only. An `except` and a `case` count as statements of their own,
    and docstrings do not count.

    Args:
        before: The file's source; empty for a new file.
        after: The file's source after the change; source that is not Python has no statements.
    """
    tree = parse_module(after)
    if tree is None:
        return ()
    changed_lines = find_changed_lines(before, after)
    statements = sorted(_iter_statement_heads(tree), key=lambda statement: statement.start)
    return tuple(statement for statement in statements if not changed_lines.isdisjoint(statement))


def _iter_statement_heads(tree: ast.Module) -> Iterator[range]:
    """Yield the lines of each statement, without the statements inside it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            yield range(node.pattern.lineno, max(first_line(node.body[0]), node.pattern.lineno + 1))
        elif isinstance(node, ast.ExceptHandler):
            yield range(node.lineno, max(first_line(node.body[0]), node.lineno + 1))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        elif isinstance(node, ast.stmt):
            inner_lines = [
                child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            ]
            inner_lines += [case.pattern.lineno for case in getattr(node, "cases", ())]
            end = min([(node.end_lineno or node.lineno) + 1, *inner_lines])
            yield range(first_line(node), max(end, node.lineno + 1))


MAX_SOURCE_BYTES = 512 << 10
"""A larger file is data rather than code, and parsing it would block the event loop."""
RECORDER = "suture_lines"
"""The name of `line_recorder.py` as a plugin of pytest."""
RECORD_NAME = "lines"
RECORD_FILE = f"{PRIVATE_FOLDER}/{RECORD_NAME}"
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


async def measure_coverage(
    suite: Suite,
    after: Mapping[str, bytes],
    tests: Collection[str] = (),
    *,
    fixed: Collection[str] = (),
    code: ChangedCode | None = None,
) -> CoverageResult:
    """Run a suite's test command on changed files, and record which of the touched statements run.

    Args:
        after: The project with the change.
        tests: Ids of test functions, and test files, that reach the change; empty for all. Only pytest selects tests.
        fixed: Ids of the tests that pass only with the change. If they run all of it, no other test needs to run.
        code: The changed code, if it is open: the fixed tests run there.
    """
    statements_by_path = find_touched_by_file(suite.task.files, after)
    changed = {
        path: tuple(lines.start for lines in statements) for path, statements in statements_by_path.items()
    }
    if fixed and changed and suite.command is not None and suite.command.is_pytest:
        result = await (
            _trace(code, statements_by_path, fixed) if code else measure_coverage(suite, after, fixed)
        )
        if result.unmeasured is None and result.covered_count == result.changed_count:
            return result
    if not changed:
        is_python = LANGUAGES[suite.task.language].parsed
        return CoverageResult(unmeasured="no_changed_code" if is_python else "python_only")
    if suite.command is None:
        has_checks = suite.diagnostics is None  # otherwise linters and compilers decide
        return CoverageResult(unmeasured="separate_checks" if has_checks else "no_tests", changed=changed)
    if suite.command.is_pytest:
        executed = await _record_in_pytest(suite.command, after, statements_by_path, tests)
    else:
        interpreter = suite.command.interpreter
        argv = resolve_command(suite.task.test_command, interpreter)
        files = drop_private_files(after)
        executed = await record_executed_lines(argv, files, statements_by_path, suite, interpreter)
    if executed is None:
        return CoverageResult(unmeasured="no_python_started", changed=changed)
    return _make_result(statements_by_path, executed)


def _make_result(
    statements_by_path: Mapping[str, Sequence[range]], executed: Collection[tuple[str, int]]
) -> CoverageResult:
    changed = {path: tuple(lines.start for lines in ranges) for path, ranges in statements_by_path.items()}
    covered = {
        path: tuple(lines.start for lines in ranges if any((path, line) in executed for line in lines))
        for path, ranges in statements_by_path.items()
    }
    return CoverageResult(changed=changed, covered=covered)


async def _trace(
    code: ChangedCode, statements: Mapping[str, Sequence[range]], tests: Collection[str]
) -> CoverageResult:
    """Return which statements a few tests run in the process that has collected them; there may be more."""
    reports = (await code.trace(tests)).values()
    executed = {(path, line) for path in statements for line in await code.find_import_lines(path)}
    for report in reports:
        executed |= {(path, line) for path in statements for line in unpack_lines(report.lines.get(path, ""))}
    return _make_result(statements, executed)


async def _record_in_pytest(
    command: TestCommand,
    files: Mapping[str, bytes],
    statements: Mapping[str, Sequence[range]],
    tests: Collection[str],
) -> set[tuple[str, int]] | None:
    """Run some tests on changed files, and return what `record_executed_lines` does."""
    recorder = _read_recorder()
    addition = RunAddition(
        options=f"-p {RECORDER}",
        files={"sitecustomize.py": recorder, f"{RECORDER}.py": recorder},
        variables=_make_recorder_variables(statements),
        output=RECORD_NAME,
    )
    content = await command.run_with(files, addition, tests)
    return _parse_record(content) if content is not None else None


def _read_recorder() -> bytes:
    return resources.files("suture.judge.coverage").joinpath("line_recorder.py").read_bytes()


def _make_recorder_variables(statements: Mapping[str, Sequence[range]]) -> dict[str, str]:
    lines = {f"{BOX}/{path}": [list(numbers) for numbers in ranges] for path, ranges in statements.items()}
    return {"SUTURE_LINES": json.dumps(lines), "SUTURE_NOTES": f"{BOX}/{RECORD_FILE}"}


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
    environment = program_environment(interpreter, BOX)
    import_paths = (f"{BOX}/{PRIVATE_FOLDER}", environment.get("PYTHONPATH"))
    sandbox = suite.command.test_sandbox if suite.command is not None else suite.sandbox
    result = await sandbox.run(
        RunRequest(
            argv=tuple(argv),
            files={**files, f"{PRIVATE_FOLDER}/sitecustomize.py": _read_recorder()},
            env={
                **environment,
                "PYTHONPATH": ":".join(path for path in import_paths if path),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_ADDOPTS": "-p no:cacheprovider",
                **_make_recorder_variables(statements),
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


async def find_reaching_tests(
    suite: Suite, files: Mapping[str, str], verdict: Verdict
) -> frozenset[str] | None:
    """Run all tests on a change once, and return those that pass and run a changed function.

    Args:
        suite: A suite whose command is pytest.
        files: The change, path -> text over the project's own files.
        verdict: The verdict on the change.

    Returns:
        The ids of the tests, including those about which nothing is known; `None` if the import of a file runs changed
        code, or nothing was recorded.
    """
    assert suite.command is not None
    after = overlay_candidate(suite.task.files, files)
    places: set[Place] = set()
    for path, statements in find_touched_by_file(suite.task.files, after).items():
        functions = find_functions_around(decode_text(after[path]), statements)
        if functions is None:
            return None
        places |= {(path, line) for line in functions}
    reach = await suite.command.record_reach(after)
    if not reach.known or not places.isdisjoint(reach.importing):
        return None
    unknown = verdict.passed - reach.known
    return verdict.passed & (reach.find_tests(places) | reach.starting_processes | unknown)


def find_functions_around(text: str, statements: Sequence[range]) -> frozenset[int] | None:
    """Return the first lines of the functions that contain some statements; `None` if one is outside of functions.

    Args:
        text: A Python file.
        statements: The statements, each as its lines.
    """
    tree = parse_module(text)
    functions = [
        range(first_line(node), (node.end_lineno or node.lineno) + 1)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines: set[int] = set()
    for statement in statements:
        # The head of a function runs when the code around it does.
        around = [function.start for function in functions if function.start < statement.start in function]
        if not around:
            return None
        lines.add(max(around))
    return frozenset(lines)
