"""Recording facts about a failed test: the exception, the test's statement, the project's line."""

from __future__ import annotations

import ast
import linecache
import os
import textwrap
from typing import Any

from .plain_values import render_pair, render_value
from .time_limits import TestTimeout, TimeLimits

MAX_TEXT_CHARS = 4000
"""Maximum number of characters of each reported string. Chosen by judgement; not measured."""
MAX_FRAMES = 12
"""Frames of a traceback that are reported, the innermost ones. Chosen by judgement; not measured."""
MAX_INPUTS = 12
"""Parameters and arguments that are reported. Chosen by judgement; not measured."""
UNITTEST_PAIRS = (("first", "second"), ("expr1", "expr2"), ("member", "container"))
"""The names under which unittest's assert methods hold the values that they compare."""
PLUGIN_FOLDER = os.path.dirname(__file__)


class FailureFacts:
    """Extracts facts from exceptions while their tracebacks exist."""

    def __init__(self, root: str, limits: TimeLimits) -> None:
        self._root = root
        self._limits = limits
        self._statements = Statements()
        self._compared = None  # type: Any
        self._sides = ()  # type: tuple[int, ...]

    def note_comparison(self, left: Any, right: Any) -> None:
        """Remember the values of a comparison that an assert made, and that did not hold."""
        self._compared = render_pair(left, right)
        self._sides = (id(left), id(right))  # the objects themselves must not be kept alive

    def forget_comparison(self) -> None:
        """Forget the comparison, because another test begins."""
        self._compared = None
        self._sides = ()

    def extract(self, item: Any, excinfo: Any) -> dict[str, Any]:
        """Return type and message of an exception, the project's frames in its traceback, and the input."""
        test_file = get_test_file(item)
        text = str(excinfo.value)[:MAX_TEXT_CHARS]
        fact = {"type": excinfo.type.__name__, "text": text, "file": "", "line": None}
        steps = _list_steps(excinfo.tb)
        fact["frames"] = self._list_frames(steps)
        fact["inputs"] = self._list_inputs(item, steps)
        compared = _find_unittest_pair(steps) or self._compared
        if compared is not None and isinstance(excinfo.value, AssertionError):
            fact["compared"] = compared
        if is_doctest(item):
            fact.update(self._describe_example(excinfo.value))
        for path, line, _ in steps:
            if path == test_file:
                fact["statement"] = self._statements.find_statement(path, line)[:MAX_TEXT_CHARS]
            elif self.is_project_file(path):
                fact["file"], fact["line"] = self._get_path(path), line
        if isinstance(excinfo.value, TestTimeout):
            fact["timeout_s"] = self._limits.limit_s
        if isinstance(excinfo.value, SyntaxError) and self.is_project_file(str(excinfo.value.filename)):
            fact["file"] = self._get_path(str(excinfo.value.filename))
            fact["line"] = excinfo.value.lineno
        return fact

    def _list_frames(self, steps: list[tuple[str, int, Any]]) -> list[list[Any]]:
        """Return [path, line, function] of the frames in files of the project and its tests, outermost first."""
        inside = [step for step in steps if self._is_inside(step[0])][-MAX_FRAMES:]
        return [[self._get_path(path), line, frame.f_code.co_name] for path, line, frame in inside]

    def _list_inputs(self, item: Any, steps: list[tuple[str, int, Any]]) -> dict[str, str]:
        """Return the test's parameters, the variables in its failed statement, and the arguments of the
        innermost frame in the project's code.
        """
        values = dict(getattr(getattr(item, "callspec", None), "params", {}))
        test_file = get_test_file(item)
        frames = []
        for path, line, frame in steps:
            if path == test_file:
                names = _find_names(self._statements.find_statement(path, line))
                held = frame.f_locals
                values.update((name, held[name]) for name in names if name in held)
            elif self.is_project_file(path):
                frames.append(frame)
        if frames:
            code = frames[-1].f_code
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            held = frames[-1].f_locals
            values.update((name, held[name]) for name in names if name in held and name not in values)
        # The two sides of the failed comparison are reported as well.
        others = [(name, value) for name, value in values.items() if id(value) not in self._sides]
        texts = ((str(name), render_value(value)) for name, value in others[:MAX_INPUTS])
        return {name: text for name, text in texts if text}

    def _describe_example(self, fault: Any) -> dict[str, Any]:
        """Return the docstring example that failed: its source, the expected and the actual output."""
        failure = (getattr(fault, "failures", None) or [fault])[0]
        if not hasattr(failure, "example"):
            return {}
        example, actual = failure.example, str(getattr(failure, "got", ""))[:MAX_TEXT_CHARS]
        reported: dict[str, Any] = {"example": [example.source, example.want, actual]}
        if hasattr(failure, "exc_info"):
            kind, value, trace = failure.exc_info
            reported.update(type=kind.__name__, text=str(value)[:MAX_TEXT_CHARS])
            while trace is not None:
                path = trace.tb_frame.f_code.co_filename
                if self.is_project_file(path):
                    reported.update(file=self._get_path(path), line=trace.tb_lineno)
                trace = trace.tb_next
        return reported

    def is_project_file(self, path: str) -> bool:
        """Whether a file belongs to the project and is not a test file by its name."""
        name = os.path.basename(path)
        is_test = name.startswith(("test_", "conftest")) or name.endswith("_test.py")
        return self._is_inside(path) and not is_test

    def _get_path(self, path: str) -> str:
        """Return the path of a file in the project; a link to its folder is resolved."""
        return os.path.relpath(os.path.realpath(path), os.path.realpath(self._root))

    def _is_inside(self, path: str) -> bool:
        # The project's folder may contain an environment with installed packages.
        is_inside = path.startswith(self._root + os.sep) and "site-packages" not in path
        return is_inside and os.path.dirname(path) != PLUGIN_FOLDER


