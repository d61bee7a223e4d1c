"""Noticing what makes asserts of tests say nothing: failures that get lost, and names that `import *` replaces."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable
from typing import Any
from unittest import TestCase

from _pytest.assertion import rewrite

CATCHING_WORDS = (
    "AssertionError", "except", "suppress", "raises", "assertRaises", "retry", "flaky", "eventually", "hypothesis",
)  # fmt: skip
"""Words, one of which occurs in a test file that may catch its own failed asserts, or repeat them."""


class FailedAsserts:
    """Sends a request when an assert of a test fails, before it raises.

    Pytest explains a failed assert, and unittest words its message, with functions that they look up each time. These
    are wrapped here.

    Attributes:
        send: Sends a request to the audit hook, once there is one.
    """

    def __init__(self) -> None:
        self.send: Callable[..., None] | None = None
        self._explain = vars(rewrite)["_format_explanation"]
        vars(rewrite)["_format_explanation"] = self.explain
        for name in ("fail", "_formatMessage"):
            setattr(TestCase, name, self._wrap(vars(TestCase)[name]))

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def send_first(*args: Any, **named: Any) -> Any:
            if self.send is not None:
                self.send("failed_assert")
            return function(*args, **named)

        return send_first

    def explain(self, explanation: str) -> str:
        """Return pytest's explanation of a failed assert."""
        if self.send is not None:
            self.send("failed_assert")
        return str(self._explain(explanation))


def catches_failures(path: str, *, by_name: bool) -> bool:
    """Whether a test file may catch its own failed asserts.

    Args:
        by_name: Whether only a file counts that names the exception.
    """
    text = _read(path)
    return any(word in text for word in (CATCHING_WORDS[:1] if by_name else CATCHING_WORDS))


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
