"""Find where a Python file changes settings of the whole process, which also decide what tests see and expect."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suture.judge.capabilities.python.python_patches import Place
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

SETTING_CALLS = frozenset((
    "decimal.setcontext", "locale.setlocale", "logging.disable", "random.seed", "numpy.random.seed", "numpy.seterr",
    "numpy.set_printoptions", "warnings.simplefilter", "warnings.filterwarnings", "warnings.resetwarnings",
))  # fmt: skip
"""Functions that change such a setting."""
TEMPORARY = ("warnings.catch_warnings", "decimal.localcontext")
"""Context managers that restore the settings."""
DEFAULT_PRECISION = 28
"""Digits of `decimal` unless a program changes it. With fewer, different numbers become equal."""
SILENT_LEVELS = ("logging.CRITICAL", "logging.FATAL", "logging.ERROR")
MIN_SILENT_LEVEL = 40
"""The number of `logging.ERROR`."""


def restores_settings(node: ast.AST, names: ModuleNames) -> bool:
    """Return whether a `with` statement restores the settings that its block changes."""
    items = node.items if isinstance(node, ast.With) else []
    calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
    return any(names.resolve(call.func) in TEMPORARY for call in calls)


def find_setting_uses(node: ast.AST, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a change of a setting of the process, or of a logger by which tests see none of its records."""
    if place.is_temporary or place.is_entry:
        return
    if isinstance(node, ast.Assign | ast.AugAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _find_assigned_setting(target, node.value, names)
    elif isinstance(node, ast.Call):
        name = names.resolve(node.func)
        if name == "setattr" and len(node.args) > 2:
            target = ast.Attribute(node.args[0], names.fold_text(node.args[1]) or "", ast.Store())
            yield from _find_assigned_setting(ast.copy_location(target, node), node.args[2], names)
        elif name in SETTING_CALLS or _silences(node, names):
            name = name or ast.unparse(node.func)
            yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)
    elif isinstance(node, ast.Attribute) and node.attr == "__enter__" and isinstance(node.value, ast.Call):
        name = names.resolve(node.value.func)
        if name in TEMPORARY:
            yield Use(code="hooks_interpreter", name=name, line=node.lineno, key=name)


def _find_assigned_setting(target: ast.expr, value: ast.expr, names: ModuleNames) -> Iterator[Use]:
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
    if is_context and not (target.attr == "prec" and is_high):
        name = f"getcontext().{target.attr}"
        yield Use(code="hooks_interpreter", name=name, line=target.lineno, key=target.attr)
    elif target.attr == "disabled" and _is_logger(owner, names):
        yield Use(code="hooks_interpreter", name=ast.unparse(target), line=target.lineno, key=target.attr)


def _silences(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether a call keeps the records of a logger from its handlers."""
    if (
        not isinstance(node.func, ast.Attribute)
        or len(node.args) != 1
        or not _is_logger(node.func.value, names)
    ):
        return False
    level = names.fold(node.args[0])
    is_silent = names.resolve(node.args[0]) in SILENT_LEVELS or level in ("CRITICAL", "FATAL", "ERROR")
    is_silent = is_silent or (isinstance(level, int) and level >= MIN_SILENT_LEVEL)
    return node.func.attr == "addFilter" or (node.func.attr == "setLevel" and is_silent)


def _is_logger(node: ast.expr, names: ModuleNames) -> bool:
    """Return whether an expression is a logger, by its only value or by its name."""
    value = names.assigned.get(node.id, node) if isinstance(node, ast.Name) else node
    if isinstance(value, ast.Call) and names.resolve(value.func).endswith("getLogger"):
        return True
    last = ast.unparse(node).rpartition(".")[2].lower()
    return names.imports_any(("logging",)) and last in ("log", "_log", "logger", "_logger")
