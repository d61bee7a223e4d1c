"""Find classes whose objects a change lets be equal although they differ in a field that was compared before."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from suture.judge.capabilities.python.python_classes import VALUE_CLASSES
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS

MAX_FOLLOWED_METHODS = 3
"""Methods of its own class through which an `__eq__` is followed, as in `self._key() == other._key()`. Chosen by
judgement."""
UNCOMPARED_ANNOTATIONS = ("InitVar", "ClassVar")
CONTENT_CLASSES = VALUE_CLASSES | {"types.SimpleNamespace", "pathlib.PurePath", "pathlib.PurePosixPath"}
"""Classes whose objects are compared by their content, and not by the attributes of a subclass."""
IDENTITY_BASES = ("", "object", "abc.ABC", "typing.Protocol", "Exception")
"""Bases whose objects are equal to themselves only; empty for a generic base."""
LOSSY_CALLS = frozenset(
    ("repr", "str", "hash", "len", "round", "sorted", "set", "frozenset", "int", "bool", "sum", "min", "max")
)
"""Functions that may return the same for different values."""
MIN_WIDE_TOLERANCE = 0.001
"""Smallest tolerance that is too wide for rounding errors. Chosen by judgement."""
RECORD_DECORATORS = ("dataclass", "define", "frozen", "mutable", "attrs", "s")
"""Decorators of `dataclasses` and `attrs` that compare all declared fields."""


def find_dropped_fields(before: str, after: str) -> Iterator[Use]:
    """Yield each class whose comparison leaves out a field that it compared before, and compares nothing instead."""
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return
    old_names, new_names = ModuleNames(old_tree), ModuleNames(new_tree)
    old_classes = _list_classes(old_tree)
    for name, node in _list_classes(new_tree).items():
        if name not in old_classes:
            continue
        if _loses_differences(old_classes[name], old_names, old_classes, node, new_names):
            yield Use(
                code="loosens_comparison",
                name=f"{name}.__eq__",
                line=node.lineno,
                key=f"{name}.__eq__ loses",
            )
        if _compares_derived_only(old_classes[name], node):
            yield Use(
                code="loosens_comparison",
                name=f"{name}.__eq__",
                line=node.lineno,
                key=f"{name}.__eq__ derived",
            )
        if _hides_fields(old_classes[name], old_names, node, new_names, new_tree):
            yield Use(
                code="loosens_comparison",
                name=f"{name} without its fields",
                line=node.lineno,
                key=f"{name} fields",
            )
        old, new = _list_compared_fields(old_classes[name], old_names), _list_compared_fields(node, new_names)
        # A field that the class no longer has does not count as a difference.
        dropped = {field for field in (old or set()) - (new or set()) if _has_field(node, field)}
        if old is not None and new is not None and dropped and new < old:
            field = min(dropped)
            yield Use(
                code="loosens_comparison",
                name=f"{name} without {field}",
                line=node.lineno,
                key=f"{name}.{field}",
            )


def _loses_differences(
    old: ast.ClassDef,
    old_names: ModuleNames,
    old_classes: Mapping[str, ast.ClassDef],
    new: ast.ClassDef,
    new_names: ModuleNames,
) -> bool:
    """Return whether a class newly compares less than values that it compared before.

    Whatever it compares besides these values themselves makes no more objects equal.
    """
    if not _compares_values(old, old_names, old_classes):
        return False
    compared = _list_compared_fields(old, old_names)
    old_losses, _ = _examine_comparison(old, old_names)
    new_losses, direct = _examine_comparison(new, new_names)
    return bool(new_losses - old_losses) and (not compared or not compared <= direct)


def _compares_values(node: ast.ClassDef, names: ModuleNames, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Return whether an object of a class may equal another one, because of the class or its bases."""
    if _is_record(node, names) or any(
        isinstance(part, FUNCTIONS) and part.name == "__eq__" for part in node.body
    ):
        return True
    others = {name: found for name, found in classes.items() if found is not node}
    bases = [names.resolve(base) for base in node.bases]
    return any(
        _compares_values(others[base], names, others) if base in others else base not in IDENTITY_BASES
        for base in bases
    )