def _list_steps(trace: Any) -> list[tuple[str, int, Any]]:
    """Return (path, line, frame) of each step of a traceback, outermost first.

    Each frame is read once, because the audit hook looks at every reading.
    """
    steps = []
    while trace is not None:
        frame = trace.tb_frame
        name = frame.f_code.co_filename
        path = os.path.abspath(name)
        # The name of code that was not read from a file, such as `<string>`, is no path.
        steps.append((path if os.path.isabs(name) or os.path.exists(path) else name, trace.tb_lineno, frame))
        trace = trace.tb_next
    return steps


def _find_names(statement: str) -> list[str]:
    """Return the names in a statement; none if it does not parse on its own, as the head of a `with`."""
    try:
        tree = ast.parse(textwrap.dedent(statement))
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _find_unittest_pair(steps: list[tuple[str, int, Any]]) -> Any:
    """Return the two values, as source, that an assert method of unittest compared; `None` if there is none."""
    for _, _, frame in steps:
        if frame.f_globals.get("__name__") != "unittest.case":
            continue
        for left, right in UNITTEST_PAIRS:
            if left in frame.f_locals and right in frame.f_locals:
                return render_pair(frame.f_locals[left], frame.f_locals[right])
    return None


class Statements:
    """Finds statements in files; each file is parsed once."""

    def __init__(self) -> None:
        self._spans = {}  # type: dict[str, list[tuple[int, int]]]

    def find_statement(self, path: str, line: int) -> str:
        """Return the statement around a line; of a compound statement only its head."""
        if path not in self._spans:
            self._spans[path] = _find_spans("".join(linecache.getlines(path)))
        enclosing = [span for span in self._spans[path] if span[0] <= line <= span[1]]
        first, last = max(enclosing, default=(line, line))  # the innermost statement begins last
        return "".join(linecache.getlines(path)[first - 1 : last])


def _find_spans(source: str) -> list[tuple[int, int]]:
    """Return (first line, last line) of each statement; of a compound statement those of its head."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            spans.append((node.lineno, last))
    return spans


def get_test_file(item: Any) -> str:
    """Return the path of a test's file, with any version of pytest."""
    return str(getattr(item, "path", None) or item.fspath)


def is_doctest(item: Any) -> bool:
    """Whether a test consists of the examples of a docstring."""
    return hasattr(item, "dtest")
