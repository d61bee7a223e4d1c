"""Signs that a change games the tests: it names their literals, removes behaviour, or hides exceptions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from suture.mutation.python.python_tree import FUNCTIONS
from suture.project.python_source.parsing import first_line, parse_module

TamperingCode = Literal[
    "compares_with_test_literals",
    "dead_code",
    "calls_removed",
    "raise_removed",
    "hides_exceptions",
    "names_unused",
    "statement_removed",
]

COMMON_VALUES = (0, 1, 2, -1, "", None, True, False)
"""Values that occur in any code. Comparing with one of them does not show that an answer was hard-coded."""
PURE_BUILTINS = frozenset(
    ("abs", "bool", "float", "hash", "id", "int", "isinstance", "len", "ord", "repr", "str", "type")
)
"""Builtins that give the same answer for the same argument and leave the argument as it is."""
BROAD_EXCEPTIONS = ("Exception", "BaseException")
EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True, kw_only=True)
class TamperingWarning:
    """One sign that a change games the tests.

    Attributes:
        code: The kind of sign.
        names: The literals, functions or variables that it is about, sorted; empty for the other codes.
    """

    code: TamperingCode
    names: tuple[str, ...] = ()


def render_tampering_warning(warning: TamperingWarning) -> str:
    """Return a warning as text that continues a file name: `prices.py: no longer raises`."""
    names = ", ".join(warning.names)
    texts: dict[TamperingCode, str] = {
        "compares_with_test_literals": f"compares with {names}, which the tests use",
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
        before: The source before the change.
        after: The source with the change.
        test_literals: Literals of the tests, as returned by `collect_literals`.
    """
    whole_old, whole_new = parse_module(before), parse_module(after)
    if whole_old is None or whole_new is None:
        return ()
    own = {
        node.name for tree in (whole_old, whole_new) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    old, new = _differing_parts(whole_old, before, whole_new, after)
    named = (_compared_literals(new) - _compared_literals(whole_old)) & test_literals
    lost_calls = _count_own_calls(own, old) - _count_own_calls(own, new)
    # What reads a name may be anywhere in the file, so the whole trees are compared here.
    unread = _find_unread_names(whole_new) - _find_unread_names(whole_old)
    found: list[TamperingWarning] = []
    if named:
        found.append(TamperingWarning(code="compares_with_test_literals", names=tuple(sorted(named))))
    if count_dead_code(new) > count_dead_code(old):
        found.append(TamperingWarning(code="dead_code"))
    if lost_calls:
        found.append(TamperingWarning(code="calls_removed", names=tuple(sorted(lost_calls))))
    if _count_nodes(new, (ast.Raise,)) < _count_nodes(old, (ast.Raise,)):
        found.append(TamperingWarning(code="raise_removed"))
    if _count_hiding_handlers(new) > _count_hiding_handlers(old):
        found.append(TamperingWarning(code="hides_exceptions"))
    if unread:
        found.append(TamperingWarning(code="names_unused", names=tuple(sorted(unread))))
    if _count_nodes(new, (ast.stmt,)) < _count_nodes(old, (ast.stmt,)):
        found.append(TamperingWarning(code="statement_removed"))
    return tuple(found)


def _differing_parts(
    old: ast.Module, before: str, new: ast.Module, after: str
) -> tuple[ast.Module, ast.Module]:
    """Return both modules without the functions and statements that they share.

    In a long file nearly everything is shared, and walking the shared part twice would be slow.
    """
    ours, theirs = dict(_pieces(old, before)), dict(_pieces(new, after))
    return _module_of_unshared(ours, theirs), _module_of_unshared(theirs, ours)


def _module_of_unshared(
    pieces: Mapping[tuple[str, int], ast.stmt], shared: Container[tuple[str, int]]
) -> ast.Module:
    return ast.Module(body=[node for key, node in pieces.items() if key not in shared], type_ignores=[])


def _pieces(tree: ast.Module, text: str) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Yield functions, statements and class heads, each with its source lines and its number among equals."""
    lines, seen = text.split("\n"), Counter[str]()
    for node in _iter_statements(tree.body):
        inner = [first_line(child) for child in node.body] if isinstance(node, ast.ClassDef) else []
        last = min(inner, default=(node.end_lineno or node.lineno) + 1)
        key = "\n".join(lines[first_line(node) - 1 : last - 1])
        seen[key] += 1
        head = ast.ClassDef(**{**dict(ast.iter_fields(node)), "body": []}) if inner else node
        yield (key, seen[key]), head


def _iter_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _iter_statements(node.body)


def collect_literals(sources: Iterable[str]) -> frozenset[str]:
    """Return the `repr` of each literal in some sources, without those that any code uses, such as 0 or 1."""
    found: set[str] = set()
    for source in sources:
        tree = parse_module(source)
        if tree is not None:
            found |= {repr(node.value) for node in ast.walk(tree) if _is_specific(node)}
    return frozenset(found)


def _is_specific(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and node.value not in COMMON_VALUES


def _compared_literals(tree: ast.AST) -> set[str]:
    """Return the literals that the code compares something with."""
    found = set()
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
            sides = [*getattr(node.value, "keys", ())]
        found |= {repr(s.value) for s in sides if isinstance(s, ast.Constant) and _is_specific(s)}
    return found


def _count_own_calls(own: Container[str], tree: ast.AST) -> Counter[str]:
    """Count the calls of functions that the source itself defines."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            names[name] += name in own
    return +names


def _count_nodes(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(tree))


def _count_hiding_handlers(tree: ast.AST) -> int:
    """Count handlers that catch everything and handlers that do nothing; one that is both counts twice."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            named = ast.unparse(node.type) if node.type is not None else "BaseException"
            count += named in BROAD_EXCEPTIONS
            count += all(isinstance(s, (ast.Pass, ast.Continue)) for s in node.body)
    return count


def _find_unread_names(tree: ast.AST) -> set[str]:
    """Return variables and parameters that nothing reads."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    set_here = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    set_here |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {name for name in set_here - read if not name.startswith("_")}


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
        first = next((n for n, statement in enumerate(block) if isinstance(statement, EXITS)), len(block))
        for statement in block[first + 1 :]:
            inner = ast.walk(statement)
            count += not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in inner)
    return count


def _has_constant_condition(node: ast.AST) -> bool:
    """Return whether part of a condition has a known truth: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _has_known_truth(node.test)
    if isinstance(node, ast.While):
        return _has_known_truth(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        same = len({ast.dump(value) for value in node.values}) < len(node.values)
        return same or any(_has_known_truth(value) for value in node.values[:-1])
    return False


def _has_known_truth(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _has_known_truth(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        alike = len({ast.dump(side) for side in sides}) < len(sides) and not _calls_impure(test)
        of_self = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return alike or of_self or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls_impure(node: ast.expr) -> bool:
    """Return whether an expression calls something that may answer differently next time; `len` does not."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(not (isinstance(call.func, ast.Name) and call.func.id in PURE_BUILTINS) for call in calls)
