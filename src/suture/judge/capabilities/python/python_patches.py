"""Find where a Python file changes other code: modules, classes, namespaces and mocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from suture.judge.capabilities.python.python_classes import is_test_attribute
from suture.judge.capabilities.python.python_evidence import COMPARISON_METHODS
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

MOCK_ATTRIBUTES = frozenset((
    "call_count", "called", "call_args", "call_args_list", "mock_calls", "method_calls", "return_value", "side_effect",
    "await_count", "await_args", "await_args_list",
))  # fmt: skip
"""Attributes of a mock that a test reads, or that decide what its calls return."""

MOCK_METHODS = ("reset_mock", "configure_mock", "mock_add_spec", "attach_mock")
"""Methods that change a mock."""

MOCK_NAME = re.compile(
    r"assert_(?:any_(?:call|await)|has_(?:calls|awaits)|not_(?:called|awaited)|(?:called|awaited)(?:_once)?(?:_with)?)"
    r"|(?:call|await)_args_list|(?:mock|method)_calls"
)
"""A name that only mocks have."""

OWN_OBJECTS = ("self", "cls", "mcs", "mcls", "metacls")
"""Usual names of the object that a method belongs to."""

SETTERS = ("setattr", "delattr", "object.__setattr__", "type.__setattr__")
"""Functions that set or delete the attribute that their second argument names."""

DICTIONARY_CHANGES = (
    "update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__",
)  # fmt: skip
"""Methods that change a dictionary, such as the namespace of a module."""

SETTER_METHODS = ("__setattr__", "__delattr__")
NAMESPACE_FUNCTIONS = (
    "operator.setitem", "operator.delitem", "operator.ior", "operator.__setitem__", "operator.__ior__",
    "dict.update", "dict.setdefault", "dict.pop", "dict.clear", "dict.__setitem__", "dict.__delitem__", "dict.__ior__",
)  # fmt: skip
"""Functions that change the dictionary that is their first argument."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a node is.

    Attributes:
        function: Dotted name of the function, empty outside of functions.
        is_entry: Whether a program may end and read its arguments there, as in `main`.
        local_names: Parameters and variables of the enclosing functions, which hide imports.
        parameters: Parameters of the enclosing functions, which the callers pass.
        restored: Modules whose settings are restored after they are changed there.
        path: Path of the file.
    """

    function: str = ""
    is_entry: bool = False
    local_names: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    path: str = ""


def find_passed_setters(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield `setattr` as a value, such as an argument, because what it changes is then not in the text."""
    is_alias = isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
    for value in ast.iter_child_nodes(node):
        is_called = isinstance(node, ast.Call) and value is node.func
        if (
            is_called
            or not isinstance(value, ast.Name | ast.Attribute)
            or not isinstance(value.ctx, ast.Load)
        ):
            continue
        name = names.resolve(value)
        if (
            isinstance(value, ast.Attribute)
            and value.attr in SETTER_METHODS
            and not _is_own(value.value, names)
        ):
            name = name or value.attr
        elif is_alias or name not in SETTERS:  # another name for the function is followed
            continue
        if name != "object.__setattr__":  # which changes no module and no class
            yield Use(code="patches_code", name=name, line=value.lineno, key=name)


def find_patch_uses(
    owner: ast.expr, attribute: str, line: int, place: Place, names: ModuleNames
) -> Iterator[Use]:
    """Yield the assignment of an attribute on an imported module, or on a class of another module.

    A comparison method counts on any object, because it may make wrong results equal the expected ones.
    """
    root = owner
    while isinstance(root, ast.Attribute):
        root = root.value
    is_shadowed = isinstance(root, ast.Name) and root.id in place.local_names
    # An object that changes its class is compared by other methods.
    is_special = attribute in {*COMPARISON_METHODS, "__class__", "__bases__"}
    is_foreign = not is_shadowed and names.is_foreign(owner)
    if is_special or is_foreign or _is_watched_attribute(owner, root, attribute, place):
        name = f"{names.resolve(owner) or ast.unparse(root)}.{attribute}"
        yield Use(code="patches_code", name=name, line=line, key=name)


def _is_watched_attribute(owner: ast.expr, root: ast.expr, attribute: str, place: Place) -> bool:
    """Return whether an attribute is a test of a class, or belongs to a mock that was passed in."""
    if not isinstance(root, ast.Name):
        return False
    if root.id in OWN_OBJECTS[1:] and is_test_attribute(attribute):
        return True
    is_own = root is owner and root.id in OWN_OBJECTS
    is_mocked = attribute in MOCK_ATTRIBUTES or MOCK_NAME.fullmatch(attribute) is not None
    return is_mocked and not is_own and root.id in place.parameters


def find_namespace_uses(owner: ast.expr, line: int, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a change of `globals()`, `module.__dict__` or `vars(module)`."""
    if isinstance(owner, ast.Call):
        function = names.resolve(owner.func)
        if function == "globals":
            yield Use(code="patches_code", name="globals()", line=line, key="globals()")
        elif function == "vars" and owner.args:
            yield from find_patch_uses(owner.args[0], "__dict__", line, place, names)
    elif isinstance(owner, ast.Attribute) and owner.attr == "__dict__":
        yield from find_patch_uses(owner.value, "__dict__", line, place, names)


def find_patching_calls(node: ast.Call, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a call that changes an attribute of an object that is not its own, or a namespace."""
    name, line = names.resolve(node.func), node.lineno
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in SETTERS and len(node.args) > 1:
        text = names.fold_text(node.args[1]) or "..."
        yield from find_patch_uses(node.args[0], text, line, place, names)
    elif isinstance(node.func, ast.Attribute) and method in SETTER_METHODS:
        yield from _find_setter_uses(node, node.func.value, place, names)
    elif name in NAMESPACE_FUNCTIONS and node.args:
        yield from find_namespace_uses(node.args[0], line, place, names)
    elif isinstance(node.func, ast.Attribute) and method in DICTIONARY_CHANGES:
        owner = names.find_namespace_owner(node.func.value)
        if owner is not None:
            for word in node.keywords:
                yield from find_patch_uses(owner, word.arg or "...", line, place, names)
        yield from find_namespace_uses(node.func.value, line, place, names)
    elif method in MOCK_METHODS:
        yield Use(code="patches_code", name=method, line=line, key=method)
    for word in node.keywords:
        if word.arg is not None and MOCK_NAME.fullmatch(word.arg):
            yield Use(code="patches_code", name=word.arg, line=line, key=word.arg)


def _is_own(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression is the object that a method belongs to."""
    if isinstance(node, ast.Call):
        return names.resolve(node.func) == "super"
    return isinstance(node, ast.Name) and node.id in OWN_OBJECTS


def _find_setter_uses(node: ast.Call, owner: ast.expr, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a call such as `math.__setattr__("isclose", f)`, unless an object changes itself."""
    target, attribute = owner, node.args[0] if node.args else None
    if len(node.args) == 3 or (len(node.args) == 2 and names.resolve(node.func).endswith("__delattr__")):
        target, attribute = node.args[0], node.args[1]
    text = names.fold_text(attribute) if attribute is not None else None
    if not _is_own(target, names):
        name = f"{ast.unparse(target)}.{text or '...'}"
        yield Use(code="patches_code", name=name, line=node.lineno, key=name)
    else:
        yield from find_patch_uses(target, text or "...", node.lineno, place, names)
