"""Names that nothing defines: misspelt ones, a missing `self.`, names of other languages, wrong imports."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterator

from suture.mutation.changes import Change, find_similar_names, replace_span
from suture.mutation.python.python_tree import PythonOperator, PythonTree, replace_with
from suture.project.python_source.scopes import FUNCTIONS

BUILTINS = tuple(name for name in dir(builtins) if not name.startswith("_"))
TYPES = (list, dict, set, str, bytes, tuple, int, float)
"""Common types, whose attributes any object may have."""
METHODS = tuple(dict.fromkeys(name for kind in TYPES for name in dir(kind) if not name.startswith("_")))
"""The methods of these types, each once."""
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
"""Method or property of other languages -> Python equivalents. `{}` is the object, `{a}` the arguments."""
FOREIGN_NAMES = {
    **dict.fromkeys(("null", "nil", "NULL", "undefined"), "None"),
    **dict.fromkeys(("true", "TRUE"), "True"),
    **dict.fromkeys(("false", "FALSE"), "False"),
    **dict.fromkeys(("infinity", "Infinity", "INFINITY", "INF", "INT_MAX", "maxint"), "float('inf')"),
    **dict.fromkeys(("parseInt", "parseFloat", "toInt", "atoi", "Number", "Integer"), "int"),
    "this": "self",
    "String": "str",
}
"""Name of other languages -> what it is in Python."""
SELF_NAMES = ("self", "cls")


def _replace_undefined_name(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace a name that neither the file nor Python defines."""
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or node.id in known_names(tree) or node.id in BUILTINS:
        return
    if python_name := FOREIGN_NAMES.get(node.id):
        yield replace_with(tree, node, python_name, 1.0)
    names = tree.scope_names(node)
    members = _class_members(node, tree)
    if node.id in members:
        yield replace_with(tree, node, f"{members[node.id]}.{node.id}")
    for other, similarity in find_similar_names(node.id, (*names.kinds, *known_names(tree), *BUILTINS)):
        yield replace_with(tree, node, other, similarity * (1.0 if other in names.kinds else 0.8))
    for member, similarity in find_similar_names(node.id, members):
        yield replace_with(tree, node, f"{members[member]}.{member}", 0.8 * similarity)
    for other, fit in names.fitting("unknown", tree.enclosing_statement(node).lineno):
        yield replace_with(tree, node, other, 0.4 * fit)
    call = tree.parent(node)
    if isinstance(call, ast.Call) and call.func is node:
        # An undefined function may be any of the file's that takes as many arguments.
        for name, function in tree.functions.items():
            if len(function.args.args) == len(call.args):
                yield replace_with(tree, node, name, 0.4)


