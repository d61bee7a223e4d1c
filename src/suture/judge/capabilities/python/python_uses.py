"""Find what a Python file uses of the test machinery and of the interpreter, in its syntax tree."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from suture.core.records import CapabilityCode
from suture.judge.capabilities.python.python_bindings import BoundBodies
from suture.judge.capabilities.python.python_class_hooks import ClassKinds
from suture.judge.capabilities.python.python_classes import find_class_uses
from suture.judge.capabilities.python.python_comparisons import find_kept_state, find_loose_comparisons
from suture.judge.capabilities.python.python_composed_names import ComposedNames
from suture.judge.capabilities.python.python_hidden_effects import find_hidden_effects, find_hiding_texts
from suture.judge.capabilities.python.python_library_calls import (
    MODULE_CODES,
    find_library_calls,
    find_stored_objects,
)
from suture.judge.capabilities.python.python_library_state import find_library_state_uses
from suture.judge.capabilities.python.python_patches import (
    MOCK_NAME,
    Place,
    find_namespace_uses,
    find_passed_setters,
    find_patch_uses,
    find_patching_calls,
    find_setting_uses,
    list_restored_settings,
    list_stacks,
)
from suture.judge.capabilities.python.python_paths import find_written_path
from suture.judge.capabilities.python.python_surroundings import find_surrounding_uses
from suture.judge.capabilities.python.python_test_data import find_test_data_uses, find_test_imports
from suture.judge.capabilities.use import (
    ENTRY_FUNCTION,
    TEST_RUNNER,
    TEST_VARIABLE,
    Use,
    find_path_uses,
)
from suture.project.python_source.module_names import IMPORT_CALLS, ModuleNames
from suture.project.python_source.parsing import parse_module
from suture.project.python_source.scopes import FUNCTIONS

NAME_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("pytest.skip", "pytest.xfail", "pytest.exit", "pytest.importorskip", "unittest.SkipTest"), "skips_tests"
    ),
    **dict.fromkeys(
        (
            "sys._getframe", "sys._current_frames", "inspect.currentframe", "inspect.stack", "inspect.trace",
            "inspect.getouterframes", "inspect.getinnerframes", "inspect.getframeinfo", "inspect.getsource",
            "inspect.getsourcelines", "inspect.getsourcefile", "inspect.findsource", "inspect.getmodule",
            "inspect.getclosurevars", "inspect.getgeneratorlocals", "inspect.getcoroutinelocals",
            "traceback.walk_stack", "traceback.extract_stack", "traceback.format_stack", "traceback.print_stack",
            "traceback.walk_tb", "traceback.StackSummary.extract", "logging.currentframe", "warnings.formatwarning",
            "warnings._formatwarnmsg",
        ),
        "inspects_callers",
    ),
    "sys.modules": "reads_loaded_modules",
    **dict.fromkeys(
        (
            "sys.settrace", "sys.setprofile", "sys.meta_path", "sys.path_hooks", "sys.path_importer_cache",
            "sys.excepthook", "sys.unraisablehook", "sys.displayhook", "sys.addaudithook", "sys.monitoring",
            "sys._xoptions", "threading.settrace", "threading.setprofile", "threading.excepthook",
            "signal.signal", "signal.setitimer", "signal.alarm",
        ),
        "hooks_interpreter",
    ),
    **dict.fromkeys(
        (
            "os._exit", "posix._exit", "nt._exit", "os.abort", "os.kill", "posix.kill", "os.killpg",
            "signal.raise_signal", "signal.pthread_kill", "_thread.interrupt_main",
            "os.execl", "os.execle", "os.execlp", "os.execlpe", "os.execv", "os.execve", "os.execvp", "os.execvpe",
        ),
        "ends_process",
    ),
    **dict.fromkeys(("sys.gettrace", "sys.getprofile", "sys.orig_argv"), "detects_environment"),
    **dict.fromkeys(("os.fork", "os.forkpty", "pty.fork"), "starts_test_process"),
    "os.chdir": "hooks_interpreter",
    **dict.fromkeys(
        (
            "eval", "exec", "compile", "marshal.loads", "marshal.load", "runpy.run_path", "runpy.run_module",
            "pkgutil.resolve_name", "pydoc.locate", "logging.config.BaseConfigurator",
            "logging.config.DictConfigurator", "logging.config._resolve", "pdb.run", "pdb.runeval",
        ),
        "computes_names",
    ),
    **dict.fromkeys(
        (
            "doctest.run_docstring_examples", "doctest.DocTestRunner", "doctest.DebugRunner", "doctest.DocTestParser",
            "doctest.DocTestFinder", "doctest.DocTest", "doctest.debug", "doctest.debug_src", "doctest.debug_script",
            "doctest.DocTestSuite", "doctest.DocFileSuite",
        ),
        "imports_test_machinery",
    ),
}  # fmt: skip
"""A name with its module -> what its use means."""
REACHING_ATTRIBUTES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        (
            "f_back", "f_globals", "f_locals", "f_builtins", "f_code", "tb_frame", "gi_frame", "cr_frame", "ag_frame",
            "__globals__", "__closure__", "cell_contents", "__code__", "co_consts", "co_code", "func_globals",
            "_getframe", "_current_frames", "findCaller",
        ),
        "inspects_callers",
    ),
    "__subclasses__": "reaches_memory",
    **dict.fromkeys(
        ("settrace", "setprofile", "meta_path", "path_hooks", "addaudithook", "unraisablehook"), "hooks_interpreter"
    ),
    **dict.fromkeys(("__builtins__", "__loader__", "load_module"), "computes_names"),
    **dict.fromkeys(
        (
            "addTypeEqualityFunc", "_type_equality_funcs", "_getAssertEqualityFunc", "_baseAssertEqual",
            "failureException", "longMessage",
        ),
        "patches_code",
    ),
}  # fmt: skip
"""An attribute that leads from any object to other code, whatever the object is. Such names are rare otherwise."""
MODULE_ATTRIBUTES: dict[str, tuple[str, CapabilityCode]] = {
    "get_field": ("string", "inspects_callers"),
    "get_stack": ("asyncio", "inspects_callers"),
    "print_stack": ("asyncio", "inspects_callers"),
    "find_class": ("pickle", "computes_names"),
}
"""An attribute of objects of a module -> that module, and what the use means in a file that imports it."""
TEXT_PATH = re.compile(r"[\w.\[\]:]+|\{[^{}\s]+\}")
"""A path of attributes and keys such as `0.f_back[name]`, alone or as a field of a format."""
CODE_TEXT = re.compile(
    r"__import__\s*\(|\._getframe\s*\(|\w\.f_(?:back|locals|globals)\b|\.__globals__\b|\.__subclasses__\s*\("
)
"""Code in a string. The library has many functions that run a string, such as `typing.get_type_hints`."""
MADE_CODE = ("types.CodeType", "types.FunctionType", "types.LambdaType")
"""Classes whose calls make functions out of data."""
REACHED_MODULES = frozenset(("sys", "os", "builtins", "gc", "inspect", "ctypes"))
"""Modules that most other modules import, so that they can be reached as `logging.sys`."""
PASSED_MODULES = ("sys", "builtins")
"""Modules that normal code does not use as values: what matters are their attributes."""
VALUE_FUNCTIONS = ("getattr", "hasattr", "setattr", "delattr", "dir")
"""Functions that take a module and are examined themselves, or do nothing with it."""
ENDING_CALLS = ("sys.exit", "exit", "quit", "SystemExit")
PATH_CHANGES = (
    "insert",
    "append",
    "extend",
    "remove",
    "pop",
    "clear",
    "reverse",
    "sort",
    "__setitem__",
    "__iadd__",
)
"""Methods that change a list, such as `sys.path`, on which modules are found."""
PROCESS_STARTERS = (
    "subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn",
    "asyncio.create_subprocess", "runpy.",
)  # fmt: skip
"""Beginnings of the names of functions that start a program."""
PATH_CALLS = (
    "open", "Path", "PurePath", "join", "joinpath", "glob", "iglob", "rglob", "listdir", "scandir", "walk",
    "exists", "isdir",
)  # fmt: skip
"""Functions of which an argument `"tests"` is a folder."""

TEST_FOLDERS = frozenset(("tests", "test", "__tests__"))
PASSED_CODES = frozenset(
    (
        "patches_code",
        "computes_names",
        "inspects_callers",
        "hooks_interpreter",
        "reaches_memory",
        "loosens_comparison",
        "hides_effects",
    )
)
"""What counts in a body with the values that it gets. The others say something about a constant where it stands."""


def find_python_uses(path: str, text: str, imported: Iterable[ast.ClassDef] = ()) -> list[Use] | None:
    """Return the uses in a Python file; `None` if it is invalid.

    Args:
        imported: Classes of other files that it imports, as `BaseClasses` yields them.
    """
    tree = parse_module(text)
    if tree is None:
        return None
    names, imported = ModuleNames(tree), list(imported)
    uses = [
        *find_loose_comparisons(tree, names),
        *find_class_uses(tree, names, imported),
        *find_kept_state(tree, names),
    ]
    kinds, composed = ClassKinds(tree, names, imported), ComposedNames(tree, names)
    # A stack instead of recursion: a long chain of operators nests deeper than Python's stack.
    top, bodies = Place(path=path, is_entry=path.endswith("__main__.py")), BoundBodies(tree, names)
    nodes: list[tuple[ast.AST, Place]] = [(tree, top)]
    while nodes:
        node, place = nodes.pop()
        is_copy = node in bodies.copies
        found = [*_find_node_uses(node, place, names), *kinds.find_uses(node), *composed.find_uses(node)]
        uses += (use for use in found if not is_copy or use.code in PASSED_CODES)
        restored, stacks = list_restored_settings(node, names), list_stacks(node)
        if restored or stacks:
            place = replace(place, restored=place.restored | restored, stacks=place.stacks | stacks)
        nodes += (
            (child, _enter(node, child, place))
            for child in ast.iter_child_nodes(node)
            if not is_copy or child in bodies.copies
        )
        for body in bodies.bind(node, place.local_names):
            nodes.append((body, top if isinstance(node, ast.Call) else place))
    if bodies.is_full:  # calls without effect may hide the others
        uses.append(Use(code="computes_names", name="calls", line=1, key="calls"))
    return uses


def _enter(node: ast.AST, child: ast.AST, place: Place) -> Place:
    """Return where a child of a node is."""
    if isinstance(node, FUNCTIONS):
        if child not in node.body:  # defaults and decorators are evaluated outside
            return place
        return replace(
            place,
            function=f"{place.function}.{node.name}".lstrip("."),
            is_entry=place.is_entry or ENTRY_FUNCTION.fullmatch(node.name) is not None,
            local_names=_local_names(node, place.local_names),
            parameters=place.parameters
            | {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)},
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
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node is not function:
            local.add(node.name)
        elif isinstance(node, ast.alias):
            imported.add(node.asname or node.name.partition(".")[0])
    return (outer | local) - imported


def _is_main_guard(test: ast.expr) -> bool:
    names = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
    texts = {part.value for part in ast.walk(test) if isinstance(part, ast.Constant)}
    return "__name__" in names and "__main__" in texts


def _find_node_uses(node: ast.AST, place: Place, names: ModuleNames) -> Iterator[Use]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for name in names.imported_by(node):
            yield from _find_name_uses(name, node.lineno)
        yield from find_test_imports(node, names)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _find_reference_uses(node, place, names)
    elif isinstance(node, ast.Subscript):
        yield from _find_subscript_uses(node, place, names)
        yield from _find_access_uses(node, names)
    elif isinstance(node, ast.Call):
        yield from _find_call_uses(node, place, names)
        yield from find_library_calls(node, place, names)
        yield from find_patching_calls(node, place, names)
        yield from _find_access_uses(node, names)
    elif isinstance(node, ast.Raise) and node.exc is not None and not isinstance(node.exc, ast.Call):
        yield from _find_exit_uses(names.resolve(node.exc), node.lineno, place)
    else:
        yield from _find_operator_uses(node, place, names)
    yield from _find_pattern_uses(node, names)
    yield from find_stored_objects(node, names)
    yield from _find_module_value_uses(node, names)
    yield from find_passed_setters(node, names)
    yield from find_setting_uses(node, place, names)
    yield from find_library_state_uses(node, place, names)
    yield from find_hidden_effects(node, names)
    yield from find_test_data_uses(node, names)
    yield from find_surrounding_uses(node, names, function=place.function, is_entry=place.is_entry)
    if isinstance(node, ast.expr):
        text = names.fold_text(node)
        if text is not None and not isinstance(node, ast.Name):
            yield from _find_text_uses(text, node.lineno)


def _find_operator_uses(node: ast.AST, place: Place, names: ModuleNames) -> Iterator[Use]:
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        if names.resolve(node.comparators[0]) == "os.environ":
            yield from _find_variable_uses(node.left, node.lineno)
    elif isinstance(node, ast.AugAssign):
        yield from find_namespace_uses(node.target, node.lineno, place, names)
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


def _find_reference_uses(node: ast.Name | ast.Attribute, place: Place, names: ModuleNames) -> Iterator[Use]:
    name = names.resolve(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield from find_patch_uses(node.value, node.attr, node.lineno, place, names)
    elif name == "sys.argv" and not place.is_entry:
        yield Use(code="detects_environment", name=name, line=node.lineno, key=name)
    elif isinstance(node, ast.Attribute):
        yield from _find_attribute_uses(node.attr, node.lineno)
        if not (isinstance(node.value, ast.Call) and names.resolve(node.value.func) == "super"):
            yield from _find_module_attribute_uses(node.attr, node.lineno, names)
        if node.attr == "__self__" and hasattr(builtins, names.resolve(node.value)):
            yield Use(code="computes_names", name=name, line=node.lineno, key="__self__")
    if isinstance(node, ast.Name) and node.id in place.local_names:
        return
    if names.is_foreign(node):
        name = _shorten_path(name)
    root = name.partition(".")[0]
    # A variable may have the name of a module.
    if root not in MODULE_CODES or names.is_imported(node):
        yield from _find_name_uses(name, node.lineno)
    if isinstance(node, ast.Name) and name == node.id:
        for module in names.star_modules:
            yield from _find_name_uses(f"{module}.{name}", node.lineno)


def _find_attribute_uses(attribute: str, line: int) -> Iterator[Use]:
    code = REACHING_ATTRIBUTES.get(attribute)
    if code is not None:
        yield Use(code=code, name=attribute, line=line, key="" if code == "inspects_callers" else attribute)


def _find_pattern_uses(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield the attributes that a pattern reads, such as `case object(f_back=caller)`."""
    if isinstance(node, ast.MatchClass):
        for attribute in node.kwd_attrs:
            yield from _find_attribute_uses(attribute, node.lineno)
            yield from _find_module_attribute_uses(attribute, node.lineno, names)


