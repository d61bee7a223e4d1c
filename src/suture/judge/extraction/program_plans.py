"""What a test program needs of a candidate, learnt by reading the test and nothing that a candidate wrote.

Nothing in the judge is chosen, imported or named by the candidate. A name that the test neither defines nor
imports is asked of the candidate when the test runs; what it needs of the standard library follows from the
test's own text; and whether it needs live objects is decided by the test and the task.
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

from suture.judge.extraction.free_names import Use, free_names, uses_in
from suture.project.python_source.parsing import PARSE_FAULTS, parsed

SHARED = frozenset(
    (
        *("asyncio", "glob", "mock", "os", "pathlib", "shutil", "sqlite3", "subprocess"),
        *("tempfile", "threading"),
        *("contextlib.redirect_stderr", "contextlib.redirect_stdout", "random.seed", "unittest.mock"),
        *("sys.argv", "sys.stderr", "sys.stdin", "sys.stdout"),
    )
)
"""What a test uses only to share files, streams, patches or a random state with the code under test."""
LIBRARIES = frozenset(
    (
        *("base64", "bisect", "calendar", "cmath", "collections", "copy", "csv", "datetime", "decimal"),
        *("enum", "fractions", "functools", "hashlib", "heapq", "io", "itertools", "json", "math"),
        *("operator", "os", "random", "re", "shutil", "sqlite3", "statistics", "string", "struct"),
        *("sys", "textwrap", "time", "types", "typing", "zipfile"),
    )
)
"""Modules that a test may use without importing them: those whose import does nothing but define names."""
CONSTANTS = {"inf": "math", "nan": "math"}
TYPING = frozenset(typing.__all__)
ENDINGS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)
"""Exceptions that mean something to a program that never asked for them."""
Target = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PlannedProgram:
    """A test program and the names that it gets.

    Attributes:
        source: The program, without its imports of the candidate's modules.
        names: Name -> what it stands for: a `function` of the candidate, or a `value` or an `exception`
            class that it is asked for; `library` is a module of the standard library that comes first.
        expects: Of the exceptions that end loops, generators and programs, those that the test names where
            it catches something.
        live: Why it needs live objects; empty where data will do.
    """

    source: str
    names: Mapping[str, Target] = field(default_factory=dict)
    expects: tuple[str, ...] = ()
    live: str = ""


def module_name(path: str) -> str:
    """The dotted name of a Python file, as seen from the project's root."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.replace("/", ".")


def promised_functions(statement: str) -> frozenset[str]:
    """The functions whose `def` a task's statement shows; a candidate cannot make them classes."""
    return frozenset(re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", statement, re.MULTILINE))


def promised_classes(*texts: str) -> frozenset[str]:
    """The classes that a task's statement, or the code that it gives, defines at the top."""
    found = (re.findall(r"^[ \t]*class[ \t]+(\w+)[ \t]*[(:]", text, re.MULTILINE) for text in texts)
    return frozenset(name for names in found for name in names)


@dataclass(frozen=True, kw_only=True)
class KnownNames:
    """What the task says of names, whatever a candidate makes of them.

    Attributes:
        files: Paths of the modules that it may import; a name of the standard library is never one of them.
        module: The path whose names the program may use without importing them.
        functions: Names known to be functions, such as the entry point's.
        classes: Names known to be classes, from the task.
        only: The names that may be imported from `module`; all where it is left out. Where the candidate
            chose its path, the test may mean a library by it.
        beside: Paths of further modules of the task, in which names are looked for that `module` has not.
    """

    files: tuple[str, ...]
    module: str
    functions: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    beside: tuple[str, ...] = ()

    def modules(self) -> frozenset[str]:
        """The modules that a program may import."""
        own = module_name(self.module)
        names = {module_name(path) for path in (*self.files, self.module) if path.endswith(".py")}
        return frozenset(n for n in names if n == own or n.partition(".")[0] not in sys.stdlib_module_names)


@lru_cache(maxsize=256)  # a suite's checks meet many candidates
def plan_program(source: str, known: KnownNames) -> PlannedProgram:
    """Find what each name of a test program stands for.

    Args:
        source: The test program, as Python source.
        known: What the task says of names.
    """
    own = (module_name(known.module), *map(module_name, known.beside))
    functions, classes, only = known.functions, known.classes, known.only
    tree = parsed(source)
    if tree is None:
        return PlannedProgram(source=source)  # the judge will say so
    taking = _Taking(known.modules(), {} if only is None else {own[0]: only})
    remaining = taking.visit(parsed(source) or tree)
    imported, stars = taking.imported, taking.stars
    text = ast.unparse(remaining) if taking.took else source
    try:
        free = free_names(text, remaining, functions)
    except PARSE_FAULTS:
        return PlannedProgram(source=source)
    places = {name: (name, (*stars, *own)) for name in free} | imported
    uses = uses_in(tree, set(places))
    names = {name: _target(*at, uses[name], functions) for name, at in places.items()}
    names |= {name: _library(name, names[name], uses[name]) for name in free if name not in functions}
    live = _shares_a_process(tree) or taking.whole
    for name, target in names.items():
        live = live or _why_live(name, target, uses[name], functions, classes)
    return PlannedProgram(source=text, names=names, expects=_expected(text, tree), live=live)


def _target(name: str, modules: tuple[str, ...], use: Use, functions: frozenset[str]) -> Target:
    # A function of the one module need not be asked for; which of several has it, only the candidate can say.
    is_function = name in functions and len(set(modules)) == 1
    kind = "function" if is_function else "exception" if use.raised else "value"
    return {"kind": kind, "modules": modules, "name": name}


def _library(name: str, target: Target, use: Use) -> Target:
    """What of the standard library a name stands for that the test uses and does not import, if any.

    A module that lacks what the test takes of it is not meant: then the candidate is asked.
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


def _why_live(name: str, target: Target, use: Use, functions: frozenset[str], classes: frozenset[str]) -> str:
    if target.get("library") in SHARED:
        return f"the test uses {name}"
    is_class = "library" not in target and _is_class(target["name"], use, functions, classes)
    return f"{target['name']} is a class" if is_class else ""


def _is_class(name: str, use: Use, functions: frozenset[str], classes: frozenset[str]) -> bool:
    if name in functions or use.raised:
        return False
    if name in classes:
        return True
    named_so = name[:1].isupper() and any(letter.islower() for letter in name) and "_" not in name
    return named_so and not use.as_data


def _expected(source: str, tree: ast.Module) -> tuple[str, ...]:
    named = {name for name in ENDINGS if name in source}
    uses = uses_in(tree, named) if named else {}
    return tuple(sorted(name for name, use in uses.items() if use.raised))


def _shares_a_process(tree: ast.Module) -> str:
    """Why the test can only mean the process that it runs in, by what it imports and calls."""
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
    """Takes a program's imports of the candidate's modules out of it, wherever they stand.

    Args:
        modules: The modules.
        limited: Module -> the names of it that may be imported; all where it is not there.

    Attributes:
        imported: Name -> the name and the module that it was imported from.
        stars: The modules of which all names are imported.
        whole: Why a module itself is needed, or one name means two things; empty where neither is so.
    """

    def __init__(self, modules: Collection[str], limited: Mapping[str, frozenset[str]]) -> None:
        self._modules = modules
        self._limited = limited
        self.imported: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.stars: list[str] = []
        self.whole = ""
        self.took = False

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # there are no statements in it

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
