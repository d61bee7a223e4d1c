"""Files that contain both code and its tests: which of their statements decide, and which a candidate may change.

Tests, fixtures and what they are made of decide: the data and imports that tests use, and helpers that assert. The
functions and classes that tests call are the code. Only in a project without other Python code is such a file repaired;
in other projects, code in a test file serves the tests. In a language with inline tests, such as Rust, every file of
code may hold tests.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from suture.project.languages import LANGUAGES
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.workspace import decode_text, is_protected, is_test_file

TEST_START = re.compile(r"^(?:async +)?def test|^class \w*Test", re.MULTILINE)
DEFINITION_START = re.compile(rb"^(?:async +)?def |^class ", re.MULTILINE)
XUNIT_NAMES = re.compile(r"(?:set_?up|tear_?down)(?:_?(?:module|function|class|method))?", re.IGNORECASE)
DECIDING_NAMES = frozenset(("pytestmark", "pytest_plugins", "collect_ignore", "__test__", "__builtins__"))
"""Names of a module that pytest or Python itself reads."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


def find_mixed_files(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the files that contain both code and its tests.

    Args:
        files: The project's files, path -> content.
    """
    inline = {
        path
        for facts in LANGUAGES.values()
        if (find_tests := facts.find_inline_tests) is not None
        for path, content in files.items()
        if path.endswith(facts.extensions) and not is_test_file(path) and find_tests(decode_text(content))
    }
    return _find_mixed_python_files(files) | inline


def _get_inline_test_finder(path: str) -> Callable[[str], tuple[str, ...]] | None:
    for facts in LANGUAGES.values():
        if facts.find_inline_tests is not None and path.endswith(facts.extensions):
            return facts.find_inline_tests
    return None


def _find_mixed_python_files(files: Mapping[str, bytes]) -> frozenset[str]:
    """Return the Python files that contain both code and its tests; none if the project has other Python code."""
    texts = {}
    for path, content in files.items():
        if not path.endswith(".py") or not DEFINITION_START.search(content):
            continue
        text = decode_text(content)
        if TEST_START.search(text):
            texts[path] = text
        elif not is_protected(path):
            return frozenset()
    mixed = frozenset(path for path, text in texts.items() if _holds_both(text))
    has_tests = any(map(is_test_file, texts))
    # Among files of tests, another file is code, whatever the names of its functions.
    has_code = any(not is_test_file(path) for path in (texts if has_tests else texts.keys() - mixed))
    return frozenset() if has_code else mixed


def _holds_both(text: str) -> bool:
    """Return whether a test uses a function or class of the file that is not a test."""
    tree = parse_module(text)
    if tree is None:
        return False
    tests = [node for node in tree.body if _is_test(node)]
    used = {name for node in tests for name in _loaded_names(node)}
    return any(
        isinstance(node, DEFINITIONS) and node.name in used
        for node in _split(tree, _find_guarded_names(tree))[1]
    )


def keeps_tests(before: str, after: str, path: str = "") -> bool:
    """Return whether a new version of a file leaves everything in it that decides unchanged.

    Args:
        path: The file's path; by default that of a Python file.
    """
    find_tests = _get_inline_test_finder(path)
    if find_tests is not None:
        return find_tests(before) == find_tests(after)
    old, new = parse_module(before), parse_module(after)
    if old is None or new is None:
        return False
    guarded = _find_guarded_names(old)
    old_tests, new_tests = (_split(tree, guarded)[0] for tree in (old, new))
    return [ast.dump(node) for node in old_tests] == [ast.dump(node) for node in new_tests]


def find_test_lines(path: str, text: str) -> frozenset[int]:
    """Return the lines of a file that decide, of those that a candidate may change in part; none in other files.

    Args:
        path: Its path. Of files that are tests by their name, only those that hold code too are ever given.
    """
    tree = parse_module(text) if TEST_START.search(text) and is_test_file(path) else None
    if tree is None:
        return frozenset()
    deciding = _split(tree, _find_guarded_names(tree))[0]
    return frozenset(line for node in deciding for line in _lines_of(node))


def combine_code_and_tests(code: str, tests: str) -> str:
    """Return a file with the code of one source and the tests of another; `code` itself if one does not parse."""
    code_tree, test_tree = parse_module(code), parse_module(tests)
    if code_tree is None or test_tree is None or keeps_tests(tests, code):
        return code
    guarded = _find_guarded_names(test_tree)
    (deciding, other_code), own = _split(test_tree, guarded), _split(code_tree, guarded)[1]
    if [ast.dump(node) for node in own] == [ast.dump(node) for node in other_code]:
        return tests
    imports = [node for node in deciding if isinstance(node, (ast.Import, ast.ImportFrom))]
    others = [node for node in deciding if node not in imports]
    first = [node for node in own if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    rest = [node for node in own if node not in first]
    parts = [*_cut(code, first), *_cut(tests, imports), *_cut(code, rest), *_cut(tests, others)]
    return "\n".join(parts) + "\n"


def _cut(text: str, nodes: Iterable[ast.stmt]) -> Iterator[str]:
    lines = text.split("\n")
    for node in nodes:
        numbers = _lines_of(node)
        yield "\n".join(lines[numbers.start - 1 : numbers.stop - 1])


def _lines_of(node: ast.stmt) -> range:
    return range(first_line(node), (node.end_lineno or node.lineno) + 1)


def _split(tree: ast.Module, guarded: Collection[str]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return (the statements of a module that decide, the others)."""
    deciding: list[ast.stmt] = []
    others: list[ast.stmt] = []
    for node in tree.body:
        bound = _bound_names(node)
        decides = _is_test(node) or "*" in bound or not bound.isdisjoint(guarded)
        (deciding if decides else others).append(node)
    return deciding, others


def _is_test(node: ast.stmt) -> bool:
    """Return whether a statement defines a test, a fixture or what pytest calls around tests."""
    if isinstance(node, FUNCTIONS):
        is_fixture = any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
        is_hook = node.name.startswith(("test", "pytest_")) or XUNIT_NAMES.fullmatch(node.name)
        return bool(is_fixture or is_hook)
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in node.bases)
    return False


