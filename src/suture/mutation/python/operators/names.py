"""Replaces names of variables, functions, methods and attributes, and keys.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.changes import Change, find_similar_names, replace_span
from suture.mutation.python.operators.undefined_names import known_names
from suture.mutation.python.python_tree import PythonOperator, PythonTree, is_read, replace_with

CONFUSABLE_NAMES = (
    ("min", "max", "sum"), ("any", "all"), ("append", "extend", "insert", "appendleft"),
    ("add", "update", "discard", "remove"), ("pop", "popleft", "popitem"),
    ("sorted", "reversed", "list", "set"), ("ceil", "floor", "trunc", "round", "int"),
    ("keys", "values", "items"), ("startswith", "endswith"),
    ("lower", "upper", "title", "capitalize", "swapcase", "casefold"), ("strip", "lstrip", "rstrip"),
    ("find", "rfind", "index", "rindex"), ("split", "rsplit", "splitlines", "partition"),
    ("isalpha", "isdigit", "isalnum", "isspace", "isnumeric"), ("islower", "isupper", "istitle"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("issubset", "issuperset", "isdisjoint"), ("ljust", "rjust", "center", "zfill"),
    ("get", "pop", "setdefault"),
    ("combinations", "permutations", "combinations_with_replacement", "product"),
    ("bisect_left", "bisect_right", "bisect"), ("heappush", "heappop", "heappushpop", "heapreplace"),
    ("float", "int", "str"), ("isinstance", "issubclass"), ("enumerate", "range", "zip"),
)  # fmt: skip
"""Groups of functions and methods of Python that are mistaken for each other. Chosen by judgement."""
IGNORED_ATTRIBUTES = ("__name__", "__doc__", "__class__")
"""Attributes of Python itself, which are never meant in place of an attribute of the file. Chosen by judgement."""


def _change_variable(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use another variable in scope."""
    assert isinstance(node, ast.Name)
    names = tree.scope_names(node)
    if node.id not in names.kinds or isinstance(node.ctx, ast.Del):
        return
    is_stored = isinstance(node.ctx, ast.Store)
    line = tree.enclosing_statement(node).lineno
    for other, fit in names.fitting(names.kinds[node.id], line):
        if other != node.id:
            # What holds values of another kind is the less likely, but the wrong variable may be of another kind.
            fit *= 0.5 if names.is_unlike(other, names.observed.get(node.id, "unknown")) else 1.0
            yield replace_with(tree, node, other, 0.5 * fit if is_stored else fit)


