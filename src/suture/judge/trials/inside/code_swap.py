"""Put changed code into a process that has imported the old code: living functions get new code objects."""

from __future__ import annotations

import ast
import gc
import os
import warnings
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from .child_processes import ROOT

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class CodeSwapper:
    """Finds the functions of some files that live in this process, and their new code.

    Args:
        texts: Path -> source of the files that candidates change.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self._live: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._texts = texts
        self._trees: dict[str, Any] = {}
        files = {os.path.join(ROOT, path): path for path in texts}
        known: dict[str, str | None] = {}
        for candidate in gc.get_objects():
            if isinstance(candidate, FunctionType):
                name = candidate.__code__.co_filename
                if name not in known:
                    known[name] = files.get(os.path.abspath(name))
                path = known[name]
                if path is not None:
                    key = (path, candidate.__code__.co_name, candidate.__code__.co_firstlineno)
                    self._live.setdefault(key, []).append(candidate)

    def plan(self, path: str, text: str, edits: list[Any]) -> tuple[Any, list[tuple[FunctionType, CodeType]]]:
        """Plan which function gets which code.

        Only the code around the edits is compiled, because compiling a whole file may take longer than its
        tests.

        Returns:
            A key that is equal for equal code, `None` if the code does not change; and the functions with
            their new code.

        Raises:
            SyntaxError: The new source is not Python.
            ValueError: The new code cannot be put in place.
        """
        window, old, new = self._sources(path, text, edits)
        before, after = dict(iter_code_objects(old)), dict(iter_code_objects(new))
        pairs: list[tuple[FunctionType, CodeType]] = []
        taken: set[tuple[str, int]] = set()
        for place, code in before.items():
            other = after.get(place)
            if other is not None and get_code_key(code) == get_code_key(other):
                continue
            start = (code.co_name, code.co_firstlineno)
            functions = self._live.get((path, *start), ())
            if functions and (other is None or start in taken):
                raise ValueError(f"{code.co_name} changed its structure")
            taken.add(start)
            for function in functions:
                if other is None or other.co_freevars != function.__code__.co_freevars:
                    raise ValueError(f"{code.co_name} changed its structure")
                pairs.append((function, other))
        key = get_code_key(new)
        if key == get_code_key(old):
            return None, []
        if not pairs:
            raise ValueError("no function of this process is changed")
        return (path, window, key), pairs

    def _sources(self, path: str, text: str, edits: list[Any]) -> tuple[Any, CodeType, CodeType]:
        source = self._texts[path]
        filename = os.path.join(ROOT, path)
        first, last = self._find_lines(source, edits)
        tree = self._tree(path)
        plain = "\r" not in source.replace("\r\n", "")  # Python also ends a line at a lone carriage return
        window = _window(tree, first, last) if tree is not None and plain else None
        if window is None:
            return None, _compile(source, filename, 0), _compile(text, filename, 0)
        begin, end, headers = window
        flags = self._future_flags(tree)
        grown = text.count("\n") - source.count("\n")
        old = _segment(source, begin, end, headers)
        new = _segment(text, begin, end + grown, headers)
        return (begin, end), _compile(old, filename, flags), _compile(new, filename, flags)

    def _tree(self, path: str) -> Any:
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse(self._texts[path])
            except (SyntaxError, ValueError):
                self._trees[path] = None
        return self._trees[path]

    @staticmethod
    def _find_lines(source: str, edits: list[Any]) -> tuple[int, int]:
        raw = source.encode("utf-8", "surrogatepass")
        first = min(raw.count(b"\n", 0, start) for start, _, _ in edits) + 1
        last = max(raw.count(b"\n", 0, end) for _, end, _ in edits) + 1
        return first, last

    @staticmethod
    def _future_flags(tree: Any) -> int:
        import __future__

        flags = 0
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for name in node.names:
                    flags |= getattr(__future__, name.name).compiler_flag
        return flags


def _compile(source: str, filename: str, flags: int) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(source, filename, "exec", flags, dont_inherit=True)
    return code


def _window(tree: Any, first: int, last: int) -> tuple[int, int, list[str]] | None:
    """Return the outermost function around some lines: first line, last line, and headers of its classes.

    The result is `None` if there is no such function, or if it shares a line with other code.
    """
    headers: list[str] = []
    body = tree.body
    while True:
        holder = next((n for n in body if _first_line(n) <= first and last <= _last_line(n)), None)
        if holder is None:
            return None
        begin = _first_line(holder)
        if isinstance(holder, FUNCTIONS):
            end = _last_line(holder)
            others = [n for n in body if n is not holder]
            alone = not any(_first_line(n) <= end and begin <= _last_line(n) for n in others)
            return (begin, end, headers) if alone and len(headers) < begin else None
        if not isinstance(holder, ast.ClassDef):
            return None
        if holder.col_offset and not headers:
            return None
        headers.append(" " * holder.col_offset + f"class {holder.name}:")
        body = holder.body


def _first_line(node: Any) -> int:
    line: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return line


def _last_line(node: Any) -> int:
    line: int = node.end_lineno or node.lineno
    return line


def _segment(text: str, begin: int, end: int, headers: list[str]) -> str:
    """Return some lines of a text at their line numbers, below class headers that replace what is above."""
    lines = text.split("\n")[begin - 1 : end]
    return "\n" * (begin - 1 - len(headers)) + "\n".join([*headers, *lines]) + "\n"


def iter_code_objects(
    code: CodeType, place: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], CodeType]]:
    """Yield the code objects inside a code object, each with its place.

    A place consists of the names from the outside in, each with a number among equal names.
    """
    counts: dict[str, int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            number = counts[constant.co_name] = counts.get(constant.co_name, 0) + 1
            inner = (*place, (constant.co_name, number))
            yield inner, constant
            yield from iter_code_objects(constant, inner)


def get_code_key(code: CodeType) -> tuple[Any, ...]:
    """Return a key for what a code object does, independent of its line numbers."""
    constants = tuple(
        get_code_key(value) if isinstance(value, CodeType) else (type(value).__name__, repr(value))
        for value in code.co_consts
    )
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        code.co_name,
        getattr(code, "co_exceptiontable", b""),
    )
