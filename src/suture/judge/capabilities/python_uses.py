"""Find what a Python file uses of the test machinery and of the interpreter, in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from suture.core.records import CapabilityCode
from suture.judge.capabilities.python_names import PythonNames
from suture.judge.capabilities.python_paths import find_written_path
from suture.judge.capabilities.use import (
    ENTRY_FUNCTION,
    TEST_RUNNER,
    TEST_VARIABLE,
    Use,
    find_path_uses,
)
from suture.project.python_source.parsing import parse_module

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MODULE_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("pytest", "_pytest", "pluggy", "hypothesis", "unittest", "xdist"), "imports_test_machinery"
    ),
    **dict.fromkeys(("gc", "ctypes", "_ctypes"), "reaches_memory"),
    "atexit": "hooks_interpreter",
    "linecache": "inspects_callers",
}
"""Top-level module -> what its use means."""
NAME_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("pytest.skip", "pytest.xfail", "pytest.exit", "pytest.importorskip", "unittest.SkipTest"), "skips_tests"
    ),
    **dict.fromkeys(
        (
            "sys._getframe", "sys._current_frames", "inspect.currentframe", "inspect.stack", "inspect.trace",
            "inspect.getouterframes", "inspect.getinnerframes", "inspect.getframeinfo", "inspect.getsource",
            "inspect.getsourcelines", "inspect.getsourcefile", "inspect.findsource", "inspect.getmodule",
        ),
        "inspects_callers",
    ),
    "sys.modules": "reads_loaded_modules",
    **dict.fromkeys(
        (
            "sys.settrace", "sys.setprofile", "sys.meta_path", "sys.path_hooks", "sys.excepthook",
            "sys.addaudithook", "threading.settrace", "threading.setprofile", "threading.excepthook",
            "signal.signal", "signal.setitimer", "signal.alarm",
        ),
        "hooks_interpreter",
    ),
    **dict.fromkeys(("os._exit", "os.abort"), "ends_process"),
}  # fmt: skip
"""A name with its module -> what its use means."""
FRAME_ATTRIBUTES = frozenset(
    ("f_back", "f_globals", "f_locals", "tb_frame", "gi_frame", "cr_frame", "__globals__")
)
"""Attributes that lead to a frame, or from a frame or function to the variables of other code."""
ENDING_CALLS = ("sys.exit", "exit", "quit", "builtins.exit", "builtins.quit", "SystemExit")
COMPARISON_METHODS = (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__instancecheck__", "__subclasscheck__",
)  # fmt: skip
"""Methods by which a class decides comparisons and `isinstance`."""
SETTERS = ("setattr", "delattr", "object.__setattr__", "type.__setattr__", "builtins.setattr")
"""Functions that set or delete the attribute that their second argument names."""
DICTIONARY_CHANGES = ("update", "setdefault", "pop", "clear", "__setitem__")
"""Methods that change a dictionary, such as the namespace of a module."""
PROCESS_STARTERS = (
    "subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn",
    "asyncio.create_subprocess", "runpy.",
)  # fmt: skip
"""Beginnings of the names of functions that start a program."""
PATH_CALLS = (
    "open", "Path", "PurePath", "join", "joinpath", "glob", "iglob", "rglob", "listdir", "scandir", "walk",
)  # fmt: skip
"""Functions of which an argument `"tests"` is a folder."""

TEST_FOLDERS = frozenset(("tests", "test", "__tests__"))


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where a node is.

    Attributes:
        function: Dotted name of the function, empty outside of functions.
        is_entry: Whether a program may end and read its arguments there, as in `main`.
        local_names: Parameters and variables of the enclosing functions, which hide imports.
    """

    function: str = ""
    is_entry: bool = False
    local_names: frozenset[str] = frozenset()


def find_python_uses(path: str, text: str) -> list[Use] | None:
    """Return the uses in a Python file; `None` if it is invalid."""
    tree = parse_module(text)
    if tree is None:
        return None
    names = PythonNames(tree)
    uses: list[Use] = []
    # A stack instead of recursion: a long chain of operators nests deeper than Python's stack.
    nodes: list[tuple[ast.AST, _Place]] = [(tree, _Place(is_entry=path.endswith("__main__.py")))]
    while nodes:
        node, place = nodes.pop()
        uses += _find_node_uses(node, place, names)
        nodes += ((child, _enter(node, child, place)) for child in ast.iter_child_nodes(node))
    return uses


