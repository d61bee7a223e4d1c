"""Planning what a test program needs from a candidate, by reading the test and no code of a candidate.

Nothing in the judge is chosen, imported or named by the candidate. A name that the test neither defines nor
imports is requested from the candidate when the test runs. What it needs of the standard library follows from
the test's own text. Whether it needs live objects is decided by the test and the task.
"""

from __future__ import annotations

import ast
import re
import sys
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from suture.judge.extraction.free_names import NameUse, find_free_names, find_name_uses
from suture.project.python_source.parsing import PARSE_FAULTS, parse_module

SHARED = frozenset((
    "asyncio", "glob", "mock", "os", "pathlib", "shutil", "sqlite3", "subprocess", "tempfile",
    "threading", "contextlib.redirect_stderr", "contextlib.redirect_stdout", "random.seed",
    "unittest.mock", "sys.argv", "sys.stderr", "sys.stdin", "sys.stdout",
))  # fmt: skip
"""Names that a test uses only to share files, streams, patches or a random state with the code under test."""
LIBRARIES = frozenset((
    "base64", "bisect", "calendar", "cmath", "collections", "copy", "csv", "datetime", "decimal",
    "enum", "fractions", "functools", "hashlib", "heapq", "io", "itertools", "json", "math",
    "operator", "os", "random", "re", "shutil", "sqlite3", "statistics", "string", "struct", "sys",
    "textwrap", "time", "types", "typing", "zipfile",
))  # fmt: skip
"""Modules that a test may use without importing them: their import does nothing but define names."""
CONSTANTS = {"inf": "math", "nan": "math"}
TYPING = frozenset(typing.__all__)
ENDINGS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)
"""Exceptions that end a loop, a generator or a program that does not expect them."""
Target = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """A test program and the names that it receives.

    Attributes:
        source: The program without its imports of the candidate's modules.
        names: Name -> what it stands for: a `function` of the candidate, or a `value` or an `exception` class
            that the candidate is asked for; `library` is a standard library module that takes precedence.
        expects: The exceptions of `ENDINGS` that the test names where it catches something.
        live: Why the program needs live objects; empty if data is enough.
    """

    source: str
    names: Mapping[str, Target] = field(default_factory=dict)
    expects: tuple[str, ...] = ()
    live: str = ""


