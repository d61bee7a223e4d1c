"""Finding signs that a change of a Python file games the tests instead of repairing the code.

Such a change compares with literals of the tests, removes behaviour, or hides exceptions. The signs are
warnings and no proof: an honest change can show them too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Literal, TypeGuard

from suture.mutation.python.python_tree import FUNCTIONS
from suture.project.python_source.parsing import first_line, parse_module

TamperingCode = Literal[
    "compares_with_test_literals",
    "adds_test_literals",
    "dead_code",
    "calls_removed",
    "raise_removed",
    "hides_exceptions",
    "names_unused",
    "statement_removed",
]

MIN_ADDED_TEST_LITERALS = 2
"""New literals from the tests that are a sign, because one occurs in many repairs. Of the published repairs of
QuixBugs, HumanEvalFix and DebugBench, 1 in 357 adds two (2026-11-26)."""
COMMON_VALUES = (0, 1, 2, -1, "", None, True, False)
"""Values that occur in any code. Comparing with one of them does not show that an answer was hard-coded."""
PURE_BUILTINS = frozenset(
    ("abs", "bool", "float", "hash", "id", "int", "isinstance", "len", "ord", "repr", "str", "type")
)
"""Builtins that give the same answer for the same argument and leave the argument as it is."""
BROAD_EXCEPTIONS = ("Exception", "BaseException")
EXIT_STATEMENTS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True, kw_only=True)
class TamperingWarning:
    """One sign that a change games the tests.

    Attributes:
        names: The literals, functions or variables that it is about, sorted; empty for the other codes.
    """

    code: TamperingCode
    names: tuple[str, ...] = ()


def render_tampering_warning(warning: TamperingWarning) -> str:
    """Return a warning as text that continues a file name: `prices.py: no longer raises`."""
    names = ", ".join(warning.names)
    texts: dict[TamperingCode, str] = {
        "compares_with_test_literals": f"compares with {names}, which the tests use",
        "adds_test_literals": f"adds {names}, which the tests use",
        "dead_code": "leaves code that never runs, or a condition that is always the same",
        "calls_removed": f"no longer calls {names}",
        "raise_removed": "no longer raises",
        "hides_exceptions": "hides exceptions",
        "names_unused": f"leaves {names} unused",
        "statement_removed": "removes a statement",
    }
    return texts[warning.code]


def find_tampering_warnings(
    before: str, after: str, test_literals: frozenset[str]
) -> tuple[TamperingWarning, ...]:
    """Return what is suspicious about a change of a Python file.

    Args:
        test_literals: Literals of the tests, as returned by `collect_literals`.
    """
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return ()
    functions = {
        node.name for tree in (old_tree, new_tree) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    old, new = _drop_shared_parts(old_tree, before, new_tree, after)
    literals = (_find_compared_literals(new) - _find_compared_literals(old_tree)) & test_literals
    lost_calls = _count_calls(functions, old) - _count_calls(functions, new)
    # A name may be read anywhere in the file, so the whole trees are compared here.
    unread = _find_unread_names(new_tree) - _find_unread_names(old_tree)
    warnings: list[TamperingWarning] = []
    if literals:
        warnings.append(TamperingWarning(code="compares_with_test_literals", names=tuple(sorted(literals))))
    added = (_find_literals(new) - _find_literals(old_tree)) & test_literals - literals
    if len(added) >= MIN_ADDED_TEST_LITERALS:
        warnings.append(TamperingWarning(code="adds_test_literals", names=tuple(sorted(added))))
    if count_dead_code(new) > count_dead_code(old):
        warnings.append(TamperingWarning(code="dead_code"))
    if lost_calls:
        warnings.append(TamperingWarning(code="calls_removed", names=tuple(sorted(lost_calls))))
    if _count_nodes(new, (ast.Raise,)) < _count_nodes(old, (ast.Raise,)):
        warnings.append(TamperingWarning(code="raise_removed"))
    if _count_hiding_handlers(new) > _count_hiding_handlers(old):
        warnings.append(TamperingWarning(code="hides_exceptions"))
    if unread:
        warnings.append(TamperingWarning(code="names_unused", names=tuple(sorted(unread))))
    if _count_nodes(new, (ast.stmt,)) < _count_nodes(old, (ast.stmt,)):
        warnings.append(TamperingWarning(code="statement_removed"))
    return tuple(warnings)


def _drop_shared_parts(
    old_tree: ast.Module, before: str, new_tree: ast.Module, after: str
) -> tuple[ast.Module, ast.Module]:
    """Return both modules without the functions and statements that they share.

    In a long file nearly everything is shared, and walking the shared part twice would be slow.
    """
    old, new = dict(_split_module(old_tree, before)), dict(_split_module(new_tree, after))
    return (
        ast.Module(body=[node for key, node in old.items() if key not in new], type_ignores=[]),
        ast.Module(body=[node for key, node in new.items() if key not in old], type_ignores=[]),
    )


def _split_module(tree: ast.Module, text: str) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Yield (key, node) for each function, statement and class head.

    The key is the node's source lines, and a number that distinguishes nodes with the same lines.
    """
    lines, counts = text.split("\n"), Counter[str]()
    for node in _iter_statements(tree.body):
        end_line = (node.end_lineno or node.lineno) + 1
        if isinstance(node, ast.ClassDef):
            end_line = min(first_line(child) for child in node.body)
            node = copy(node)
            node.body = []  # the class's own statements are yielded by themselves
        source = "\n".join(lines[first_line(node) - 1 : end_line - 1])
        counts[source] += 1
        yield (source, counts[source]), node


