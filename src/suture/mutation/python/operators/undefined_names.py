"""Names that nothing defines: misspelt ones, a missing `self.`, names of other languages, wrong imports."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from suture.mutation.changes import Change
from suture.mutation.edits import Edit
from suture.mutation.name_similarity import find_similar_names
from suture.mutation.python.operators.python_operator import PythonOperator, replace_with
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree

BUILTINS = tuple(name for name in dir(builtins) if not name.startswith("_"))
METHODS = tuple(
    dict.fromkeys(
        name
        for kind in (list, dict, set, str, bytes, tuple, int, float)
        for name in dir(kind)
        if not name.startswith("_")
    )
)
# Methods and properties of other languages -> the Python equivalents; `{}` is the object, `{a}` the
# arguments.
FOREIGN_MEMBERS = {
    **dict.fromkeys(("length", "size", "count", "len"), ("len({})",)),
    **dict.fromkeys(("push", "push_back", "add", "addLast", "enqueue"), ("{}.append({a})", "{}.add({a})")),
    **dict.fromkeys(("contains", "includes", "has", "has_key", "containsKey"), ("({a} in {})",)),
    **dict.fromkeys(("isEmpty", "empty", "is_empty"), ("(not {})",)),
    **dict.fromkeys(("top", "peek", "back"), ("{}[-1]",)),
    **dict.fromkeys(("front", "first"), ("{}[0]",)),
    **dict.fromkeys(("shift", "dequeue", "poll", "removeFirst"), ("{}.pop(0)", "{}.popleft()")),
    **dict.fromkeys(("unshift", "addFirst"), ("{}.insert(0, {a})", "{}.appendleft({a})")),
    **dict.fromkeys(("charAt", "at"), ("{}[{a}]",)),
    **dict.fromkeys(("toString", "to_string", "str"), ("str({})",)),
    **dict.fromkeys(("toLowerCase", "to_lower", "toLower"), ("{}.lower()",)),
    **dict.fromkeys(("toUpperCase", "to_upper", "toUpper"), ("{}.upper()",)),
    **dict.fromkeys(("trim",), ("{}.strip()",)),
    **dict.fromkeys(("get_values", "getValues", "values"), ("list({}.values())",)),
    **dict.fromkeys(("get_keys", "getKeys", "keys", "keySet"), ("list({}.keys())",)),
    **dict.fromkeys(("get_items", "getItems", "entrySet", "iteritems", "items"), ("list({}.items())",)),
    **dict.fromkeys(("addAll", "concat", "push_all"), ("{}.extend({a})",)),
    **dict.fromkeys(("sorted", "sort"), ("sorted({})",)),
    **dict.fromkeys(("reversed", "reverse"), ("{}[::-1]", "list(reversed({}))")),
}
FOREIGN_NAMES = {
    "null": "None",
    "nil": "None",
    "NULL": "None",
    "undefined": "None",
    "true": "True",
    "false": "False",
}
FOREIGN_NAMES |= {
    **dict.fromkeys(("infinity", "Infinity", "INFINITY", "INF", "INT_MAX", "maxint"), "float('inf')"),
    **dict.fromkeys(("parseInt", "parseFloat", "toInt", "atoi", "Number"), "int"),
    "TRUE": "True",
    "FALSE": "False",
    "this": "self",
    "len": "len",
    "Integer": "int",
    "String": "str",
    "var": "",
}
SELF_NAMES = ("self", "cls")


def _replace_undefined_name(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace a name that neither the file nor Python defines."""
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or node.id in known_names(tree) or node.id in BUILTINS:
        return
    if python_name := FOREIGN_NAMES.get(node.id):
        yield replace_with(tree, node, python_name, 1.0)
    names = tree.scope_names(node)
    own = _class_members(node, tree)
    if node.id in own:
        yield replace_with(tree, node, f"{own[node.id]}.{node.id}", 1.0)
    here = (*names.kinds, *known_names(tree), *BUILTINS)
    for other, share in find_similar_names(node.id, here):
        yield replace_with(tree, node, other, share * (1.0 if other in names.kinds else 0.8))
    for member, share in find_similar_names(node.id, own):
        yield replace_with(tree, node, f"{own[member]}.{member}", 0.8 * share)
    for other, fit in names.fitting("unknown", tree.enclosing_statement(node).lineno):
        yield replace_with(tree, node, other, 0.4 * fit)
    if isinstance(tree.parent(node), ast.Call) and getattr(tree.parent(node), "func", None) is node:
        call = tree.parent(node)
        assert isinstance(call, ast.Call)
        for name, function in tree.functions.items():
            if len(function.args.args) == len(call.args):
                yield replace_with(tree, node, name, 0.4)


