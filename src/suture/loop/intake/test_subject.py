"""Find the files that a task is about: those that its statement names, and the module that its tests import."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import basename

from suture.core.safe_files import read_regular_file
from suture.errors import UsageError, describe_fault
from suture.loop.tuning import (
    MAX_REQUESTED_FILES,
    MAX_STATEMENT_SCAN_CHARS,
    MAX_TEST_FILE_BYTES,
    REQUEST_WORDS_CHARS,
)
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import is_protected

LIBRARIES = sys.stdlib_module_names | {"pytest", "hypothesis", "numpy"}
"""Modules that tests import and that are never what they test."""

PYTHON_FILE_RE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.py)\b(?!\()")
FILE_REQUEST_RE = re.compile(
    r"\b(?:write|create|make|implement|build|add|generate|produce|save|put|file|module|script)s?\b"
    r"(?:\W+\w+){0,3}?\W+[`'\"]?$",
    re.IGNORECASE,
)
"""Words before the name of a file that is to be written, and not before one that is only mentioned."""
SEVERAL_FILES_RE = re.compile(
    r"\b(?:several|multiple|two|three|four|five|separate)\s+(?:python\s+)?(?:files|modules)\b"
    r"|\b(?:write|create|make|implement|build)\s+(?:an?|the)\s+(?:\w+\s+){0,2}package\b"
    r"|\bpython package\b|\b(?:and|with)\s+(?:its|an?)\s+(?:command[- ]line|cli\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class _ImportedModule:
    """A module that the tests import.

    Attributes:
        path: Its file, relative to the project root.
        name: The first name that is imported from it; `None` if the module itself is imported.
        exists: Whether the file exists.
        package: The first part of the module's dotted name.
    """

    path: str
    name: str | None
    exists: bool
    package: str

    @property
    def is_new(self) -> bool:
        """Whether there is neither such a file nor an installed package of this name."""
        return not self.exists and not _is_installed(self.package)


def find_tested_module(source: str, path: str, folder: Path) -> tuple[str, str | None]:
    """Return `(file that the tests are about, first name that they import from it)`.

    It is the module with the name of the test file, else the last one that exists, else the last new one.

    Args:
        source: The source of the test file.
        path: The path of the test file, relative to the project root.
        folder: The folder of the test file.

    Raises:
        UsageError: The tests do not parse, or import nothing that could be the subject.
    """
    tree = parse_module(source)
    if tree is None:
        raise UsageError(
            f"the test file {path!r} is not Python: {_explain_syntax_error(source)}",
            remedy="repair that line",
        )
    modules = [
        module
        for module in _imported_modules(tree, PurePosixPath(path), folder)
        if not is_protected(module.path)
    ]
    tested_name = PurePosixPath(path).stem.removeprefix("test_").removesuffix("_test")
    same_name = [module for module in modules if PurePosixPath(module.path).stem == tested_name]
    existing = [module for module in modules if module.exists]
    candidates = same_name[:1] or existing[-1:] or [module for module in modules if module.is_new][-1:]
    if not candidates:
        raise UsageError(
            f"the test file {path!r} imports no module of its own",
            remedy="import what you want written, as in `from merge import merge_intervals`",
        )
    return candidates[0].path, candidates[0].name


def find_new_modules(source: str, path: str, folder: Path) -> tuple[str, ...]:
    """Return the files that the tests import and that do not exist yet, in the order of the imports."""
    tree = parse_module(source)
    modules = _imported_modules(tree, PurePosixPath(path), folder) if tree else ()
    new = (module.path for module in modules if module.is_new and not is_protected(module.path))
    return tuple(dict.fromkeys(new))


def _explain_syntax_error(source: str) -> str:
    try:
        ast.parse(source)
    except SyntaxError as fault:
        return f"{fault.msg} in line {fault.lineno}"
    except (ValueError, RecursionError, MemoryError):
        pass
    return "it is nested too deeply, or holds characters that Python refuses"


def _imported_modules(tree: ast.Module, path: PurePosixPath, folder: Path) -> Iterator[_ImportedModule]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] not in LIBRARIES:
                    yield _locate_module(alias.name, None, path, folder)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[min(node.level, len(path.parents)) - 1]
            module = node.module or node.names[0].name
            file = (base / module.replace(".", "/")).as_posix() + ".py"
            name = node.names[0].name if node.module else None
            # If the disk is not inspected, it counts as existing, so that it is never a module to be written.
            yield _ImportedModule(path=file, name=name, exists=True, package=module.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] not in LIBRARIES:
            name = node.names[0].name
            yield _locate_module(node.module, None if name == "*" else name, path, folder)


def _locate_module(module: str, name: str | None, path: PurePosixPath, folder: Path) -> _ImportedModule:
    """Return an imported module, which is looked for in the current folder and next to the test file."""
    file = module.replace(".", "/") + ".py"
    exists = True
    if not Path(file).is_file():
        submodule_file = f"{module.replace('.', '/')}/{name}.py"
        if (folder / file).is_file():
            file = (path.parent / file).as_posix()
        elif name and Path(submodule_file).is_file():
            file, name = submodule_file, None  # `from shop import cart` imports a module.
        else:
            exists = False
    return _ImportedModule(path=file, name=name, exists=exists, package=module.split(".")[0])


def _is_installed(package: str) -> bool:
    # Only a hint, because the tests may run on another Python: a module that Suture's own Python finds is a library.
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # a package that is there, but cannot be searched
        return True


def find_requested_files(statement: str) -> tuple[str, ...]:
    """Return the Python files that a statement asks for by name, in the statement's order.

    A single file counts only if the words before it ask for it: "sorts like utils.py does" does not. Test
    files, and files that configure tests, are left out, because no candidate may write them.
    """
    text = statement[:MAX_STATEMENT_SCAN_CHARS]
    matches = [match for match in PYTHON_FILE_RE.finditer(text) if not is_protected(match[1])]
    paths = tuple(dict.fromkeys(match[1] for match in matches))[:MAX_REQUESTED_FILES]
    if len(paths) > 1:
        return paths
    is_requested = any(
        FILE_REQUEST_RE.search(text[max(0, match.start() - REQUEST_WORDS_CHARS) : match.start()])
        for match in matches
    )
    return paths if is_requested else ()


def asks_for_several_files(statement: str) -> bool:
    """Return whether a statement asks for more than one file, such as a package, without naming them."""
    return SEVERAL_FILES_RE.search(statement[:MAX_STATEMENT_SCAN_CHARS]) is not None


AMBIGUOUS_TEST_NAMES = ("tests.py", "test.py")
"""File names that some projects use for tests and others for code that helps with testing."""
TEST_IMPORT_RE = re.compile(rb"^(?:from|import) (?:unittest|pytest|django\.test)\b", re.MULTILINE)


def read_test_file(path: Path) -> str:
    """Return the source of a test file, with Unix line endings.

    Raises:
        UsageError: The file cannot be read.
    """
    content = read_bounded_file(path)
    if content is None:
        raise UsageError(
            f"the test file {str(path)!r} cannot be read: there is no regular file",
            remedy="name a file of tests",
        )
    try:
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as fault:
        raise UsageError(
            f"the test file {str(path)!r} cannot be read: {describe_fault(fault)}",
            remedy="save it as text in UTF-8",
        ) from fault


def read_bounded_file(path: Path) -> bytes | None:
    """Return the content of a file that the user named; `None` if it is not a regular file.

    Raises:
        UsageError: The file cannot be read, or is larger than `MAX_TEST_FILE_BYTES`.
    """
    try:
        content = read_regular_file(path, MAX_TEST_FILE_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(
            f"{str(path)!r} cannot be read: {fault.strerror}", remedy="check its permissions"
        ) from fault
    if content is not None and len(content) > MAX_TEST_FILE_BYTES:
        raise UsageError(f"{str(path)!r} holds more than {MAX_TEST_FILE_BYTES // 2**20} MiB")
    return content


def is_pytest_source(source: str) -> bool:
    """Return whether pytest would collect a test from this source."""
    return bool(re.search(r"^\s*(async\s+)?def test|^class Test", source, re.MULTILINE))


def find_tests_by_content(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the paths of a project's test files that cannot be recognised by their names alone."""
    for path, content in files.items():
        if basename(path) in AMBIGUOUS_TEST_NAMES and TEST_IMPORT_RE.search(content):
            yield path
