"""Rewriting test files so that an assert which fails or is passed over by an exception is noted."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

NOTE_RAISED, NOTE_SKIPPED, NOTE_PASSED = "_note_raised", "_note_skipped", "_note_passed"
GUARD = "_guard_function"
"""Names by which rewritten tests find functions in pytest's module for rewriting, which they import."""
STOPPED_BUILTINS = frozenset(("map", "filter"))
STOPPED_IN_ITERTOOLS = frozenset(("starmap", "takewhile", "dropwhile", "filterfalse"))
"""Compiled functions that end early if the function that is their first argument raises `StopIteration`."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def rewrite_tests(module: ast.Module, lines: Collection[int]) -> tuple[ast.Module, set[int]]:
    """Return a test file that notes what it raises of `AssertionError`, and which of its asserts are passed over.

    An exception passes over the rest of a `with` block if the context manager swallows it, and over the rest of an
    iteration if it is a `StopIteration`.

    Args:
        lines: Lines of statements that are noted whenever they hold, if they are assertions.

    Returns:
        The file, and those of the lines.
    """
    rewriter = TestRewriter(module, lines)
    rewriter.visit(module)
    return module, rewriter.noted_lines


class TestRewriter(ast.NodeTransformer):
    """Adds calls of functions in pytest's module to a test file.

    Args:
        module: The test file.
        lines: Lines of statements that are noted whenever they hold, if they are assertions.

    Attributes:
        noted_lines: Those of the lines.
    """

    __test__ = False  # keeps pytest from collecting this class

    def __init__(self, module: ast.Module, lines: Collection[int]) -> None:
        self._module = module
        self._stopped_calls = None  # type: frozenset[str] | None
        self._lines = lines
        self.noted_lines = set()  # type: set[int]
        self._count = 0

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Have an `AssertionError` pass through a function that notes it."""
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.exc is not None and isinstance(error, ast.Name) and error.id == "AssertionError":
            node.exc = _make_call(node, NOTE_RAISED, node.exc)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Have the function that `map` or the like gets pass through one that notes a `StopIteration`."""
        if node.args and not isinstance(node.args[0], ast.Starred) and self._is_stopped(node.func):
            node.args[0] = _make_call(node, GUARD, node.args[0])
        return self.generic_visit(node)

    def _is_stopped(self, function: ast.expr) -> bool:
        name = _get_name(function)
        if name not in STOPPED_BUILTINS | STOPPED_IN_ITERTOOLS:
            return False
        if isinstance(function, ast.Attribute):
            name = f"{_get_name(function.value)}.{name}" if isinstance(function.value, ast.Name) else ""
        if self._stopped_calls is None:
            self._stopped_calls = _find_stopped_calls(self._module)
        return name in self._stopped_calls

    def visit_With(self, node: Any) -> Any:
        """Note if the block ends without an exception, but not with its last assertion."""
        if len(node.items) > 1:
            # Each manager gets a block of its own, so that the one that swallowed an exception is known.
            inner = type(node)(node.items[1:], node.body)
            node.items, node.body = node.items[:1], [_place(inner, node.items[1].context_expr)]
        self.generic_visit(node)
        last = max((at for at, part in enumerate(node.body) if _holds_assertion(part)), default=None)
        if last is None:
            return node
        self._count += 1
        # These are local variables, so that threads and tasks have their own.
        done, *made = (f"@suture_{kind}_{self._count}" for kind in ("with", "manager", "maker"))
        item = node.items[0]
        if isinstance(item.context_expr, ast.Call):
            item.context_expr.func = _bind(made[1], item.context_expr.func)
        else:
            del made[1]
        item.context_expr = _bind(made[0], item.context_expr)
        end = node.body[last]
        node.body.insert(last + 1, _make_assignment(done, value=True, place=end))
        note = ast.Expr(_make_call(end, NOTE_SKIPPED, *(ast.Name(name, ast.Load()) for name in made)))
        # The check is at the assertion, which decides whether the test itself catches the exception.
        check = ast.If(ast.UnaryOp(ast.Not(), ast.Name(done, ast.Load())), [note], [])
        # A test may check later that nothing refers to the manager any more.
        forget = [_make_assignment(name, value=None, place=end) for name in made]
        return [_make_assignment(done, value=False, place=node), node, _place(check, end), *forget]

    visit_AsyncWith = visit_With

    def visit_Assert(self, node: Any) -> Any:
        """Note that an assertion holds if one of its lines is asked for."""
        self.generic_visit(node)
        lines = [line for line in self._lines if node.lineno <= line <= (node.end_lineno or node.lineno)]
        if not lines or not _holds_assertion(node):
            return node
        self.noted_lines.update(lines)
        notes = (ast.Expr(_make_call(node, NOTE_PASSED, ast.Constant(line))) for line in lines)
        return [node, *(_place(note, node) for note in notes)]

    visit_Expr = visit_Assert


def _holds_assertion(statement: ast.AST) -> bool:
    """Whether a statement asserts something when it runs; `assert False` says that it must not run."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTIONS):
            continue
        if isinstance(node, ast.Assert) and not (isinstance(node.test, ast.Constant) and not node.test.value):
            return True
        if isinstance(node, ast.Call) and _get_name(node.func).lower().startswith("assert"):
            return True
        waiting += ast.iter_child_nodes(node)
    return False


def _find_stopped_calls(module: ast.Module) -> frozenset[str]:
    """Return the functions of a file that `StopIteration` ends, as it calls them.

    A name that the file also binds to anything else is left out.
    """
    imported, bound = set(), set()  # type: set[str], set[str]
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                owner = alias.asname or alias.name.partition(".")[0]
                if alias.name == "itertools":
                    imported.update(f"{owner}.{name}" for name in STOPPED_IN_ITERTOOLS)
                else:
                    bound.add(owner)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                is_known = node.module == "itertools" and not node.level and name in STOPPED_IN_ITERTOOLS
                (imported if is_known else bound).add(name)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif not isinstance(node, ast.alias):
            bound.add(str(getattr(node, "name", "")))
    if "*" in bound:
        return frozenset()
    return frozenset(name for name in STOPPED_BUILTINS | imported if name.partition(".")[0] not in bound)


def _get_name(node: ast.AST) -> str:
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def _make_call(place: ast.AST, function: str, *arguments: ast.expr) -> ast.Call:
    owner = ast.Name("@pytest_ar", ast.Load())
    return _place(ast.Call(ast.Attribute(owner, function, ast.Load()), [*arguments], []), place)


def _bind(name: str, value: ast.expr) -> ast.expr:
    """Return an expression that also assigns its value to a name."""
    return _place(ast.NamedExpr(ast.Name(name, ast.Store()), value), value)


def _make_assignment(name: str, *, value: bool | None, place: ast.stmt) -> ast.stmt:
    return _place(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), place)


def _place(node: Node, place: ast.AST) -> Node:
    """Return a new node at the lines of another one."""
    return ast.fix_missing_locations(ast.copy_location(node, place))
