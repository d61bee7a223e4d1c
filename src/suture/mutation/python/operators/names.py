"""Wrong names: a variable, a function, a method, an attribute, a key."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.scope_names import guess_kind
from suture.mutation.python.python_tree import PythonTree
from suture.mutation.changes import Change, Operator, replace_with

ALIKE = (
    ("min", "max", "sum"),
    ("any", "all"),
    ("append", "extend", "insert", "appendleft"),
    ("add", "update", "discard", "remove"),
    ("pop", "popleft", "popitem"),
    ("sorted", "reversed", "list", "set"),
    ("ceil", "floor", "trunc", "round", "int"),
    ("keys", "values", "items"),
    ("startswith", "endswith"),
    ("lower", "upper", "title", "capitalize", "swapcase", "casefold"),
    ("strip", "lstrip", "rstrip"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "splitlines", "partition"),
    ("isalpha", "isdigit", "isalnum", "isspace", "isnumeric"),
    ("islower", "isupper", "istitle"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"),
    ("ljust", "rjust", "center", "zfill"),
    ("get", "pop", "setdefault"),
    ("combinations", "permutations", "combinations_with_replacement", "product"),
    ("bisect_left", "bisect_right", "bisect"),
    ("heappush", "heappop", "heappushpop", "heapreplace"),
    ("float", "int", "str"),
    ("isinstance", "issubclass"),
    ("enumerate", "range", "zip"),
)
PROPERTIES = ("__name__", "__doc__", "__class__")


def _variable(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.Name)
    names = view.scope_names(node)
    if node.id not in names.kinds or isinstance(node.ctx, ast.Del):
        return
    stored = isinstance(node.ctx, ast.Store)
    line = view.enclosing_statement(node).lineno
    for other, fit in names.fitting(names.kinds[node.id], line):
        if other != node.id:
            yield replace_with(view, node, other, 0.5 * fit if stored else fit)


def _attribute_for_name(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`node` where `node.value` is meant, and the reverse."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        if not isinstance(view.parent(node), ast.Call) and isinstance(node.value, ast.Name):
            yield replace_with(view, node, node.value.id, 0.6)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        held = isinstance(view.parent(node), (ast.Attribute, ast.Call))
        for attribute in () if held else _attributes_of(node.id, view):
            yield replace_with(view, node, f"{node.id}.{attribute}", 0.5)


def _attributes_of(name: str, view: PythonTree) -> list[str]:
    return view.cached("attributes by name", _attributes_by_name).get(name, [])


def _attributes_by_name(view: PythonTree) -> dict[str, list[str]]:
    """Name -> attributes that the file reads of it, but for those that it only calls."""
    found: dict[str, dict[str, None]] = {}
    for node in ast.walk(view.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if attribute in view.attributes:
                found.setdefault(name, {})[attribute] = None
            case _:
                pass
    return {name: list(attributes) for name, attributes in found.items()}


def _attribute(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.Attribute)
    if isinstance(view.parent(node), ast.Call) and getattr(view.parent(node), "func", None) is node:
        return
    end = view.span(node)[1]
    start = end - len(node.attr.encode())
    known = _attributes_of(node.value.id, view) if isinstance(node.value, ast.Name) else []
    for other in dict.fromkeys((*known, *view.attributes)):
        if other != node.attr and other not in PROPERTIES:
            yield Change(
                edits=(Edit(start=start, end=end, text=other),),
                note=f".{node.attr} becomes .{other}",
                weight=_nearness(node.attr, other) * (1.0 if other in known else 0.8),
            )


def _nearness(one: str, other: str) -> float:
    """Two names that share a part are likelier to be mistaken for each other."""
    shared = set(one.split("_")) & set(other.split("_"))
    return 1.0 if shared or one.rstrip("s") == other.rstrip("s") else 0.7


def _called(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """Another function or method of the same family, or of the same module and arity."""
    assert isinstance(node, ast.Call)
    if isinstance(node.func, ast.Name):
        name, end = node.func.id, view.span(node.func)[1]
    elif isinstance(node.func, ast.Attribute):
        name, end = node.func.attr, view.span(node.func)[1]
    else:
        return
    start = end - len(name.encode())
    family = [other for group in ALIKE if name in group for other in group]
    own = _of_same_arity(name, view, method=isinstance(node.func, ast.Attribute))
    for other in dict.fromkeys((*family, *own)):
        if other != name and not other.startswith("__"):
            yield Change(
                edits=(Edit(start=start, end=end, text=other),),
                note=f"{name}() becomes {other}()",
                weight=1.0 if other in family else 0.7,
            )


def _of_same_arity(name: str, view: PythonTree, *, method: bool) -> list[str]:
    """The module's functions, or methods, that take as many arguments as one of them."""
    if name not in view.functions:
        return []
    arity = len(view.functions[name].args.args)
    names = []
    for other, function in view.functions.items():
        arguments = function.args.args
        is_method = bool(arguments) and arguments[0].arg == "self"
        if len(arguments) == arity and is_method == method:
            names.append(other)
    return names


def _key(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """Another of the keys that the file uses."""
    assert isinstance(node, ast.Subscript)
    key = node.slice
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return
    for other in view.cached("keys", _keys):
        if other != key.value:
            yield replace_with(view, key, repr(other), 0.8)


def _keys(view: PythonTree) -> list[str]:
    subscripts = (n.slice for n in ast.walk(view.tree) if isinstance(n, ast.Subscript))
    keys = [s.value for s in subscripts if isinstance(s, ast.Constant) and isinstance(s.value, str)]
    for node in ast.walk(view.tree):
        if isinstance(node, ast.Dict):
            keys += [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    return list(dict.fromkeys(keys))[:20]


def _element_or_whole(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """`items` where `items[0]`, `items[1:]` or `items[i]` is meant, and the reverse."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield replace_with(view, node, view.text(node.value), 0.7)
        return
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    parent, names = view.parent(node), view.scope_names(node)
    if isinstance(parent, (ast.Subscript, ast.Attribute)) or node.id not in names.kinds:
        return
    if names.kinds[node.id] not in ("sequence", "text", "unknown"):
        return
    if isinstance(parent, ast.Call) and node is parent.func:
        return
    weight = 1.0 if names.kinds[node.id] != "unknown" else 0.8
    for part in ("1:", ":-1", "0", "-1", "::-1"):
        yield replace_with(view, node, f"{node.id}[{part}]", weight * (1.0 if ":" in part else 0.6))
    for index, fit in names.fitting("number", view.enclosing_statement(node).lineno):
        if index != node.id:
            sure = fit if guess_kind(ast.Name(id=index), names) == "number" else 0.6 * fit
            for part in (f"{index}:", f":{index}", index):
                yield replace_with(view, node, f"{node.id}[{part}]", 0.8 * weight * sure)


OPERATORS = (
    Operator(name="variable", prior=0.4, nodes=(ast.Name,), changes=_variable),
    Operator(name="attribute", prior=0.6, nodes=(ast.Attribute,), changes=_attribute),
    Operator(
        name="attribute or name", prior=0.4, nodes=(ast.Attribute, ast.Name), changes=_attribute_for_name
    ),
    Operator(name="called name", prior=0.65, nodes=(ast.Call,), changes=_called),
    Operator(name="key", prior=0.45, nodes=(ast.Subscript,), changes=_key),
    Operator(
        name="part of a sequence", prior=0.32, nodes=(ast.Subscript, ast.Name), changes=_element_or_whole
    ),
)