def get_module_name(path: str) -> str:
    """Return the dotted name of a Python file, relative to the project's root."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.replace("/", ".")


def find_stated_functions(statement: str) -> frozenset[str]:
    """Return the functions whose `def` a task's statement shows; a candidate cannot make them classes."""
    return frozenset(re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", statement, re.MULTILINE))


def find_stated_classes(*texts: str) -> frozenset[str]:
    """Return the classes that a task's statement, or the code that it gives, defines at the top level."""
    found = (re.findall(r"^[ \t]*class[ \t]+(\w+)[ \t]*[(:]", text, re.MULTILINE) for text in texts)
    return frozenset(name for names in found for name in names)


@dataclass(frozen=True, kw_only=True)
class TaskNames:
    """What the task says about names, whatever a candidate makes of them.

    Attributes:
        files: Paths of the modules that a program may import; a standard library name is never one of them.
        module: The path of the module whose names the program may use without an import.
        functions: Names known to be functions, such as the entry point.
        classes: Names known to be classes.
        only: The names that may be imported from `module`; `None` for all. If the candidate chose the
            module's path, the test may mean a library by that name.
        beside: Paths of further modules of the task, which are searched for names that `module` lacks.
    """

    files: tuple[str, ...]
    module: str
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    beside: tuple[str, ...] = ()

    def modules(self) -> frozenset[str]:
        """Return the dotted names of the modules that a program may import."""
        own = get_module_name(self.module)
        names = {get_module_name(path) for path in (*self.files, self.module) if path.endswith(".py")}
        return frozenset(n for n in names if n == own or n.partition(".")[0] not in sys.stdlib_module_names)


@lru_cache(maxsize=256)  # the checks of a suite are planned again for every candidate
def plan_program(source: str, known: TaskNames) -> ProgramPlan:
    """Return what each name of a test program stands for.

    Args:
        source: The test program as Python source.
        known: What the task says about names.
    """
    own = (get_module_name(known.module), *map(get_module_name, known.beside))
    functions, classes, only = known.functions, known.classes, known.only
    tree = parse_module(source)
    if tree is None:
        return ProgramPlan(source=source)  # the judge reports the syntax error
    taking = _Taking(known.modules(), {} if only is None else {own[0]: only})
    remaining = taking.visit(parse_module(source) or tree)
    imported, stars = taking.imported, taking.stars
    text = ast.unparse(remaining) if taking.took else source
    try:
        free = find_free_names(text, remaining, functions)
    except PARSE_FAULTS:
        return ProgramPlan(source=source)
    places = {name: (name, (*stars, *own)) for name in free} | imported
    uses = find_name_uses(tree, set(places))
    names = {name: _target(*at, uses[name], functions) for name, at in places.items()}
    names |= {name: _library(name, names[name], uses[name]) for name in free if name not in functions}
    live = _shares_a_process(tree) or taking.whole
    for name, target in names.items():
        live = live or _why_live(name, target, uses[name], functions, classes)
    return ProgramPlan(source=text, names=names, expects=_expected(text, tree), live=live)


def _target(name: str, modules: tuple[str, ...], use: NameUse, functions: frozenset[str]) -> Target:
    # Only the candidate knows which of several modules has a function, so then the candidate is asked.
    is_function = name in functions and len(set(modules)) == 1
    kind = "function" if is_function else "exception" if use.raised else "value"
    return {"kind": kind, "modules": modules, "name": name}


def _library(name: str, target: Target, use: NameUse) -> Target:
    """Return the target with the standard library module that an unimported name stands for, if any.

    A module that lacks an attribute that the test reads is not meant; then the candidate is asked.
    """
    if use.called or use.raised:
        return target
    if name in LIBRARIES and use.attributes:
        return {**target, "library": name, "uses": sorted(use.attributes)}
    if name in TYPING and not use.attributes:
        return {**target, "library": "typing", "uses": [name]}
    if name in CONSTANTS and not use.attributes:
        return {**target, "library": CONSTANTS[name], "uses": [name]}
    return target


def _why_live(
    name: str, target: Target, use: NameUse, functions: frozenset[str], classes: frozenset[str]
) -> str:
    if target.get("library") in SHARED:
        return f"the test uses {name}"
    is_class = "library" not in target and _is_class(target["name"], use, functions, classes)
    return f"{target['name']} is a class" if is_class else ""


def _is_class(name: str, use: NameUse, functions: frozenset[str], classes: frozenset[str]) -> bool:
    if name in functions or use.raised:
        return False
    if name in classes:
        return True
    named_so = name[:1].isupper() and any(letter.islower() for letter in name) and "_" not in name
    return named_so and not use.as_data


def _expected(source: str, tree: ast.Module) -> tuple[str, ...]:
    named = {name for name in ENDINGS if name in source}
    uses = find_name_uses(tree, named) if named else {}
    return tuple(sorted(name for name, use in uses.items() if use.raised))


def _shares_a_process(tree: ast.Module) -> str:
    """Return why the test depends on the process that it runs in; empty if it does not.

    Only the test's imports and calls are considered.
    """
    for node in ast.walk(tree):
        if isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncWith)):
            return "the test is asynchronous"
        imported: list[str] = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in imported:
            if name in SHARED or name.partition(".")[0] in SHARED:
                return f"the test uses {name}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in SHARED:
            return f"the test uses {ast.unparse(node)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            return "the test opens files"
    return ""


class _Taking(ast.NodeTransformer):
    """Removes a program's imports of the candidate's modules, wherever they stand.

    Args:
        modules: The candidate's modules.
        limited: Module -> the names that may be imported from it; a module that is not listed has no limit.

    Attributes:
        imported: Local name -> the imported name and its module.
        stars: Modules that are imported with `*`.
        whole: Why the module itself is needed, or why a name is ambiguous; empty if neither applies.
    """

    def __init__(self, modules: Collection[str], limited: Mapping[str, frozenset[str]]) -> None:
        self._modules = modules
        self._limited = limited
        self.imported: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.stars: list[str] = []
        self.whole = ""
        self.took = False

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        if any(alias.name in self._modules for alias in node.names):
            self.whole = "the test imports the module itself"
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        module = node.module or ""
        names = {alias.name for alias in node.names}
        if module not in self._modules or node.level or names - self._limited.get(module, names):
            return node
        self.took = True
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
                continue
            name, place = alias.asname or alias.name, (alias.name, (module,))
            if self.imported.setdefault(name, place) != place:
                self.whole = f"the test imports {name} from two places"
        return ast.copy_location(ast.Pass(), node)
