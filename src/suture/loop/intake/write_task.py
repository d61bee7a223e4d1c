"""Build a task to write new code from a statement, tests and asserts."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from suture.core.records import Check, Language, Task
from suture.errors import UsageError
from suture.judge import extract_asserts, extract_calls, extract_examples
from suture.judge.extraction.call_examples import parse_call
from suture.loop.intake.test_subject import (
    asks_for_several_files,
    find_new_modules,
    find_requested_files,
    find_tested_module,
    is_pytest_source,
    read_bounded_file,
    read_test_file,
)
from suture.loop.tuning import MAX_CALL_CHARS
from suture.project.languages import LANGUAGES, fill_placeholders
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.statement_edits import Definition
from suture.project.workspace import DEFAULT_PROTECTED, is_test_file

DEFAULT_MODULE = "solution.py"
FUNCTION_HEADER_RE = re.compile(
    r"\b(?:function\*?|func(?:[ \t]*\([^)\n]*\))?|const)\s+([A-Za-z_$][\w$]*)\s*(?:[(<=\[:])(?P<rest>[^\n]*)"
)
"""The header of a function in JavaScript, TypeScript or Go."""
PROMISE_RE = re.compile(r"\basync\b|\bPromise\b")


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
        asserts: Plain asserts as source; for languages other than Python, calls with their results.
        entry_point: The function or class to write, if the statement does not name it.
        several: Whether the code may also go into files that the statement does not name.

    Raises:
        UsageError: The statement is empty, its examples contradict each other, or the test file cannot be used.
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
    examples = read_statement_examples(statement, name)
    if test is not None and is_pytest_source(source):
        path = _path_in_sandbox(test)
        module, imported_name = find_tested_module(source, path, test.resolve().parent)
        new_modules = find_new_modules(source, path, test.resolve().parent)
        extra_modules = tuple(dict.fromkeys(file for file in (*new_modules, *requested) if file != module))
        return Task(
            statement=statement,
            module=module,
            extra_modules=extra_modules,
            allows_more_files=several or bool(extra_modules),
            entry_point=entry_point or imported_name or name,
            files=_with_conftest(test, path),
            checks=(*extract_asserts(asserts, provenance="user"), *examples),
            test_command=("python", "-m", "pytest", "-q", path),
            protected=DEFAULT_PROTECTED,
        )
    # A test file without test functions consists of plain asserts.
    all_asserts = asserts if test is None else f"{asserts}\n{source}"
    user_checks = extract_asserts(all_asserts, provenance="user")
    if test is not None and not user_checks:
        raise UsageError(
            f"{str(test)!r} holds no test: neither a test function nor an assert",
            remedy="write one into it, such as: assert double(2) == 4",
        )
    module, *extra = requested or (DEFAULT_MODULE,)
    return Task(
        statement=statement,
        module=module,
        extra_modules=tuple(extra),
        allows_more_files=several,
        entry_point=name,
        checks=(*user_checks, *examples),
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
    """Return the path of the test file relative to the current folder; its bare name if it is elsewhere."""
    try:
        return test.resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return test.name


def _with_conftest(test: Path, path: str) -> dict[str, bytes]:
    """Return the test file at its path in the sandbox, and the `conftest.py` next to it."""
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
        test: A test file that the language's own runner runs; it becomes a check too.
        asserts: Further calls with their results, one on each line.
        entry_point: The name of the function, if the statement does not name it.

    Raises:
        UsageError: Nothing shows what the code must do, the examples of the statement contradict each other, the
            function cannot be called with plain data, or the test file does not belong to that language.
    """
    label, layout = LANGUAGES[language].label, LANGUAGES[language].layout
    header = FUNCTION_HEADER_RE.search(statement)
    name = entry_point or (header[1] if header else None) or find_entry_point(statement)
    checks = _extract_call_checks(statement, asserts, language, name)
    files = {path: text.encode() for path, text in layout.manifest("library", "solution").items()}
    command: tuple[str, ...] = ()
    if test is not None:
        if not is_test_file(test.name) or not test.name.endswith(LANGUAGES[language].extensions):
            raise UsageError(
                f"{test.name!r} is not the name of a test file in {label}",
                remedy="name it as its test runner expects, such as x.test.js or x_test.go",
            )
        files = {test.name: read_test_file(test).encode(), **files}
        command = fill_placeholders(layout.test_file_command, "", test.name)
    elif not checks:
        call = f"a call of {name!r}" if name else "a function by its name"
        raise UsageError(
            f"nothing shows what the {label} code must do: {call} with a plain result",
            remedy=f"add one, such as `{name or 'add'}(1, 2) => 3`, or give --test FILE; or make a --project",
        )
    return Task(
        statement=statement,
        language=language,
        module=layout.module,
        entry_point=name,
        files=files,
        checks=checks,
        test_command=command,
        protected=DEFAULT_PROTECTED,
    )


