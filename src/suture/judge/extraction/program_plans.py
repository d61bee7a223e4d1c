"""Planning what a test program needs from a candidate, by reading only the test and the task.

A name that the test neither defines nor imports is requested from the candidate when the test runs. What the
test needs of the standard library follows from its source.

A test needs *live objects* if data is not enough for it, for example because it creates an instance of the
candidate's class. Then it must run in the candidate's process (nonce mode), which is weaker evidence than a
split verdict. So the test and the task decide that, and never the candidate.

A test may also execute an answer of the candidate, as `assert eval(translate("1 2 +")) == 3` does. It runs the
candidate's code in its own process, where that code can decide every comparison. So it cannot be judged from another
process, and its evidence must be weaker.
"""

from __future__ import annotations

import ast
import re
import sys
import typing
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from suture.judge.extraction.free_names import NameUse, find_free_names, find_name_uses
from suture.project.python_source.parsing import PARSE_FAULTS, parse_module

PROCESS_SHARED_NAMES = frozenset((
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
MATH_CONSTANTS = {"inf": "math", "nan": "math"}
TYPING_NAMES = frozenset(typing.__all__)
CONTROL_EXCEPTIONS = frozenset(
    ("GeneratorExit", "KeyboardInterrupt", "StopAsyncIteration", "StopIteration", "SystemExit")
)
"""Exceptions that end a loop, a generator or a program that does not expect them."""
Target = dict[str, Any]
"""What a name stands for; see `ProgramPlan.names`. It is plain JSON, because the judge program receives it."""


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """A test program and the names that it receives.

    Attributes:
        source: The program without its imports of the candidate's modules.
        names: Name -> what it stands for. `kind` is `function` for a function of the candidate, and `value`
            or `exception` for a value or an exception class that the candidate is asked for. `modules` are
            the candidate's modules that may have it, and `name` is its name there. `library` is a standard
            library module that takes precedence if it has the attributes `uses`.
        expects: The exceptions of `CONTROL_EXCEPTIONS` that the test names where it catches something.
        live_reason: Why the program needs live objects, for people; empty if data is enough.
    """

    source: str
    names: Mapping[str, Target] = field(default_factory=dict)
    expects: tuple[str, ...] = ()
    live_reason: str = ""


def get_module_name(path: str) -> str:
    """Return the dotted name of a Python file, relative to the project's root."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.replace("/", ".")


def find_stated_functions(statement: str) -> frozenset[str]:
    """Return the functions whose `def` a task's statement shows; a candidate cannot make them classes."""
    return frozenset(re.findall(r"^\s*(?:async\s+)?def\s+(\w+)\s*\(", statement, re.MULTILINE))


def find_stated_classes(*texts: str) -> frozenset[str]:
    """Return the classes that a task's statement, or the code that it gives, defines at the top level."""
    pattern = re.compile(r"^[ \t]*class[ \t]+(\w+)[ \t]*[(:]", re.MULTILINE)
    return frozenset(name for text in texts for name in pattern.findall(text))


@dataclass(frozen=True, kw_only=True)
class TaskNames:
    """What the task says about names, whatever a candidate makes of them.

    Attributes:
        files: Paths of the modules that a program may import; a standard library name is never one of them.
        module: The path of the module whose names the program may use without an import.
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
        main_module = get_module_name(self.module)
        modules = {get_module_name(path) for path in (*self.files, self.module) if path.endswith(".py")}
        return frozenset(
            module
            for module in modules
            if module == main_module or module.partition(".")[0] not in sys.stdlib_module_names
        )


@lru_cache(maxsize=256)  # the checks of a suite are planned again for every candidate
def plan_program(source: str, task_names: TaskNames) -> ProgramPlan:
    """Return what each name of a test program stands for."""
    main_module = get_module_name(task_names.module)
    task_modules = (main_module, *map(get_module_name, task_names.beside))
    functions = task_names.functions
    own_names = functions | task_names.classes
    tree = parse_module(source)
    if tree is None:
        return ProgramPlan(source=source)  # the judge reports the syntax error
    remover = _ImportRemover(
        task_names.modules(), {} if task_names.only is None else {main_module: task_names.only}
    )
    remaining = remover.visit(parse_module(source) or tree)  # parsed again: the remover changes the tree
    text = ast.unparse(remaining) if remover.has_removed else source
    try:
        free_names = find_free_names(text, remaining, own_names)
    except PARSE_FAULTS:
        return ProgramPlan(source=source)
    origins = {name: (name, (*remover.star_modules, *task_modules)) for name in free_names} | remover.imported
    uses = find_name_uses(tree, set(origins))
    targets = {name: _make_target(*origin, uses[name], functions) for name, origin in origins.items()}
    for name in free_names:
        if name not in own_names:
            targets[name] = _add_library(name, targets[name], uses[name])
    live = _find_shared_process_reason(tree) or find_execution_reason(tree) or remover.live_reason
    for name, target in targets.items():
        live = live or _find_live_reason(name, target, uses[name], task_names)
    return ProgramPlan(
        source=text, names=targets, expects=_find_expected_exceptions(text, tree), live_reason=live
    )


def _make_target(name: str, modules: tuple[str, ...], use: NameUse, functions: frozenset[str]) -> Target:
    # Only the candidate knows which of several modules has a function, so then the candidate is asked.
    is_function = name in functions and len(set(modules)) == 1
    kind = "function" if is_function else "exception" if use.raised else "value"
    return {"kind": kind, "modules": modules, "name": name}


def _add_library(name: str, target: Target, use: NameUse) -> Target:
    """Return the target with the standard library module that an unimported name stands for, if any.

    A module that lacks an attribute that the test reads is not meant; then the candidate is asked.
    """
    if use.called or use.raised:
        return target
    if name in LIBRARIES and use.attributes:
        return {**target, "library": name, "uses": sorted(use.attributes)}
    if name in TYPING_NAMES and not use.attributes:
        return {**target, "library": "typing", "uses": [name]}
    if name in MATH_CONSTANTS and not use.attributes:
        return {**target, "library": MATH_CONSTANTS[name], "uses": [name]}
    return target


def _find_live_reason(name: str, target: Target, use: NameUse, task_names: TaskNames) -> str:
    if target.get("library") in PROCESS_SHARED_NAMES:
        return f"the test uses {name}"
    is_class = "library" not in target and _is_class(target["name"], use, task_names)
    return f"{target['name']} is a class" if is_class else ""


def _is_class(name: str, use: NameUse, task_names: TaskNames) -> bool:
    if name in task_names.functions or use.raised:
        return False
    if name in task_names.classes:
        return True
    # By convention: `Account` is a class, `ACCOUNT` is a constant, and `Some_name` is neither.
    is_named_like_class = name[:1].isupper() and any(char.islower() for char in name) and "_" not in name
    return is_named_like_class and not use.as_data


def _find_expected_exceptions(source: str, tree: ast.Module) -> tuple[str, ...]:
    mentioned = {name for name in CONTROL_EXCEPTIONS if name in source}
    uses = find_name_uses(tree, mentioned) if mentioned else {}
    return tuple(sorted(name for name, use in uses.items() if use.raised))


def _find_shared_process_reason(tree: ast.Module) -> str:
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
            if name in PROCESS_SHARED_NAMES or name.partition(".")[0] in PROCESS_SHARED_NAMES:
                return f"the test uses {name}"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PROCESS_SHARED_NAMES:
            return f"the test uses {ast.unparse(node)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            return "the test opens files"
    return ""


class _ImportRemover(ast.NodeTransformer):
    """Removes `from ... import ...` of the candidate's modules, because the judge must not import them.

    Args:
        allowed_names: Module -> the names that may be imported from it; a module that is not listed has no
            limit.

    Attributes:
        imported: Local name -> (the imported name, its modules).
        star_modules: Modules that are imported with `*`.
        live_reason: Why the program needs live objects: it uses a module as an object, or one name from two
            modules. Empty if neither applies.
    """

    def __init__(self, modules: Collection[str], allowed_names: Mapping[str, frozenset[str]]) -> None:
        self._modules = modules
        self._allowed_names = allowed_names
        self.imported: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.star_modules: list[str] = []
        self.live_reason = ""
        self.has_removed = False

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, ast.expr) else super().visit(node)  # expressions hold no statements

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        if any(alias.name in self._modules for alias in node.names):
            self.live_reason = "the test imports the module itself"
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        module = node.module or ""
        names = {alias.name for alias in node.names}
        if module not in self._modules or node.level or names - self._allowed_names.get(module, names):
            return node
        for alias in node.names:
            if alias.name == "*":
                self.star_modules.append(module)
                continue
            name, origin = alias.asname or alias.name, (alias.name, (module,))
            if self.imported.setdefault(name, origin) != origin:
                self.live_reason = f"the test imports {name} from two places"
                return node
        self.has_removed = True
        return ast.copy_location(ast.Pass(), node)


EXECUTING_FUNCTIONS = frozenset(("__import__", "compile", "eval", "exec"))
"""Built-in functions that execute or import what their first argument says."""
EXECUTING_MODULES = frozenset((
    "_pickle", "builtins", "cloudpickle", "code", "codeop", "ctypes", "dill", "importlib", "joblib",
    "marshal", "pickle", "pkgutil", "runpy", "shelve", "timeit", "yaml",
))  # fmt: skip
"""Modules that execute strings or bytes, or that lead to the functions of `EXECUTING_FUNCTIONS`."""
EXECUTING_ATTRIBUTES = frozenset(("__builtins__", "get_type_hints", "CodeType", "FunctionType"))
"""Names that lead to such functions without an import of these modules, or that evaluate strings themselves."""


def find_execution_reason(tree: ast.Module) -> str:
    """Return why a test may execute an answer of the candidate; empty if it does not.

    Only the test's source counts, so that a candidate cannot choose. A call such as `eval(expression)` is harmless if
    the test itself sets the string.
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
