"""Which files a task is about: those that its words ask for, and the module that its tests import."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from suture.errors import UsageError
from suture.project.python_source.parsing import parsed
from suture.project.workspace import is_protected

FOREIGN = sys.stdlib_module_names | {"pytest", "hypothesis", "numpy"}

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.py)\b(?!\()")
MAKES = re.compile(
    r"\b(?:write|create|make|implement|build|add|generate|produce|save|put|file|module|script)s?\b"
    r"(?:\W+\w+){0,3}?\W+[`'\"]?$",
    re.IGNORECASE,
)
"""What stands before the name of the one file that is to be written, and not of one that is spoken of."""
SEVERAL = re.compile(
    r"\b(?:several|multiple|two|three|four|five|separate)\s+(?:python\s+)?(?:files|modules)\b"
    r"|\b(?:write|create|make|implement|build)\s+(?:an?|the)\s+(?:\w+\s+){0,2}package\b"
    r"|\bpython package\b|\b(?:and|with)\s+(?:its|an?)\s+(?:command[- ]line|cli\b)",
    re.IGNORECASE,
)
MOST_FILES = 30
"""Paths that a statement names; by taste."""
MOST_CHARS = 100_000
"""Of a statement, from its beginning."""


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """One import of the tests: the file it means, relative to the root, and the first name taken from it."""

    path: str
    name: str | None
    exists: bool
    top: str


def module_under_test(source: str, path: str, folder: Path) -> tuple[str, str | None]:
    """The file that the tests import their subject from, and the first name they take from it.

    Args:
        source: The test file's source.
        path: Where they lie, relative to the root.
        folder: The folder that they lie in.

    Raises:
        UsageError: The tests do not parse, or import nothing that could be the subject.
    """
    tree = parsed(source)
    if tree is None:
        raise UsageError(f"the test file {path!r} is not Python: {_why(source)}", remedy="mend that line")
    found = [
        subject for subject in _imports(tree, PurePosixPath(path), folder) if not is_protected(subject.path)
    ]
    alike = [subject for subject in found if PurePosixPath(subject.path).stem == _tested_name(path)]
    there = [subject for subject in found if subject.exists]
    unknown = [subject for subject in found if not _is_installed(subject.top)]
    chosen = alike[:1] or there[-1:] or unknown[-1:]
    if not chosen:
        raise UsageError(
            f"the test file {path!r} imports no module of its own",
            remedy="import what you want written, as in `from merge import merge_intervals`",
        )
    return chosen[0].path, chosen[0].name


def new_modules(source: str, path: str, folder: Path) -> tuple[str, ...]:
    """The files that the tests import and that are not there yet, in the order of the imports."""
    tree = parsed(source)
    found = _imports(tree, PurePosixPath(path), folder) if tree else ()
    new = (subject for subject in found if not subject.exists and not is_protected(subject.path))
    return tuple(dict.fromkeys(subject.path for subject in new if not _is_installed(subject.top)))


def _why(source: str) -> str:
    try:
        ast.parse(source)
    except SyntaxError as fault:
        return f"{fault.msg} in line {fault.lineno}"
    except (ValueError, RecursionError, MemoryError):
        pass
    return "it is nested too deeply, or holds characters that Python refuses"


def _imports(tree: ast.Module, path: PurePosixPath, folder: Path) -> Iterator[_Subject]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] not in FOREIGN:
                    yield _subject(alias.name, None, path, folder)
        elif isinstance(node, ast.ImportFrom) and node.level:
            near = path.parents[min(node.level, len(path.parents)) - 1]
            module = node.module or node.names[0].name
            target = (near / module.replace(".", "/")).as_posix() + ".py"
            name = node.names[0].name if node.module else None
            yield _Subject(path=target, name=name, exists=True, top=module.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] not in FOREIGN:
            name = node.names[0].name
            yield _subject(node.module, None if name == "*" else name, path, folder)


def _subject(module: str, name: str | None, path: PurePosixPath, folder: Path) -> _Subject:
    file = module.replace(".", "/") + ".py"
    top = module.split(".")[0]
    here = Path.cwd()
    if (here / file).is_file():
        return _Subject(path=file, name=name, exists=True, top=top)
    if (folder / file).is_file():
        return _Subject(path=(path.parent / file).as_posix(), name=name, exists=True, top=top)
    if name and (here / module.replace(".", "/") / f"{name}.py").is_file():
        inner = (
            f"{module.replace('.', '/')}/{name}.py"  # `from shop import cart`: the module is what is taken
        )
        return _Subject(path=inner, name=None, exists=True, top=top)
    return _Subject(path=file, name=name, exists=False, top=top)


def _tested_name(path: str) -> str:
    return PurePosixPath(path).stem.removeprefix("test_").removesuffix("_test")


def _is_installed(top: str) -> bool:
    # Only a hint, since the tests may run on another Python: what is installed here is a library.
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return True


def wanted_files(statement: str) -> tuple[str, ...]:
    """The Python files that a statement asks for by name, in its order; none where it names none.

    One file alone counts where the words before it ask for it, which "sorts like utils.py does" do not.
    Tests, and what configures them, are no candidate's to write.
    """
    text = statement[:MOST_CHARS]
    found = [match for match in FILE.finditer(text) if not is_protected(match[1])]
    paths = tuple(dict.fromkeys(match[1] for match in found))[:MOST_FILES]
    if len(paths) > 1:
        return paths
    asked = any(MAKES.search(text[max(0, match.start() - 80) : match.start()]) for match in found)
    return paths if asked else ()


def asks_for_several(statement: str) -> bool:
    """Whether a statement speaks of more than one file, such as a package, without naming them."""
    return SEVERAL.search(statement[:MOST_CHARS]) is not None
