"""A changed source in a process that has imported the old one: functions get new code where they are."""

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


class Swapper:
    """Knows the functions that live in this process.

    Args:
        texts: Path -> source, of files that will change.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self._live: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._texts = texts
        self._trees: dict[str, Any] = {}
        files = {os.path.join(ROOT, path): path for path in texts}
        known: dict[str, str | None] = {}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                name = thing.__code__.co_filename
                if name not in known:
                    known[name] = files.get(os.path.abspath(name))
                path = known[name]
                if path is not None:
                    key = (path, thing.__code__.co_name, thing.__code__.co_firstlineno)
                    self._live.setdefault(key, []).append(thing)

    def plan(self, path: str, text: str, edits: list[Any]) -> tuple[Any, list[tuple[FunctionType, CodeType]]]:
        """What to give to which function, and a key that is equal where the code is; `None` for the old code.

        Only what surrounds the edits is compiled: a whole file may take longer than its tests.

        Raises:
            SyntaxError: The new source is none.
            ValueError: It cannot be put in place.
        """
        window, old, new = self._sources(path, text, edits)
        before, after = dict(codes_in(old)), dict(codes_in(new))
        pairs: list[tuple[FunctionType, CodeType]] = []
        taken: set[tuple[str, int]] = set()
        for place, code in before.items():
            other = after.get(place)
            if other is not None and key_of(code) == key_of(other):
                continue
            start = (code.co_name, code.co_firstlineno)
            functions = self._live.get((path, *start), ())
            if functions and (other is None or start in taken):
                raise ValueError(f"{code.co_name} has another shape")
            taken.add(start)
            for function in functions:
                if other is None or other.co_freevars != function.__code__.co_freevars:
                    raise ValueError(f"{code.co_name} has another shape")
                pairs.append((function, other))
        key = key_of(new)
        if key == key_of(old):
            return None, []
        if not pairs:
            raise ValueError("no function of this process is changed")
        return (path, window, key), pairs

    def _sources(self, path: str, text: str, edits: list[Any]) -> tuple[Any, CodeType, CodeType]:
        source = self._texts[path]
        filename = os.path.join(ROOT, path)
        first, last = self._lines(source, edits)
        tree = self._tree(path)
        plain = "\r" not in source.replace("\r\n", "")  # a lone one ends a line for Python, and not here
        window = _window(tree, first, last) if tree is not None and plain else None
        if window is None:
            return None, _compiled(source, filename, 0), _compiled(text, filename, 0)
        begin, end, headers = window
        flags = self._future(tree)
        grown = text.count("\n") - source.count("\n")
        old = _segment(source, begin, end, headers)
        new = _segment(text, begin, end + grown, headers)
        return (begin, end), _compiled(old, filename, flags), _compiled(new, filename, flags)

    def _tree(self, path: str) -> Any:
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse(self._texts[path])
            except (SyntaxError, ValueError):
                self._trees[path] = None
        return self._trees[path]

    @staticmethod
    def _lines(source: str, edits: list[Any]) -> tuple[int, int]:
        raw = source.encode("utf-8", "surrogatepass")
        first = min(raw.count(b"\n", 0, start) for start, _, _ in edits) + 1
        last = max(raw.count(b"\n", 0, end) for _, end, _ in edits) + 1
        return first, last

    @staticmethod
    def _future(tree: Any) -> int:
        import __future__

        flags = 0
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for name in node.names:
                    flags |= getattr(__future__, name.name).compiler_flag
        return flags


def _compiled(source: str, filename: str, flags: int) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(source, filename, "exec", flags, dont_inherit=True)
    return code


def _window(tree: Any, first: int, last: int) -> tuple[int, int, list[str]] | None:
    """The outermost function around some lines: its first line, its last, and a header for what holds it.

    `None` where there is none, or where it does not stand on lines of its own.
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
    """Some lines of a text, where they were, below headers in place of what stood above."""
    lines = text.split("\n")[begin - 1 : end]
    return "\n" * (begin - 1 - len(headers)) + "\n".join([*headers, *lines]) + "\n"


def codes_in(code: CodeType, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], CodeType]]:
    """The code objects in one, each with its place: names from the outside in, and a number among equals."""
    counts: dict[str, int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            number = counts[constant.co_name] = counts.get(constant.co_name, 0) + 1
            inner = (*place, (constant.co_name, number))
            yield inner, constant
            yield from codes_in(constant, inner)


def key_of(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it stands."""
    constants = tuple(
        key_of(value) if isinstance(value, CodeType) else (type(value).__name__, repr(value))
        for value in code.co_consts
    )
    return (
        *(code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_name),
        getattr(code, "co_exceptiontable", b""),
    )