def _replace_unknown_attribute(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace an attribute that neither the file nor any common type of Python has."""
    assert isinstance(node, ast.Attribute)
    if not isinstance(node.ctx, ast.Load):
        return
    parent, owner = tree.parent(node), tree.text(node.value)
    call = parent if isinstance(parent, ast.Call) and parent.func is node else None
    arguments = ", ".join(tree.text(argument) for argument in call.args) if call is not None else ""
    attributes = (*tree.cached("defined attributes", _find_defined_attributes), *METHODS)
    is_unknown = node.attr not in attributes and not _starts_with_import(node.value, tree)
    for rank, form in enumerate(FOREIGN_MEMBERS.get(node.attr, ())):
        if "{a}" not in form or arguments:
            text = form.replace("{a}", arguments).replace("{}", owner)
            yield replace_with(tree, call or node, text, (1.0 if is_unknown else 0.35) - 0.1 * rank)
    if not is_unknown:
        return
    end = tree.span(node)[1]
    start = end - len(node.attr.encode())  # the attribute is the end of the node
    for other, similarity in find_similar_names(node.attr, attributes):
        yield replace_span(start, end, other, f".{node.attr} becomes .{other}", similarity)
    # `x.f(a)` where `f(x, a)` is meant; for `self.f(a)` also `f(a)`.
    if call is not None and (node.attr in known_names(tree) or node.attr in BUILTINS):
        text = f"{node.attr}({', '.join(part for part in (owner, arguments) if part)})"
        yield replace_with(tree, call, text, 0.8)
        if owner in SELF_NAMES:
            yield replace_with(tree, node, node.attr, 0.9)


def _starts_with_import(node: ast.expr, tree: PythonTree) -> bool:
    """Return whether an expression starts with an imported name, whose attributes are unknown."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in tree.cached("imported", _imported_names)


def _imported_names(tree: PythonTree) -> frozenset[str]:
    imports = (n for n in tree.nodes if isinstance(n, (ast.Import, ast.ImportFrom)))
    return frozenset(a.asname or a.name.partition(".")[0] for node in imports for a in node.names)


def _correct_import(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Correct the import of a misspelt module, or of a misspelt name that the file uses correctly."""
    assert isinstance(node, (ast.Import, ast.ImportFrom))
    unbound_names = tree.cached("unbound names", _find_unbound_names)
    for alias in node.names:
        start, end = tree.span(alias)
        others: list[tuple[str, float]] = []
        if isinstance(node, ast.ImportFrom) and alias.asname is None:
            similar = dict(find_similar_names(alias.name, unbound_names))
            # A name that the file reads and nothing binds may be the one that the import should bind.
            others += [(name, 1.0 if name in similar else 0.3) for name in unbound_names]
        if isinstance(node, ast.Import):
            others += _similar_standard_modules(alias.name)
        for other, weight in others:
            yield replace_span(start, end, other, f"import {alias.name} becomes {other}", weight)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:  # not a relative import
        start = tree.raw.find(node.module.encode(), tree.span(node)[0])
        end = start + len(node.module.encode())
        for other, weight in _similar_standard_modules(node.module):
            yield replace_span(start, end, other, f"from {node.module} becomes from {other}", weight)


def _similar_standard_modules(module: str) -> list[tuple[str, float]]:
    """Return modules of the standard library with a similar name, unless a module is one of them."""
    is_standard = module.partition(".")[0] in sys.stdlib_module_names
    return [] if is_standard else find_similar_names(module, sys.stdlib_module_names)


def _find_unbound_names(tree: PythonTree) -> list[str]:
    """Return names that are read and that nothing binds, sorted."""
    read = {n.id for n in tree.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return sorted(read - known_names(tree) - set(BUILTINS))


def known_names(tree: PythonTree) -> frozenset[str]:
    """Return every name that something in a file binds, in any scope."""
    return tree.cached("known names", _bound_names)


def _bound_names(tree: PythonTree) -> frozenset[str]:
    bound = {"__file__", "__name__", "__doc__"}
    for node in tree.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not isinstance(tree.parent(node), ast.ClassDef):  # a method is not a name on its own
                    bound.add(name)
            case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.alias(name="*"):
                bound.update(_names_from_star_import(tree))
            case ast.alias(name=name):
                bound.add(name.partition(".")[0])
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                bound.update(names)
            case _:
                pass
    return frozenset(bound)


def _names_from_star_import(tree: PythonTree) -> set[str]:
    """Return names that `import *` may bind: names that the file reads more than twice.

    A misspelt name seldom appears so often. The number is chosen by judgement.
    """
    names = (node for node in tree.nodes if isinstance(node, ast.Name))
    counts = Counter(name.id for name in names if isinstance(name.ctx, ast.Load))
    return {name for name, count in counts.items() if count > 2}


def _class_members(node: ast.AST, tree: PythonTree) -> dict[str, str]:
    """Return attribute of the enclosing class -> the parameter by which a method reaches it."""
    function = tree.enclosing_function(node)
    parameter = function.args.args[0].arg if function is not None and function.args.args else ""
    if parameter not in SELF_NAMES:
        return {}
    owner = next((parent for parent in tree.ancestors(node) if isinstance(parent, ast.ClassDef)), None)
    members: list[str] = []
    for part in ast.walk(owner) if owner is not None else ():
        if isinstance(part, FUNCTIONS):
            members.append(part.name)
        elif isinstance(part, ast.Attribute) and getattr(part.value, "id", "") in SELF_NAMES:
            members.append(part.attr)
    return dict.fromkeys(members, parameter)


def _find_defined_attributes(tree: PythonTree) -> tuple[str, ...]:
    """Return attributes that the file sets or defines, or reads more than once.

    One that is only read, and only once, may be misspelt.
    """
    counts: Counter[str] = Counter()
    for node in tree.nodes:
        if isinstance(node, ast.Attribute):
            counts[node.attr] += 2 if isinstance(node.ctx, ast.Store) else 1
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            counts[node.name] += 2
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            counts[node.target.id] += 2
    return tuple(name for name, count in counts.items() if count > 1)


OPERATORS = (
    PythonOperator(name="undefined_name", nodes=(ast.Name,), changes=_replace_undefined_name),
    PythonOperator(name="unknown_attribute", nodes=(ast.Attribute,), changes=_replace_unknown_attribute),
    PythonOperator(name="import_name", nodes=(ast.Import, ast.ImportFrom), changes=_correct_import),
)
