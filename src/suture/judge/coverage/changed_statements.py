"""Find the statements that a change touched: tests should run them, and mutants are made from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import changed_ranges


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
        before: The file's text; empty for a new file.
        after: The file's text after the change; text that is not Python has no statements.
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
