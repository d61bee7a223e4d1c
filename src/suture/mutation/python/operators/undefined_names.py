"""Names that nothing defines: misspelt ones, a missing `self.`, methods of other languages, wrong imports."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.name_similarity import find_similar_names
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree
from suture.mutation.changes import Change, Operator, replace_with

BUILTINS = tuple(name for name in dir(builtins) if not name.startswith("_"))
METHODS = tuple(
    dict.fromkeys(
        name
        for kind in (list, dict, set, str, bytes, tuple, int, float)
        for name in dir(kind)
        if not name.startswith("_")
    )
)
# Methods and properties of other languages: name -> how Python says it, of `{}` and its arguments.
ELSEWHERE = {
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
SAID = {"null": "None", "nil": "None", "NULL": "None", "undefined": "None", "true": "True", "false": "False"}
SAID |= {
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
SELF = ("self", "cls")


def _name(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A name that is neither bound here nor anywhere in the file, nor Python's own."""
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or node.id in known_names(view) or node.id in BUILTINS:
        return
    if said := SAID.get(node.id):
        yield replace_with(view, node, said, 1.0)
    names = view.scope_names(node)
    own = _members(node, view)
    if node.id in own:
        yield replace_with(view, node, f"{own[node.id]}.{node.id}", 1.0)
    here = (*names.kinds, *known_names(view), *BUILTINS)
    for other, share in find_similar_names(node.id, here):
        yield replace_with(view, node, other, share * (1.0 if other in names.kinds else 0.8))
    for member, share in find_similar_names(node.id, own):
        yield replace_with(view, node, f"{own[member]}.{member}", 0.8 * share)
    for other, fit in names.fitting("unknown", view.enclosing_statement(node).lineno):
        yield replace_with(view, node, other, 0.4 * fit)
    if isinstance(view.parent(node), ast.Call) and getattr(view.parent(node), "func", None) is node:
        call = view.parent(node)
        assert isinstance(call, ast.Call)
        for name, function in view.functions.items():
            if len(function.args.args) == len(call.args):
                yield replace_with(view, node, name, 0.4)