def _find_guarded_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that must keep their meaning: of tests, and of what they use that is not code under test.

    A name that the file does not define is guarded too, such as `len`: a new function could take its place.
    """
    tests = [node for node in tree.body if _is_test(node)]
    asserting = _find_asserting_helpers(tree, tests)
    code = {
        node.name for node in tree.body if isinstance(node, DEFINITIONS) and node not in tests
    } - asserting
    guarded, waiting = set(DECIDING_NAMES), [*tests, *(n for n in tree.body if _bound_names(n) & asserting)]
    seen: list[ast.stmt] = []
    while waiting:
        node = waiting.pop()
        seen.append(node)
        new = ({*_bound_names(node), *_loaded_names(node)} - code) - guarded
        guarded |= new
        waiting += [
            other
            for other in tree.body
            if other not in seen and other not in waiting and not _bound_names(other).isdisjoint(new)
        ]
    return frozenset(guarded)


def _find_asserting_helpers(tree: ast.Module, tests: Iterable[ast.stmt]) -> set[str]:
    """Return functions that assert, and that a test calls without using an answer."""
    called = {
        statement.value.func.id
        for node in tests
        for statement in ast.walk(node)
        if isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
    }
    return {
        node.name
        for node in tree.body
        if isinstance(node, FUNCTIONS)
        and node.name in called
        and any(isinstance(inner, ast.Assert) for inner in ast.walk(node))
    }


def _loaded_names(node: ast.stmt) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _bound_names(node: ast.stmt) -> frozenset[str]:
    """Return the names of the module that a statement may bind or delete; `*` for an import of all names."""
    names: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.alias):
            names.add(inner.asname or inner.name.partition(".")[0])
        elif isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.add(inner.id)
        elif isinstance(inner, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and inner.name:
            names.add(inner.name)
        elif isinstance(inner, DEFINITIONS):
            names.add(inner.name)
            # What is bound inside is local, unless it is declared to be global.
            declared = (part for part in ast.walk(inner) if isinstance(part, ast.Global))
            names.update(name for part in declared for name in part.names)
            continue
        waiting += ast.iter_child_nodes(inner)
    return frozenset(names)
