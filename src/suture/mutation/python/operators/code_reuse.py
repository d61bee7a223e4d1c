"""As the file does it elsewhere: the same target, the same callee, other decorators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.mutation.edits import Edit
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree
from suture.mutation.changes import Change, Operator, replace_with, shorten
from suture.mutation.python.operators.undefined_names import known_names
from suture.project.python_source.parsing import first_line

NAMED_SO = 2.0
"""How much likelier what a loop goes through is where it is called as its variable, and many."""
MOST_ELSEWHERE = 8
"""Pieces of other code that one place is offered, so that no kind of change crowds the others out."""
LONGEST = 60
"""Characters of such a piece; what is longer hardly fits a second place. By taste."""
EMPTY = ("[]", "()", "{}")
ORDERS = ("__lt__", "__le__", "__gt__", "__ge__")


def _value(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """What the file assigns to the same target elsewhere, and names in place of a bare `None`."""
    assert isinstance(node, ast.Assign)
    target = _last_part(view.text(node.targets[0]))
    for text in _assigned(view).get(target, ())[:MOST_ELSEWHERE]:
        if text != view.text(node.value):
            yield replace_with(view, node.value, text, 0.8)
    if isinstance(node.value, ast.Constant) and node.value.value in (None, ""):
        for name, fit in view.scope_names(node).fitting("unknown", node.lineno):
            if name != target:
                yield replace_with(view, node.value, name, 0.7 * fit)
                yield replace_with(view, node.value, f"{name}.{target}", 0.4 * fit)


def _argument(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """Arguments as other calls of the same function have them, or under the names that they have here."""
    assert isinstance(node, ast.Call)
    callee = _last_part(view.text(node.func))
    others = [call for call in _calls(view).get(callee, ()) if call is not node]
    for at, argument in enumerate(node.args):
        if isinstance(argument, ast.Constant) and argument.value is None:
            mined = [view.text(c.args[at]) for c in others if at < len(c.args)]
            for text in list(dict.fromkeys(t for t in mined if len(t) <= LONGEST))[:MOST_ELSEWHERE]:
                yield replace_with(view, argument, text, 0.8)
            for name, fit in view.scope_names(node).fitting("unknown", node.lineno):
                yield replace_with(view, argument, name, 0.7 * fit)
                if fit >= 0.8:
                    yield replace_with(view, argument, f"{name}[0]", 0.2)
    yield from _appended(node, others, view)


def _appended(node: ast.Call, others: list[ast.Call], view: PythonTree) -> Iterator[Change]:
    """One argument more: of another call, or a parameter of the callee that has its name here."""
    end = view.span(node)[1] - 1
    bare = bool(node.args) and isinstance(node.args[-1], ast.GeneratorExp)
    if view.raw[end : end + 1] != b")" or view.raw[:end].rstrip().endswith(b",") or bare:
        return
    texts: dict[str, float] = {}
    given = {keyword.arg for keyword in node.keywords}
    for call in others:
        if len(call.args) > len(node.args) and not node.keywords:
            texts.setdefault(view.text(call.args[len(node.args)]), 0.8)
        for keyword in call.keywords:
            if keyword.arg not in given and keyword.arg:
                texts.setdefault(f"{keyword.arg}={view.text(keyword.value)}", 0.7)
    names = view.scope_names(node)
    callee = view.functions.get(_last_part(view.text(node.func)))
    if callee is not None:
        for parameter in (*callee.args.args[len(node.args) :], *callee.args.kwonlyargs):
            if parameter.arg in names.kinds and parameter.arg not in given:
                texts.setdefault(f"{parameter.arg}={parameter.arg}", 0.7)
    for text, weight in list(texts.items())[:MOST_ELSEWHERE]:
        if len(text) <= LONGEST:
            edit = Edit(start=end, end=end, text=f", {text}" if node.args or node.keywords else text)
            yield Change(edits=(edit,), note=f"{shorten(text)} is given too", weight=weight)


def _order(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """Arguments that have the names of the callee's parameters, in the parameters' order."""
    assert isinstance(node, ast.Call)
    callee = view.functions.get(_last_part(view.text(node.func)))
    if callee is None or len(node.args) < 2 or any(isinstance(a, ast.Starred) for a in node.args):
        return
    parameters = [a.arg for a in callee.args.args if a.arg not in ("self", "cls")][: len(node.args)]
    texts = [view.text(argument) for argument in node.args]
    if sorted(texts) != sorted(parameters) or texts == parameters:
        return
    edits = tuple(view.replacement(a, p) for a, p in zip(node.args, parameters, strict=True) if view.text(a) != p)
    yield Change(edits=edits, note="arguments in the order of the parameters", weight=1.0)


def _decorator(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A decorator that is missing: by the first parameter, or as the file uses it elsewhere."""
    assert isinstance(node, (*FUNCTIONS, ast.ClassDef))
    start, indent = view.offset(first_line(node), 0), view.indent(node)
    own = {view.text(decorator) for decorator in node.decorator_list}
    elsewhere = list(dict.fromkeys(text for text in _decorators(view) if text not in own))
    options = dict.fromkeys(elsewhere[:MOST_ELSEWHERE], 0.5)
    if isinstance(node, FUNCTIONS) and isinstance(view.parent(node), ast.ClassDef):
        first = node.args.args[0].arg if node.args.args else ""
        fits = {"classmethod": first == "cls", "staticmethod": first not in ("self", "cls")}
        fits["property"] = first == "self" and len(node.args.args) == 1
        options |= {name: 0.9 if fit else 0.1 for name, fit in fits.items() if name not in own}
    options |= {text: 0.9 for text in _called_for(node, view) if text not in own}
    for text, weight in options.items():
        edit = Edit(start=start, end=start, text=f"{indent}@{text}\n")
        if not indent.strip() and len(text) <= LONGEST:
            yield Change(edits=(edit,), note=f"@{text} before {node.name}", weight=weight)


