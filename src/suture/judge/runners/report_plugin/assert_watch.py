"""Noticing what makes asserts of tests say nothing: failures that get lost, and names that `import *` replaces."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Collection
from types import BuiltinFunctionType
from typing import Any
from unittest import TestCase

from _pytest.assertion import rewrite
from _pytest.outcomes import Failed, OutcomeException

from .definitions import find_places
from .reach import ReachRecorder
from .rewriting import GUARD, NOTE_PASSED, NOTE_RAISED, NOTE_SKIPPED, rewrite_tests

CATCHING_CALLS = ("raises", "suppress", "assertRaises")
"""Parts of the names of context managers with which a test catches its own failed asserts."""
REPEATING_DECORATORS = ("given", "retry", "flaky", "rerun")
"""Parts of the names of decorators that run a test or a function of a test again after a failure."""


class FailedAsserts:
    """Sends a request when an assert of a test fails, before it raises.

    Pytest explains a failed assert, and unittest words its message, with functions that they look up each time. These
    are wrapped here. `raise AssertionError` in a test is rewritten, and `pytest.fail` makes an object of a class.

    Args:
        places: The places of assertions, by file and line, that are noted whenever they hold.

    Attributes:
        send: Sends a request to the audit hook, once there is one.
        noted_places: Those of the places at which there are assertions, in the files that are rewritten.
        recorder: Records which functions run, once there is one.
    """

    def __init__(self, places: Collection[tuple[str, int]]) -> None:
        self._places = places
        self.noted_places = set()  # type: set[tuple[str, int]]
        self.send: Callable[..., None] | None = None
        self.recorder: ReachRecorder | None = None
        self._explain = vars(rewrite)["_format_explanation"]
        vars(rewrite)["_format_explanation"] = _hide_owner(self.explain)
        self._rewrite = vars(rewrite)["rewrite_asserts"]
        vars(rewrite)["rewrite_asserts"] = _hide_owner(self.rewrite)
        vars(rewrite)[NOTE_RAISED] = _hide_owner(self.note_raised)
        vars(rewrite)[NOTE_SKIPPED] = _hide_owner(self.note_skipped)
        vars(rewrite)[NOTE_PASSED] = _hide_owner(self.note_passed)
        vars(rewrite)[GUARD] = _hide_owner(self.guard)
        self._make_outcome = OutcomeException.__init__
        OutcomeException.__init__ = self._wrap_outcome()  # type: ignore[method-assign]
        for name in ("fail", "_formatMessage"):
            setattr(TestCase, name, self._wrap(vars(TestCase)[name]))

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def send_first(*args: Any, **named: Any) -> Any:
            if self.send is not None:
                self.send("failed_assert")
            return function(*args, **named)

        return send_first

    def _wrap_outcome(self) -> Callable[..., None]:
        def note_failure(outcome: Any, *args: Any, **named: Any) -> None:
            if self.send is not None and isinstance(outcome, Failed):
                self.send("failed_assert")
            self._make_outcome(outcome, *args, **named)

        return functools.wraps(self._make_outcome)(note_failure)

    def rewrite(self, module: ast.Module, source: Any, path: Any = None, *more: Any, **named: Any) -> None:
        """Rewrite a test module as pytest does, and so that it notes asserts that get lost."""
        # Pytest adds no imports to a module that asks not to be rewritten.
        is_rewritten = "PYTEST_DONT_REWRITE" not in (ast.get_docstring(module, clean=False) or "")
        if self.recorder is not None:
            self.recorder.pause()
        try:
            if is_rewritten:
                lines = [line for file, line in self._places if file == str(path)]
                module, noted_lines = rewrite_tests(module, lines)
                self.noted_places.update((str(path), line) for line in noted_lines)
            self._rewrite(module, source, path, *more, **named)
        finally:
            if self.recorder is not None:
                self.recorder.resume()

    def note_raised(self, error: Any) -> Any:
        """Return what a test is about to raise."""
        if self.send is not None:
            self.send("failed_assert")
        return error

    def note_skipped(self, *makers: Any) -> None:
        """Note that an exception passed over an assert, and that a context manager swallowed it.

        Args:
            makers: The manager, and the function or class that returned it.
        """
        if self.send is not None:
            self.send("skipped_assert", [place for maker in makers for place in find_places(maker)])

    def note_passed(self, line: int) -> None:
        """Note that an assertion holds whose place was asked for."""
        if self.send is not None:
            self.send("passed_assert", line)

    def guard(self, function: Any) -> Any:
        """Return a function that notes if the candidate's code ends an iteration of a test with `StopIteration`."""
        if not callable(function) or isinstance(function, BuiltinFunctionType):
            return function
        return GuardedFunction(function, self._note_stopped)

    def _note_stopped(self, error: StopIteration) -> None:
        if self.send is not None:
            self.send("failed_assert", error)

    def explain(self, explanation: str) -> str:
        """Return pytest's explanation of a failed assert."""
        if self.send is not None:
            self.send("failed_assert")
        return str(self._explain(explanation))


def _hide_owner(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a method, but does not lead to its object: code under test could silence that."""
    return lambda *args, **named: method(*args, **named)


class GuardedFunction:
    """A function that notes if it raises `StopIteration`. Its copies, and what another process gets, are plain."""

    __slots__ = ("_function", "_note")

    def __init__(self, function: Callable[..., Any], note: Callable[[StopIteration], None]) -> None:
        self._function, self._note = function, _hide_owner(note)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function."""
        __tracebackhide__ = True
        try:
            return self._function(*args, **named)
        except StopIteration as error:
            self._note(error)
            raise

    def __reduce__(self) -> Any:
        return functools.partial, (self._function,)


class CatchingLines:
    """Finds the lines of test files whose failures the test itself catches or repeats."""

    def __init__(self) -> None:
        self._spans = {}  # type: dict[str, list[tuple[int, int]]]

    def contain(self, path: str, line: int) -> bool:
        """Whether a line is in a `try` with handlers, a catching `with`, or a function that is repeated."""
        if path not in self._spans:
            self._spans[path] = _find_catching_spans(read_text(path))
        return any(first <= line <= last for first, last in self._spans[path])


def _find_catching_spans(text: str) -> list[tuple[int, int]]:
    """Return (first line, last line) of each block in which a failure does not fail the test yet."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return [(1, len(text))]
    lines = text.splitlines()
    spans = []
    for node in ast.walk(tree):
        body = []  # type: Any
        if isinstance(node, ast.Try) and node.handlers:
            body = node.body
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            head = "\n".join(lines[node.lineno - 1 : node.body[0].lineno])
            body = node.body if any(name in head for name in CATCHING_CALLS) else []
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            head = "\n".join(lines[first - 1 : node.lineno - 1])
            body = node.body if any(name in head for name in REPEATING_DECORATORS) else []
        if body:
            spans.append((body[0].lineno, body[-1].end_lineno or body[-1].lineno))
    return spans


def find_replaceable_names(path: str) -> frozenset[str]:
    """Return the names that a test file uses as builtins or imports by name, if it also has an `import *`."""
    text = read_text(path)
    if "import *" not in text:
        return frozenset()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in imports
        for alias in node.names
        if alias.name != "*"
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(imported | (used & vars(builtins).keys()))


def read_text(path: str) -> str:
    """Return the content of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