def _enter(node: ast.AST, child: ast.AST, place: _Place) -> _Place:
    """Return where a child of a node is."""
    if isinstance(node, FUNCTIONS):
        return replace(
            place,
            function=f"{place.function}.{node.name}".lstrip("."),
            is_entry=place.is_entry or ENTRY_FUNCTION.fullmatch(node.name) is not None,
            local_names=_local_names(node, place.local_names),
        )
    if isinstance(node, ast.ClassDef):
        return replace(place, function=f"{place.function}.{node.name}".lstrip("."))
    if isinstance(node, ast.If) and not place.function and child in node.body and _is_main_guard(node.test):
        return replace(place, is_entry=True)
    return place


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef, outer: frozenset[str]) -> frozenset[str]:
    """Return the variables in a function that hide a module or class of the same name."""
    local: set[str] = set()
    imported: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            local.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            local.add(node.id)
        elif isinstance(node, ast.alias):
            imported.add(node.asname or node.name.partition(".")[0])
    return (outer | local) - imported


def _is_main_guard(test: ast.expr) -> bool:
    names = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
    texts = {part.value for part in ast.walk(test) if isinstance(part, ast.Constant)}
    return "__name__" in names and "__main__" in texts


def _find_node_uses(node: ast.AST, place: _Place, names: PythonNames) -> Iterator[Use]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name in names.imported_by(node):
            yield from _find_name_uses(name, node.lineno)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _find_reference_uses(node, place, names)
    elif isinstance(node, ast.Subscript):
        yield from _find_subscript_uses(node, place, names)
    elif isinstance(node, ast.Call):
        yield from _find_call_uses(node, place, names)
    elif isinstance(node, ast.Raise) and node.exc is not None and not isinstance(node.exc, ast.Call):
        yield from _find_exit_uses(names.resolve(node.exc), node.lineno, place)
    elif isinstance(node, ast.ClassDef):
        yield from _find_comparison_uses(node)
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        if names.resolve(node.comparators[0]) == "os.environ":
            yield from _find_variable_uses(node.left, node.lineno)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _find_text_uses(node.value, node.lineno)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _find_folder_uses((node.left, node.right), node.lineno)


def _find_name_uses(name: str, line: int) -> Iterator[Use]:
    """Yield the use of a full name such as `sys._getframe`, and of its module."""
    module = name.partition(".")[0]
    code = MODULE_CODES.get(module)
    if code is not None:
        yield Use(code=code, name=module, line=line, key=module)
    code = NAME_CODES.get(name)
    if code is not None:
        # Frames can be reached in several ways, which all lead to the same.
        yield Use(code=code, name=name, line=line, key="" if code == "inspects_callers" else name)


