"""The values that tests contain, and the forms in which code can recognise them.

A change that has memorised the tests' examples need not contain their literals: it can compare the string, a hash or
the length of an argument. Values also come from the data files that tests name.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
import tomllib
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from suture.judge.suite import Suite
from suture.judge.tuning import MAX_TEST_DATA_BYTES, MAX_TEST_VALUES
from suture.project.languages import detect_file_languages
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text, is_test_file

COMMON_VALUES = (0, 1, 2, -1, "", None, True, False)
"""Values that occur in any code. Comparing with one of them does not show that an answer was hard-coded."""
SMALL_NUMBERS = frozenset(map(repr, range(32)))
"""Literals that also occur as days, months, sizes and counts; most signs count them only as arguments
and answers of changed functions. Chosen by judgement: 31 is the largest day of a month."""
DATA_SUFFIXES = frozenset((".csv", ".json", ".toml", ".txt", ".yaml", ".yml"))
"""Endings of the data files whose values are read."""
NAMES = re.compile(r"""[^\s"'/\\]+(?=["'/\\])""")
"""The last part of a quoted string and the folders in it, any of which may name a file."""
HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
"""Functions of `hashlib` by which code may recognise a value."""
CHECKSUMS: tuple[Callable[[bytes], int], ...] = (zlib.crc32, zlib.adler32)
"""Checksums, which are compared as numbers."""
TRANSPARENT_CALLS = re.compile(
    r"assert\w*|approx|param|parametrize|isclose|list|tuple|set|frozenset|dict|sorted"
)
"""Calls in tests whose arguments are those, or the answers, of other calls."""
MIN_DIGEST_DIGITS = 8
"""Hexadecimal digits of a hash that count as one: eight digits agree by chance once in four billion."""
MIN_CHECKSUM = 1 << 16
"""Smallest number that counts as a checksum; smaller ones are ordinary numbers."""


class TestValues:
    """The values of some tests.

    Args:
        files: Path -> text of tests in Python and of the data files that they name. What cannot be parsed is left
            out.
    """

    __test__ = False  # keeps pytest from collecting this class

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)

    @cached_property
    def literals(self) -> frozenset[str]:
        """The `repr` of each single value, without those that any code uses, such as 0 or 1."""
        singles = (str, bytes, int, float, complex)
        return frozenset(
            repr(value) for value in self._values if isinstance(value, singles) and is_specific(value)
        )

    @cached_property
    def lengths(self) -> frozenset[int]:
        """The lengths of the tests' strings, lists and arguments, and of the strings that these render to."""
        sized = [value for value in self._values if hasattr(value, "__len__")]
        return frozenset(length for value in sized for length in (len(value), len(repr(value))))

    @property
    def sources(self) -> list[str]:
        """The sources of the tests in Python."""
        return [text for path, text in self._files.items() if path.endswith(".py")]

    @cached_property
    def _trees(self) -> list[ast.Module]:
        return [tree for text in self.sources if (tree := parse_module(text)) is not None]

    def find_small_numbers(self, functions: Collection[str], *, nested: bool = False) -> frozenset[str]:
        """Return the literals of `SMALL_NUMBERS` that are an argument or answer on their own, not a part of a date.

        Args:
            functions: Names of the functions and classes whose calls count, and whose tests are read.
            nested: Whether arguments of other calls in these tests count too, such as parts of dates.
        """
        data = (
            value
            for path, text in self._files.items()
            if not path.endswith(".py")
            for value in _read_values(path, text)
        )
        found = (
            number
            for tree in self._trees
            for part in _iter_parts(tree)
            for number in _iter_constants(part, functions, nested=nested)
        )
        return SMALL_NUMBERS & frozenset(repr(value) for value in (*found, *data) if type(value) is int)

    def is_encoded_by(self, literal: object) -> bool:
        """Return whether a literal of the code is a rendering or a hash of a value in the tests."""
        if isinstance(literal, str):
            return literal in self._texts or self._is_digest(literal.lower())
        if isinstance(literal, bytes):
            return self._is_digest(literal.hex())
        if type(literal) is int and literal >= MIN_CHECKSUM:
            return literal in self._checksums or self._is_digest(f"{literal:x}")
        return False

    def _is_digest(self, digits: str) -> bool:
        digests = self._digests.get(digits[:MIN_DIGEST_DIGITS], ())
        return len(digits) >= MIN_DIGEST_DIGITS and any(digest.startswith(digits) for digest in digests)

    @cached_property
    def _values(self) -> list[Any]:
        """Single values, collections of values, and the tuples of arguments of calls, each once."""
        found: dict[str, Any] = {}
        for value in (value for path, text in self._files.items() for value in _read_values(path, text)):
            if len(found) >= MAX_TEST_VALUES:
                break
            found.setdefault(repr(value), value)
        return list(found.values())

    @cached_property
    def _texts(self) -> frozenset[str]:
        """The strings that collections render to. For a single value that is a literal of the tests, or a number."""
        return frozenset(
            text
            for value in self._values
            if isinstance(value, (list, tuple, dict, set)) and value
            for text in _render_texts(value)
        )

    @cached_property
    def _hashed(self) -> list[bytes]:
        specific = [value for value in self._values if is_specific(value)]
        texts = dict.fromkeys(text for value in specific for text in _render_texts(value))
        contents = [text.encode("utf-8", "surrogatepass") for text in texts]
        return [*contents, *(value for value in specific if isinstance(value, bytes))]

    @cached_property
    def _checksums(self) -> frozenset[int]:
        return frozenset(checksum(content) for content in self._hashed for checksum in CHECKSUMS)

    @cached_property
    def _digests(self) -> dict[str, list[str]]:
        """First digits -> the digests that begin with them."""
        digests: dict[str, list[str]] = {}
        for content in self._hashed:
            for name in HASHES:
                digest = hashlib.new(name, content, usedforsecurity=False).hexdigest()
                digests.setdefault(digest[:MIN_DIGEST_DIGITS], []).append(digest)
        return digests


