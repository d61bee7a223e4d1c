"""Find special cases that a change adds: equality tests of what a function is given with a value of the tests.

The rule is the same in all languages. Each language lists its own comparisons.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from suture.judge.signs.test_values import is_specific
from suture.project.python_source.scopes import FUNCTIONS


@dataclass(frozen=True, kw_only=True)
class LiteralComparison:
    """A comparison of an expression that uses variables of its function with literals.

    Attributes:
        subject: Text that is equal for equal expressions, such as the source of `slot.start.minute`.
        literals: The literals that are rare in code, each in the form in which the other signs name it.
        line: The line of the first literal, from 1.
        is_equality: Whether it is a test for equality, inequality or membership.
        is_parameter: Whether the expression is only the name of a parameter.
        is_length: Whether the expression is a length.
    """

    subject: str
    literals: tuple[str, ...]
    line: int
    is_equality: bool
    is_parameter: bool
    is_length: bool

    def tests_values(self, literals: Container[str], lengths: Container[str]) -> bool:
        """Return whether it is an equality test with values, or lengths of values, of the tests and with no others."""
        return self.is_equality and all(
            literal in literals or (self.is_length and literal in lengths) for literal in self.literals
        )


def find_special_cases(
    *,
    added: Iterable[LiteralComparison],
    removed: Iterable[LiteralComparison],
    known: Iterable[LiteralComparison],
    literals: Container[str],
    lengths: Container[str] = (),
) -> dict[str, int]:
    """Return the literals of the tests for which a change adds an equality test, each with its line.

    The file may compare something else with the same literal already, as `due.weekday() > 5` where the change adds
    `if days == 5`. A comparison that only replaces one with the same literal is an ordinary repair, and a literal with
    which the file tested for equality before has a meaning of its own. None of 610 reference repairs of QuixBugs,
    HumanEvalFix and DebugBench adds such a test of a parameter; because of tests of other expressions, 2 more of 699
    commits of arrow and Jinja show the sign (2026-11-29).

    Args:
        added: The comparisons of the changed parts of the file after the change.
        removed: Those of the changed parts before it.
        known: Those of the whole file before it.
        literals: The literals of the tests that count.
        lengths: The lengths of the tests' values, as literals.
    """
    added = [*added]
    wanted = [case for case in added if case.tests_values(literals, lengths)]
    if not wanted:
        return {}
    known = [*known]
    pairs = {(case.subject, literal) for case in known for literal in case.literals}
    tested = {(case.is_parameter, literal) for case in known if case.is_equality for literal in case.literals}
    increased = _count_literals(added) - _count_literals(removed)
    found: dict[str, int] = {}
    for case in wanted:
        for literal in case.literals:
            is_known = (case.subject, literal) in pairs or (True, literal) in tested
            is_known = is_known or (not case.is_parameter and (False, literal) in tested)
            if literal in increased and not is_known:
                found[literal] = min(case.line, found.get(literal, case.line))
    return found


def _count_literals(comparisons: Iterable[LiteralComparison]) -> Counter[str]:
    return Counter(literal for case in comparisons for literal in case.literals)


def iter_python_comparisons(tree: ast.AST) -> Iterator[LiteralComparison]:
    """Yield the comparisons of the functions of a Python file with literals that are rare in code."""
    for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
        parameters = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
        nodes = [*ast.walk(function)]
        variables = parameters | {
            node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for sides, is_equality in (pair for node in nodes for pair in _iter_compared(node)):
            values = [part for side in sides for part in (side, *getattr(side, "elts", ()))]
            literals = [
                value for value in values if isinstance(value, ast.Constant) and is_specific(value.value)
            ]
            for side in sides if literals else ():
                if any(isinstance(part, ast.Name) and part.id in variables for part in ast.walk(side)):
                    yield LiteralComparison(
                        subject=_render_expression(side),
                        literals=tuple(repr(literal.value) for literal in literals),
                        line=literals[0].lineno,
                        is_equality=is_equality,
                        is_parameter=isinstance(side, ast.Name) and side.id in parameters,
                        is_length=is_length(side),
                    )


def _iter_compared(node: ast.AST) -> Iterator[tuple[list[ast.expr], bool]]:
    """Yield what a node compares with each other, and whether it tests for equality; nothing for most nodes."""
    if isinstance(node, ast.Compare):
        equality = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
        yield [node.left, *node.comparators], any(isinstance(sign, equality) for sign in node.ops)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            values = [part.value for part in ast.walk(case.pattern) if isinstance(part, ast.MatchValue)]
            yield [node.subject, *values], True


def _render_expression(node: ast.expr) -> str:
    """Return the names, literals and kinds of the nodes of an expression; `ast.unparse` fails for long sums."""
    return " ".join(
        repr(part.value)
        if isinstance(part, ast.Constant)
        else getattr(part, "id", getattr(part, "attr", type(part).__name__))
        for part in ast.walk(node)
    )


def is_length(node: ast.expr) -> bool:
    """Return whether an expression is a call of `len`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