def _called_for(node: ast.AST, view: PythonTree) -> Iterator[str]:
    """Decorators that the form of a definition calls for, where the file can name them."""
    parent = view.parent(node)
    if isinstance(node, ast.ClassDef):
        if any(isinstance(field, ast.AnnAssign) for field in node.body):
            yield from _known("dataclasses", "dataclass", view)
        if any(isinstance(method, FUNCTIONS) and method.name in ORDERS for method in node.body):
            yield from _known("functools", "total_ordering", view)
        return
    assert isinstance(node, FUNCTIONS)
    if isinstance(parent, ast.ClassDef):
        before = [m for m in parent.body if isinstance(m, FUNCTIONS) and m.lineno < node.lineno]
        if any(m.name == node.name and m.decorator_list for m in before) and len(node.args.args) == 2:
            yield f"{node.name}.setter"
    elif isinstance(parent, FUNCTIONS) and parent.args.args:
        yield from (f"{wraps}({parent.args.args[0].arg})" for wraps in _known("functools", "wraps", view))
    if any(isinstance(part, ast.Yield) for part in ast.walk(node)):
        yield from _known("contextlib", "contextmanager", view)


def _known(module: str, name: str, view: PythonTree) -> Iterator[str]:
    """A name of a module as the file can say it."""
    known = known_names(view)
    yield from (text for text, needs in ((name, name), (f"{module}.{name}", module)) if needs in known)


def _iterated(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A loop over an empty display: what else there is to go through."""
    assert isinstance(node, (ast.For, ast.AsyncFor))
    if view.text(node.iter) not in EMPTY:
        return
    pair = isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2
    paths = list(dict.fromkeys(_paths(view.enclosing_function(node), view)))[:MOST_ELSEWHERE]
    paths += [path for path in view.cached("own paths", _own_paths) if path not in paths]
    names = view.scope_names(node)
    fits = (
        (n, 0.8 if pair and names.kinds[n] == "mapping" else f)
        for n, f in names.fitting("sequence", node.lineno)
    )
    for name, fit in (*fits, *((path, 0.8) for path in paths)):
        fit *= NAMED_SO if _is_of_many(name, node.target) else 1.0
        forms = (f"{name}.items()", f"enumerate({name})", name) if pair else (name, f"range({name})")
        for number, form in enumerate((*forms, f"range(len({name}))", f"reversed({name})")):
            yield replace_with(view, node.iter, form, fit * (1.0 - 0.15 * number))


def _is_of_many(name: str, target: ast.expr) -> bool:
    """Whether a name is the plural of a loop's variable: `for part in self.parts`."""
    one = target.id if isinstance(target, ast.Name) else ""
    return bool(one) and _last_part(name) in (f"{one}s", f"{one}es", f"{one[:-1]}ies")


def _paths(scope: ast.AST | None, view: PythonTree) -> Iterator[str]:
    for node in ast.walk(scope) if scope is not None else ():
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield view.text(node)


def _own_paths(view: PythonTree) -> list[str]:
    """Attributes of `self` that the file names: a method may go through one that its base has."""
    paths = dict.fromkeys(path for path in _paths(view.tree, view) if path.startswith("self."))
    return list(paths)[: 2 * MOST_ELSEWHERE]


def _assigned(view: PythonTree) -> dict[str, list[str]]:
    return view.cached("assigned", _find_assigned)


def _find_assigned(view: PythonTree) -> dict[str, list[str]]:
    """Last part of a target -> texts that are assigned to it, each once; short ones."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(view.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            texts = found.setdefault(_last_part(view.text(node.targets[0])), [])
            text = view.text(node.value)
            if len(text) <= LONGEST and text not in texts:
                texts.append(text)
    return found


def _calls(view: PythonTree) -> dict[str, list[ast.Call]]:
    return view.cached("calls", _find_calls)


def _find_calls(view: PythonTree) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in ast.walk(view.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            calls = found.setdefault(_last_part(view.text(node.func)), [])
            if len(calls) <= MOST_ELSEWHERE:
                calls.append(node)
    return found


def _decorators(view: PythonTree) -> list[str]:
    return view.cached("decorators", _find_decorators)


def _find_decorators(view: PythonTree) -> list[str]:
    nodes = [n for n in ast.walk(view.tree) if isinstance(n, (*FUNCTIONS, ast.ClassDef))]
    return [view.text(decorator) for node in nodes for decorator in node.decorator_list]


def _last_part(text: str) -> str:
    return text.rpartition(".")[2]


DECORATED = (*FUNCTIONS, ast.ClassDef)
OPERATORS = (
    Operator(name="value elsewhere", prior=0.45, nodes=(ast.Assign,), changes=_value),
    Operator(name="argument elsewhere", prior=0.45, nodes=(ast.Call,), changes=_argument),
    Operator(name="order of parameters", prior=0.9, nodes=(ast.Call,), changes=_order),
    Operator(name="decorator", prior=0.4, nodes=DECORATED, changes=_decorator),
    Operator(name="nothing iterated", prior=0.8, nodes=(ast.For, ast.AsyncFor), changes=_iterated),
)