def _hides_fields(
    old: ast.ClassDef, old_names: ModuleNames, new: ast.ClassDef, new_names: ModuleNames, module: ast.Module
) -> bool:
    """Return whether what newly compares the objects of a class does not see the attributes that it sets.

    Either a generated `__eq__` compares no field, or a built-in base compares only its own content.
    """
    sets_attributes = any(
        isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) for part in ast.walk(new)
    )
    has_method = any(isinstance(part, FUNCTIONS) and part.name == "__eq__" for part in new.body)
    if not sets_attributes or has_method:
        return False
    added = {new_names.resolve(base) for base in new.bases} - {old_names.resolve(base) for base in old.bases}
    if added & CONTENT_CLASSES:
        return True
    is_record = _is_record(new, new_names) or _is_made_record(new, new_names, module)
    return is_record and not _is_record(old, old_names) and not _list_declared_fields(new)


def _examine_comparison(node: ast.ClassDef, names: ModuleNames) -> tuple[set[str], set[str]]:
    """Return by what an `__eq__`, with the methods that it calls, may make different objects equal, and what else.

    Such are `repr`, `sorted` or `round` of what is compared, a wide tolerance, parts of strings, and alternatives. The
    second set has the attributes that are compared as they are.
    """
    methods = {part.name: part for part in node.body if isinstance(part, FUNCTIONS)}
    waiting, examined, losses, direct = ["__eq__"], set[str](), set[str](), set[str]()
    while waiting:
        name = waiting.pop()
        if name in examined or name not in methods:
            continue
        examined.add(name)
        parts: list[ast.AST] = [*methods[name].body]
        while parts:
            part = parts.pop()
            if isinstance(part, ast.Raise):
                continue
            if _find_loss(part, names):
                losses.update(filter(None, (_find_loss(inner, names) for inner in ast.walk(part))))
                continue
            if isinstance(part, ast.Attribute):
                waiting.append(part.attr)
            direct |= {inner.attr for inner in _list_compared(part) if isinstance(inner, ast.Attribute)}
            parts += ast.iter_child_nodes(part)
    return losses, direct