def _find_module_attribute_uses(attribute: str, line: int, names: ModuleNames) -> Iterator[Use]:
    module, code = MODULE_ATTRIBUTES.get(attribute, ("", "inspects_callers"))
    if module and names.imports_any((module,)):
        yield Use(code=code, name=attribute, line=line, key=attribute)


def _shorten_path(name: str) -> str:
    """Return a name without its detour: `sys.modules` for `logging.sys.modules`."""
    parts = name.split(".")
    # Some modules of the standard library import `sys` as `_sys`.
    starts = [index for index, part in enumerate(parts) if part.removeprefix("_") in REACHED_MODULES]
    return ".".join([parts[starts[-1]].removeprefix("_"), *parts[starts[-1] + 1 :]]) if starts else name


def _find_module_value_uses(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield a module such as `sys` that is passed on as a value, because its attributes can then be read anywhere."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.ClassDef):  # `A.s` is `sys` after `class A: s = sys`
        children = [part.value for part in node.body if isinstance(part, ast.Assign)]
    elif isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        return  # another name for the module, which is followed
    elif isinstance(node, ast.Attribute):
        children = [node.value] if node.attr == "__dict__" else []
    elif isinstance(node, ast.Call):
        is_access = names.find_access(node) is not None or names.resolve(node.func) in VALUE_FUNCTIONS
        children = [] if is_access else children
    for child in children:
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and names.is_module(child):
            name = names.resolve(child) or child.id
            if name in PASSED_MODULES:
                yield Use(code="computes_names", name=name, line=child.lineno, key=name)


def _find_access_uses(node: ast.Call | ast.Subscript, names: ModuleNames) -> Iterator[Use]:
    """Yield the access to an attribute by name, and an import, if code computes the name."""
    access = names.find_access(node)
    if access is not None:
        owner, attribute = access
        if names.fold_text(attribute) is not None:
            yield from _find_name_uses(names.resolve(node), node.lineno)
        elif names.is_module(owner) or names.is_globals_call(owner):
            name = f"{names.resolve(owner) or ast.unparse(owner)}[{ast.unparse(attribute)}]"
            yield Use(code="computes_names", name=name, line=node.lineno, key=names.resolve(owner))
    if not isinstance(node, ast.Call):
        return
    function = names.resolve(node.func)
    if function in IMPORT_CALLS and node.args and names.fold_text(node.args[0]) is None:
        yield Use(code="computes_names", name=function, line=node.lineno, key=function)
    is_code = function in MADE_CODE or any((word.arg or "").startswith("co_") for word in node.keywords)
    if is_code:
        yield Use(code="computes_names", name=function, line=node.lineno, key=function)


def _find_subscript_uses(node: ast.Subscript, place: Place, names: ModuleNames) -> Iterator[Use]:
    if names.resolve(node.value) == "os.environ":
        yield from _find_variable_uses(node.slice, node.lineno)
    if names.resolve(node.value) == "sys.path" and not isinstance(node.ctx, ast.Load):
        yield Use(code="hooks_interpreter", name="sys.path", line=node.lineno, key="sys.path")
    if not isinstance(node.ctx, ast.Load):
        yield from find_namespace_uses(node.value, node.lineno, place, names)
        owner = names.find_namespace_owner(node.value)
        key = names.fold_text(node.slice)
        if owner is not None and key is not None:
            yield from find_patch_uses(owner, key, node.lineno, place, names)


def _find_call_uses(node: ast.Call, place: Place, names: ModuleNames) -> Iterator[Use]:
    name, line = names.resolve(node.func), node.lineno
    if names.is_import_call(node):
        yield from _find_name_uses(names.resolve(node), line)
    elif name in ("os.environ.get", "os.getenv", "os.environ.pop", "os.environ.setdefault") and node.args:
        yield from _find_variable_uses(node.args[0], line)
    elif name.startswith("sys.path.") and name.removeprefix("sys.path.") in PATH_CHANGES:
        yield Use(code="hooks_interpreter", name=name, line=line, key="sys.path")
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


def _find_exit_uses(name: str, line: int, place: Place) -> Iterator[Use]:
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
    yield from find_hiding_texts(text, line)
    if CODE_TEXT.search(text):
        yield Use(code="computes_names", name="text", line=line, key="text")
    if MOCK_NAME.fullmatch(text):
        yield Use(code="patches_code", name=text, line=line, key=text)
    # Not a sentence, unless it is a format.
    paths = (
        [text] if TEXT_PATH.fullmatch(text) else [path for path in TEXT_PATH.findall(text) if path[0] == "{"]
    )
    for path in paths:
        for attribute in re.findall(r"\w+", path):
            yield from _find_attribute_uses(attribute, line)


def _find_folder_uses(parts: tuple[ast.expr, ...] | list[ast.expr], line: int) -> Iterator[Use]:
    """Yield a part of a path that is the folder of the tests."""
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    for text in texts:
        if isinstance(text, str) and TEST_FOLDERS & {*text.split("/")} and not text.startswith("/"):
            yield Use(code="reads_tests", name=text, line=line, key="")
