"""List the new branches and tables of a Python file, each with the text in which it is switched off."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from suture.judge.differential.special_branch import SpecialBranch
from suture.judge.signs import is_specific
from suture.judge.signs.argument_changes import CHANGING_METHODS
from suture.mutation.edits import Edit, apply_edits, encode_source
from suture.project.python_source.parsing import parse_module

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Branch = ast.If | ast.IfExp | ast.match_case
Table = ast.Dict | ast.List | ast.Set | ast.Tuple
FIXED_PARTS = (
    ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Constant, ast.UnaryOp, ast.unaryop, ast.expr_context,
)  # fmt: skip
"""Nodes of which the literal of a table consists."""
MIN_COMPARED_LITERALS = 2
"""Rare literals in a condition from which a branch counts whatever it answers. By judgement."""


def list_python_branches(path: str, before: str, after: str) -> list[SpecialBranch]:
    """Return the new branches that answer with rare literals, or with literals on rare conditions, and new tables."""
    old, new = parse_module(before), parse_module(after)
    if new is None:
        return []
    known = {ast.dump(node) for node in ast.walk(old)} if old is not None else set[str]()
    owners = _find_owners(new)
    branches = [
        _make_branch(path, after, new, owners[node], node)
        for node in owners
        if isinstance(node, Branch) and ast.dump(node) not in known and _is_tried(new, owners[node], node)
    ]
    tables = [
        SpecialBranch(
            path=path,
            function=owner.name if owner is not None else "",
            line=line,
            without=_replace(after, table, _render_empty(table)),
            literals=tuple(_find_literals(table)),
            is_table=True,
        )
        for table in _find_tables(new)
        if ast.dump(table) not in known
        for line, owner in [_find_reader(new, table, owners)]
    ]
    return branches + tables


def _find_owners(tree: ast.Module) -> dict[ast.AST, Function]:
    """Return each node of a function -> the innermost function around it."""
    owners: dict[ast.AST, Function] = {}
    for function in ast.walk(tree):  # outer functions first
        if isinstance(function, FUNCTIONS):
            owners |= dict.fromkeys(ast.walk(function), function)
    return owners


def _is_tried(tree: ast.Module, function: Function, branch: Branch) -> bool:
    literals = _find_literals(_get_condition(branch))
    rare, answer = sum(map(_is_rare, literals)), _find_answer(branch)
    if answer is None:
        return rare >= MIN_COMPARED_LITERALS and not isinstance(branch, ast.match_case)
    counts = _counts_calls(tree, function, branch)
    return counts or rare > 0 or any(map(_is_rare, _find_literals(answer)))


def _make_branch(
    path: str, source: str, tree: ast.Module, function: Function, branch: Branch
) -> SpecialBranch:
    condition = _get_condition(branch)
    literals = _find_literals(condition)
    return SpecialBranch(
        path=path,
        function=function.name,
        line=condition.lineno,
        without=_switch_off(source, tree, branch),
        literals=tuple(literals),
        is_edge_case=not any(map(_is_rare, literals)),
        counts_calls=_find_answer(branch) is not None and _counts_calls(tree, function, branch),
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


def _find_tables(tree: ast.Module) -> Iterator[Table]:
    """Yield the outermost literals of collections that hold a rare value and that are no answer themselves."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        if (
            isinstance(node, Table)
            and all(isinstance(part, FIXED_PARTS) for part in ast.walk(node))
            and not isinstance(getattr(node, "ctx", None), ast.Store)
        ):
            if any(map(_is_rare, _find_literals(node))):
                yield node
            continue
        children = list(ast.iter_child_nodes(node))
        is_answer = isinstance(node, ast.Return) and isinstance(node.value, Table)
        waiting += [] if is_answer else children


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


def _find_reader(
    tree: ast.Module, table: Table, owners: dict[ast.AST, Function]
) -> tuple[int, Function | None]:
    """Return the line and the function in which a table is read; its own, unless a variable of the module holds it."""
    if table in owners:
        return table.lineno, owners[table]
    holders = (node for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign)))
    held = next((node for node in holders if table in ast.walk(node)), None)
    names = {node.id for node in ast.walk(held) if isinstance(node, ast.Name)} if held is not None else set()
    reads = [
        (node.lineno, owner)
        for node, owner in owners.items()
        if isinstance(node, ast.Name) and node.id in names
    ]
    return min(reads, key=lambda read: read[0], default=(table.lineno, None))


def _find_literals(node: ast.AST) -> list[object]:
    return [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]


def _is_rare(value: object) -> bool:
    """Return whether a value is rare in a branch, where single characters are as usual as small numbers."""
    return is_specific(value) and not (isinstance(value, (str, bytes)) and len(value) == 1)


def _find_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _counts_calls(tree: ast.Module, function: Function, branch: Branch) -> bool:
    condition = _get_condition(branch)
    has_number = any(type(value) is int for value in _find_literals(condition))
    return has_number and bool(_find_changed_variables(function, tree) & _find_names(condition))


def _find_changed_variables(function: Function, tree: ast.Module) -> set[str]:
    """Return the variables of the module that a function assigns or changes in place."""
    variables = {name for node in tree.body if isinstance(node, ast.Assign) for name in _find_names(node)}
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


def _switch_off(source: str, tree: ast.Module, branch: Branch) -> str:
    """Return the source of a module in which the condition of a branch never holds."""
    if not isinstance(branch, ast.match_case):
        return _replace(source, branch.test, "False")
    # The pattern may stand in parentheses, behind which a guard would have to be inserted.
    guard, branch.guard = branch.guard, ast.copy_location(ast.Constant(value=False), branch.pattern)
    try:
        return ast.unparse(tree)
    finally:
        branch.guard = guard


def _replace(source: str, node: ast.expr, text: str) -> str:
    """Return a source with a text in place of an expression."""
    lines = encode_source(source).split(b"\n")
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    return apply_edits(source, [Edit(start=start, end=end, text=text)])