def _find_reference_uses(node: ast.Name | ast.Attribute, place: _Place, names: PythonNames) -> Iterator[Use]:
    name = names.resolve(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield from _find_patch_uses(node.value, node.attr, node.lineno, place, names)
    elif name == "sys.argv" and not place.is_entry:
        yield Use(code="detects_environment", name=name, line=node.lineno, key=name)
    elif isinstance(node, ast.Attribute) and node.attr in FRAME_ATTRIBUTES:
        yield Use(code="inspects_callers", name=node.attr, line=node.lineno, key="")
    if not (isinstance(node, ast.Name) and node.id in place.local_names):
        yield from _find_name_uses(name, node.lineno)


def _find_patch_uses(
    owner: ast.expr, attribute: str, line: int, place: _Place, names: PythonNames
) -> Iterator[Use]:
    """Yield the assignment of an attribute on an imported module, or on a class of another module.

    A comparison method counts on any object, because it may make wrong results equal the expected ones.
    """
    root = owner
    while isinstance(root, ast.Attribute):
        root = root.value
    is_shadowed = isinstance(root, ast.Name) and root.id in place.local_names
    if attribute in COMPARISON_METHODS or (not is_shadowed and names.is_foreign(owner)):
        name = f"{names.resolve(owner) or ast.unparse(root)}.{attribute}"
        yield Use(code="patches_code", name=name, line=line, key=name)


def _find_subscript_uses(node: ast.Subscript, place: _Place, names: PythonNames) -> Iterator[Use]:
    if names.resolve(node.value) == "os.environ":
        yield from _find_variable_uses(node.slice, node.lineno)
    if not isinstance(node.ctx, ast.Load):
        yield from _find_namespace_uses(node.value, node.lineno, place, names)


def _find_namespace_uses(owner: ast.expr, line: int, place: _Place, names: PythonNames) -> Iterator[Use]:
    """Yield a change of `globals()`, `module.__dict__` or `vars(module)`."""
    if isinstance(owner, ast.Call):
        function = names.resolve(owner.func)
        if function in ("globals", "builtins.globals"):
            yield Use(code="patches_code", name="globals()", line=line, key="globals()")
        elif function in ("vars", "builtins.vars") and owner.args:
            yield from _find_patch_uses(owner.args[0], "__dict__", line, place, names)
    elif isinstance(owner, ast.Attribute) and owner.attr == "__dict__":
        yield from _find_patch_uses(owner.value, "__dict__", line, place, names)


def _find_call_uses(node: ast.Call, place: _Place, names: PythonNames) -> Iterator[Use]:
    name, line = names.resolve(node.func), node.lineno
    if names.is_import_call(node) or name == "getattr":
        yield from _find_name_uses(names.resolve(node), line)
    elif name in SETTERS and len(node.args) > 1:
        attribute = node.args[1]
        text = attribute.value if isinstance(attribute, ast.Constant) else "..."
        yield from _find_patch_uses(node.args[0], str(text), line, place, names)
    elif name in ("os.environ.get", "os.getenv", "os.environ.pop", "os.environ.setdefault") and node.args:
        yield from _find_variable_uses(node.args[0], line)
    elif isinstance(node.func, ast.Attribute) and node.func.attr in DICTIONARY_CHANGES:
        yield from _find_namespace_uses(node.func.value, line, place, names)
    if not (isinstance(node.func, ast.Name) and node.func.id in place.local_names):
        yield from _find_exit_uses(name, line, place)
    if (written := find_written_path(node, names)) is not None:
        yield Use(code="writes_project_files", name=written, line=line, key="")
    if name.startswith(PROCESS_STARTERS):
        texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        if any(isinstance(text, str) and TEST_RUNNER.search(text) for text in texts):
            yield Use(code="starts_test_process", name=name, line=line, key="")
    last_name = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
    if last_name in PATH_CALLS:
        yield from _find_folder_uses(node.args, line)


def _find_exit_uses(name: str, line: int, place: _Place) -> Iterator[Use]:
    if name in ENDING_CALLS and not place.is_entry:
        yield Use(code="ends_process", name=name, line=line, key=f"in {place.function}")


def _find_variable_uses(key: ast.expr, line: int) -> Iterator[Use]:
    """Yield the use of an environment variable that shows that tests are running."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and TEST_VARIABLE.fullmatch(key.value):
        yield Use(code="detects_environment", name=key.value, line=line, key=key.value)


def _find_text_uses(text: str, line: int) -> Iterator[Use]:
    if text.startswith("PYTEST_"):
        yield Use(code="detects_environment", name=text, line=line, key=text)
    else:
        yield from find_path_uses(text, line)


def _find_folder_uses(parts: tuple[ast.expr, ...] | list[ast.expr], line: int) -> Iterator[Use]:
    """Yield a part of a path that is the folder of the tests."""
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    for text in texts:
        if isinstance(text, str) and TEST_FOLDERS & {*text.split("/")} and not text.startswith("/"):
            yield Use(code="reads_tests", name=text, line=line, key="")


def _find_comparison_uses(node: ast.ClassDef) -> Iterator[Use]:
    for statement in node.body:
        if isinstance(statement, FUNCTIONS):
            name, function = statement.name, statement
            is_loose = name in COMPARISON_METHODS and _ignores_argument(function, function.body)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
            target = statement.targets[0]
            name = target.id if isinstance(target, ast.Name) else ""
            body: list[ast.stmt] = [ast.Return(value=statement.value.body)]
            is_loose = name in COMPARISON_METHODS and _ignores_argument(statement.value, body)
        else:
            continue
        if is_loose:
            full_name = f"{node.name}.{name}"
            yield Use(code="loosens_comparison", name=full_name, line=statement.lineno, key=full_name)


def _ignores_argument(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, body: list[ast.stmt]
) -> bool:
    """Return whether a comparison does not read its argument, or always returns the same constant.

    One that only raises, or returns `NotImplemented`, decides nothing.
    """
    parameters = [*function.args.posonlyargs, *function.args.args]
    nodes = [part for statement in body for part in ast.walk(statement)]
    results = [part.value for part in nodes if isinstance(part, ast.Return)]
    kinds = {ast.dump(result) if result is not None else "" for result in results}
    if not results or kinds == {ast.dump(ast.Name(id="NotImplemented", ctx=ast.Load()))}:
        return False
    is_constant = len(kinds) == 1 and isinstance(results[0], ast.Constant)
    argument = parameters[1].arg if len(parameters) > 1 else ""
    is_read = not argument or any(isinstance(part, ast.Name) and part.id == argument for part in nodes)
    return is_constant or not is_read
