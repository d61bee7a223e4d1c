"""Noticing what makes asserts of tests say nothing: failures that get lost, and names that `import *` replaces."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from _pytest.assertion import rewrite

CAUGHT_BY_TESTS = "AssertionError"
"""A test file that names this may catch its own failed asserts."""


class FailedAsserts:
    """Sends a request when an assert of a test fails, before it raises.

    Pytest explains a failed assert with a function that it looks up each time, which is wrapped here.

    Attributes:
        send: Sends a request to the audit hook, once there is one.
    """

    def __init__(self) -> None:
        self.send: Callable[..., None] | None = None
        self._explain = vars(rewrite)["_format_explanation"]
        vars(rewrite)["_format_explanation"] = self.explain

    def explain(self, explanation: str) -> str:
        """Return pytest's explanation of a failed assert."""
        if self.send is not None:
            self.send("failed_assert")
        return str(self._explain(explanation))


def catches_failures(path: str) -> bool:
    """Whether a test file may catch its own failed asserts."""
    return CAUGHT_BY_TESTS in _read(path)


def find_replaceable_names(path: str) -> frozenset[str]:
    """Return the names that a test file uses as builtins or imports by name, if it also has an `import *`."""
    text = _read(path)
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


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
