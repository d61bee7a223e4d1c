"""What was forgotten: to hand on a parameter, to keep a value, to ask first, to look something up."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.repair.editing.edits import Edit
from suture.repair.editing.names_in_scope import kind_of
from suture.repair.editing.view import FUNCTIONS, Function, View
from suture.repair.operators.change import Change, Operator, instead, short
from suture.repair.operators.undefined import BUILTINS

SELF = ("self", "cls")
IDLE = (*(ast.JoinedStr, ast.BinOp, ast.Name, ast.Attribute, ast.Subscript), *(ast.List, ast.Tuple, ast.Dict))
"""Values that a statement computes for nothing; a call may be there for what it does."""
MOST_ASKED = 3
"""Names of a value that a condition may ask about."""
EMPTY = {"text": '""', "sequence": "[]", "mapping": "{}"}
UNREAD, OTHER = 1.0, 0.5


def _handed_on(node: ast.AST, view: View) -> Iterator[Change]:
    """A parameter that nothing reads: a call that the function makes takes it, by its name or as it comes."""
    assert isinstance(node, ast.Call)
    function = view.function_of(node)
    end = view.span(node)[1] - 1
    shares = bool(node.args) and isinstance(node.args[-1], ast.GeneratorExp)
    if function is None or shares or view.raw[:end].rstrip().endswith(b","):
        return
    given = {keyword.arg for keyword in node.keywords}
    for name in _unread(function, view):
        forms = [f"{name}={name}"] if name not in given else []
        forms += [name] if not node.keywords else []
        for form in forms:
            edit = Edit(start=end, end=end, text=f", {form}" if node.args or node.keywords else form)
            yield Change(edits=(edit,), note=f"{form} is handed on", weight=UNREAD)


def _unread(function: Function, view: View) -> list[str]:
    """Parameters that their function never reads."""
    parameters = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return [one.arg for one in parameters if one.arg not in read and one.arg not in SELF]


def _own_method(node: ast.AST, view: View) -> Iterator[Change]:
    """What is called of `self` is none of the file's functions: one that takes as many arguments."""
    assert isinstance(node, ast.Call)
    called = node.func
    if not isinstance(called, ast.Attribute) or view.text(called.value) not in SELF:
        return
    if called.attr in view.functions and not _is_property(view.functions[called.attr], view):
        return
    owner = next((parent for parent in view.above(node) if isinstance(parent, ast.ClassDef)), None)
    for method in owner.body if owner is not None else ():
        if isinstance(method, FUNCTIONS) and _takes(method, node) and not method.name.startswith("__"):
            shared = set(method.name.split("_")) & set(called.attr.split("_"))
            yield instead(
                view, called, f"{view.text(called.value)}.{method.name}", UNREAD if shared else OTHER
            )


def _is_property(function: Function, view: View) -> bool:
    return any(view.text(decorator).endswith("property") for decorator in function.decorator_list)


def _takes(method: Function, call: ast.Call) -> bool:
    """Whether a method takes a call's arguments behind its `self`."""
    most = len(method.args.posonlyargs) + len(method.args.args) - 1
    least = most - len(method.args.defaults)
    return least <= len(call.args) + len(call.keywords) <= most


def _kept(node: ast.AST, view: View) -> Iterator[Change]:
    """A value that nothing does anything with: it is put into a list of the function's."""
    assert isinstance(node, ast.Expr)
    function = view.function_of(node)
    if function is None or not isinstance(node.value, (*IDLE, ast.Call)):
        return
    if isinstance(node.value, ast.Call) and view.text(node.value.func) not in BUILTINS:
        return
    text = view.text(node.value)
    for name, kind in view.names(node).kinds.items():
        if kind == "sequence" and name != text:
            yield instead(view, node.value, f"{name}.append({text})", UNREAD)
        elif kind == "set" and name != text:
            yield instead(view, node.value, f"{name}.add({text})", UNREAD)


