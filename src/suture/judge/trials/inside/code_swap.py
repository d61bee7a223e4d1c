"""Put changed code into a process that has imported the old code: existing functions get new code objects."""

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
    """Finds the function objects in this process whose code is in some files, and their new code.

    Args:
        texts: Path -> source of the files that candidates change.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        # (path, function name, first line) -> the function objects with that code.
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._texts = texts
        self._trees: dict[str, Any] = {}
        path_by_file = {os.path.realpath(os.path.join(ROOT, path)): path for path in texts}
        path_by_filename: dict[str, str | None] = {}
        for instance in gc.get_objects():
            if isinstance(instance, FunctionType):
                filename = instance.__code__.co_filename
                if filename not in path_by_filename:
                    path_by_filename[filename] = path_by_file.get(os.path.realpath(filename))
                path = path_by_filename[filename]
                if path is not None:
                    key = (path, instance.__code__.co_name, instance.__code__.co_firstlineno)
                    self._functions.setdefault(key, []).append(instance)

    def plan(self, path: str, text: str, edits: list[Any]) -> tuple[Any, list[tuple[FunctionType, CodeType]]]:
        """Plan which function gets which code.

        Only the code around the edits is compiled, because compiling a whole file may take longer than its
        tests.

        Returns:
            (key, pairs): a key that is equal for equal code, or `None` if the code does not change; and pairs
            (function, its new code).

        Raises:
            SyntaxError: The new source is not Python.
            ValueError: The new code cannot be put in place.
        """
        window, old, new = self._compile_changed_part(path, text, edits)
        old_objects, new_objects = dict(iter_code_objects(old)), dict(iter_code_objects(new))
        pairs: list[tuple[FunctionType, CodeType]] = []
        replaced: set[tuple[str, int]] = set()
        for position, old_code in old_objects.items():
            new_code = new_objects.get(position)
            if new_code is not None and get_code_key(old_code) == get_code_key(new_code):
                continue
            start = (old_code.co_name, old_code.co_firstlineno)
            functions = self._functions.get((path, *start), ())
            # Two functions that begin on one line, such as lambdas, cannot be distinguished.
            if functions and (new_code is None or start in replaced):
                raise ValueError(f"{old_code.co_name} changed its structure")
            replaced.add(start)
            for function in functions:
                if new_code is None or new_code.co_freevars != function.__code__.co_freevars:
                    raise ValueError(f"{old_code.co_name} changed its structure")
                pairs.append((function, new_code))
        key = get_code_key(new)
        if key == get_code_key(old):
            return None, []
        if not pairs:
            raise ValueError("no function of this process is changed")
        return (path, window, key), pairs

    def _compile_changed_part(self, path: str, text: str, edits: list[Any]) -> tuple[Any, CodeType, CodeType]:
        """Return (lines of the compiled part or `None` for the whole file, its old code, its new code)."""
        source = self._texts[path]
        filename = os.path.join(ROOT, path)
        raw = source.encode("utf-8", "surrogatepass")
        first = min(raw.count(b"\n", 0, start) for start, _, _ in edits) + 1
        last = max(raw.count(b"\n", 0, end) for _, end, _ in edits) + 1
        tree = self._parse(path)
        # Python also ends a line at a lone carriage return, so line numbers would differ.
        has_plain_lines = "\r" not in source.replace("\r\n", "")
        window = _find_window(tree, first, last) if tree is not None and has_plain_lines else None
        if window is None:
            return None, _compile(source, filename, 0), _compile(text, filename, 0)
        begin, end, headers = window
        flags = _get_future_flags(tree)
        added_lines = text.count("\n") - source.count("\n")
        old = _cut_window(source, begin, end, headers)
        new = _cut_window(text, begin, end + added_lines, headers)
        return (begin, end), _compile(old, filename, flags), _compile(new, filename, flags)

    def _parse(self, path: str) -> Any:
        if path not in self._trees:
            try:
                self._trees[path] = ast.parse(self._texts[path])
            except (SyntaxError, ValueError):
                self._trees[path] = None
        return self._trees[path]


def swap_code(pairs: list[tuple[FunctionType, CodeType]]) -> list[tuple[FunctionType, CodeType]]:
    """Give functions their new code, and return the pairs that undo this."""
    replaced = [(function, function.__code__) for function, _ in pairs]
    for function, code in pairs:
        function.__code__ = code
    return replaced


def _get_future_flags(tree: Any) -> int:
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


def _find_window(tree: Any, first: int, last: int) -> tuple[int, int, list[str]] | None:
    """Return (first line, last line, headers of its classes) of the outermost function around some lines.

    The result is `None` if there is no such function, or if it shares a line with other code.
    """
    headers: list[str] = []
    body = tree.body
    while True:
        enclosing = next(
            (node for node in body if _first_line(node) <= first and last <= _last_line(node)), None
        )
        if enclosing is None:
            return None
        begin = _first_line(enclosing)
        if isinstance(enclosing, FUNCTIONS):
            end = _last_line(enclosing)
            siblings = [node for node in body if node is not enclosing]
            is_alone = not any(_first_line(node) <= end and begin <= _last_line(node) for node in siblings)
            # Each header takes the place of one line above the function.
            return (begin, end, headers) if is_alone and len(headers) < begin else None
        if not isinstance(enclosing, ast.ClassDef):
            return None
        if enclosing.col_offset and not headers:  # other code precedes it on its line
            return None
        headers.append(" " * enclosing.col_offset + f"class {enclosing.name}:")
        body = enclosing.body


def _first_line(node: Any) -> int:
    line: int = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return line


def _last_line(node: Any) -> int:
    line: int = node.end_lineno or node.lineno
    return line


def _cut_window(text: str, begin: int, end: int, headers: list[str]) -> str:
    """Return some lines of a file at their line numbers, below class headers that replace what is above."""
    lines = text.split("\n")[begin - 1 : end]
    return "\n" * (begin - 1 - len(headers)) + "\n".join([*headers, *lines]) + "\n"


def iter_code_objects(
    code: CodeType, position: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], CodeType]]:
    """Yield (position, code object) for each code object inside a code object.

    A position consists of the names from the outside in, each with a number among equal names.
    """
    counts: dict[str, int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            number = counts[constant.co_name] = counts.get(constant.co_name, 0) + 1
            inner_position = (*position, (constant.co_name, number))
            yield inner_position, constant
            yield from iter_code_objects(constant, inner_position)


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
