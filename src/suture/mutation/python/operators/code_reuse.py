"""Reuses code of the same file: values, arguments, decorators, and expressions of the same function.

`suture.mutation.changes` explains the weights.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator

from suture.mutation import tuning
from suture.mutation.changes import Change, insert_text, last_part, shorten
from suture.mutation.python.operators.undefined_names import known_names
from suture.mutation.python.python_tree import PythonOperator, PythonTree, is_read, replace_with
from suture.mutation.python.scope_names import guess_kind
from suture.project.python_source.parsing import first_line
from suture.project.python_source.scopes import FUNCTIONS

DECORATED = (*FUNCTIONS, ast.ClassDef)
EMPTY_LITERALS = ("[]", "()", "{}")
ORDERING_METHODS = ("__lt__", "__le__", "__gt__", "__ge__")
"""Methods from one of which `functools.total_ordering` makes the others."""


def _reuse_value(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Assign another value that the file assigns to this target, or a variable instead of a bare `None`."""
    assert isinstance(node, ast.Assign)
    target = last_part(tree.text(node.targets[0]))
    reusable = tree.cached("assigned values", _assigned_values_by_target).get(target, [])
    for text in reusable[: tuning.MAX_REUSED]:
        if text != tree.text(node.value):
            yield replace_with(tree, node.value, text, 0.8)
    if isinstance(node.value, ast.Constant) and node.value.value in (None, ""):
        for name, fit in tree.scope_names(node).fitting("unknown", node.lineno):
            if name != target:
                yield replace_with(tree, node.value, name, 0.7 * fit)
                yield replace_with(tree, node.value, f"{name}.{target}", 0.4 * fit)


