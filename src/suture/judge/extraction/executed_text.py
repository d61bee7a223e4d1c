"""Finding tests that may execute an answer of the candidate, as `assert eval(translate("1 2 +")) == 3` does.

Such a test runs the candidate's code in its own process, where that code can decide every comparison. So it
cannot be judged from another process, and its evidence must be weaker.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

EXECUTING_FUNCTIONS = frozenset(("__import__", "compile", "eval", "exec"))
"""Built-in functions that execute or import what their first argument says."""
EXECUTING_MODULES = frozenset((
    "_pickle", "builtins", "cloudpickle", "code", "codeop", "ctypes", "dill", "importlib", "joblib",
    "marshal", "pickle", "pkgutil", "runpy", "shelve", "timeit", "yaml",
))  # fmt: skip
"""Modules that execute text or bytes, or that lead to the functions of `EXECUTING_FUNCTIONS`."""
EXECUTING_ATTRIBUTES = frozenset(("__builtins__", "get_type_hints", "CodeType", "FunctionType"))
"""Names that lead to such functions without an import of these modules, or that evaluate text themselves."""


def find_execution_reason(tree: ast.Module) -> str:
    """Return why a test may execute an answer of the candidate; empty if it does not.

    Only the test's text counts, so that a candidate cannot choose. A call such as `eval(expression)` is
    harmless if the test itself sets the text.
    """
    own_texts = _find_own_texts(tree)
    harmless = {
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and _is_own_text(node.args[0], own_texts)
    }
    for node in ast.walk(tree):
        for name in _list_mentioned_names(node):
            if name.partition(".")[0] in EXECUTING_MODULES | EXECUTING_ATTRIBUTES:
                return f"the test uses {name}"
            if name in EXECUTING_FUNCTIONS and node not in harmless:
                return f"the test may execute an answer with {name}()"
    return ""


def _list_mentioned_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=aliases):
            yield from (alias.name for alias in aliases)
        case ast.ImportFrom(module=str(module), names=aliases):
            yield module
            yield from (alias.name for alias in aliases if alias.name in EXECUTING_ATTRIBUTES)
        case ast.Name(id=name, ctx=ast.Load()) if name in EXECUTING_FUNCTIONS | EXECUTING_ATTRIBUTES:
            yield name
        case ast.Attribute(attr=name) if name in EXECUTING_ATTRIBUTES:
            yield name


def _find_own_texts(tree: ast.Module) -> frozenset[str]:
    """Return the variables that hold nothing but literals of the test."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stores = Counter(name.id for name in names if not isinstance(name.ctx, ast.Load))
    stores.update(node.arg for node in ast.walk(tree) if isinstance(node, ast.arg))
    bindings: list[tuple[ast.expr, ast.expr]] = []
    iterables: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value):
                bindings.append((target, value))
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                bindings.append((target, value))
                iterables.append(value)
    # A list may receive an answer later, unless the test only loops over it.
    changeable = {name.id for name in names if isinstance(name.ctx, ast.Load) and name not in iterables}
    own_texts: frozenset[str] = frozenset()
    while True:
        literal_stores: Counter[str] = Counter()
        for target, value in bindings:
            is_text = isinstance(value, (ast.Constant, ast.Name)) or value in iterables
            targets = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
            if _is_own_text(value, own_texts):
                literal_stores.update(targets if is_text else targets - changeable)
        found = frozenset(name for name, count in literal_stores.items() if count == stores[name])
        if found == own_texts:
            return own_texts
        own_texts = found


def _is_own_text(node: ast.expr, own_texts: frozenset[str]) -> bool:
    """Whether an expression is a literal of the test, or a variable that holds one."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_own_text(item, own_texts) for item in node.elts)
    if isinstance(node, ast.BinOp):
        return _is_own_text(node.left, own_texts) and _is_own_text(node.right, own_texts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in own_texts)
