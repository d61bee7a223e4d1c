"""List the new branches and tables of a Python file, each with the source in which it is switched off."""

from __future__ import annotations

import ast
import itertools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property

from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.signs import is_specific
from suture.judge.signs.argument_changes import CHANGING_METHODS
from suture.mutation.edits import Edit, encode_source
from suture.project.python_source.parsing import parse_module

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Branch = ast.If | ast.IfExp | ast.match_case
Table = ast.Dict | ast.List | ast.Set | ast.Tuple
FIXED_PARTS = (
    ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context,
)  # fmt: skip
"""Nodes of which the literal of a table consists."""
BEFORE_COLON = re.compile(rb"(?:[^:#]|#[^\n]*)*")
MIN_COMPARED_LITERALS = 2
"""Number of rare literals in a condition from which a branch counts whatever it returns. By judgement."""


def list_python_branches(path: str, before: str, after: str) -> list[SpecialBranch]:
    """Return the new branches that answer with rare literals, or with literals on rare conditions, and new tables."""
    old, new = parse_module(before), parse_module(after)
    if new is None:
        return []
    known = {_render_part(node) for node in _iter_parts(old)} if old is not None else set[str]()
    file = _ParsedFile(after, new)
    parts = {node for node in _iter_parts(new) if _render_part(node) not in known}
    branches = [
        node for node in file.owners if isinstance(node, Branch) and node in parts and _is_tried(file, node)
    ]
    tables = [table for table in _find_tables(new, branches) if table in parts]
    found = [_make_branch(path, file, branch) for branch in branches]
    return found + [_make_table(path, file, table) for table in tables]


class _ParsedFile:
    """A file, and what is read for each of its branches and tables."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self.raw = encode_source(source)
        self._starts = [0, *itertools.accumulate(len(line) + 1 for line in self.raw.split(b"\n"))]
        self._changed: dict[Function, set[str]] = {}

    def locate(self, line: int | None, column: int | None) -> int:
        """Return the offset of a place of the syntax tree in the source's bytes."""
        assert line is not None
        assert column is not None
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.pattern | ast.stmt) -> tuple[int, int]:
        """Return the offsets of a node's first byte and of what follows it."""
        return self.locate(node.lineno, node.col_offset), self.locate(node.end_lineno, node.end_col_offset)

    @cached_property
    def owners(self) -> dict[ast.AST, Function]:
        """Each node of a function -> the innermost function around it."""
        return _find_owners(self.tree)

    @cached_property
    def variables(self) -> set[str]:
        """The variables of the module."""
        return {name for node in self.tree.body if isinstance(node, ast.Assign) for name in _find_names(node)}

    @cached_property
    def holders(self) -> dict[ast.AST, ast.stmt]:
        """Each node of an assignment to a variable of the module -> this assignment."""
        return {
            part: node
            for node in self.tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign))
            for part in ast.walk(node)
        }

    @cached_property
    def readers(self) -> dict[str, tuple[int, Function]]:
        """Each name -> the line and the function in which it is used first."""
        uses: dict[str, tuple[int, Function]] = {}
        for node, owner in self.owners.items():
            if isinstance(node, ast.Name) and node.lineno < uses.get(node.id, (node.lineno + 1, owner))[0]:
                uses[node.id] = node.lineno, owner
        return uses

    def find_changed_variables(self, function: Function) -> set[str]:
        """Return the variables of the module that a function assigns or changes in place."""
        if function not in self._changed:
            self._changed[function] = _find_changed_variables(function, self.variables)
        return self._changed[function]


def _iter_parts(tree: ast.Module) -> Iterator[Branch | Table]:
    return (node for node in ast.walk(tree) if isinstance(node, (Branch, Table)))


def _render_part(part: Branch | Table) -> str:
    """Return a string that is equal for equal parts; the branches that follow a branch are parts of their own."""
    nodes: list[ast.AST] = [part]
    if isinstance(part, Branch):
        nodes = [_get_condition(part), *(part.body if isinstance(part.body, list) else [part.body])]
    # Fields other than these two, such as those of a chain of branches, would need a recursion as deep as the chain is
    # long.
    return type(part).__name__ + "".join(map(_render_node, nodes))


def _render_node(node: ast.AST) -> str:
    try:
        return ast.dump(node)
    except RecursionError:
        return repr([type(part).__name__ for part in ast.walk(node)]) + repr(_find_literals(node))


def _find_owners(tree: ast.Module) -> dict[ast.AST, Function]:
    """Return each node of a function -> the innermost function around it."""
    owners: dict[ast.AST, Function] = {}
    for function in ast.walk(tree):  # outer functions first
        if isinstance(function, FUNCTIONS):
            owners |= dict.fromkeys(ast.walk(function), function)
    return owners


def _is_tried(file: _ParsedFile, branch: Branch) -> bool:
    literals = _find_literals(_get_condition(branch))
    rare, answer = sum(map(_is_rare, literals)), _find_answer(branch)
    if answer is None:
        return rare >= MIN_COMPARED_LITERALS and not isinstance(branch, ast.match_case)
    counts = _counts_calls(file, branch)
    return counts or rare > 0 or any(map(_is_rare, _find_literals(answer)))


