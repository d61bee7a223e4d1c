"""Find what a Python file has libraries do: read stored objects, run strings, import what is named, list members."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from suture.core.records import CapabilityCode
from suture.judge.capabilities.python.python_patches import Place
from suture.judge.capabilities.use import Use
from suture.project.python_source.module_names import ModuleNames

MODULE_CODES: dict[str, CapabilityCode] = {
    **dict.fromkeys(
        ("pytest", "_pytest", "pluggy", "hypothesis", "unittest", "xdist", "nose", "nose2"),
        "imports_test_machinery",
    ),
    **dict.fromkeys(("gc", "ctypes", "_ctypes"), "reaches_memory"),
    **dict.fromkeys(("code", "codeop"), "computes_names"),
    **dict.fromkeys(
        ("atexit", "faulthandler", "bdb", "pdb", "cProfile", "profile", "trace"), "hooks_interpreter"
    ),
    "linecache": "inspects_callers",
    "__main__": "detects_environment",
}
"""Top-level module -> what its use means."""
STORED_OBJECTS = re.compile(
    r"(?:_?c?[pP]ickle|dill|cloudpickle|jsonpickle)\.(?:_?loads?|_?Unpickler|decode)|shelve\.\w+"
    r"|multiprocessing\.reduction\.ForkingPickler\.loads"
    r"|yaml\.(?:full_load|unsafe_load|(?:C|C?Full|C?Unsafe)?Loader)\w*|pandas\.read_pickle"
)
"""The name of a function or class that reads stored data, which may name any function or module."""
WRITTEN_OBJECTS = re.compile(r"(?:_?c?[pP]ickle|dill|cloudpickle)\.dumps")
"""The name of a function that writes what these read."""
REVEALING_OPTIONS = ("stack_info", "capture_locals")
"""Options of functions of `logging` and `traceback` that record callers or their variables."""
MEMBER_LISTS = ("inspect.getmembers", "inspect.getmembers_static")
OWN_OBJECTS = ("self", "cls", "type(self)", "self.__class__", "sys.modules[__name__]")
LOGGING_CONFIGS = ("logging.config.dictConfig", "logging.config.fileConfig")
CONFIG_SETTINGS = ("level", "format", "datefmt", "filename", "maxBytes", "backupCount", "propagate")
"""Entries of a configuration of logging by which no object is found."""
CODE_KINDS = ("inspect.isframe", "inspect.iscode", "inspect.istraceback")
TEXT_RUNNERS = ("timeit.timeit", "timeit.repeat", "timeit.Timer")
"""Functions that run their first argument as code if it is a string."""
ENTRY_POINTS = ("importlib.metadata.EntryPoint", "importlib_metadata.EntryPoint", "pkg_resources.EntryPoint")
"""Classes whose objects import what a string names."""


def find_stored_objects(node: ast.AST, names: ModuleNames) -> Iterator[Use]:
    """Yield what reads stored data, unless the data was just written, as in `pickle.loads(pickle.dumps(x))`."""
    for value in ast.iter_child_nodes(node):
        if isinstance(value, ast.Name | ast.Attribute) and STORED_OBJECTS.fullmatch(names.resolve(value)):
            name = names.resolve(value)
            data = node.args[0] if isinstance(node, ast.Call) and node.args else None
            if not (isinstance(data, ast.Call) and WRITTEN_OBJECTS.fullmatch(names.resolve(data.func))):
                yield Use(code="computes_names", name=name, line=value.lineno, key="stored objects")


def _runs_text(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether a call of `timeit` may run a string, and not a function."""
    options = [word.value for word in node.keywords if word.arg in ("stmt", "setup", None)]
    values = [*node.args[:2], *options]
    return any(
        not isinstance(value, ast.Lambda) and names.resolve(value) not in names.functions for value in values
    )


def find_library_calls(node: ast.Call, place: Place, names: ModuleNames) -> Iterator[Use]:
    """Yield a call of a library function that runs a string as code, or imports what a string names."""
    name, line = names.resolve(node.func), node.lineno
    runs_text = name in TEXT_RUNNERS and _runs_text(node, names)
    if runs_text or name.startswith(ENTRY_POINTS):
        yield Use(code="computes_names", name=name, line=line, key=name)
    elif name in ("doctest.testmod", "doctest.testfile") and not place.is_entry:
        yield Use(code="imports_test_machinery", name=name, line=line, key=name)
    elif name in LOGGING_CONFIGS and not place.is_entry:
        if name == "logging.config.fileConfig" or not _is_plain_config(node, names):
            yield Use(code="computes_names", name=name, line=line, key=name)
    elif name in MEMBER_LISTS and not _lists_one_kind(node, names) and not _lists_own(node, names):
        yield Use(code="inspects_callers", name=name, line=line, key="")
    for word in node.keywords:
        is_off = isinstance(word.value, ast.Constant) and not word.value.value
        if word.arg in REVEALING_OPTIONS and not is_off:
            yield Use(code="inspects_callers", name=word.arg, line=line, key="")
        elif word.arg == "allow_pickle" and not is_off:
            yield Use(code="computes_names", name=word.arg, line=line, key="stored objects")


def _lists_one_kind(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether only functions, classes or the like of an object are listed, and not its global variables."""
    kinds = [*node.args[1:], *(word.value for word in node.keywords)]
    return any(name.startswith("inspect.is") and name not in CODE_KINDS for name in map(names.resolve, kinds))


def _lists_own(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether the members of an object, class or module of the file itself are listed."""
    listed = node.args[0] if node.args else None
    text = ast.unparse(listed) if listed is not None else ""
    return text in OWN_OBJECTS or (isinstance(listed, ast.Name) and listed.id in names.functions)


def _is_plain_config(node: ast.Call, names: ModuleNames) -> bool:
    """Return whether a logging configuration is literal or imported, and creates no object of another library.

    Its strings may name any function, which is called with arguments from the configuration.
    """
    config = node.args[0] if node.args else next((word.value for word in node.keywords), None)
    if isinstance(config, ast.Name) and config.id in names.assigned:
        config = names.assigned[config.id]
    if not isinstance(config, ast.Dict):
        return isinstance(config, ast.Name | ast.Attribute) and names.is_imported(config)
    for part in ast.walk(config):
        if isinstance(part, ast.Dict) and not all(map(_is_plain_entry, part.keys, part.values)):
            return False
    texts = [part.value for part in ast.walk(config) if isinstance(part, ast.Constant)]
    return all(_is_plain_text(text) for text in texts if isinstance(text, str))


def _is_plain_entry(key: ast.expr | None, value: ast.expr) -> bool:
    """Return whether an entry of a configuration has a visible value, or only sets a level, a format or a file."""
    if isinstance(value, ast.Constant | ast.Dict | ast.List | ast.Tuple):
        return key is not None
    return isinstance(key, ast.Constant) and key.value in CONFIG_SETTINGS


def _is_plain_text(text: str) -> bool:
    """Return whether a string in a configuration names no function or object of a library except for `logging`."""
    name = text.removeprefix("ext://")
    module = name.partition(".")[0]
    is_path = re.fullmatch(r"\w+(?:\.\w+)+", name) is not None
    is_library = module in sys.stdlib_module_names or module in MODULE_CODES
    return not (is_path and is_library) or module == "logging" or name in ("sys.stdout", "sys.stderr")
