"""Build a task to write new code from a statement, tests and asserts."""

from __future__ import annotations

import re
from pathlib import Path

from suture.core.records import Check, Language, Task
from suture.errors import UsageError
from suture.judge import extract_asserts, extract_calls, extract_examples
from suture.loop.intake.entry_point import find_entry_point
from suture.loop.intake.given_tests import is_pytest_source, read_bounded_file, read_test_file
from suture.loop.intake.test_subject import (
    asks_for_several_files,
    find_new_modules,
    find_requested_files,
    find_tested_module,
)
from suture.project.languages import LANGUAGES, fill_placeholders
from suture.project.workspace import DEFAULT_PROTECTED, is_test_file

DEFAULT_MODULE = "solution.py"
FUNCTION_HEADER = re.compile(
    r"\b(?:function\*?|func(?:[ \t]*\([^)\n]*\))?|const)\s+([A-Za-z_$][\w$]*)\s*(?:[(<=\[:])(?P<rest>[^\n]*)"
)
"""The header of a function in JavaScript, TypeScript or Go."""
RETURNS_PROMISE = re.compile(r"\basync\b|\bPromise\b")


def build_write_task(
    statement: str,
    *,
    test: Path | None = None,
    asserts: str = "",
    entry_point: str | None = None,
    several: bool = False,
    language: Language = "python",
) -> Task:
    """Build a task to write new code.

    Args:
        statement: Plain words, or a signature with a docstring.
        test: A file of tests: pytest tests, or plain asserts.
        asserts: Plain asserts as text; for other languages than Python, calls with their results.
        entry_point: The name to define, where the statement does not say it.
        several: Whether the code may also go into files that the statement does not name.
        language: The language to write.

    Raises:
        UsageError: The statement is empty, or the test file cannot be used.
    """
    if not statement.strip():
        raise UsageError(
            "the task is empty", remedy='say what to write, as in `suture run "Write a function ..."`'
        )
    if not LANGUAGES[language].parsed:
        return build_call_task(statement, language, test=test, asserts=asserts, entry_point=entry_point)
    source = read_test_file(test) if test else ""
    name = entry_point or find_entry_point(statement)
    requested = find_requested_files(statement)
    several = several or len(requested) > 1 or asks_for_several_files(statement)
    if test is not None and is_pytest_source(source):
        path = _path_in_sandbox(test)
        module, imported = find_tested_module(source, path, test.resolve().parent)
        tested = find_new_modules(source, path, test.resolve().parent)
        beside = tuple(dict.fromkeys(file for file in (*tested, *requested) if file != module))
        return Task(
            statement=statement,
            module=module,
            extra_modules=beside,
            allows_more_files=several or bool(beside),
            entry_point=entry_point or imported or name,
            files=_with_conftest(test, path),
            checks=(*extract_asserts(asserts, provenance="user"), *extract_examples(statement, name)),
            test_command=("python", "-m", "pytest", "-q", path),
            protected=DEFAULT_PROTECTED,
        )
    given = asserts if test is None else f"{asserts}\n{source}"
    checks: tuple[Check, ...] = (
        *extract_asserts(given, provenance="user"),
        *extract_examples(statement, name),
    )
    if test is not None and not any(check.provenance == "user" for check in checks):
        raise UsageError(
            f"{str(test)!r} holds no test: neither a test function nor an assert",
            remedy="write one into it, such as: assert double(2) == 4",
        )
    module, *others = requested or (DEFAULT_MODULE,)
    return Task(
        statement=statement,
        module=module,
        extra_modules=tuple(others),
        allows_more_files=several,
        entry_point=name,
        checks=checks,
    )