def _make_branch(path: str, file: _ParsedFile, branch: Branch) -> SpecialBranch:
    condition = _get_condition(branch)
    literals = _find_literals(condition)
    return SpecialBranch(
        path=path,
        function=file.owners[branch].name,
        line=condition.lineno,
        source=file.source,
        edit=_switch_off(file, branch),
        literals=tuple(literals),
        is_edge_case=not any(map(_is_rare, literals)),
        counts_calls=_find_answer(branch) is not None and _counts_calls(file, branch),
    )


def _make_table(path: str, file: _ParsedFile, table: Table) -> SpecialBranch:
    start, end = file.span(table)
    line, owner = _find_reader(file, table)
    return SpecialBranch(
        path=path,
        function=owner.name if owner is not None else "",
        line=line,
        source=file.source,
        edit=Edit(start=start, end=end, text=_render_empty(table)),
        literals=tuple(_find_literals(table)),
        is_table=True,
    )


def _get_condition(branch: Branch) -> ast.expr | ast.pattern:
    return branch.pattern if isinstance(branch, ast.match_case) else branch.test


def _find_answer(branch: Branch) -> ast.expr | None:
    """Return the answer of a branch that is a literal."""
    last = branch.body if isinstance(branch, ast.IfExp) else branch.body[-1]
    answer = last.value if isinstance(last, ast.Return) else last
    if not isinstance(answer, ast.expr):
        return None
    is_fixed = not any(isinstance(node, (ast.Name, ast.Call, ast.Subscript)) for node in ast.walk(answer))
    return answer if is_fixed else None


def _find_tables(tree: ast.Module, branches: Sequence[Branch]) -> Iterator[Table]:
    """Yield the outermost literals of collections that hold a rare value and from which a value may be looked up.

    Args:
        branches: Branches that are tried, whose conditions are switched off with them.
    """
    conditions: set[ast.AST] = {_get_condition(branch) for branch in branches}
    waiting: deque[ast.AST] = deque([tree])
    while waiting:
        node = waiting.popleft()
        if node in conditions:
            continue
        if (
            isinstance(node, Table)
            and all(isinstance(part, FIXED_PARTS) for part in ast.walk(node))
            and not isinstance(getattr(node, "ctx", None), ast.Store)
        ):
            if any(map(_is_rare, _find_literals(node))):
                yield node
            continue
        looks_up_nothing = _list_parts_without_lookup(node)
        waiting += [child for child in ast.iter_child_nodes(node) if child not in looks_up_nothing]


def _list_parts_without_lookup(node: ast.AST) -> list[ast.AST | None]:
    """Return the parts of a node that are an answer, an index, an annotation, or a list of names for importers."""
    match node:
        case ast.Return(value=value) | ast.Expr(value=value) | ast.Subscript(slice=value):
            return [value] if isinstance(value, Table) else []
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
            return [value]
        case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
            return [annotation]
        case ast.FunctionDef(returns=annotation) | ast.AsyncFunctionDef(returns=annotation):
            return [annotation]
    return []


def _render_empty(table: Table) -> str:
    """Return a table without entries; a list of single values is chosen from by an index, and keeps its length."""
    match table:
        case ast.Dict():
            return "{}"
        case ast.Set():
            return "set()"
        case ast.Tuple():
            return "()"
        case ast.List(elts=items) if all(isinstance(item, ast.Constant) for item in items):
            return f"[{', '.join(['None'] * len(items))}]"
    return "[]"


def _find_reader(file: _ParsedFile, table: Table) -> tuple[int, Function | None]:
    """Return the line and the function in which a table is read; its own, unless a variable of the module holds it."""
    if table in file.owners:
        return table.lineno, file.owners[table]
    held = file.holders.get(table)
    names = _find_names(held) if held is not None else set()
    reads = [file.readers[name] for name in names if name in file.readers]
    return min(reads, key=lambda read: read[0], default=(table.lineno, None))


def _find_literals(node: ast.AST) -> list[object]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]


def _is_rare(value: object) -> bool:
    """Return whether a value is rare in a branch, where single characters are as common as small numbers."""
    return is_specific(value) and not (isinstance(value, (str, bytes)) and len(value) == 1)


def _find_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _counts_calls(file: _ParsedFile, branch: Branch) -> bool:
    condition = _get_condition(branch)
    has_number = any(type(value) is int for value in _find_literals(condition))
    changed = file.find_changed_variables(file.owners[branch]) if has_number else set()
    return bool(changed & _find_names(condition))


def _find_changed_variables(function: Function, variables: set[str]) -> set[str]:
    """Return the variables of the module that a function assigns or changes in place."""
    changed: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Global(names=names):
                changed.update(names)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if (
                method in CHANGING_METHODS
            ):
                changed.add(name)
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                changed.add(name)
    bound = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    local = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return changed & variables - bound - (local - changed)


def _switch_off(file: _ParsedFile, branch: Branch) -> Edit:
    """Return the edit with which the condition of a branch never holds."""
    condition = branch.guard or branch.pattern if isinstance(branch, ast.match_case) else branch.test
    start, end = file.span(condition)
    if not isinstance(condition, ast.pattern):
        return Edit(start=start, end=end, text="False")
    # The pattern may be in parentheses, after which the guard is inserted.
    behind = BEFORE_COLON.match(file.raw, end)
    assert behind is not None
    return Edit(start=behind.end(), end=behind.end(), text=" if False")