def _asked_first(node: ast.AST, view: View) -> Iterator[Change]:
    """A value of a name that may be nothing: what is empty stands for it then."""
    assert isinstance(node, (ast.Assign, ast.Return))
    value = node.value
    if value is None or isinstance(value, (ast.IfExp, ast.Name, ast.Constant, ast.Compare, ast.BoolOp)):
        return
    text, names = view.text(value), view.names(node)
    read = [part.id for part in ast.walk(value) if isinstance(part, ast.Name) and part.id in names.kinds]
    kind = "text" if isinstance(value, ast.JoinedStr) else kind_of(value, names)
    empty = EMPTY.get(kind, "None")
    target = view.text(node.targets[0]) if isinstance(node, ast.Assign) else ""
    for name in list(dict.fromkeys(one for one in read if one not in SELF))[:MOST_ASKED]:
        weight = UNREAD if name == target else OTHER
        for form in (f"{text} if {name} is not None else {empty}", f"{text} if {name} else {empty}"):
            yield instead(view, value, form, weight)
        if name != empty:
            yield instead(view, value, f"{text} if {name} is not None else {name}", 0.8 * weight)


def _looked_up(node: ast.AST, view: View) -> Iterator[Change]:
    """A name that nothing around it binds, and something of many that is called so: one of those."""
    assert isinstance(node, ast.Name)
    function = view.function_of(node)
    if function is None or not isinstance(node.ctx, ast.Load) or node.id in BUILTINS:
        return
    if node.id in view.remembered("bound outside of functions", _bound_outside) or _binds(node, view):
        return
    statement = view.statement_of(node)
    lines, indent = view.lines_of(statement), view.indent(statement)
    if lines is None or indent.strip():
        return
    names = view.names(node)
    keys = [name for name in names.near(statement.lineno) if name not in SELF]
    idle = {name for name in keys if not _is_read(name, function)}
    for source in _of_many(node.id, view, [*names.kinds]):
        for key in keys:
            text = f"{node.id} = {source}[{key}]"
            edit = Edit(start=lines[0], end=lines[0], text=f"{indent}{text}\n")
            weight = UNREAD if key in idle else OTHER
            yield Change(edits=(edit,), note=f"{short(text)} before line {statement.lineno}", weight=weight)


def _of_many(name: str, view: View, local: list[str]) -> Iterator[str]:
    """Names, and attributes of `self`, that are a name's plural."""
    many = (f"{name}s", f"{name}es", f"{name[:-1]}ies")
    yield from (other for other in local if other in many)
    attributes = {part.attr for part in ast.walk(view.tree) if isinstance(part, ast.Attribute)}
    yield from (f"self.{other}" for other in many if other in attributes and "self" in local)


def _is_read(name: str, function: Function) -> bool:
    parts = (part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == name)
    return any(isinstance(part.ctx, ast.Load) for part in parts)


def _binds(node: ast.Name, view: View) -> bool:
    """Whether a function around a name binds it."""
    around = (parent for parent in view.above(node) if isinstance(parent, (*FUNCTIONS, ast.Lambda)))
    return any(_binding(part) == node.id for function in around for part in ast.walk(function))


def _bound_outside(view: View) -> frozenset[str]:
    """Names that the file binds elsewhere than in functions."""
    found: set[str] = set()
    left: list[ast.AST] = [*view.tree.body]
    while left:
        part = left.pop()
        found.add(_binding(part) or "")
        if not isinstance(part, (*FUNCTIONS, ast.Lambda)):
            left += ast.iter_child_nodes(part)
    return frozenset(found)


def _binding(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return name
        case _:
            return None


OPERATORS = (
    Operator(name="parameter handed on", prior=0.7, nodes=(ast.Call,), changes=_handed_on),
    Operator(name="method of its own", prior=0.6, nodes=(ast.Call,), changes=_own_method),
    Operator(name="value kept", prior=0.7, nodes=(ast.Expr,), changes=_kept),
    Operator(name="asked first", prior=0.25, nodes=(ast.Assign, ast.Return), changes=_asked_first),
    Operator(name="looked up", prior=0.8, nodes=(ast.Name,), changes=_looked_up),
)
