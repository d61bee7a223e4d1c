"""Imports that a reply had no place for: where it was begun at a signature, none could stand in front."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from suture.project.python_source.parsing import parsed
from suture.project.python_source.python_code import read_names
from suture.project.python_source.source_lines import put_in_front

HOMES = {
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "copy": "deepcopy",
    "dataclasses": "dataclass field",
    "datetime": "timedelta",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "functools": "cache cmp_to_key lru_cache partial reduce wraps",
    "heapq": "heapify heappop heappush nlargest nsmallest",
    "itertools": "accumulate chain combinations groupby permutations product zip_longest",
    "math": "ceil comb factorial floor gcd isqrt prod sqrt",
    "typing": "Any Callable Dict Generator Iterable Iterator List Optional Sequence Set Tuple Union",
}
"""Names that mean one thing wherever they stand without an import, by the module that they are of."""
OTHERWISE = frozenset(
    {"antigravity", "concurrent", "datetime", "email", "http", "importlib", "this", "urllib", "xml"}
)
"""Names of modules that mean little by themselves: a part of them is wanted, or nothing at all."""
HOME_OF = {name: module for module, names in HOMES.items() for name in names.split()}


def with_known_imports(code: str, before: str = "") -> str:
    """The module with an import for each name that it reads, nothing in it binds, and everybody knows.

    Args:
        code: The module.
        before: What it was, where it was there: names that it read already are not the reply's.
    """
    tree, old = parsed(code), parsed(before)
    if tree is None or _imports_all(tree):
        return code
    bound = {*_bound(tree), *dir(builtins), *(read_names([old]) if old is not None else ())}
    modules = (
        {name for name in _asked_for_something(tree) if name in sys.stdlib_module_names} - bound - OTHERWISE
    )
    names = {name for name in read_names([tree]) if name in HOME_OF} - bound
    lines = [f"import {name}" for name in sorted(modules)]
    lines += [f"from {HOME_OF[name]} import {name}" for name in sorted(names)]
    return put_in_front(code, "\n".join(lines) + "\n") if lines else code


def _imports_all(tree: ast.Module) -> bool:
    """Whether any name may come from elsewhere."""
    return any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))


def _asked_for_something(tree: ast.Module) -> Iterator[str]:
    """Names of which an attribute is read, as `math` in `math.pi`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id


def _bound(tree: ast.Module) -> Iterator[str]:
    """Names that anything in the module binds, in whichever scope."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