def _reuse_argument(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Pass arguments that other calls of the same function pass, or variables instead of a `None`."""
    assert isinstance(node, ast.Call)
    calls = tree.cached("calls", _calls_by_name).get(last_part(tree.text(node.func)), [])
    other_calls = [call for call in calls if call is not node]
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.Constant) and argument.value is None:
            texts = [tree.text(call.args[index]) for call in other_calls if index < len(call.args)]
            short_texts = dict.fromkeys(text for text in texts if len(text) <= tuning.MAX_REUSED_CHARS)
            for text in list(short_texts)[: tuning.MAX_REUSED]:
                yield replace_with(tree, argument, text, 0.8)
            for name, fit in tree.scope_names(node).fitting("unknown", node.lineno):
                yield replace_with(tree, argument, name, 0.7 * fit)
                if fit >= 0.8:  # a variable of the function itself, not of one around it
                    yield replace_with(tree, argument, f"{name}[0]", 0.2)
    for value in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(value, ast.Constant) and value.value is not None:
            for name, fit in tree.scope_names(node).fitting("unknown", node.lineno):
                yield replace_with(tree, value, name, 0.15 * fit)
    yield from _append_argument(node, other_calls, tree)


def _append_argument(node: ast.Call, other_calls: list[ast.Call], tree: PythonTree) -> Iterator[Change]:
    """Add an argument of another call, or a variable with the name of a parameter."""
    end = tree.span(node)[1] - 1
    # A generator expression may share its parentheses with the call.
    ends_with_generator = bool(node.args) and isinstance(node.args[-1], ast.GeneratorExp)
    if ends_with_generator or tree.raw[end : end + 1] != b")" or tree.raw[:end].rstrip().endswith(b","):
        return  # after a trailing comma, the new one would be a second
    texts: dict[str, float] = {}
    passed_keywords = {keyword.arg for keyword in node.keywords}
    for call in other_calls:
        if len(call.args) > len(node.args) and not node.keywords:
            texts.setdefault(tree.text(call.args[len(node.args)]), 0.8)
        for keyword in call.keywords:
            if keyword.arg not in passed_keywords and keyword.arg:
                texts.setdefault(f"{keyword.arg}={tree.text(keyword.value)}", 0.7)
    names = tree.scope_names(node)
    callee = tree.functions.get(last_part(tree.text(node.func)))
    if callee is not None:
        for parameter in (*callee.args.args[len(node.args) :], *callee.args.kwonlyargs):
            if parameter.arg in names.kinds and parameter.arg not in passed_keywords:
                texts.setdefault(f"{parameter.arg}={parameter.arg}", 0.7)
    for text, weight in list(texts.items())[: tuning.MAX_REUSED]:
        if len(text) <= tuning.MAX_REUSED_CHARS:
            argument = f", {text}" if node.args or node.keywords else text
            yield insert_text(end, argument, f"{shorten(text)} is also passed", weight)


def _add_decorator(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add a decorator: by the first parameter, or another one that the file uses."""
    assert isinstance(node, DECORATED)
    start, indent = tree.offset(first_line(node), 0), tree.indent(node)
    present = {tree.text(decorator) for decorator in node.decorator_list}
    others = [text for text in tree.cached("decorators", _find_decorators) if text not in present]
    weights = dict.fromkeys(others[: tuning.MAX_REUSED], 0.5)
    if isinstance(node, FUNCTIONS) and isinstance(tree.parent(node), ast.ClassDef):
        parameter = node.args.args[0].arg if node.args.args else ""
        fits = {
            "classmethod": parameter == "cls",
            "staticmethod": parameter not in ("self", "cls"),
            "property": parameter == "self" and len(node.args.args) == 1,
        }
        weights |= {name: 0.9 if fit else 0.1 for name, fit in fits.items() if name not in present}
    weights |= {text: 0.9 for text in _fitting_decorators(node, tree) if text not in present}
    for text, weight in weights.items():
        # A decorator needs its own line, so that nothing may precede the definition on its line.
        if not indent.strip() and len(text) <= tuning.MAX_REUSED_CHARS:
            yield insert_text(start, f"{indent}@{text}\n", f"@{text} before {node.name}", weight)


def _fitting_decorators(node: ast.AST, tree: PythonTree) -> Iterator[str]:
    """Yield decorators that the form of a definition calls for, where the file can name them."""
    parent = tree.parent(node)
    if isinstance(node, ast.ClassDef):
        if any(isinstance(field, ast.AnnAssign) for field in node.body):
            yield from _accessible_name("dataclasses", "dataclass", tree)
        if any(isinstance(method, FUNCTIONS) and method.name in ORDERING_METHODS for method in node.body):
            yield from _accessible_name("functools", "total_ordering", tree)
        return
    assert isinstance(node, FUNCTIONS)
    if isinstance(parent, ast.ClassDef):
        before = [m for m in parent.body if isinstance(m, FUNCTIONS) and m.lineno < node.lineno]
        if any(m.name == node.name and m.decorator_list for m in before) and len(node.args.args) == 2:
            # An earlier method of this name has a decorator, probably `property`; this takes a new value.
            yield f"{node.name}.setter"
    elif isinstance(parent, FUNCTIONS) and parent.args.args:
        for wraps in _accessible_name("functools", "wraps", tree):
            yield f"{wraps}({parent.args.args[0].arg})"
    if any(isinstance(part, ast.Yield) for part in ast.walk(node)):
        yield from _accessible_name("contextlib", "contextmanager", tree)


def _accessible_name(module: str, name: str, tree: PythonTree) -> Iterator[str]:
    """Yield the name of a module's member as the file can write it."""
    if name in known_names(tree):
        yield name
    if module in known_names(tree):
        yield f"{module}.{name}"


def _iterate_over(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Iterate over something else instead of an empty literal."""
    assert isinstance(node, (ast.For, ast.AsyncFor))
    if tree.text(node.iter) not in EMPTY_LITERALS:
        return
    is_pair = isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2
    paths = list(dict.fromkeys(_attribute_paths(tree.enclosing_function(node), tree)))[: tuning.MAX_REUSED]
    paths += [path for path in tree.cached("paths of self", _self_paths) if path not in paths]
    names = tree.scope_names(node)
    fits: dict[str, float] = {}
    for name, fit in names.fitting("sequence", node.lineno):
        fits[name] = 0.8 if is_pair and names.kinds[name] == "mapping" else fit
    for name, fit in (*fits.items(), *((path, 0.8) for path in paths)):
        fit *= tuning.PLURAL_FACTOR if _is_plural_of(name, node.target) else 1.0
        forms = (f"{name}.items()", f"enumerate({name})", name) if is_pair else (name, f"range({name})")
        for rank, form in enumerate((*forms, f"range(len({name}))", f"reversed({name})")):
            yield replace_with(tree, node.iter, form, fit * (1.0 - 0.15 * rank))


def _is_plural_of(name: str, target: ast.expr) -> bool:
    """Return whether a name is the plural of a loop's variable: `for part in self.parts`."""
    singular = target.id if isinstance(target, ast.Name) else ""
    return singular != "" and last_part(name) in (f"{singular}s", f"{singular}es", f"{singular[:-1]}ies")


def _attribute_paths(scope: ast.AST | None, tree: PythonTree) -> Iterator[str]:
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield tree.text(node)


def _self_paths(tree: PythonTree) -> list[str]:
    """Return attributes of `self` that the file uses; a method may use one that its base class has."""
    paths = dict.fromkeys(path for path in _attribute_paths(tree.module, tree) if path.startswith("self."))
    return list(paths)[: 2 * tuning.MAX_REUSED]


def _assigned_values_by_target(tree: PythonTree) -> dict[str, list[str]]:
    """Return last part of a target -> the short values assigned to it, as written and each once."""
    values: dict[str, list[str]] = {}
    for node in tree.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            texts = values.setdefault(last_part(tree.text(node.targets[0])), [])
            text = tree.text(node.value)
            if len(text) <= tuning.MAX_REUSED_CHARS and text not in texts:
                texts.append(text)
    return values


def _calls_by_name(tree: PythonTree) -> dict[str, list[ast.Call]]:
    """Return last part of a called function -> a few of its calls."""
    calls_by_name: dict[str, list[ast.Call]] = {}
    for node in tree.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            calls = calls_by_name.setdefault(last_part(tree.text(node.func)), [])
            if (
                len(calls) <= tuning.MAX_REUSED
            ):  # one more than are used, because a call does not reuse itself
                calls.append(node)
    return calls_by_name


def _find_decorators(tree: PythonTree) -> list[str]:
    """Return the decorators that the file uses, each once."""
    nodes = [node for node in tree.nodes if isinstance(node, DECORATED)]
    texts = (tree.text(decorator) for node in nodes for decorator in node.decorator_list)
    return list(dict.fromkeys(texts))


SIBLING_NODES = (
    ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.List, ast.Tuple,
    ast.IfExp,
)  # fmt: skip
"""Expressions that may replace another. Names and constants are left to the operators that are made for them."""


def _use_sibling(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Use another expression of the same function.

    Other operators change what is called, the owner of an attribute, and constants and names in operations.
    """
    if not isinstance(node, ast.expr) or not is_read(node):
        return
    parent = tree.parent(node)
    if tree.is_called(node) or isinstance(parent, ast.Attribute):
        return
    if isinstance(node, (ast.Constant, ast.Name)) and isinstance(parent, (ast.BinOp, ast.Expr, ast.BoolOp)):
        return
    kind = guess_kind(node, tree.scope_names(node))
    for sibling, weight in _siblings_of(node, tree):
        text = tree.text(sibling)
        if text != tree.text(node):
            sibling_kind = guess_kind(sibling, tree.scope_names(node))
            is_unlike = kind != sibling_kind and "unknown" not in (kind, sibling_kind)
            yield replace_with(tree, node, text, weight * (0.4 if is_unlike else 1.0))


def _siblings_of(node: ast.expr, tree: PythonTree) -> Iterator[tuple[ast.expr, float]]:
    """Yield `(expression, weight)` for expressions of the same function, without those that hold the node.

    Expressions whose parents have the same type come first, then the nearest.
    """
    scope = tree.enclosing_function(node)
    if scope is None:
        return
    ancestor_ids = {id(ancestor) for ancestor in tree.ancestors(node)}
    all_siblings = tree.cached(f"siblings {id(scope)}", lambda tree: _collect_siblings(scope, tree))
    index = bisect_left(all_siblings, node.lineno, key=lambda entry: entry[0].lineno)
    candidates: dict[str, tuple[float, int, ast.expr]] = {}
    for other, text in all_siblings[max(0, index - tuning.SIBLING_RANGE) : index + tuning.SIBLING_RANGE]:
        if id(other) in ancestor_ids or other is node:
            continue
        has_same_role = type(tree.parent(other)) is type(tree.parent(node))
        # `(weight, nearness in lines, expression)`: of equal expressions, the occurrence with the best first two
        # counts.
        entry = (1.0 if has_same_role else 0.7, -abs(other.lineno - node.lineno), other)
        if text not in candidates or entry[:2] > candidates[text][:2]:
            candidates[text] = entry
    best = sorted(candidates.values(), key=lambda entry: entry[:2], reverse=True)
    for weight, _, other in best[: tuning.MAX_SIBLINGS]:
        yield other, weight


def _collect_siblings(scope: ast.AST, tree: PythonTree) -> list[tuple[ast.expr, str]]:
    """Return small expressions that a function reads, with their sources, in the order of their lines."""
    siblings = []
    for node in ast.walk(scope):
        if isinstance(node, SIBLING_NODES) and is_read(node) and not tree.is_called(node):
            text = tree.text(node)
            if len(text) <= tuning.MAX_SIBLING_CHARS:
                siblings.append((node, text))
    return sorted(siblings, key=lambda sibling: sibling[0].lineno)


PLACES = (*SIBLING_NODES, ast.Name, ast.Constant)
"""Nodes that a sibling may replace."""
OPERATORS = (
    PythonOperator(name="reused_value", nodes=(ast.Assign,), changes=_reuse_value),
    PythonOperator(name="reused_argument", nodes=(ast.Call,), changes=_reuse_argument),
    PythonOperator(name="decorator", nodes=DECORATED, changes=_add_decorator),
    PythonOperator(name="empty_iteration", nodes=(ast.For, ast.AsyncFor), changes=_iterate_over),
    PythonOperator(name="sibling_expression", nodes=PLACES, changes=_use_sibling),
)
