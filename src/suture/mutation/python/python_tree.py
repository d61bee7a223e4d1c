"""The syntax tree of a Python source with what operators need: positions, parents, scopes and caches."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

from suture.mutation.changes import Change, ValueDifference, shorten
from suture.mutation.edits import Edit, OperatorName
from suture.mutation.python.scope_names import ObservedKinds, ScopeNames, collect_scope_names
from suture.mutation.tuning import UNREAD_PARAMETER_FACTOR, UNREAD_VARIABLE_FACTOR
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS, Function

T = TypeVar("T")
ATOMS = (
    ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip
"""Expressions that need no parentheses anywhere."""
STATEMENTS = (ast.Return, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.keyword)
"""Parents that take any expression as their `value` without parentheses: statements, and `name=` in a call."""
PARENTHESES_FREE_PARENTS = (
    *STATEMENTS, ast.If, ast.While, ast.Assert, ast.Call, ast.List, ast.Tuple, ast.Set, ast.Dict,
    ast.Subscript, ast.Slice, ast.arguments,
)  # fmt: skip
"""Parents that take any expression without parentheses, except for what is called or subscripted."""


def parse_python_tree(source: str) -> PythonTree | None:
    """Return the tree of a source, or `None` if it does not parse."""
    tree = parse_module(source)
    return None if tree is None else PythonTree(source, tree)


class PythonTree:
    """The tree of one source; `parse_python_tree` creates it.

    Attributes:
        raw: The UTF-8 bytes of the source, in which all offsets are counted.
        nodes: All nodes, outer ones first.
        differences: How the actual values of failing tests differ from the expected ones.
        observed_kinds: The kinds of values that variables hold in the runs of the tests.
    """

    differences: Sequence[ValueDifference] = ()
    observed_kinds: ObservedKinds = MappingProxyType({})

    def __init__(self, source: str, tree: ast.Module) -> None:
        self.module = tree
        self.raw = source.encode("utf-8", "surrogatepass")
        self._starts = [0, *(match.end() for match in re.finditer(rb"\r\n|\r|\n", self.raw))]
        self._parents: dict[ast.AST, ast.AST] = {}
        self.nodes = tuple(ast.walk(tree))
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        self._names: dict[ast.AST, ScopeNames] = {}
        self._cache: dict[str, Any] = {}
        self._functions: dict[ast.AST, Function | None] = {}
        self._nodes: dict[Function, tuple[ast.AST, ...]] = {}
        self._unread: dict[Function, dict[str, float]] = {}

    def cached(self, key: str, compute: Callable[[PythonTree], T]) -> T:
        """Return what `compute` returns for this tree, and call it only once for each key."""
        if key not in self._cache:
            self._cache[key] = compute(self)
        value: T = self._cache[key]
        return value

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds this one."""
        return self._parents.get(node)

    def is_called(self, node: ast.AST) -> bool:
        """Return whether a node is what a call calls."""
        parent = self.parent(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes that hold this one, the nearest first."""
        current = self._parents.get(node)
        while current is not None:
            yield current
            current = self._parents.get(current)

    def offset(self, line: int, column: int) -> int:
        """Return the byte offset of a line (from 1) and a column (in bytes, from 0)."""
        return self._starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the first byte of a node, and the first byte after it."""
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        assert isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.arg, ast.ExceptHandler, ast.alias))
        assert end_line is not None
        assert end_column is not None
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def text(self, node: ast.AST) -> str:
        """Return a node as one line of source, to be copied to another place."""
        start, end = self.span(node)
        text = self.raw[start:end].decode("utf-8", "surrogatepass")
        return text if "\n" not in text and "\r" not in text else ast.unparse(node)

    def replacement(self, node: ast.expr, text: str) -> Edit:
        """Return the edit that replaces a node with an expression, in parentheses where they are needed."""
        start, end = self.span(node)
        expression = text if self._fits_without_parentheses(node, text) else f"({text})"
        return Edit(start=start, end=end, text=expression)

    def _fits_without_parentheses(self, node: ast.expr, text: str) -> bool:
        """Return whether an expression can replace a node without parentheses."""
        parent = self.parent(node)
        if text.isidentifier() and text not in ("True", "False", "None"):
            return True
        if "," not in text and self._takes_any(parent, node):
            return True  # parsing the expression would cost more than everything else here
        shape = parse_expression(text)
        if isinstance(shape, ast.Tuple) and not text.startswith("("):
            is_index = isinstance(parent, ast.Subscript) and node is parent.slice
            return is_index or isinstance(parent, (ast.Return, ast.Assign))
        if isinstance(shape, ATOMS):
            return True
        if isinstance(shape, ast.Constant):
            return not isinstance(parent, ast.Attribute)  # `1.real` does not parse
        if getattr(parent, "func", None) is node or getattr(parent, "value", None) is node:
            return isinstance(parent, STATEMENTS)
        if isinstance(parent, ast.Compare):  # another comparison would become a part of the chain
            return isinstance(shape, ast.BinOp) or is_negative(shape)
        return isinstance(parent, PARENTHESES_FREE_PARENTS)

    @staticmethod
    def _takes_any(parent: ast.AST | None, node: ast.expr) -> bool:
        """Return whether any expression but a tuple can replace a node without parentheses."""
        if isinstance(parent, STATEMENTS):
            return True
        callee_and_value = getattr(parent, "func", None), getattr(parent, "value", None)
        return isinstance(parent, PARENTHESES_FREE_PARENTS) and node not in callee_and_value

    def nodes_of(self, function: Function) -> tuple[ast.AST, ...]:
        """Return a function and all nodes in it."""
        if function not in self._nodes:
            self._nodes[function] = tuple(ast.walk(function))
        return self._nodes[function]

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """Return the innermost function that holds a node in its body."""
        if node not in self._functions:
            self._functions[node] = self._find_function(node)
        return self._functions[node]

    def _find_function(self, node: ast.AST) -> Function | None:
        child = node
        for parent in self.ancestors(node):
            # A node in the parameters, decorators or annotations belongs to the scope around the function.
            if isinstance(parent, FUNCTIONS) and any(child is statement for statement in parent.body):
                return parent
            child = parent
        return None

    def weigh_unread(self, node: ast.AST) -> dict[str, float]:
        """Return each variable and parameter that the function around a node never reads -> the weight of reading it.

        Those that need no reading are left out: `self`, names that begin with `_`, and counters of a `range`.
        """
        function = self.enclosing_function(node)
        if function is None:
            return {}
        if function not in self._unread:
            self._unread[function] = _weigh_unread(self.nodes_of(function))
        return self._unread[function]

    def enclosing_statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that holds a node, or the node itself if it is one."""
        if isinstance(node, ast.stmt):
            return node
        return next(parent for parent in self.ancestors(node) if isinstance(parent, ast.stmt))

    def enclosing_block(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the block that holds a statement."""
        parent = self.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and any(other is statement for other in block):
                return block
        return [statement]

    def scope_names(self, node: ast.AST) -> ScopeNames:
        """Return the names that can be used at a node."""
        scope: ast.AST = self.enclosing_function(node) or self.module
        if scope not in self._names:
            # The names at a function are those of the scope around it.
            is_nested = scope is not self.module and self.enclosing_function(scope) is not None
            outer = self.scope_names(scope) if is_nested else None
            first_line = min(
                (node.lineno for node in getattr(scope, "decorator_list", ())),
                default=getattr(scope, "lineno", 0),
            )
            self._names[scope] = collect_scope_names(scope, outer, self.observed_kinds.get(first_line, {}))
        return self._names[scope]

    def indent(self, statement: ast.stmt) -> str:
        """Return what precedes a statement on its line."""
        start = self.offset(statement.lineno, 0)
        return self.raw[start : start + statement.col_offset].decode("utf-8", "surrogatepass")

    def missing_newline(self, offset: int) -> str:
        """Return the newline to add before a line that is inserted at an offset; empty if there is one."""
        return "" if self.raw[offset - 1 : offset] == b"\n" else "\n"

    def previous_statement(self, statement: ast.stmt) -> ast.stmt | None:
        """Return the statement before one in the same block."""
        block = self.enclosing_block(statement)
        index = next(number for number, other in enumerate(block) if other is statement)
        return block[index - 1] if index else None

    def line_span(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Return the byte span of a statement's lines, or `None` if other code shares a line with it."""
        decorators = getattr(statement, "decorator_list", [])
        first_line_number = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        start, (_, end) = self.offset(first_line_number, 0), self.span(statement)
        stop = self.raw.find(b"\n", end)
        stop = len(self.raw) if stop < 0 else stop + 1
        before = self.raw[start : start + statement.col_offset]
        after = self.raw[end:stop].strip()
        if before.strip() or (after and not after.startswith(b"#")):
            return None
        return start, stop

    @cached_property
    def functions_in_order(self) -> tuple[Function, ...]:
        """All functions and methods, outer ones first."""
        return tuple(node for node in self.nodes if isinstance(node, FUNCTIONS))

    def innermost_function(self, line: int) -> Function | None:
        """Return the innermost function that holds a line."""
        holding = [n for n in self.functions_in_order if n.lineno <= line <= (n.end_lineno or n.lineno)]
        return max(holding, key=lambda node: node.lineno, default=None)

    @cached_property
    def annotations(self) -> frozenset[ast.AST]:
        """The nodes of type annotations, without what `Annotated` adds."""
        nodes: set[ast.AST] = set()
        waiting: list[ast.AST | None] = []
        for node in self.nodes:
            if isinstance(node, ast.arg | ast.AnnAssign):
                waiting.append(node.annotation)
            elif isinstance(node, FUNCTIONS):
                waiting.append(node.returns)
        while waiting:
            part = waiting.pop()
            # The arguments of `Annotated` after the first are values, such as `Field(gt=0)`.
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple):
                name = getattr(part.value, "attr", getattr(part.value, "id", ""))
                waiting += part.slice.elts[:1] if name == "Annotated" else part.slice.elts
            elif part is not None:
                waiting += ast.iter_child_nodes(part)
            if part is not None:
                nodes.add(part)
        return frozenset(nodes)

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Name -> function or method; of two with one name the last."""
        return {node.name: node for node in self.functions_in_order}

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Attribute outside the direct parts of a call -> how often the source has it."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and not isinstance(self.parent(node), ast.Call):
                counts[node.attr] = counts.get(node.attr, 0) + 1
        return counts


def _weigh_unread(nodes: Iterable[ast.AST]) -> dict[str, float]:
    bound, read = {}, {"self", "cls"}
    for node in nodes:
        match node:
            case ast.arg(arg=name):
                bound[name] = UNREAD_PARAMETER_FACTOR
            case ast.Name(id=name, ctx=ast.Store()):
                bound.setdefault(name, UNREAD_VARIABLE_FACTOR)
            case ast.Name(id=name):
                read.add(name)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"))):
                read.add(name)
            case _:
                pass
    return {name: weight for name, weight in bound.items() if name not in read and not name.startswith("_")}


def body_lines(function: Function) -> range:
    """Return the lines of a function's body."""
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> ast.expr | None:
    """Parse a string as an expression; return `None` if it is not one."""
    tree = parse_module(f"({text}\n)")
    statement = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    return statement.value if isinstance(statement, ast.Expr) else None