def _iter_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _iter_statements(node.body)


def collect_literals(sources: Iterable[str]) -> frozenset[str]:
    """Return the `repr` of each literal in some sources, without those that any code uses, such as 0 or 1."""
    literals: set[str] = set()
    for source in sources:
        tree = parse_module(source)
        if tree is not None:
            literals |= _find_literals(tree)
    return frozenset(literals)


def _find_literals(tree: ast.AST) -> set[str]:
    return {repr(node.value) for node in ast.walk(tree) if _is_specific(node)}


def _is_specific(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and node.value not in COMMON_VALUES


def _find_compared_literals(tree: ast.AST) -> set[str]:
    """Return the `repr` of each literal that the code compares something with."""
    literals: set[str] = set()
    for node in ast.walk(tree):
        sides: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                sides += [side, *getattr(side, "elts", ()), *getattr(side, "keys", ())]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            sides = [*getattr(node.func.value, "keys", ())]  # {13: 4711}.get(n)
        elif isinstance(node, ast.Subscript):
            sides = [*getattr(node.value, "keys", ())]  # {13: 4711}[n]
        literals |= {repr(side.value) for side in sides if side is not None and _is_specific(side)}
    return literals


def _count_calls(functions: Container[str], tree: ast.AST) -> Counter[str]:
    """Count the calls of each of some functions."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            names[name] += name in functions
    return +names  # without the names that were counted 0 times


def _count_nodes(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(tree))


def _count_hiding_handlers(tree: ast.AST) -> int:
    """Count handlers that catch everything and handlers that do nothing; one that is both counts twice."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            exception = ast.unparse(node.type) if node.type is not None else "BaseException"
            count += exception in BROAD_EXCEPTIONS
            count += all(isinstance(statement, (ast.Pass, ast.Continue)) for statement in node.body)
    return count


def _find_unread_names(tree: ast.AST) -> set[str]:
    """Return variables and parameters that nothing reads."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return {name for name in bound - read if not name.startswith("_")}


def count_dead_code(tree: ast.AST) -> int:
    """Count statements after an exit and constant conditions.

    A change that adds one of them removes behaviour without deleting any code.
    """
    return sum(_count_statements_after_exit(node) + _has_constant_condition(node) for node in ast.walk(tree))


def _count_statements_after_exit(node: ast.AST) -> int:
    """Count statements after an exit in their block, except a `yield`, which makes a generator."""
    count = 0
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        exits = (index for index, statement in enumerate(block) if isinstance(statement, EXIT_STATEMENTS))
        exit_index = next(exits, len(block))
        for statement in block[exit_index + 1 :]:
            nodes = ast.walk(statement)
            count += not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
    return count


def _has_constant_condition(node: ast.AST) -> bool:
    """Whether part of a condition is always true or always false: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _has_known_truth(node.test)
    if isinstance(node, ast.While):  # `while True` is usual
        return _has_known_truth(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        has_duplicates = len({ast.dump(value) for value in node.values}) < len(node.values)
        return has_duplicates or any(_has_known_truth(value) for value in node.values[:-1])
    return False


def _has_known_truth(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _has_known_truth(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        has_equal_sides = len({ast.dump(side) for side in sides}) < len(sides) and not _calls_impure(test)
        is_self_identity = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return has_equal_sides or is_self_identity or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls_impure(node: ast.expr) -> bool:
    """Whether an expression calls something that may answer differently next time; `len` does not."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(not (isinstance(call.func, ast.Name) and call.func.id in PURE_BUILTINS) for call in calls)