def _rename_unread_variable(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Rename a variable that is set and never read to one that is read and never set."""
    assert isinstance(node, ast.Name)
    function = tree.enclosing_function(node)
    if not isinstance(node.ctx, ast.Store) or function is None:
        return
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    if any(n.id == node.id and isinstance(n.ctx, ast.Load) for n in names):
        return
    unset = {n.id for n in names if isinstance(n.ctx, ast.Load)} - known_names(tree) - set(BUILTINS)
    for other in sorted(unset):
        yield replace_with(tree, node, other, 1.0)


def _replace_unknown_attribute(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace an attribute that neither the file nor any common type of Python has."""
    assert isinstance(node, ast.Attribute)
    parent, owner = tree.parent(node), tree.text(node.value)
    called = isinstance(parent, ast.Call) and parent.func is node
    arguments = (
        ", ".join(tree.text(a) for a in parent.args) if isinstance(parent, ast.Call) and called else ""
    )
    whole = parent if called else node
    strange = node.attr not in METHODS and node.attr not in _defined_attributes(tree)
    strange = strange and not _starts_with_import(node.value, tree)
    for number, form in enumerate(FOREIGN_MEMBERS.get(node.attr, ())):
        if (
            isinstance(whole, ast.expr)
            and isinstance(node.ctx, ast.Load)
            and ("{a}" not in form or arguments)
        ):
            text = form.replace("{a}", arguments)
            weight = (1.0 if strange else 0.35) - 0.1 * number
            yield replace_with(tree, whole, text.replace("{}", owner), weight)
    if not strange or not isinstance(node.ctx, ast.Load):
        return
    end = tree.span(node)[1]
    start = end - len(node.attr.encode())
    for other, share in find_similar_names(node.attr, (*_defined_attributes(tree), *METHODS)):
        edit = Edit(start=start, end=end, text=other)
        yield Change(edits=(edit,), note=f".{node.attr} becomes .{other}", weight=share)
    if node.attr in known_names(tree) or node.attr in BUILTINS:
        text = f"{node.attr}({', '.join(part for part in (owner, arguments) if part)})"
        if called and isinstance(whole, ast.expr):
            yield replace_with(tree, whole, text, 0.8)
        if called and owner in SELF_NAMES:
            yield replace_with(tree, node, node.attr, 0.9)


def _starts_with_import(node: ast.expr, tree: PythonTree) -> bool:
    """Return whether an expression starts with an imported name, whose attributes are unknown."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in tree.cached("imported", _imported_names)


def _imported_names(tree: PythonTree) -> frozenset[str]:
    imports = (n for n in ast.walk(tree.module) if isinstance(n, (ast.Import, ast.ImportFrom)))
    return frozenset(a.asname or a.name.partition(".")[0] for node in imports for a in node.names)


def _correct_import(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Correct the import of a misspelt module, or of a misspelt name that the file uses correctly."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    unbound = tree.cached("unbound", _unbound_names)
    for alias in node.names:
        start, end = tree.span(alias)
        bound = alias.asname or alias.name
        others: list[tuple[str, float]] = []
        if isinstance(node, ast.ImportFrom) and alias.asname is None:
            others += [
                (name, 1.0 if name in dict(find_similar_names(bound, unbound)) else 0.3)
                for name in sorted(unbound)
            ]
        if isinstance(node, ast.Import) and alias.name.partition(".")[0] not in sys.stdlib_module_names:
            others += find_similar_names(alias.name, sys.stdlib_module_names)
        for other, weight in others:
            edit = Edit(start=start, end=end, text=other)
            yield Change(edits=(edit,), note=f"import {alias.name} becomes {other}", weight=weight)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        start = tree.span(node)[0]
        at = tree.raw.find(node.module.encode(), start)
        if node.module.partition(".")[0] not in sys.stdlib_module_names:
            for other, weight in find_similar_names(node.module, sys.stdlib_module_names):
                edit = Edit(start=at, end=at + len(node.module.encode()), text=other)
                yield Change(edits=(edit,), note=f"from {node.module} becomes from {other}", weight=weight)


def _unbound_names(tree: PythonTree) -> frozenset[str]:
    """Return names that are read and that nothing binds."""
    used = {n.id for n in ast.walk(tree.module) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return frozenset(used - known_names(tree) - set(BUILTINS))


def known_names(tree: PythonTree) -> frozenset[str]:
    """Return every name that something in a file binds."""
    return tree.cached("known names", _bound_names)


def _bound_names(tree: PythonTree) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(tree.module):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not isinstance(tree.parent(node), ast.ClassDef):  # a method is not a name by itself
                    found.add(name)
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                found.add(name)
            case ast.alias(name="*"):
                found.update(_names_from_star_import(tree))
            case ast.alias(name=name):
                found.add(name.partition(".")[0])
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                found.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names)
            case _:
                pass
    return frozenset(found | {"__file__", "__name__", "__doc__"})


def _names_from_star_import(tree: PythonTree) -> set[str]:
    """Return names that `import *` may bring: names that the file uses more than twice."""
    counts: dict[str, int] = {}
    for node in ast.walk(tree.module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            counts[node.id] = counts.get(node.id, 0) + 1
    return {name for name, count in counts.items() if count > 2}


def _class_members(node: ast.AST, tree: PythonTree) -> dict[str, str]:
    """Return attribute of the enclosing class -> the parameter by which a method reaches it."""
    function = tree.enclosing_function(node)
    first = function.args.args[0].arg if function is not None and function.args.args else ""
    if first not in SELF_NAMES:
        return {}
    owner = next((parent for parent in tree.ancestors(node) if isinstance(parent, ast.ClassDef)), None)
    found: dict[str, str] = {}
    for part in ast.walk(owner) if owner is not None else ():
        if isinstance(part, FUNCTIONS):
            found[part.name] = first
        elif (
            isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and part.value.id in SELF_NAMES
        ):
            found[part.attr] = first
    return found


def _defined_attributes(tree: PythonTree) -> tuple[str, ...]:
    return tree.cached("defined attributes", _attributes_of_file)


def _attributes_of_file(tree: PythonTree) -> tuple[str, ...]:
    """Return attributes that the file sets or defines, or reads more than once."""
    counts: dict[str, int] = {}
    for node in ast.walk(tree.module):
        if isinstance(node, ast.Attribute):
            counts[node.attr] = counts.get(node.attr, 0) + (2 if isinstance(node.ctx, ast.Store) else 1)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            counts[node.name] = counts.get(node.name, 0) + 2
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 2
    return tuple(name for name, count in counts.items() if count > 1)


OPERATORS = (
    PythonOperator(name="undefined_name", nodes=(ast.Name,), changes=_replace_undefined_name),
    PythonOperator(name="unread_assignment", nodes=(ast.Name,), changes=_rename_unread_variable),
    PythonOperator(name="unknown_attribute", nodes=(ast.Attribute,), changes=_replace_unknown_attribute),
    PythonOperator(name="import_name", nodes=(ast.Import, ast.ImportFrom), changes=_correct_import),
)
