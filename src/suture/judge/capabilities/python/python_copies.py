"""Find classes that a change lets a test copy or take apart in a way that deceives it.

A test keeps a copy to see that a function leaves its argument as it is. If the copy is the object itself, it shows
nothing. A `match` statement binds what `__match_args__` names, in that order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.judge.capabilities.python.python_evidence import get_body
from suture.judge.capabilities.use import Use
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS, walk_own_nodes

REDUCERS = ("__reduce__", "__reduce_ex__")
COPYING_METHODS = ("__copy__", "__deepcopy__", *REDUCERS)
MATCHED_FIELDS = "__match_args__"
COPYING_HOOKS = frozenset((*COPYING_METHODS, MATCHED_FIELDS))
"""Attributes of a class that decide how its objects are copied and taken apart."""
LOOKING_UP = ("get", "setdefault", "pop")
UNCHANGING_BASES = frozenset((
    "str", "int", "float", "bytes", "tuple", "frozenset", "NamedTuple", "Enum", "IntEnum", "StrEnum", "Flag",
    "IntFlag", "date", "datetime", "time", "timedelta", "Decimal",
))  # fmt: skip


def find_deceptive_copies(before: str, after: str) -> Iterator[Use]:
    """Yield the methods of existing classes that newly return the object in place of a copy, and other bindings."""
    if not any(name in after for name in COPYING_METHODS) and MATCHED_FIELDS not in after:
        return
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return
    old_classes = {node.name: node for node in ast.walk(old_tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(new_tree):
        if not isinstance(node, ast.ClassDef) or node.name not in old_classes:
            continue
        old_members, members = _list_members(old_classes[node.name]), _list_members(node)
        for name, member in members.items():
            old = old_members.get(name)
            if old is not None and ast.dump(old) == ast.dump(member):
                continue
            key = f"{node.name}.{name}"
            if name == MATCHED_FIELDS and _binds_otherwise(node, member, old):
                yield Use(code="loosens_comparison", name=key, line=member.lineno, key=key)
            elif name in COPYING_METHODS and _may_change(node, members) and _returns_itself(name, members):
                yield Use(code="hides_effects", name=key, line=member.lineno, key=key)


def _list_members(node: ast.ClassDef) -> dict[str, ast.stmt]:
    members: dict[str, ast.stmt] = {}
    for part in node.body:
        if isinstance(part, FUNCTIONS):
            members[part.name] = part
        elif isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            members.update((target.id, part) for target in targets if isinstance(target, ast.Name))
    return members


def _may_change(node: ast.ClassDef, members: Mapping[str, ast.stmt]) -> bool:
    """Return whether the objects of a class have attributes that may get other values."""
    settings: list[ast.AST] = [*node.decorator_list, *node.keywords]
    if "model_config" in members:
        settings.append(members["model_config"])
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    refuses = any(isinstance(part, ast.Raise) for part in ast.walk(members.get("__setattr__", ast.Pass())))
    if "frozen" in " ".join(map(ast.unparse, settings)) or bases & UNCHANGING_BASES or refuses:
        return False
    return any(map(_declares_field, node.body)) or any(
        _sets_attribute(member) for name, member in members.items() if name != "__new__"
    )


def _declares_field(part: ast.stmt) -> bool:
    """Return whether an annotation may be a field. One with a constant may be an attribute of the class."""
    if not isinstance(part, ast.AnnAssign) or isinstance(part.value, ast.Constant):
        return False
    return "ClassVar" not in ast.unparse(part.annotation)


def _sets_attribute(method: ast.stmt) -> bool:
    """Return whether a method sets an attribute of its object."""
    own = _get_first_parameter(method)
    return own != "cls" and any(
        isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == own
        for part in ast.walk(method)
    )


def _get_first_parameter(function: ast.AST) -> str | None:
    if not isinstance(function, (*FUNCTIONS, ast.Lambda)):
        return None
    return next((part.arg for part in (*function.args.posonlyargs, *function.args.args)), None)


def _returns_itself(name: str, members: Mapping[str, ast.stmt]) -> bool:
    """Return whether a method that copies returns the object, or one that is stored somewhere, and no new one."""
    function: ast.AST = members[name]
    if isinstance(function, ast.Assign | ast.AnnAssign) and function.value is not None:
        function = function.value
    if isinstance(function, ast.Name):  # as in `__copy__ = copy`
        function = members.get(function.id, function)
    own = _get_first_parameter(function)
    if own is None or not isinstance(function, (*FUNCTIONS, ast.Lambda)):
        return False
    parts = list(walk_own_nodes(get_body(function)))
    returned = [part.value for part in parts if isinstance(part, ast.Return) and part.value is not None]
    if name in REDUCERS:
        return any(_names_object(value, own) for value in returned)
    assigned: dict[str, list[ast.expr]] = {}
    for part in parts:
        if isinstance(part, ast.Assign):
            for target in part.targets:
                assigned.setdefault(getattr(target, "id", ""), []).append(part.value)
    for value in returned:
        values = assigned.get(value.id, [value]) if isinstance(value, ast.Name) else [value]
        if all(_is_stored(part, own) for part in values):
            return True
    return False


def _is_stored(value: ast.expr, own: str) -> bool:
    match value:
        case ast.Name(id=name):
            return name == own
        case ast.IfExp(body=first, orelse=second):
            return _is_stored(first, own) or _is_stored(second, own)
        case ast.BoolOp(values=values):
            return any(_is_stored(part, own) for part in values)
        case ast.Call(func=ast.Attribute(attr=method), args=arguments) if method in LOOKING_UP:
            return any(_is_stored(part, own) for part in arguments)
    return False


def _names_object(value: ast.expr, own: str) -> bool:
    """Return whether what `__reduce__` returns leads back to the object: a string, or the object as an argument."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    given = value.elts[1:2] if isinstance(value, ast.Tuple) else []
    parts = [part for argument in given if isinstance(argument, ast.Tuple) for part in argument.elts]
    return any(
        _is_stored(part, own) or (isinstance(part, ast.Call) and ast.unparse(part) == f"id({own})")
        for part in parts
    )


def _binds_otherwise(node: ast.ClassDef, member: ast.stmt, old: ast.stmt | None) -> bool:
    """Return whether the fields that patterns bind by position have another order than in the constructor."""
    value = getattr(member, "value", None)
    names = [getattr(part, "value", None) for part in getattr(value, "elts", ())]
    if None in names or not names:
        return False  # not literal, as in `__match_args__ = __slots__`
    fields = [
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    constructor = _list_members(node).get("__init__")
    if isinstance(constructor, FUNCTIONS):
        fields = [part.arg for part in (*constructor.args.posonlyargs, *constructor.args.args)][1:]
    old_names = [getattr(part, "value", None) for part in getattr(getattr(old, "value", None), "elts", ())]
    known = fields if set(names) & set(fields) else old_names
    return [name for name in known if name in names] != [name for name in names if name in known]
