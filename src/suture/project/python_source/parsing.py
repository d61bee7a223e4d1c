"""Parse Python source that anyone may have written, and bound the work of parsing a model's reply.

Reading a reply tries many alternatives: a part of the reply as code, one line less, a block in another file. For an
ordinary reply that takes no time, but a reply that is crafted for it could stop the run for minutes. So each reply has
a budget of characters that may be parsed for it.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ParamSpec, TypeVar

from suture.errors import MalformedReply
from suture.project.tuning import MAX_PARSED_CHARS, MAX_REPLY_BLOCKS, PARSING_OVERHEAD_CHARS

PARSE_FAULTS = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of `ast.parse`: the last two for too deeply nested sources, `ValueError` for NUL bytes."""


def parse_module(source: str | bytes) -> ast.Module | None:
    """Return the syntax tree of a source, or `None` if it is invalid.

    While a reply is read, equal sources are parsed only once, and callers must not change the tree.

    Raises:
        MalformedReply: A reply is being read, and its parsing budget is spent.
    """
    budget = current_parsing_budget()
    if budget is None or isinstance(source, bytes):
        return _tree(source)
    if source not in budget.trees:
        budget.take(source)
        budget.trees[source] = _tree(source)
    return budget.trees[source]


def _tree(source: str | bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for example about an invalid escape, which only concerns the author
        try:
            return _parse(source)
        except PARSE_FAULTS:
            return None


def _parse(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:
        # CPython 3.11 miscounts its recursion depth if the garbage collector runs a finaliser in the meantime.
        return ast.parse(source)


def first_line(node: ast.stmt) -> int:
    """Return the number of a statement's first line, including its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


P = ParamSpec("P")
T = TypeVar("T")
_budget: ContextVar[ParsingBudget | None] = ContextVar("_budget", default=None)


@dataclass(kw_only=True)
class ParsingBudget:
    """The work that may still be spent on a reply, and the trees that were parsed for it.

    Attributes:
        chars: Number of characters that may still be parsed.
        trees: Source -> syntax tree, or `None` if the source is invalid.
    """

    chars: int = MAX_PARSED_CHARS
    trees: dict[str, ast.Module | None] = field(default_factory=dict)

    def take(self, code: str) -> None:
        """Spend some of the budget.

        Raises:
            MalformedReply: The budget is spent.
        """
        self.chars -= len(code) + PARSING_OVERHEAD_CHARS
        if self.chars < 0:
            raise MalformedReply("the reply takes too long to be parsed: its code has no plausible end")


def current_parsing_budget() -> ParsingBudget | None:
    """Return the budget of the reply that is being read, or `None` if none is."""
    return _budget.get()


def limit_parsing_work(read: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that reads a reply, so that it raises a `MalformedReply` if that is too much work."""

    @functools.wraps(read)
    def read_within_budget(*args: P.args, **kwargs: P.kwargs) -> T:
        with _reading_reply():
            return read(*args, **kwargs)

    return read_within_budget


@contextlib.contextmanager
def _reading_reply() -> Iterator[None]:
    token = _budget.set(_budget.get() or ParsingBudget())
    try:
        yield
    finally:
        _budget.reset(token)


def require_few_blocks(block_count: int) -> None:
    """Check that a reply does not have an absurd number of blocks.

    Raises:
        MalformedReply: It has more than `MAX_REPLY_BLOCKS`.
    """
    if block_count > MAX_REPLY_BLOCKS:
        raise MalformedReply(f"the reply has more than {MAX_REPLY_BLOCKS} blocks")


def imported_paths(code: str, path: str) -> frozenset[str]:
    """Return the modules that a file imports, as paths without extension; empty if the file is invalid.

    `from shop import cart` may import a module or a name that `shop` defines, so it gives both `shop` and
    `shop/cart`.

    Args:
        code: Source of the file.
        path: Path of the file, relative to the folder at which absolute imports begin.
    """
    tree = parse_module(code)
    folders = PurePosixPath(path).parents
    paths: set[str] = set()
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Import):
            paths |= {alias.name.replace(".", "/") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # One dot means the file's own folder, and each further dot the folder above it.
            base = folders[min(node.level, len(folders)) - 1] if node.level else PurePosixPath()
            module = base / (node.module or "").replace(".", "/")
            paths |= {module.as_posix(), *((module / alias.name).as_posix() for alias in node.names)}
    return frozenset(paths)


def loaded_files(files: Mapping[str, str], entry_paths: Collection[str]) -> frozenset[str]:
    """Return the files that Python loads when it imports some of a program's files.

    These are the imported files themselves, the files that they import (directly, or through other files),
    and the `__init__.py` of every folder around one of these.

    Args:
        files: Path -> source, of all files of the program.
        entry_paths: Paths of the files that are imported first. Paths that are not in `files` are ignored.
    """
    loaded: set[str] = set()
    waiting = [path for path in entry_paths if path in files]
    while waiting:
        path = waiting.pop()
        if path in loaded:
            continue
        loaded.add(path)
        modules = imported_paths(files[path], path)
        packages = (*PurePosixPath(path).parents, *map(PurePosixPath, modules))
        possible_files = {
            *(f"{module}.py" for module in modules),
            *((package / "__init__.py").as_posix() for package in packages),
        }
        waiting += [file for file in possible_files if file in files]
    return frozenset(loaded)


def find_importers(files: Mapping[str, str], paths: Collection[str]) -> frozenset[str]:
    """Return the files whose import loads one of some files, directly or through other files.

    Whatever folder absolute imports begin at, a module is found by the end of its path. That may find too many files,
    but not too few.

    Args:
        files: Path -> source, of all Python files of the program.
    """
    by_module: dict[str, set[str]] = {}
    for path in files:
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for start in range(len(parts)):
            by_module.setdefault("/".join(parts[start:]), set()).add(path)
    importers: dict[str, set[str]] = {}
    for path, source in files.items():
        loaded = {file for name in imported_paths(source, path) for file in by_module.get(name, ())}
        packages = {folder / "__init__.py" for file in loaded for folder in PurePosixPath(file).parents}
        for file in (*loaded, *map(str, packages)):
            importers.setdefault(file, set()).add(path)
    found: set[str] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        waiting += importers.get(path, set()) - found
        found |= importers.get(path, set())
    return frozenset(found)
