"""Find where a Python file changes other code: modules, classes, namespaces and mocks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from suture.judge.capabilities.python.python_classes import is_test_attribute
from suture.judge.capabilities.python.python_copies import COPYING_HOOKS
from suture.judge.capabilities.python.python_evidence import COMPARISON_METHODS
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.scopes import FUNCTIONS, Function, walk_own_nodes

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
        stacks: Variables of the enclosing `with` statements.
    """

    function: str = ""
    is_entry: bool = False
    local_names: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    stacks: frozenset[str] = frozenset()
    path: str = ""


def find_passed_setters(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield `setattr` as a value, such as an argument, because the source does not show what it then changes."""
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
    is_special = attribute in {*COMPARISON_METHODS, *COPYING_HOOKS, "__class__", "__bases__"}
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
    found = names.find_namespace_owner(owner)
    if isinstance(found, ast.Call) and names.resolve(found.func) == "globals":
        yield Use(code="patches_code", name="globals()", line=line, key="globals()")
    elif found is not None and not names.is_globals_call(found):
        yield from find_patch_uses(found, "__dict__", line, place, names)


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


SETTING_CALL = re.compile(
    r"(?:decimal|locale|random(?:\._inst)?|numpy\.random)\.(?:seed|set\w*)|numpy\.set(?:err|_)\w*|pandas\.set_option"
    r"|sys\.set(?!recursionlimit)\w+|socket\.setdefaulttimeout|time\.tzset|codecs\.(?:un)?register\w*|copyreg\.\w+"
    r"|tracemalloc\.(?:reset_peak|clear_traces|stop)|logging\.disable|warnings\.(?:simplefilter|filterwarnings|resetwarnings)"
)
"""The name of a function that changes a setting or a registry of the process."""
CONTEXT_METHOD = re.compile(
    r"clear_\w+|__(?:init|setstate)__|(?:traps|flags)\.(?:update|clear|pop\w*|setdefault|__\w+__)"
)
"""A method that changes a decimal context."""
TEMPORARY = ("warnings.catch_warnings", "decimal.localcontext", "numpy.errstate", "numpy.printoptions")
"""Context managers that restore the settings of their module."""
DEFAULT_PRECISION = 28
"""Digits of `decimal` unless a program changes it. With fewer, different numbers become equal."""
SILENT_LEVELS = ("logging.CRITICAL", "logging.FATAL", "logging.ERROR")
MIN_SILENT_LEVEL = 40
"""The number of `logging.ERROR`."""


def list_restored_settings(node: ast.AST, names: ModuleNames) -> set[str]:
    """Return the modules whose settings a `with` statement or a function restores after it has changed them."""
    if not isinstance(node, (ast.With, *FUNCTIONS)):
        return set()
    managers = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "enter_context":
            managers += call.args
    used = {names.resolve(part.func) for part in managers if isinstance(part, ast.Call)}.intersection(
        TEMPORARY
    )
    used |= {names.resolve(call.func) for call in calls if _restores(call, names)}
    return {name.rpartition(".")[0] for name in used}


def _restores(call: ast.Call, names: ModuleNames) -> bool:
    """Return whether a call passes on a setting that another one has returned, as in `random.setstate(old)`."""
    name = names.resolve(call.func)
    values = [*call.args, *(option.value for option in call.keywords)]
    stored = [names.assigned.get(part.id) for part in values if isinstance(part, ast.Name)]
    is_setter = SETTING_CALL.fullmatch(name) is not None and "set" in name.rpartition(".")[2]
    return is_setter and any(
        isinstance(value, ast.Call)
        and names.resolve(value.func).rpartition(".")[0] == name.rpartition(".")[0]
        for value in stored
    )


def find_setting_uses(node: ast.AST, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a change of a setting of the process, or of a logger by which tests see none of its records."""
    if place.is_entry:
        return
    if isinstance(node, ast.Assign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _find_assigned_setting(target, node.value, place, names)
    elif isinstance(node, ast.Call):
        name = names.resolve(node.func)
        if name == "setattr" and len(node.args) > 2:
            target = ast.Attribute(node.args[0], names.fold_text(node.args[1]) or "", ast.Store())
            yield from _find_assigned_setting(ast.copy_location(target, node), node.args[2], place, names)
        elif (
            (SETTING_CALL.fullmatch(name) and name.rpartition(".")[0] not in place.restored)
            or _changes_context(node.func, place, names)
            or _silences(node, place, names)
        ):
            name = name or ast.unparse(node.func)
            yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("enter_context", "__enter__"):
            is_closed = ast.unparse(node.func.value) in place.stacks
            yield from () if is_closed else _find_temporary(node.args, names)
    elif isinstance(node, FUNCTIONS):
        yield from _find_held_settings(node, names)
    elif isinstance(node, ast.Attribute) and node.attr == "__enter__":
        yield from _find_temporary([node.value], names)


def list_stacks(node: ast.AST) -> set[str]:
    """Return the variables that a `with` statement closes at its end."""
    items = node.items if isinstance(node, ast.With | ast.AsyncWith) else []
    return {ast.unparse(item.optional_vars) for item in items if item.optional_vars is not None}


def _find_temporary(values: Iterable[ast.expr], names: ModuleNames) -> Iterator[Use]:
    """Yield context managers that change settings until somebody leaves them."""
    for value in values:
        made = names.assigned.get(value.id) if isinstance(value, ast.Name) else value
        name = names.resolve(made.func) if isinstance(made, ast.Call) else ""
        if name in TEMPORARY:
            yield Use(code="hooks_interpreter", name=name, line=value.lineno, key=name)


def _find_held_settings(function: Function, names: ModuleNames) -> Iterator[Use]:
    """Yield settings that a generator changes while it waits, unless it is a context manager itself."""
    decorators = map(ast.unparse, function.decorator_list)
    if any("contextmanager" in text or "fixture" in text for text in decorators):
        return
    for node in walk_own_nodes(function.body):
        if isinstance(node, ast.With) and any(
            isinstance(part, ast.Yield | ast.YieldFrom) for part in walk_own_nodes([node])
        ):
            yield from _find_temporary([item.context_expr for item in node.items], names)


def _changes_context(function: ast.expr, place: Place, names: ModuleNames) -> bool:
    """Return whether a method changes the decimal context, as `getcontext().clear_traps()` does."""
    owner, methods = function, list[str]()
    while isinstance(owner, ast.Attribute):
        methods.insert(0, owner.attr)
        owner = owner.value
    return (
        CONTEXT_METHOD.fullmatch(".".join(methods)) is not None
        and _is_context(owner, names)
        and "decimal" not in place.restored
    )


def _is_context(node: ast.expr, names: ModuleNames) -> bool:
    made = names.assigned.get(node.id, node) if isinstance(node, ast.Name) else node
    return isinstance(made, ast.Call) and names.resolve(made.func).removeprefix("_") == "decimal.getcontext"


def _find_assigned_setting(
    target: ast.expr, value: ast.expr, place: Place, names: ModuleNames
) -> Iterator[Use]:
    owner = target.value if isinstance(target, ast.Attribute | ast.Subscript) else target
    if isinstance(target, ast.Subscript) and isinstance(owner, ast.Attribute):  # `getcontext().traps[...]`
        target, owner = owner, owner.value
    if not isinstance(target, ast.Attribute):
        return
    is_high = (
        isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value >= DEFAULT_PRECISION
    )
    is_usual = (target.attr == "prec" and is_high) or names.resolve(value) == "decimal.ROUND_HALF_UP"
    if _is_context(owner, names) and not is_usual and "decimal" not in place.restored:
        name = f"getcontext().{target.attr}"
        yield Use(code="hooks_interpreter", name=name, line=target.lineno, key=target.attr)
    elif target.attr == "disabled" and _is_own_logger(owner, place, names):
        yield Use(code="hooks_interpreter", name=ast.unparse(target), line=target.lineno, key=target.attr)


def _silences(node: ast.Call, place: Place, names: ModuleNames) -> bool:
    """Return whether a call makes a logger drop records that it would pass on."""
    if (
        not isinstance(node.func, ast.Attribute)
        or len(node.args) != 1
        or not _is_own_logger(node.func.value, place, names)
    ):
        return False
    level = names.fold(node.args[0])
    is_silent = names.resolve(node.args[0]) in SILENT_LEVELS or level in ("CRITICAL", "FATAL", "ERROR")
    is_silent = is_silent or (isinstance(level, int) and level >= MIN_SILENT_LEVEL)
    return node.func.attr == "setLevel" and is_silent


def _is_own_logger(node: ast.expr, place: Place, names: ModuleNames) -> bool:
    """Return whether an expression is a logger, by its only value or by its name, unless it is a library's."""
    value = names.assigned.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(value, ast.Call) and names.resolve(value.func).endswith("getLogger"):
        name = names.fold_text(value.args[0]) if value.args else ""
        return not name or name.partition(".")[0] in re.split(r"\W+", place.path)
    last = ast.unparse(node).rpartition(".")[2].lower()
    return names.imports_any(("logging",)) and last in ("log", "_log", "logger", "_logger")
