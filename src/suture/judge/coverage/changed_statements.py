"""The statements that a change touched: what tests should run, and what mutants are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.core.records import Language
from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import first_line, parsed
from suture.project.workspace import changed_ranges

NO_STATEMENT = "no statement of a Python file was changed, or only of one that is too large"


def why_unmeasured(language: Language) -> str:
    """Why a change that touches no statement is not measured: only what we parse has statements here."""
    facts = LANGUAGES[language]
    return NO_STATEMENT if facts.parsed else f"that is done for Python alone, and this is {facts.label}"


def changed_lines(before: str, after: str) -> frozenset[int]:
    """Lines of `after`, from 1, that `before` does not have; where lines went, those beside the gap.

    Args:
        before: The file's text before the change.
        after: The same file's text later.
    """
    old, new = before.split("\n"), after.split("\n")
    lines: set[int] = set()
    for _, _, start, end in changed_ranges(old, new):
        lines |= {start, start + 1} if start == end else set(range(start + 1, end + 1))
    return frozenset(lines) - {0}


def find_touched_statements(before: str, after: str) -> tuple[range, ...]:
    """The statements of a Python file that a change touched, each as its lines; docstrings are none.

    Of a statement with a body that is its head; an `except` and a `case` count as statements of their own.

    Args:
        before: The file's text; empty for a new file.
        after: Its text later; what is no Python has no statements.
    """
    tree = parsed(after)
    if tree is None:
        return ()
    lines = changed_lines(before, after)
    return tuple(spot for spot in sorted(_heads(tree), key=lambda s: s.start) if not lines.isdisjoint(spot))


def _heads(tree: ast.Module) -> Iterator[range]:
    for node in ast.walk(tree):
        if isinstance(node, ast.match_case):
            yield range(node.pattern.lineno, max(first_line(node.body[0]), node.pattern.lineno + 1))
        elif isinstance(node, ast.ExceptHandler):
            yield range(node.lineno, max(first_line(node.body[0]), node.lineno + 1))
        elif isinstance(node, ast.stmt) and not _is_docstring(node):
            inner = [child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            inner += [case.pattern.lineno for case in getattr(node, "cases", ())]
            last = min([(node.end_lineno or node.lineno) + 1, *inner])
            yield range(first_line(node), max(last, node.lineno + 1))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
