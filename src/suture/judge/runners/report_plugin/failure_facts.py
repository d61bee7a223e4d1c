"""What is noted of a test that failed: the exception, the statement of the test, the line of the project."""

from __future__ import annotations

import ast
import linecache
import os
from typing import Any

from .time_limits import NoEnd, TimeLimits

LONGEST = 4000
OURS = os.path.dirname(__file__)


class Facts:
    """Makes facts of exceptions while their tracebacks are there.

    Args:
        root: The project's folder.
        limits: What stopped a test that never ended.
    """

    def __init__(self, root: str, limits: TimeLimits) -> None:
        self._root = root
        self._limits = limits
        self._statements = Statements()

    def of(self, item: Any, excinfo: Any) -> dict[str, Any]:
        """Type and text of an exception, and the last line of the project that it went through."""
        test_file = file_of(item)
        text = str(excinfo.value)[:LONGEST]
        fact = {"type": excinfo.type.__name__, "text": text, "file": "", "line": None}
        if is_doctest(item):
            fact.update(self._example(excinfo.value))
        for entry in excinfo.traceback:
            path = str(entry.path)
            if path == test_file:
                fact["statement"] = self._statements.at(test_file, entry.lineno + 1)[:LONGEST]
            elif self.is_projects(path):
                fact["file"], fact["line"] = os.path.relpath(path, self._root), entry.lineno + 1
        if isinstance(excinfo.value, NoEnd):
            fact["no_end_s"] = self._limits.limit_s
        if isinstance(excinfo.value, SyntaxError) and self.is_projects(str(excinfo.value.filename)):
            fact["file"] = os.path.relpath(str(excinfo.value.filename), self._root)
            fact["line"] = excinfo.value.lineno
        return fact

    def _example(self, fault: Any) -> dict[str, Any]:
        """The example of a docstring that failed: what it runs, what it wants, what came."""
        wrong = (getattr(fault, "failures", None) or [fault])[0]
        if not hasattr(wrong, "example"):
            return {}
        reported: dict[str, Any] = {
            "example": [wrong.example.source, wrong.example.want, str(getattr(wrong, "got", ""))[:LONGEST]]
        }
        if hasattr(wrong, "exc_info"):
            kind, value, trace = wrong.exc_info
            reported.update(type=kind.__name__, text=str(value)[:LONGEST])
            while trace is not None:
                path = trace.tb_frame.f_code.co_filename
                if self.is_projects(path):
                    reported.update(file=os.path.relpath(path, self._root), line=trace.tb_lineno)
                trace = trace.tb_next
        return reported

    def is_projects(self, path: str) -> bool:
        """Whether a file is the project's, and none of its tests by its name."""
        inside = path.startswith(self._root + os.sep) and "site-packages" not in path
        name = os.path.basename(path)
        return (
            inside
            and os.path.dirname(path) != OURS
            and not name.startswith(("test_", "conftest"))
            and not name.endswith("_test.py")
        )


class Statements:
    """The statements of files; each file is parsed once."""

    def __init__(self) -> None:
        self._spans = {}  # type: dict[str, list[tuple[int, int]]]

    def at(self, path: str, line: int) -> str:
        """The statement that holds a line; of one with a body, its head."""
        if path not in self._spans:
            self._spans[path] = _spans_of("".join(linecache.getlines(path)))
        around = [span for span in self._spans[path] if span[0] <= line <= span[1]]
        first, last = max(around, default=(line, line))
        return "".join(linecache.getlines(path)[first - 1 : last])


def _spans_of(source: str) -> list[tuple[int, int]]:
    """First and last line of each statement; of one with a body, of its head."""
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


def file_of(item: Any) -> str:
    """The path of a test's file, for any version of pytest."""
    return str(getattr(item, "path", None) or item.fspath)


def is_doctest(item: Any) -> bool:
    """Whether a test is the examples of a docstring."""
    return hasattr(item, "dtest")
