"""Find where a Python file changes settings of the whole process, which also decide what tests see and expect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from suture.judge.capabilities.python.python_patches import Place
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SETTING_CALLS = frozenset((
    "decimal.setcontext", "locale.setlocale", "logging.disable", "random.seed", "numpy.random.seed", "numpy.seterr",
    "numpy.set_printoptions", "warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings",
))  # fmt: skip
"""Functions that change such a setting."""
TEMPORARY = ("warnings.catch_warnings", "decimal.localcontext", "numpy.errstate", "numpy.printoptions")
"""Context managers that restore the settings of their module."""
RESTORING_CALLS = frozenset((
    "decimal.setcontext", "locale.setlocale", "random.setstate", "numpy.random.set_state", "numpy.seterr",
    "numpy.set_printoptions",
))  # fmt: skip
"""Functions that restore the settings of their module, if what they get is what a call of the module returned."""
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
    return name in RESTORING_CALLS and any(
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
        elif (name in SETTING_CALLS and name.rpartition(".")[0] not in place.restored) or _silences(
            node, place, names
        ):
            name = name or ast.unparse(node.func)
            yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)
    elif isinstance(node, ast.Attribute) and node.attr == "__enter__" and isinstance(node.value, ast.Call):
        name = names.resolve(node.value.func)
        if name in TEMPORARY:
            yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)


def _find_assigned_setting(
    target: ast.expr, value: ast.expr, place: Place, names: ModuleNames
) -> Iterator[Use]:
    owner = target.value if isinstance(target, ast.Attribute | ast.Subscript) else target
    if isinstance(target, ast.Subscript) and isinstance(owner, ast.Attribute):  # `getcontext().traps[...]`
        target, owner = owner, owner.value
    made = names.assigned.get(owner.id, owner) if isinstance(owner, ast.Name) else owner
    if not isinstance(target, ast.Attribute):
        return
    is_high = (
        isinstance(value, ast.Constant) and isinstance(value.value, int) and value.value >= DEFAULT_PRECISION
    )
    is_context = isinstance(made, ast.Call) and names.resolve(made.func) == "decimal.getcontext"
    is_usual = (target.attr == "prec" and is_high) or names.resolve(value) == "decimal.ROUND_HALF_UP"
    if is_context and not is_usual and "decimal" not in place.restored:
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
