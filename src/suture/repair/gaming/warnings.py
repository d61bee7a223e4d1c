"""Signs that a change games the tests: it names their literals, takes behaviour away, or hides exceptions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TypeGuard

from suture.pysource.parsing import first_line, parsed
from suture.repair.editing.view import FUNCTIONS
from suture.repair.gaming.dead_code import dead_parts

COMMON = (0, 1, 2, -1, "", None, True, False)
DEAD = "leaves code that never runs, or a condition that is always the same"
BROAD = ("Exception", "BaseException")


def warnings_about(before: str, after: str, test_literals: frozenset[str]) -> tuple[str, ...]:
    """What is suspicious about a change, in words; empty where nothing is.

    Args:
        before: The source as it was.
        after: The source with the change.
        test_literals: Literals of the tests, as `literals_of` gives them.
    """
    whole_old, whole_new = parsed(before), parsed(after)
    if whole_old is None or whole_new is None:
        return ()
    own = {
        node.name for tree in (whole_old, whole_new) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    old, new = _differing(whole_old, before, whole_new, after)
    found: list[str] = []
    named = (_compared(new) - _compared(whole_old)) & test_literals
    if named:
        found.append(f"compares with {', '.join(sorted(named))}, which the tests use")
    if dead_parts(new) > dead_parts(old):
        found.append(DEAD)
    lost = _calls_of(own, old) - _calls_of(own, new)
    if lost:
        found.append(f"no longer calls {', '.join(sorted(lost))}")
    if _count(new, (ast.Raise,)) < _count(old, (ast.Raise,)):
        found.append("no longer raises")
    if _swallowing(new) > _swallowing(old):
        found.append("hides exceptions")
    unread = _unread(whole_new) - _unread(whole_old)  # what reads a name may lie anywhere
    if unread:
        found.append(f"leaves {', '.join(sorted(unread))} unused")
    if _count(new, (ast.stmt,)) < _count(old, (ast.stmt,)):
        found.append("takes a statement away")
    return tuple(found)


def _differing(old: ast.Module, before: str, new: ast.Module, after: str) -> tuple[ast.Module, ast.Module]:
    """Both without the functions and statements that they share: of a long file nearly all."""
    ours, theirs = dict(_pieces(old, before)), dict(_pieces(new, after))
    return _module(ours, theirs), _module(theirs, ours)


def _module(pieces: Mapping[tuple[str, int], ast.stmt], shared: Container[tuple[str, int]]) -> ast.Module:
    return ast.Module(body=[node for key, node in pieces.items() if key not in shared], type_ignores=[])


def _pieces(tree: ast.Module, text: str) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Functions, statements and the heads of classes: each by its lines, and which of several alike it is."""
    lines, seen = text.split("\n"), Counter[str]()
    for node in _flat(tree.body):
        inner = [first_line(child) for child in node.body] if isinstance(node, ast.ClassDef) else []
        last = min(inner, default=(node.end_lineno or node.lineno) + 1)
        key = "\n".join(lines[first_line(node) - 1 : last - 1])
        seen[key] += 1
        head = ast.ClassDef(**{**dict(ast.iter_fields(node)), "body": []}) if inner else node
        yield (key, seen[key]), head


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _flat(node.body)


def literals_of(sources: Iterable[str]) -> frozenset[str]:
    """Literals of some sources that say something: no 0, 1, or empty text."""
    found: set[str] = set()
    for source in sources:
        tree = parsed(source)
        if tree is not None:
            found |= {repr(node.value) for node in ast.walk(tree) if _is_telling(node)}
    return frozenset(found)


def _is_telling(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and node.value not in COMMON


def _compared(tree: ast.AST) -> set[str]:
    """Literals with which something is compared."""
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
        found |= {repr(s.value) for s in sides if isinstance(s, ast.Constant) and _is_telling(s)}
    return found


def _calls_of(own: Container[str], tree: ast.AST) -> Counter[str]:
    """Calls of functions that the source itself defines."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            names[name] += name in own
    return +names


def _count(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(tree))


def _swallowing(tree: ast.AST) -> int:
    """Handlers that catch everything, or do nothing."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            named = ast.unparse(node.type) if node.type is not None else "BaseException"
            count += named in BROAD or all(isinstance(s, (ast.Pass, ast.Continue)) for s in node.body)
    return count


def _unread(tree: ast.AST) -> set[str]:
    """Variables and parameters that nothing reads."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    set_here = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    set_here |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {name for name in set_here - read if not name.startswith("_")}