def _extract_call_checks(
    statement: str, asserts: str, language: Language, name: str | None
) -> tuple[Check, ...]:
    """Return a check for each call with a result that the statement and the asserts show."""
    driver = LANGUAGES[language].calls
    if driver is None or name is None:
        return ()
    headers = [match[0] for match in FUNCTION_HEADER_RE.finditer(statement) if match[1] == name]
    header_line = next((line for line in statement.splitlines() if headers and headers[0] in line), "")
    awaits = PROMISE_RE.search(header_line) is not None
    user_checks = extract_calls(asserts, name, driver, "user", awaits=awaits)
    if asserts.strip() and not user_checks:
        raise UsageError(
            f"the asserts show no call of {name!r} with a plain result", remedy=f"such as `{name}(1, 2) => 3`"
        )
    examples = extract_calls(statement, name, driver, awaits=awaits)
    calls = ((check, parse_call(check.source, name, driver)) for check in examples)
    shown = ((check, repr(call.args) if call.args else "", call.expected) for check, call in calls if call)
    _require_consistent_examples(statement, shown)
    checks = (*user_checks, *examples)
    if checks and (reason := driver.explain_unsupported(statement, name)):
        raise UsageError(
            f"{name!r} cannot be called with plain data: {reason}", remedy="give tests instead: --test FILE"
        )
    checks_by_id: dict[str, Check] = {}
    for check in checks:  # An assert of the user replaces the same call in the statement.
        checks_by_id.setdefault(check.id, check)
    return tuple(checks_by_id.values())


def read_statement_examples(statement: str, entry_point: str | None = None) -> tuple[Check, ...]:
    """Return the examples of a statement as checks, as `extract_examples` does.

    Raises:
        UsageError: Two examples contradict each other.
    """
    examples = extract_examples(statement, entry_point)
    _require_consistent_examples(statement, ((check, *_read_equality(check.source)) for check in examples))
    return examples


def _require_consistent_examples(statement: str, examples: Iterable[tuple[Check, str, object]]) -> None:
    """Refuse a statement that shows the same call with two different results, because no code can pass both.

    A `>>>` session, or a call without arguments such as `next_id()`, may honestly show a result that changes.

    Args:
        examples: Each example with its call, which is empty for a call without arguments, and its result.

    Raises:
        UsageError: Two examples contradict each other.
    """
    results: dict[str, tuple[Check, object]] = {}
    for check, call, result in examples if ">>>" not in statement else ():
        first, first_result = results.setdefault(call, (check, result))
        if call and result != first_result:
            texts = [example.id.removeprefix("assert ") for example in (first, check)]
            raise UsageError(
                f"two examples of the task contradict each other: {texts[0]} and {texts[1]}",
                remedy="correct one of them; if the result may change from call to call, write a session with >>>",
            )


