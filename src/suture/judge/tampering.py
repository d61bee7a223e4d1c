"""Signs that a change games the tests: it names their literals, takes behaviour away, or hides exceptions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TypeGuard

from suture.mutation.python.python_tree import FUNCTIONS
from suture.project.python_source.parsing import first_line, parsed

COMMON = (0, 1, 2, -1, "", None, True, False)
"""Values of any code: one of these beside a test's own shows no answer learned by heart."""
STEADY = ("abs", "bool", "float", "hash", "id", "int", "isinstance", "len", "ord", "repr", "str", "type")
"""What answers the same of the same, and leaves it as it is."""
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
    """Handlers that catch everything, and such as do nothing; one that is both counts twice."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            named = ast.unparse(node.type) if node.type is not None else "BaseException"
            count += named in BROAD
            count += all(isinstance(s, (ast.Pass, ast.Continue)) for s in node.body)
    return count


def _unread(tree: ast.AST) -> set[str]:
    """Variables and parameters that nothing reads."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    set_here = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    set_here |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {name for name in set_here - read if not name.startswith("_")}


EXITS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def dead_parts(tree: ast.AST) -> int:
    """How many there are of both: a change that adds one takes behaviour away without deleting it."""
    return sum(_behind_exits(node) + _is_settled(node) for node in ast.walk(tree))


def _behind_exits(node: ast.AST) -> int:
    """Statements behind an exit in the same block; a `yield` there makes the function a generator."""
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


def _is_settled(node: ast.AST) -> bool:
    """Whether a condition has a part whose truth is known: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _truth_known(node.test)
    if isinstance(node, ast.While):
        return _truth_known(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        same = len({ast.dump(value) for value in node.values}) < len(node.values)
        return same or any(_truth_known(value) for value in node.values[:-1])
    return False


def _truth_known(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _truth_known(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        alike = len({ast.dump(side) for side in sides}) < len(sides) and not _calls(test)
        of_self = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return alike or of_self or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls(node: ast.expr) -> bool:
    """Whether it calls what may answer otherwise the next time; `len` does not."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(not (isinstance(call.func, ast.Name) and call.func.id in STEADY) for call in calls)
