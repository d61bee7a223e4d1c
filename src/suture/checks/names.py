"""What a test program needs of a candidate, learnt by reading both and running neither.

Nothing here may let the candidate choose how it is judged: a builtin keeps its meaning in the test program
even where the candidate defines a function of that name, and only the test program (or a class that it
plainly uses as one) can ask for live objects.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from suture.checks.parsing import parsed

__all__ = ["Program", "module_name", "plan_program", "promised_functions"]

BUILTINS = frozenset(dir(builtins))
BUILTIN_EXCEPTIONS = frozenset(
    name
    for name in BUILTINS
    if isinstance(getattr(builtins, name), type) and issubclass(getattr(builtins, name), Exception)
)
SHARED = frozenset(
    (
        *(
            "asyncio",
            "glob",
            "mock",
            "os",
            "pathlib",
            "shutil",
            "sqlite3",
            "subprocess",
            "tempfile",
            "threading",
        ),
        *("contextlib.redirect_stderr", "contextlib.redirect_stdout", "random.seed", "unittest.mock"),
        *("sys.argv", "sys.stderr", "sys.stdin", "sys.stdout"),
    )
)
"""What a test uses only to share files, streams, patches or a random state with the code under test."""
Target = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Program:
    """A test program and the names that it gets.

    Attributes:
        source: The program, without its imports of the candidate's modules.
        names: Name -> what it stands for: a `function` or `value` of the candidate, an `exception` class of
            it, or an `import` of the standard library.
        stars: Modules of the standard library to take all names of.
        live: Why it needs live objects; empty where data will do.
    """

    source: str
    names: Mapping[str, Target] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    live: str = ""


def module_name(path: str) -> str:
    """The dotted name of a Python file, as seen from the project's root."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.replace("/", ".")


def promised_functions(statement: str) -> frozenset[str]:
    """The functions whose `def` a task's statement shows; a candidate cannot make them classes."""
    return frozenset(re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", statement, re.MULTILINE))


def plan_program(
    source: str, files: Mapping[str, str], module: str, functions: frozenset[str] = frozenset()
) -> Program:
    """Find what each name of a test program stands for.

    Args:
        source: The test program.
        files: The candidate's project: path -> text.
        module: The path whose names the program may use without importing them.
        functions: Names known to be functions, such as the entry point's.
    """
    tree = parsed(source)
    if tree is None:
        return Program(source=source)  # the judge will say so
    modules = {module_name(path): text for path, text in files.items() if path.endswith(".py")}
    survey = _Survey(modules, functions)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - _bound_at_top(tree)
    survey.offer(module_name(module), used)
    remaining = _take_imports(tree, survey)
    names = {name: target for name, target in survey.names.items() if target["kind"] != "class"}
    live = next(
        (f"{n} is a class" for n, t in survey.names.items() if t["kind"] == "class" and n in used), ""
    )
    live = _shares_a_process(tree) or live
    return Program(
        source=ast.unparse(remaining) if survey.imported else source,
        names=names,
        stars=tuple(survey.stars),
        live=survey.live or live,
    )


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


def _bound_at_top(tree: ast.Module) -> set[str]:
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign):
            bound.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return bound


class _Survey:
    def __init__(self, modules: Mapping[str, str], functions: frozenset[str]) -> None:
        self.modules = modules
        self.functions = functions
        self.names: dict[str, Target] = {}
        self.stars: list[str] = []
        self.imported = False
        self.live = ""

    def offer(self, module: str, used: set[str]) -> None:
        """Give a program the names that it uses and a module defines."""
        for name, target in self._defined(module):
            if name == "*":
                self.stars.append(target["module"])
            elif name in self.functions:
                self.names[name] = {**target, "kind": "function", "module": module, "name": name}
            elif name not in BUILTINS and (name in used or target["kind"] == "function"):
                self.names[name] = target

    def one(self, module: str, name: str) -> Target | None:
        """What one name of a module stands for."""
        return dict(self._defined(module)).get(name)

    def _defined(self, module: str) -> Iterator[tuple[str, Target]]:
        tree = parsed(self.modules.get(module, ""))
        if tree is None:
            return  # loading it will say so
        exceptions: dict[str, list[str]] = {}
        for node in _statements(tree.body):
            if isinstance(node, ast.ClassDef):
                yield node.name, self._class(module, node, exceptions)
            else:
                yield from _definitions(module, node)

    def _class(self, module: str, node: ast.ClassDef, exceptions: dict[str, list[str]]) -> Target:
        bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
        for base in bases:
            if base in BUILTIN_EXCEPTIONS or base in exceptions:
                exceptions[node.name] = [*bases, *exceptions.get(base, [])]
                return _target("exception", module, node.name, bases=exceptions[node.name])
        plainly = node.name[:1].isupper() and node.name not in self.functions
        return _target("class" if plainly else "function", module, node.name)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    waiting = body[::-1]  # no recursion: a chain of a thousand `elif` nests a thousand deep
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            parts = [getattr(node, inner, []) for inner in ("body", "orelse", "finalbody")]
            parts += [handler.body for handler in getattr(node, "handlers", [])]
            waiting += [inner for part in parts for inner in part][::-1]
        else:
            yield node


def _definitions(module: str, node: ast.stmt) -> Iterator[tuple[str, Target]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name, _target("function", module, node.name)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        kind = "function" if isinstance(node.value, ast.Lambda) else "value"
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    yield part.id, _target(kind, module, part.id)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if alias.asname or top not in sys.stdlib_module_names:
                yield alias.asname or top, _target("value", module, alias.asname or top)
            else:
                yield top, _target("import", alias.name, "", bound=top)
    elif isinstance(node, ast.ImportFrom):
        yield from _from_import(module, node)


def _from_import(module: str, node: ast.ImportFrom) -> Iterator[tuple[str, Target]]:
    source = node.module or ""
    standard = not node.level and source.partition(".")[0] in sys.stdlib_module_names
    for alias in node.names:
        name = alias.asname or alias.name
        if standard and not alias.asname:
            # Under another name it could be anything, such as an object that equals everything.
            yield name, _target("import", source, alias.name)
        elif alias.name != "*":
            yield name, _target("value", module, name)


def _target(kind: str, module: str, name: str, **more: Any) -> Target:
    return {"kind": kind, "module": module, "name": name, **more}


def _take_imports(tree: ast.Module, survey: _Survey) -> ast.Module:
    """Turn the program's imports of the candidate's modules into stand-ins."""
    kept: list[ast.stmt] = []
    for node in tree.body:
        if (
            isinstance(node, ast.ImportFrom)
            and node.module is not None
            and node.module in survey.modules
            and not node.level
        ):
            survey.imported = True
            for alias in node.names:
                if alias.name == "*":
                    survey.offer(node.module, {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
                    continue
                target = survey.one(node.module, alias.name) or _target("value", node.module, alias.name)
                survey.names[alias.asname or alias.name] = target
                if target["kind"] == "class":
                    survey.live = f"{alias.name} is a class"
            continue
        if isinstance(node, ast.Import) and any(alias.name in survey.modules for alias in node.names):
            survey.live = "the test imports the module itself"
        kept.append(node)
    return ast.Module(kept, tree.type_ignores)