def _stored(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A variable that is set and never read, beside one that is read and never set."""
    assert isinstance(node, ast.Name)
    function = view.enclosing_function(node)
    if not isinstance(node.ctx, ast.Store) or function is None:
        return
    names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
    if any(n.id == node.id and isinstance(n.ctx, ast.Load) for n in names):
        return
    unset = {n.id for n in names if isinstance(n.ctx, ast.Load)} - known_names(view) - set(BUILTINS)
    for other in sorted(unset):
        yield replace_with(view, node, other, 1.0)


def _method(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """An attribute that neither the file nor any of Python's common types has."""
    assert isinstance(node, ast.Attribute)
    parent, owner = view.parent(node), view.text(node.value)
    called = isinstance(parent, ast.Call) and parent.func is node
    arguments = (
        ", ".join(view.text(a) for a in parent.args) if isinstance(parent, ast.Call) and called else ""
    )
    whole = parent if called else node
    strange = node.attr not in METHODS and node.attr not in _defined_attributes(view)
    strange = strange and not _is_imported(node.value, view)
    for number, form in enumerate(ELSEWHERE.get(node.attr, ())):
        if (
            isinstance(whole, ast.expr)
            and isinstance(node.ctx, ast.Load)
            and ("{a}" not in form or arguments)
        ):
            text = form.replace("{a}", arguments)
            weight = (1.0 if strange else 0.35) - 0.1 * number
            yield replace_with(view, whole, text.replace("{}", owner), weight)
    if not strange or not isinstance(node.ctx, ast.Load):
        return
    end = view.span(node)[1]
    start = end - len(node.attr.encode())
    for other, share in find_similar_names(node.attr, (*_defined_attributes(view), *METHODS)):
        edit = Edit(start=start, end=end, text=other)
        yield Change(edits=(edit,), note=f".{node.attr} becomes .{other}", weight=share)
    if node.attr in known_names(view) or node.attr in BUILTINS:
        text = f"{node.attr}({', '.join(part for part in (owner, arguments) if part)})"
        if called and isinstance(whole, ast.expr):
            yield replace_with(view, whole, text, 0.8)
        if called and owner in SELF:
            yield replace_with(view, node, node.attr, 0.9)


def _is_imported(node: ast.expr, view: PythonTree) -> bool:
    """Whether an expression begins with a module or name from elsewhere: nobody knows what that has."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in view.cached("imported", _imported)


def _imported(view: PythonTree) -> frozenset[str]:
    imports = (n for n in ast.walk(view.tree) if isinstance(n, (ast.Import, ast.ImportFrom)))
    return frozenset(a.asname or a.name.partition(".")[0] for node in imports for a in node.names)


def _import(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """An import of a misspelt module, or of a misspelt name that the file uses rightly."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    unbound = view.cached("unbound", _unbound)
    for alias in node.names:
        start, end = view.span(alias)
        bound = alias.asname or alias.name
        others: list[tuple[str, float]] = []
        if isinstance(node, ast.ImportFrom) and alias.asname is None:
            others += [
                (name, 1.0 if name in dict(find_similar_names(bound, unbound)) else 0.3) for name in sorted(unbound)
            ]
        if isinstance(node, ast.Import) and alias.name.partition(".")[0] not in sys.stdlib_module_names:
            others += find_similar_names(alias.name, sys.stdlib_module_names)
        for other, weight in others:
            edit = Edit(start=start, end=end, text=other)
            yield Change(edits=(edit,), note=f"import {alias.name} becomes {other}", weight=weight)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        start = view.span(node)[0]
        at = view.raw.find(node.module.encode(), start)
        if node.module.partition(".")[0] not in sys.stdlib_module_names:
            for other, weight in find_similar_names(node.module, sys.stdlib_module_names):
                edit = Edit(start=at, end=at + len(node.module.encode()), text=other)
                yield Change(edits=(edit,), note=f"from {node.module} becomes from {other}", weight=weight)


def _unbound(view: PythonTree) -> frozenset[str]:
    """Names that are read and that nothing binds."""
    used = {n.id for n in ast.walk(view.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return frozenset(used - known_names(view) - set(BUILTINS))


def known_names(view: PythonTree) -> frozenset[str]:
    """Every name that something in a file binds, wherever."""
    return view.cached("known names", _bound)


def _bound(view: PythonTree) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(view.tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not isinstance(view.parent(node), ast.ClassDef):  # a method is no name of its own
                    found.add(name)
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                found.add(name)
            case ast.alias(name="*"):
                found.update(_of_star(view))
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


def _of_star(view: PythonTree) -> set[str]:
    """With `import *` any name may be known: those that are used more than twice count as such."""
    counts: dict[str, int] = {}
    for node in ast.walk(view.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            counts[node.id] = counts.get(node.id, 0) + 1
    return {name for name, count in counts.items() if count > 2}


def _members(node: ast.AST, view: PythonTree) -> dict[str, str]:
    """What the class around a node has: attribute -> the parameter by which a method reaches it."""
    function = view.enclosing_function(node)
    first = function.args.args[0].arg if function is not None and function.args.args else ""
    if first not in SELF:
        return {}
    owner = next((parent for parent in view.ancestors(node) if isinstance(parent, ast.ClassDef)), None)
    found: dict[str, str] = {}
    for part in ast.walk(owner) if owner is not None else ():
        if isinstance(part, FUNCTIONS):
            found[part.name] = first
        elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in SELF:
            found[part.attr] = first
    return found


def _defined_attributes(view: PythonTree) -> tuple[str, ...]:
    return view.cached("defined attributes", _attributes)


def _attributes(view: PythonTree) -> tuple[str, ...]:
    """Attributes that something in the file sets or defines, or reads more than once."""
    counts: dict[str, int] = {}
    for node in ast.walk(view.tree):
        if isinstance(node, ast.Attribute):
            counts[node.attr] = counts.get(node.attr, 0) + (2 if isinstance(node.ctx, ast.Store) else 1)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            counts[node.name] = counts.get(node.name, 0) + 2
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] = counts.get(node.target.id, 0) + 2
    return tuple(name for name, count in counts.items() if count > 1)


OPERATORS = (
    Operator(name="undefined name", prior=0.95, nodes=(ast.Name,), changes=_name),
    Operator(name="set and not read", prior=0.8, nodes=(ast.Name,), changes=_stored),
    Operator(name="unknown attribute", prior=0.85, nodes=(ast.Attribute,), changes=_method),
    Operator(name="import", prior=0.9, nodes=(ast.Import, ast.ImportFrom), changes=_import),
)
