"""A Python source as operators see it: its tree, where each node stands, and which names are in reach."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import ScopeNames, collect_scope_names
from suture.project.python_source.parsing import parsed

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
T = TypeVar("T")
ATOMS = (
    *(ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr),
)
STATEMENTS = (ast.Return, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.keyword)
LOOSE = (
    *(*STATEMENTS, ast.If, ast.While, ast.Assert, ast.Call, ast.List, ast.Tuple, ast.Set, ast.Dict),
    *(ast.Subscript, ast.Slice, ast.arguments),
)
"""Parents in whose places any expression may stand without parentheses."""


def parse_python_tree(source: str) -> PythonTree | None:
    """A view of a source, or `None` where it is not Python."""
    tree = parsed(source)
    return None if tree is None else PythonTree(source, tree)


class PythonTree:
    """One source. Make it with `open_view`."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self.tree = tree
        self.raw = source.encode("utf-8", "surrogatepass")
        self._starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", self.raw))]
        self._parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        self._names: dict[ast.AST, ScopeNames] = {}
        self.mined: dict[ast.AST, list[tuple[ast.expr, str]]] = {}
        self._remembered: dict[str, Any] = {}
        self._functions: dict[ast.AST, Function | None] = {}
        self._parts: dict[Function, tuple[ast.AST, ...]] = {}

    def cached(self, what: str, find: Callable[[PythonTree], T]) -> T:
        """What an operator found out about the whole source, found once."""
        if what not in self._remembered:
            self._remembered[what] = find(self)
        found: T = self._remembered[what]
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node that holds this one."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold this one, the nearest first."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def offset(self, line: int, column: int) -> int:
        """The offset of a place: line from 1, column in bytes from 0."""
        return self._starts[line - 1] + column

    def line_at(self, offset: int) -> int:
        """The line, from 1, of an offset."""
        return bisect_right(self._starts, offset)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands."""
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        assert isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.arg, ast.ExceptHandler, ast.alias))
        assert end_line is not None
        assert end_column is not None
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def text(self, node: ast.AST) -> str:
        """A node as one line of source, to be copied elsewhere."""
        start, end = self.span(node)
        text = self.raw[start:end].decode("utf-8", "surrogatepass")
        return text if "\n" not in text and "\r" not in text else ast.unparse(node)

    def replacement(self, node: ast.expr, text: str) -> Edit:
        """The edit that puts an expression in a node's place, in parentheses where it needs them."""
        start, end = self.span(node)
        return Edit(start=start, end=end, text=text if self._stands(node, text) else f"({text})")

    def _stands(self, node: ast.expr, text: str) -> bool:
        """Whether an expression may stand in a node's place without parentheses."""
        parent = self.parent(node)
        if text.isidentifier() and text not in ("True", "False", "None"):
            return True
        if "," not in text and self._takes_any(parent, node):
            return True  # to read a text costs more than all else here
        shape = parse_expression(text)
        if isinstance(shape, ast.Tuple) and not text.startswith("("):
            return isinstance(parent, (ast.Return, ast.Assign)) or (
                isinstance(parent, ast.Subscript) and node is parent.slice
            )
        if isinstance(shape, ATOMS):
            return True
        if isinstance(shape, ast.Constant):
            return not isinstance(parent, ast.Attribute)
        if getattr(parent, "func", None) is node or getattr(parent, "value", None) is node:
            return isinstance(parent, STATEMENTS)
        if isinstance(parent, ast.Compare):
            return isinstance(shape, ast.BinOp) or is_negative(shape)
        return isinstance(parent, LOOSE)

    @staticmethod
    def _takes_any(parent: ast.AST | None, node: ast.expr) -> bool:
        """Whether any expression that is no tuple may stand there."""
        if isinstance(parent, STATEMENTS):
            return True
        within = getattr(parent, "func", None), getattr(parent, "value", None)
        return isinstance(parent, LOOSE) and node not in within

    def nodes_of(self, function: Function) -> tuple[ast.AST, ...]:
        """A function and all nodes in it."""
        if function not in self._parts:
            self._parts[function] = tuple(ast.walk(function))
        return self._parts[function]

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """The innermost function that holds a node in its body."""
        if node not in self._functions:
            self._functions[node] = self._find_function(node)
        return self._functions[node]

    def _find_function(self, node: ast.AST) -> Function | None:
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, FUNCTIONS) and any(child is statement for statement in parent.body):
                return parent
            child = parent
        return None

    def enclosing_statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node, or the node itself."""
        if isinstance(node, ast.stmt):
            return node
        return next(parent for parent in self.ancestors(node) if isinstance(parent, ast.stmt))

    def enclosing_block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which one stands."""
        parent = self.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and any(other is statement for other in block):
                return block
        return [statement]

    def scope_names(self, node: ast.AST) -> ScopeNames:
        """The names that may be used where a node stands."""
        scope: ast.AST = self.enclosing_function(node) or self.tree
        if scope not in self._names:
            outer = self.enclosing_function(scope) if scope is not self.tree else None
            self._names[scope] = collect_scope_names(scope, self.scope_names(scope) if outer is not None else None)
        return self._names[scope]

    def indent(self, statement: ast.stmt) -> str:
        """What stands before a statement on its line."""
        start = self.offset(statement.lineno, 0)
        return self.raw[start : start + statement.col_offset].decode("utf-8", "surrogatepass")

    def line_span(self, statement: ast.stmt) -> tuple[int, int] | None:
        """The whole lines of a statement, or `None` where it shares one with something else."""
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        start, (_, end) = self.offset(first, 0), self.span(statement)
        stop = self.raw.find(b"\n", end)
        stop = len(self.raw) if stop < 0 else stop + 1
        before = self.raw[start : start + statement.col_offset]
        after = self.raw[end:stop].strip()
        if before.strip() or (after and not after.startswith(b"#")):
            return None
        return start, stop

    @cached_property
    def functions_in_order(self) -> tuple[Function, ...]:
        """All functions and methods."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS))

    @cached_property
    def annotations(self) -> frozenset[ast.AST]:
        """The nodes of annotations, which say what something is and do nothing; not what `Annotated` adds."""
        found: set[ast.AST] = set()
        waiting: list[ast.AST | None] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.arg | ast.AnnAssign):
                waiting.append(node.annotation)
            elif isinstance(node, FUNCTIONS):
                waiting.append(node.returns)
        while waiting:
            part = waiting.pop()
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
                named = getattr(part.value, "attr", getattr(part.value, "id", ""))
                waiting += part.slice.elts[:1] if named == "Annotated" else part.slice.elts
            elif part is not None:
                waiting += ast.iter_child_nodes(part)
            if part is not None:
                found.add(part)
        return frozenset(found)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions and methods by name; of two with one name the last."""
        return {node.name: node for node in self.functions_in_order}

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Attributes that the source reads, and how often."""
        counts: dict[str, int] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and not isinstance(self.parent(node), ast.Call):
                counts[node.attr] = counts.get(node.attr, 0) + 1
        return counts


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> ast.expr | None:
    """The expression that a text is."""
    tree = parsed(f"({text}\n)")
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return statement.value if isinstance(statement, ast.Expr) else None


def is_atom(text: str) -> bool:
    """Whether an expression may stand as an operand without parentheses."""
    return isinstance(parse_expression(text), (*ATOMS, ast.Constant))


def is_negative(shape: ast.expr | None) -> bool:
    """Whether an expression is a number with its sign."""
    return isinstance(shape, ast.UnaryOp) and isinstance(shape.op, ast.USub)


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is only a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