def read_test_texts(suite: Suite) -> dict[str, str]:
    """Return path -> text of a task's tests, checks and test data; a check has a path of its own.

    Files with names of tests count if the test command does not say which files hold its tests. Test data are data
    files whose own name, or the name of whose folder, occurs in a test.
    """
    files = suite.task.files
    tests = suite.test_files or [
        path for path in files if suite.command and is_test_file(path) and detect_file_languages((path,))
    ]
    texts = select_test_texts(files, tests)
    return texts | {f"check {number}.py": check.source for number, check in enumerate(suite.task.checks)}


def select_test_texts(files: Mapping[str, bytes], tests: Iterable[str]) -> dict[str, str]:
    """Return path -> text of some tests of a project and of their test data."""
    texts = {path: decode_text(files[path]) for path in tests if path in files}
    words = frozenset(word for text in texts.values() for word in NAMES.findall(text))
    for path in sorted(files.keys() - texts.keys()):
        if len(files[path]) > MAX_TEST_DATA_BYTES or words.isdisjoint(path.split("/")[-2:]):
            continue
        if PurePosixPath(path).suffix in DATA_SUFFIXES:
            texts[path] = decode_text(files[path])
    return texts


def is_specific(value: object) -> bool:
    """Return whether a value is rare in code."""
    return value not in COMMON_VALUES


def _iter_parts(tree: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield the functions of a test file and its other statements."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _iter_parts(node)
        else:
            yield node


def _iter_constants(part: ast.stmt, functions: Collection[str], *, nested: bool) -> Iterator[object]:
    """Yield the constants of a part of a test file; those in calls of other functions only if `nested` says so."""
    is_function = isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
    words = (
        {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(part)} if is_function else set()
    )
    if is_function and words.isdisjoint(functions):
        return  # what it tests does not change; a value of a module may serve any test
    nodes: list[ast.AST] = [part]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant):
            yield node.value
        name = _read_called_name(node)
        is_open = nested or name is None or name in functions or TRANSPARENT_CALLS.fullmatch(name)
        nodes += [node.func] if isinstance(node, ast.Call) and not is_open else ast.iter_child_nodes(node)


def _read_called_name(node: ast.AST) -> str | None:
    """Return the last part of the name that a node calls; `None` if it is not a call."""
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def _render_texts(value: Any) -> Iterator[str]:
    """Yield the strings that code may convert a value to in order to recognise it."""
    yield repr(value)
    if isinstance(value, str):
        yield value
    with suppress(TypeError, ValueError):
        yield json.dumps(value)
        yield json.dumps(value, sort_keys=True, separators=(",", ":"))


def _read_values(path: str, text: str) -> Iterable[Any]:
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return _read_python(text)
    with suppress(ValueError, RecursionError, csv.Error):
        if suffix == ".json":
            return _walk(json.loads(text))
        if suffix == ".toml":
            return _walk(tomllib.loads(text))
        if suffix == ".csv":
            return [_read_scalar(cell) for row in csv.reader(text.splitlines()) for cell in row]
        if suffix in (".yaml", ".yml", ".txt"):
            return _read_lines(text)
    return ()


def _read_python(text: str) -> Iterator[Any]:
    tree = parse_module(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp)):
            yield from _evaluate(node)
        elif isinstance(node, ast.Call) and node.args and not node.keywords:
            yield from _evaluate(ast.Tuple(node.args, ast.Load()))


def _evaluate(node: ast.expr) -> Iterator[Any]:
    with suppress(ValueError, TypeError, RecursionError):
        yield ast.literal_eval(node)


def _walk(value: Any) -> Iterator[Any]:
    """Yield a value of a data file and the values in it. A list may be the arguments of a call, so also its tuple."""
    yield value
    if isinstance(value, list):
        yield tuple(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _walk(part)


def _read_lines(text: str) -> Iterator[Any]:
    """Yield the lines of a file, and what follows a key or a dash, as in YAML."""
    for line in text.splitlines():
        scalar = line.strip().removeprefix("- ")
        yield _read_scalar(scalar)
        if ": " in scalar:
            yield _read_scalar(scalar.partition(": ")[2].strip())


def _read_scalar(text: str) -> Any:
    """Return the number, list or quoted string that a word of a data file means, or the word itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return text