def _switch_attribute_and_name(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use `a` in place of `a.b`, or the reverse with an attribute that the file reads of `a`."""
    if not is_read(node) or tree.is_called(node):
        return  # what a call calls is left to `called_name`
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield replace_with(tree, node, node.value.id, 0.6)
    elif isinstance(node, ast.Name) and not isinstance(tree.parent(node), ast.Attribute):
        for attribute in _known_attributes(node.id, tree):
            yield replace_with(tree, node, f"{node.id}.{attribute}", 0.5)


def _known_attributes(name: str, tree: PythonTree) -> list[str]:
    return tree.cached("attributes by name", _attributes_by_name).get(name, [])


def _use_similar_name(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use another name of the module, or another attribute or method, that is spelt alike."""
    names = tree.scope_names(node).kinds
    if not is_read(node) or (isinstance(node, ast.Name) and node.id in names):
        return  # variables of the function are left to `_change_variable`
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    others = known_names(tree) if isinstance(node, ast.Name) else tree.cached("attributes", _all_attributes)
    if isinstance(node, ast.Attribute):
        for variable in (name, f"{tree.text(node.value)}_{name}"):  # `a` or `x_a` for `x.a`
            if variable in names:
                yield replace_with(tree, node, variable)
    end = tree.span(node)[1]
    for other, similarity in find_similar_names(name, others):
        yield replace_span(end - len(name.encode()), end, other, f"{name} becomes {other}", similarity)


def _all_attributes(tree: PythonTree) -> frozenset[str]:
    """Return the attributes and methods that a file reads or defines."""
    methods = {f.name for f in tree.functions_in_order if isinstance(tree.parent(f), ast.ClassDef)}
    return frozenset(methods | {node.attr for node in tree.nodes if isinstance(node, ast.Attribute)})


def _attributes_by_name(tree: PythonTree) -> dict[str, list[str]]:
    """Return name -> attributes of it that the file reads, without those that it only calls."""
    attributes: dict[str, list[str]] = {}
    for node in tree.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = attributes.setdefault(node.value.id, [])
            if not tree.is_called(node) and node.attr not in names:
                names.append(node.attr)
    return attributes


def _change_attribute(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Read another attribute that the file reads."""
    assert isinstance(node, ast.Attribute)
    if tree.is_called(node):
        return
    end = tree.span(node)[1]
    start = end - len(node.attr.encode())
    attributes = _known_attributes(node.value.id, tree) if isinstance(node.value, ast.Name) else []
    for other in dict.fromkeys((*attributes, *tree.attributes)):
        if other != node.attr and other not in IGNORED_ATTRIBUTES:
            weight = _name_affinity(node.attr, other) * (1.0 if other in attributes else 0.8)
            yield replace_span(start, end, other, f".{node.attr} becomes .{other}", weight)


def _name_affinity(name: str, other: str) -> float:
    """Return how easily one name is mistaken for another: names that share a part are likelier."""
    shared_parts = set(name.split("_")) & set(other.split("_"))
    return 1.0 if shared_parts or name.rstrip("s") == other.rstrip("s") else 0.7


def _change_called_name(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Call a function or method with a confusable name, or one of the same module and arity."""
    assert isinstance(node, ast.Call)
    callee = node.func
    if not isinstance(callee, (ast.Name, ast.Attribute)):
        return
    name, end = getattr(callee, "id", getattr(callee, "attr", "")), tree.span(callee)[1]
    start = end - len(name.encode())
    confusable = [other for group in CONFUSABLE_NAMES if name in group for other in group]
    same_arity = _same_arity(name, tree, is_method=isinstance(callee, ast.Attribute))
    for other in dict.fromkeys((*confusable, *same_arity)):
        if other != name and not other.startswith("__"):  # special methods are rarely called by name
            weight = 1.0 if other in confusable else 0.7
            yield replace_span(start, end, other, f"{name}() becomes {other}()", weight)


def _same_arity(name: str, tree: PythonTree, *, is_method: bool) -> list[str]:
    """Return the module's functions, or methods, that take as many arguments as one of them.

    Args:
        is_method: Whether it is called as an attribute. Then only functions with `self` are returned.
    """
    if name not in tree.functions:
        return []
    arity = len(tree.functions[name].args.args)
    names = []
    for other, function in tree.functions.items():
        parameters = [parameter.arg for parameter in function.args.args]
        if len(parameters) == arity and (parameters[:1] == ["self"]) == is_method:
            names.append(other)
    return names


def _change_key(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use another key that the file uses."""
    assert isinstance(node, ast.Subscript)
    key = node.slice
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return
    for other in tree.cached("keys", _collect_keys):
        if other != key.value:
            yield replace_with(tree, key, repr(other), 0.8)


def _collect_keys(tree: PythonTree) -> list[str]:
    """Return the first strings that the file uses as subscripts or keys. Twenty is chosen by judgement."""
    subscripts = (n.slice for n in tree.nodes if isinstance(n, ast.Subscript))
    keys = [s.value for s in subscripts if isinstance(s, ast.Constant) and isinstance(s.value, str)]
    for node in tree.nodes:
        if isinstance(node, ast.Dict):
            keys += [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    return list(dict.fromkeys(keys))[:20]


def _switch_element_and_whole(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use `items[0]`, `items[1:]` or `items[i]` in place of `items`, or the reverse."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield replace_with(tree, node, tree.text(node.value), 0.7)
        return
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return
    parent, names = tree.parent(node), tree.scope_names(node)
    if isinstance(parent, (ast.Subscript, ast.Attribute)):
        return
    kind = names.observed.get(node.id) or names.kinds.get(node.id)
    if kind not in ("sequence", "text", "unknown") or tree.is_called(node):
        return
    weight = 1.0 if kind != "unknown" else 0.8
    for part in ("1:", ":-1", "0", "-1", "::-1"):
        yield replace_with(tree, node, f"{node.id}[{part}]", weight * (1.0 if ":" in part else 0.6))
    for index, fit in names.fitting("number", tree.enclosing_statement(node).lineno):
        if index != node.id:
            index_fit = fit if names.kinds[index] == "number" else 0.6 * fit
            for part in (f"{index}:", f":{index}", index):
                yield replace_with(tree, node, f"{node.id}[{part}]", 0.8 * weight * index_fit)


OPERATORS = (
    PythonOperator(name="variable", nodes=(ast.Name,), changes=_change_variable),
    PythonOperator(name="similar_name", nodes=(ast.Name, ast.Attribute), changes=_use_similar_name),
    PythonOperator(name="attribute", nodes=(ast.Attribute,), changes=_change_attribute),
    PythonOperator(
        name="attribute_or_name", nodes=(ast.Attribute, ast.Name), changes=_switch_attribute_and_name
    ),
    PythonOperator(name="called_name", nodes=(ast.Call,), changes=_change_called_name),
    PythonOperator(name="subscript_key", nodes=(ast.Subscript,), changes=_change_key),
    PythonOperator(name="sequence_part", nodes=(ast.Subscript, ast.Name), changes=_switch_element_and_whole),
)
