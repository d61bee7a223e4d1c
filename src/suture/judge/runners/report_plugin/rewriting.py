"""Rewriting test files so that an assert which fails or is passed over by an exception is noted."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

CATCHING_CALLS = ("raises", "suppress", "assertRaises")
"""Parts of the names of context managers with which a test catches its own failed asserts."""
LEAVING_CALLS = (*CATCHING_CALLS, "subtest", "subTest", "move_on")
"""The same of those with which a test may end its own block early."""
NOTE_RAISED, NOTE_SKIPPED, NOTE_PASSED = "_note_raised", "_note_skipped", "_note_passed"
GUARD = "_guard_function"
"""Names by which rewritten tests find functions in pytest's module for rewriting, which they import."""
STOPPED_CALLS = frozenset(("map", "filter", "starmap", "takewhile", "dropwhile", "filterfalse"))
"""Compiled functions of the library that end early if the function that is their first argument raises
`StopIteration`."""
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
    rewriter = TestRewriter(lines)
    rewriter.visit(module)
    return module, rewriter.noted_lines


class TestRewriter(ast.NodeTransformer):
    """Adds calls of functions in pytest's module to a test file.

    Args:
        lines: Lines of statements that are noted whenever they hold, if they are assertions.

    Attributes:
        noted_lines: Those of the lines.
    """

    __test__ = False  # keeps pytest from collecting this class

    def __init__(self, lines: Collection[int]) -> None:
        self._stopped_calls = STOPPED_CALLS
        self._lines = lines
        self.noted_lines = set()  # type: set[int]
        self._count = 0

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """Leave out functions that a module replaces."""
        aliases = {alias.asname or alias.name for alias in node.names}
        replaced = {"map", "filter"} if "*" in aliases else aliases & {"map", "filter"}
        self._stopped_calls -= replaced
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Have an `AssertionError` pass through a function that notes it."""
        error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if node.exc is not None and isinstance(error, ast.Name) and error.id == "AssertionError":
            node.exc = _make_call(node, NOTE_RAISED, node.exc)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Have the function that `map` or the like gets pass through one that notes a `StopIteration`."""
        if node.args and _get_name(node.func) in self._stopped_calls:
            is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ("map", "filter")
            if not is_method and not isinstance(node.args[0], ast.Starred):
                node.args[0] = _make_call(node, GUARD, node.args[0])
        return self.generic_visit(node)

    def visit_With(self, node: Any) -> Any:
        """Note if the block ends without an exception, but not with its last assertion."""
        self.generic_visit(node)
        last = max((at for at, part in enumerate(node.body) if _holds_assertion(part)), default=None)
        heads = [_get_name(part) for item in node.items for part in ast.walk(item.context_expr)]
        if last is None or any(word in name for name in heads for word in LEAVING_CALLS):
            return node
        self._count += 1
        name = f"@suture_with_{self._count}"  # a local variable, so that threads and tasks have their own
        node.body.insert(last + 1, _make_assignment(name, value=True, place=node.body[last]))
        check = ast.If(
            ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load())), [ast.Expr(_make_call(node, NOTE_SKIPPED))], []
        )
        return [_make_assignment(name, value=False, place=node), node, _place(check, node)]

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


def _get_name(node: ast.AST) -> str:
    return str(getattr(node, "attr", None) or getattr(node, "id", ""))


def _make_call(place: ast.AST, function: str, *arguments: ast.expr) -> ast.Call:
    owner = ast.Name("@pytest_ar", ast.Load())
    return _place(ast.Call(ast.Attribute(owner, function, ast.Load()), [*arguments], []), place)


def _make_assignment(name: str, *, value: bool, place: ast.stmt) -> ast.stmt:
    return _place(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), place)


def _place(node: Node, place: ast.AST) -> Node:
    """Return a new node at the lines of another one."""
    return ast.fix_missing_locations(ast.copy_location(node, place))