def _list_compared(node: ast.AST) -> list[ast.expr]:
    """Return the values that a node compares, or puts together for a comparison."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            return [left, right]
        case ast.Tuple(elts=parts):
            return parts
        case ast.Return(value=ast.Attribute() as value):
            return [value]
    return []


def _find_loss(node: ast.AST, names: ModuleNames) -> str:
    match node:
        case ast.Call(func=func) if names.resolve(func) in LOSSY_CALLS:
            return names.resolve(func)
        case ast.Call(func=func, keywords=options) if names.resolve(func).endswith("isclose"):
            return "isclose" if any(map(_is_wide, (option.value for option in options))) else ""
        case ast.Compare(ops=[ast.Lt() | ast.LtE()], comparators=[limit]) if _is_wide(limit):
            return "tolerance" if _is_distance(node.left) else ""
        case ast.Tuple(elts=parts) if any(isinstance(part, ast.Compare) for part in parts):
            return "condition"
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
            return "division"
        case ast.Subscript(slice=ast.Slice()):
            return "slice"
        case ast.BoolOp(op=ast.Or(), values=values):
            equalities = [
                value
                for value in values
                if isinstance(value, ast.Compare)
                and isinstance(value.ops[0], ast.Eq)
                and all(isinstance(side, ast.Attribute) for side in (value.left, *value.comparators))
            ]
            return "or" if len(equalities) > 1 else ""
    return ""


def _is_wide(node: ast.expr) -> bool:
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, (int, float)) and value is not True and value >= MIN_WIDE_TOLERANCE


def _is_distance(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs"


def _compares_derived_only(old: ast.ClassDef, new: ast.ClassDef) -> bool:
    """Return whether a new `__eq__` compares none of the values that `__init__` gets, only what follows from them.

    Objects that were equal to themselves only are then equal for different values.
    """
    methods = {part.name: part for part in new.body if isinstance(part, FUNCTIONS)}
    had_method = any(isinstance(part, FUNCTIONS) and part.name == "__eq__" for part in old.body)
    if had_method or "__eq__" not in methods or "__init__" not in methods:
        return False
    compared = _list_attributes("__eq__", methods, MAX_FOLLOWED_METHODS)
    given = {
        field.attr
        for part in ast.walk(methods["__init__"])
        if isinstance(part, ast.Assign)
        for target in part.targets
        for field, value in zip(_list_parts(target), _list_parts(part.value), strict=False)
        if isinstance(field, ast.Attribute) and isinstance(value, ast.Name)
    }
    return bool(compared and given) and not (compared or set()) & given


def _list_parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _is_made_record(node: ast.ClassDef, names: ModuleNames, module: ast.Module) -> bool:
    """Return whether a statement such as `dataclass(init=False)(Point)` makes a class a record."""
    return any(
        isinstance(part, ast.Call)
        and [ast.unparse(argument) for argument in part.args] == [node.name]
        and names.resolve(part.func.func if isinstance(part.func, ast.Call) else part.func).rpartition(".")[2]
        in RECORD_DECORATORS
        for part in ast.walk(module)
    )


def _list_classes(tree: ast.Module) -> Mapping[str, ast.ClassDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _list_compared_fields(node: ast.ClassDef, names: ModuleNames) -> set[str] | None:
    """Return the attributes by which objects of a class are compared; `None` if its source does not show them."""
    methods = {part.name: part for part in node.body if isinstance(part, FUNCTIONS)}
    if "__eq__" in methods:
        return _list_attributes("__eq__", methods, MAX_FOLLOWED_METHODS)
    if not _is_record(node, names):
        return None
    return _list_declared_fields(node)


def _list_declared_fields(node: ast.ClassDef) -> set[str]:
    return {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and _is_compared(part)
    }


def _is_record(node: ast.ClassDef, names: ModuleNames) -> bool:
    decorators = (part.func if isinstance(part, ast.Call) else part for part in node.decorator_list)
    is_decorated = any(names.resolve(part).rpartition(".")[2] in RECORD_DECORATORS for part in decorators)
    return is_decorated or any(names.resolve(base).endswith("NamedTuple") for base in node.bases)


def _is_compared(field: ast.AnnAssign) -> bool:
    is_data = not any(word in ast.unparse(field.annotation) for word in UNCOMPARED_ANNOTATIONS)
    options = field.value.keywords if isinstance(field.value, ast.Call) else []
    return is_data and not any(
        option.arg in ("compare", "eq") and isinstance(option.value, ast.Constant) and not option.value.value
        for option in options
    )


def _list_attributes(name: str, methods: Mapping[str, ast.AST], depth: int) -> set[str] | None:
    """Return the attributes of its object that a method reads; `None` if it takes the object as a whole."""
    method = methods[name]
    arguments = method.args.args if isinstance(method, FUNCTIONS) else []
    if not arguments:
        return None
    own = arguments[0].arg
    found: set[str] = set()
    owners = [part.value for part in ast.walk(method) if isinstance(part, ast.Attribute)]
    for part in ast.walk(method):
        if (
            isinstance(part, ast.Name)
            and part.id == own
            and part not in owners
            and not _is_only_typed(part, method)
        ):
            return None
        if (
            not isinstance(part, ast.Attribute)
            or not isinstance(part.value, ast.Name)
            or part.value.id != own
        ):
            continue
        if part.attr.startswith("__"):
            if part.attr != "__class__":
                return None
        elif part.attr not in methods:
            found.add(part.attr)
        elif depth:
            inner = _list_attributes(part.attr, methods, depth - 1)
            if inner is None:
                return None
            found |= inner
    return found


def _is_only_typed(name: ast.Name, method: ast.AST) -> bool:
    """Return whether a name only occurs in `type(self)`, `isinstance(self, A)` or `self is other`."""
    for part in ast.walk(method):
        if isinstance(part, ast.Call) and name in part.args and isinstance(part.func, ast.Name):
            return part.func.id in ("type", "isinstance")
        if isinstance(part, ast.Compare) and name in (part.left, *part.comparators):
            return isinstance(part.ops[0], ast.Is | ast.IsNot)
    return False


def _has_field(node: ast.ClassDef, field: str) -> bool:
    return any(
        getattr(part, "attr", None) == field
        or getattr(part, "id", None) == field
        or getattr(part, "arg", None) == field
        for part in ast.walk(node)
    )