def example_task() -> Task:
    """Return the built-in task of `suture run --example`."""
    return build_write_task(
        "def merge_intervals(intervals):\n"
        '    """Merge the intervals that overlap or touch.\n\n'
        "    Intervals are [start, end] pairs with start <= end, in any order.\n"
        "    The result is sorted.\n\n"
        "    >>> merge_intervals([[6, 8], [1, 3], [2, 4]])\n"
        "    [[1, 4], [6, 8]]\n"
        "    >>> merge_intervals([[1, 2], [2, 3]])\n"
        "    [[1, 3]]\n"
        "    >>> merge_intervals([[1, 10], [2, 3]])\n"
        "    [[1, 10]]\n"
        "    >>> merge_intervals([])\n"
        "    []\n"
        '    """\n'
    )


def _path_in_sandbox(test: Path) -> str:
    """Return where the test file lies in the sandbox: as below the current folder, else by its bare name."""
    try:
        return test.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return test.name


def _with_conftest(test: Path, path: str) -> dict[str, bytes]:
    files = {path: read_bounded_file(test) or b""}
    conftest = read_bounded_file(test.parent / "conftest.py")
    if conftest is not None:
        files[str(Path(path).parent / "conftest.py")] = conftest
    return files


def build_call_task(
    statement: str,
    language: Language,
    *,
    test: Path | None,
    asserts: str = "",
    entry_point: str | None = None,
) -> Task:
    """Build a task to write one function in a language other than Python.

    Args:
        statement: Plain words or a signature. Calls in it that show their results become checks.
        language: The language to write.
        test: A test file that the language's own runner runs; it becomes a check too.
        asserts: Further calls with their results, one on each line.
        entry_point: The name of the function, where the statement does not say it.

    Raises:
        UsageError: Nothing shows what the code must do, the function cannot be called with plain data, or
            the test file does not belong to that language.
    """
    facts = LANGUAGES[language]
    header = FUNCTION_HEADER.search(statement)
    name = entry_point or (header[1] if header else None) or find_entry_point(statement)
    checks = _extract_call_checks(statement, asserts, language, name)
    if test is not None and (not is_test_file(test.name) or not test.name.endswith(facts.extensions)):
        raise UsageError(
            f"{test.name!r} is not the name of a test file in {facts.label}",
            remedy="name it as its test runner expects, such as x.test.js or x_test.go",
        )
    if test is None and not checks:
        call = f"a call of {name!r}" if name else "a function by its name"
        raise UsageError(
            f"nothing shows what the {facts.label} code must do: {call} with a plain result",
            remedy=f"add one, such as `{name or 'add'}(1, 2) => 3`, or give --test FILE; or make a --project",
        )
    tests = {test.name: read_test_file(test).encode()} if test is not None else {}
    manifest = facts.layout.manifest("library", "solution")
    return Task(
        statement=statement,
        language=language,
        module=facts.layout.module,
        entry_point=name,
        files={**tests, **{path: text.encode() for path, text in manifest.items()}},
        checks=checks,
        test_command=fill_placeholders(facts.layout.test_file_command, "", test.name)
        if test is not None
        else (),
        protected=DEFAULT_PROTECTED,
    )


def _extract_call_checks(
    statement: str, asserts: str, language: Language, name: str | None
) -> tuple[Check, ...]:
    """Return a check for each call with a result that the statement and the asserts show."""
    driver = LANGUAGES[language].calls
    if driver is None or name is None:
        return ()
    headers = [match[0] for match in FUNCTION_HEADER.finditer(statement) if match[1] == name]
    line = next((text for text in statement.splitlines() if headers and headers[0] in text), "")
    awaits = RETURNS_PROMISE.search(line) is not None
    given = extract_calls(asserts, name, driver, "user", awaits=awaits)
    if asserts.strip() and not given:
        raise UsageError(
            f"the asserts show no call of {name!r} with a plain result", remedy=f"such as `{name}(1, 2) => 3`"
        )
    checks = (*given, *extract_calls(statement, name, driver, awaits=awaits))
    if checks and (why := driver.explain_unsupported(statement, name)):
        raise UsageError(
            f"{name!r} cannot be called with plain data: {why}", remedy="give tests instead: --test FILE"
        )
    # An assert of the user replaces the same call in the statement: the first one of each id is kept.
    return tuple({check.id: check for check in reversed(checks)}.values())[::-1]
