"""Recording facts about a failed test: the exception, the test's statement, the project's line."""

from __future__ import annotations

import ast
import linecache
import os
from typing import Any

from .time_limits import TestTimeout, TimeLimits

MAX_TEXT_CHARS = 4000
"""Characters of each reported text. Chosen by judgement; not measured."""
PLUGIN_FOLDER = os.path.dirname(__file__)


class FailureFacts:
    """Extracts facts from exceptions while their tracebacks exist."""

    def __init__(self, root: str, limits: TimeLimits) -> None:
        self._root = root
        self._limits = limits
        self._statements = Statements()

    def extract(self, item: Any, excinfo: Any) -> dict[str, Any]:
        """Return type and text of an exception, and the last line of the project in its traceback."""
        test_file = get_test_file(item)
        text = str(excinfo.value)[:MAX_TEXT_CHARS]
        fact = {"type": excinfo.type.__name__, "text": text, "file": "", "line": None}
        if is_doctest(item):
            fact.update(self._describe_example(excinfo.value))
        for entry in excinfo.traceback:
            path = str(entry.path)
            if path == test_file:
                statement = self._statements.find_statement(test_file, entry.lineno + 1)
                fact["statement"] = statement[:MAX_TEXT_CHARS]
            elif self.is_project_file(path):
                fact["file"], fact["line"] = os.path.relpath(path, self._root), entry.lineno + 1
        if isinstance(excinfo.value, TestTimeout):
            fact["timeout_s"] = self._limits.limit_s
        if isinstance(excinfo.value, SyntaxError) and self.is_project_file(str(excinfo.value.filename)):
            fact["file"] = os.path.relpath(str(excinfo.value.filename), self._root)
            fact["line"] = excinfo.value.lineno
        return fact

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
                    reported.update(file=os.path.relpath(path, self._root), line=trace.tb_lineno)
                trace = trace.tb_next
        return reported

    def is_project_file(self, path: str) -> bool:
        """Whether a file belongs to the project and is not a test file by its name."""
        # The project's folder may contain an environment with installed packages.
        is_inside = path.startswith(self._root + os.sep) and "site-packages" not in path
        name = os.path.basename(path)
        return (
            is_inside
            and os.path.dirname(path) != PLUGIN_FOLDER
            and not name.startswith(("test_", "conftest"))
            and not name.endswith("_test.py")
        )


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