def is_atom(text: str) -> bool:
    """Return whether an expression can be an operand without parentheses."""
    return isinstance(parse_expression(text), (*ATOMS, ast.Constant))


def is_negative(shape: ast.expr | None) -> bool:
    """Return whether an expression is a number with a minus sign."""
    return isinstance(shape, ast.UnaryOp) and isinstance(shape.op, ast.USub)


@dataclass(frozen=True, kw_only=True)
class PythonOperator:
    """A kind of change of Python source.

    Attributes:
        nodes: The classes of nodes that it changes.
        changes: Yields the ways to change one node.
    """

    name: OperatorName
    nodes: tuple[type[ast.AST], ...]
    changes: Callable[[ast.AST, PythonTree], Iterator[Change]]


def replace_with(tree: PythonTree, node: ast.expr, text: str, weight: float = 1.0) -> Change:
    """Return the change that puts an expression in the place of a node."""
    return Change(
        edits=(tree.replacement(node, text),),
        note=f"{shorten(tree.text(node))} becomes {shorten(text)}",
        weight=weight,
    )


def is_read(node: ast.AST) -> bool:
    """Return whether an expression is read, and not assigned or deleted."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def find_operator_sign(tree: PythonTree, left: ast.expr, right: ast.expr, sign: str) -> tuple[int, int]:
    """Return the span of the sign between two operands; `(0, 0)` if a comment makes it uncertain."""
    start, stop = tree.span(left)[1], tree.span(right)[0]
    between = tree.raw[start:stop]
    index = between.find(sign.encode())
    if index < 0 or b"#" in between:
        return 0, 0
    return start + index, start + index + len(sign)