def _read_equality(source: str) -> tuple[str, object]:
    """Return the call and the result of a program that only asserts that a call has a literal result.

    The call is empty if it has no arguments, or if the program is another one.
    """
    tree = parse_module(source)
    match tree.body if tree else []:
        case [ast.Assert(test=ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[result]))]:
            has_arguments = bool(call.args or call.keywords)
            try:
                return ast.dump(call) if has_arguments else "", ast.literal_eval(result)
            except (ValueError, TypeError, RecursionError, MemoryError):  # no literal
                pass
    return "", None


NAME = r"([A-Za-z_]\w*)"
STUB_RE = re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+{NAME}[ \t]*\(", re.MULTILINE)
KIND = r"\b(?:function|method|class|def)"
INTRODUCED_NAME_RE = re.compile(
    rf"{KIND}\s+(?:called|named)\s+[`'\"]?{NAME}|\b(?:name it|call it|with (?:the )?name)\s+[`'\"]?{NAME}"
    rf"|\b(?:called|named)\s+[`'\"]{NAME}|{KIND}\s*:?\s+[`'\"]{NAME}|\b(?:class)\s+([A-Z]\w*)"
    rf"|\b(?:function|method)\s+([a-z]\w*_\w+)\b"
)
"""Phrases that introduce a name. A bare word after `function` counts only if it looks like an identifier."""
CALLED_NAME_RE = re.compile(rf"{KIND}\s+{NAME}\(|[`'\"]{NAME}\(")
CALL_RE = re.compile(rf"(?<![\w.]){NAME}\(")
RESULT_RE = re.compile(
    r"(?:\.\w+\([^()\n]*\))*[`'\"]?\s*(?:===?|->|=>|→|⇒|➞|(?:should |must |will )?(?:returns?|gives?)\b)"
)
"""What follows the closing bracket of a call whose result is shown: methods, a quote, and then an arrow, a
comparison or a verb.
"""
NOT_A_NAME_RE = re.compile(
    "[Pp]ython|a|after|an|at|before|by|each|every|its?|of|on|once|returning|takes|taking|that|the|this|to|twice|"
    "when|which"
)
"""Words that follow `function` or `called` in prose."""


def find_entry_point(statement: str) -> str | None:
    """Return the function or class to write: the last one of a stub, else the most likely name in the prose.

    The most likely name is one that is both introduced (`called NAME`) and called with a result
    (`NAME(1) == 2`). After that comes a name that is introduced, then one that is called with a result, then
    any that is called. Return `None` if there is no such name.
    """
    tree = parse_module(statement)
    names = [node.name for node in tree.body if isinstance(node, Definition)] if tree else []
    names = names or STUB_RE.findall(statement)
    if names:
        return str(names[-1])
    introduced = list(_find_names(INTRODUCED_NAME_RE, statement))
    before_call = list(_find_names(CALLED_NAME_RE, statement))
    calls = list(_find_calls(statement))
    with_result = [name for name, has_result in calls if has_result]
    both = [name for name in (*introduced, *before_call) if name in with_result]
    ranked = [*both, *introduced, *with_result, *before_call, *(name for name, _ in calls)]
    for name in ranked:
        # A statement often mentions built-in functions, and seldom asks for one.
        if not hasattr(builtins, name):
            return name
    return next(iter(with_result), None)


def _find_names(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        name = next(group for group in match.groups() if group)
        if not keyword.iskeyword(name) and not NOT_A_NAME_RE.fullmatch(name):
            yield name


def _find_calls(text: str) -> Iterator[tuple[str, bool]]:
    """Yield `(name, whether a result is shown)` for each call in the text."""
    for match in CALL_RE.finditer(text):
        if not keyword.iskeyword(match[1]):
            end = _find_closing_bracket(text, match.end())
            yield match[1], end is not None and RESULT_RE.match(text, end) is not None


def _find_closing_bracket(text: str, start: int) -> int | None:
    depth = 1
    for position in range(start, min(len(text), start + MAX_CALL_CHARS)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position + 1
    return None
