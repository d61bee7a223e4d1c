"""Read the tests of a JavaScript, TypeScript or Go file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from suture.core.records import Language
from suture.judge.test_changes.assertion import (
    Assertion,
    TestFileChanges,
    called_path,
    line_of,
    normalised_source,
    shorten_source,
)
from suture.judge.test_changes.go_assertions import iter_go_assertions
from suture.judge.test_changes.javascript_assertions import iter_javascript_assertions
from suture.judge.test_changes.python_test_file import read_python_tests
from suture.judge.test_changes.test_case import (
    SourcePiece,
    SupportKind,
    TestCase,
    TestFile,
    asks_as_much,
    compare_test_files,
)
from suture.mutation import has_grammar
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import get_syntax, parse_source_tree
from suture.project.languages import LANGUAGES, detect_file_languages

if TYPE_CHECKING:
    from tree_sitter import Node


TEST_NAMES = frozenset(("test", "it", "specify", "xit", "xtest", "fit", "ftest"))
GROUP_NAMES = frozenset(("describe", "suite", "context", "xdescribe", "fdescribe", "xcontext"))
SKIPPING_PROPERTIES = frozenset(("skip", "todo", "failing", "fails", "skipIf", "runIf"))
FOCUSING_NAMES = frozenset(("only", "fit", "ftest", "fdescribe"))
"""Names that make a runner leave out all other tests of the file."""
MOCKING_CALLS = frozenset(("jest.mock", "vi.mock", "jest.doMock", "vi.doMock", "mock.module"))
SKIP_OPTION = re.compile(r"\b(?:skip|todo)\s*:\s*(?!false\b|undefined\b)")
GO_SKIPS = frozenset(("Skip", "Skipf", "SkipNow"))
BUILD_CONSTRAINT = re.compile(r"^//go:build\s+(.+)$", re.MULTILINE)
WORD = re.compile(r"[\w$]+")
FUNCTION_NODES = ("arrow_function", "function_expression", "function")


def read_tree_tests(source: str, path: str, language: Language) -> TestFile:
    """Return the tests of a JavaScript, TypeScript or Go file; those of broken source as far as it can be read.

    Tests are named as reports name them, without the file or package: `GROUP > TEST`, or `TestName` in Go.
    """
    root = parse_source_tree(source, path, language)
    has_semicolons = bool(get_syntax(language).terminator)  # JavaScript and TypeScript; Go has none
    return _read_javascript(root) if has_semicolons else _read_go(root, source)


def _read_javascript(root: Node) -> TestFile:
    file = TestFile()
    _read_block(root, file, (), ())
    return file


def _read_block(node: Node, file: TestFile, groups: tuple[str, ...], skips: tuple[SourcePiece, ...]) -> None:
    """Add the tests below a node, in their groups; other statements at the same level are support."""
    for child in node.named_children:
        call = _find_block_call(child)
        if call is None:
            _read_support(child, file, groups)
            continue
        names = called_path(call)
        title, body = _title(call), _body(call)
        own_skips = (*skips, *_read_skips(call, names))
        if FOCUSING_NAMES.intersection(names):
            file.support[f"only {' > '.join((*groups, title))}"] = _piece(call, kind="skip", limit=names)
        if names[0] in GROUP_NAMES and body is not None:
            _read_block(body, file, (*groups, title), own_skips)
        elif names[0] in TEST_NAMES:
            test = _read_javascript_test(" > ".join((*groups, title)), call, body, own_skips)
            file.tests[test.name] = test


def _find_block_call(statement: Node) -> Node | None:
    """Return the call of a statement that declares a test or a group of tests."""
    node = statement.named_children[0] if statement.named_child_count else None
    if statement.type != "expression_statement" or node is None:
        return None
    node = node.named_children[0] if node.type == "await_expression" else node
    if node.type != "call_expression" or _title(node) is None:
        return None
    names = called_path(node)
    return node if names and names[0] in TEST_NAMES | GROUP_NAMES else None


def _title(call: Node) -> str:
    arguments = get_field(call, "arguments")
    first = arguments.named_children[0] if arguments is not None and arguments.named_child_count else None
    return get_text(first).strip("'\"`") if first is not None else ""


def _body(call: Node) -> Node | None:
    arguments = get_field(call, "arguments")
    functions = [a for a in (arguments.named_children if arguments else ()) if a.type in FUNCTION_NODES]
    return get_field(functions[-1], "body") if functions else None


def _read_skips(call: Node, names: Sequence[str]) -> Iterator[SourcePiece]:
    markers = [
        name for name in names if name in SKIPPING_PROPERTIES or name.startswith(("xit", "xtest", "xd"))
    ]
    if markers:
        yield SourcePiece(source=" ".join(markers), line=line_of(call), text=".".join(names))
    arguments = get_field(call, "arguments")
    for argument in arguments.named_children if arguments is not None else ():
        if argument.type == "object" and SKIP_OPTION.search(get_text(argument)):
            yield _piece(argument)


def _read_javascript_test(
    name: str, call: Node, body: Node | None, skips: tuple[SourcePiece, ...]
) -> TestCase:
    inner = [*walk(body)] if body is not None else []
    calls = [node for node in inner if node.type == "call_expression"]
    skipping = [node for node in calls if called_path(node)[-1:] == ["skip"]]
    return _make_test(
        name,
        call,
        body,
        tuple(iter_javascript_assertions(body)) if body is not None else (),
        (*skips, *map(_piece, skipping)),
        tuple(_piece(row) for row in _iter_each_rows(call)),
        calls_something=bool(calls),
    )


def _make_test(
    name: str,
    node: Node,
    body: Node | None,
    assertions: tuple[Assertion, ...],
    skips: tuple[SourcePiece, ...],
    rows: tuple[SourcePiece, ...],
    *,
    calls_something: bool,
) -> TestCase:
    parts = [normalised_source(body) if body is not None else "", *(p.source for p in (*skips, *rows))]
    return TestCase(
        name=name,
        line=line_of(node),
        source="\n".join(parts),
        assertions=assertions,
        skips=skips,
        rows=rows,
        calls_something=calls_something,
        names=frozenset(WORD.findall(get_text(body))) if body is not None else frozenset(),
    )


def _iter_each_rows(call: Node) -> Iterator[Node]:
    """Yield the rows of `test.each([...])`."""
    function = get_field(call, "function")
    if function is None or function.type != "call_expression" or "each" not in called_path(function):
        return
    arguments = get_field(function, "arguments")
    for argument in arguments.named_children if arguments is not None else ():
        if argument.type == "array":
            yield from argument.named_children


def _read_support(node: Node, file: TestFile, groups: tuple[str, ...]) -> None:
    """Add a statement that is not a test: a helper, data, a hook before each test, or a mock."""
    if node.type in ("comment", "import_statement", "hash_bang_line"):
        return
    inner = node.named_children[0] if node.named_child_count else node
    name = get_field(inner, "name")
    names = called_path(inner) if inner.type == "call_expression" else []
    if inner.type != "variable_declarator" and name is None and get_field(node, "name") is not None:
        name = get_field(node, "name")
    label = get_text(name) if name is not None else ".".join(names) or shorten_source(get_text(node))[:40]
    key = " > ".join((*groups, label))
    file.support[key] = _piece(node)
    if ".".join(names) in MOCKING_CALLS:
        file.new_support_counts.add(key)


def _read_go(root: Node, source: str) -> TestFile:
    file = TestFile()
    constraint = BUILD_CONSTRAINT.search(source)
    if constraint is not None:
        file.support["go:build"] = SourcePiece(
            source=constraint[1],
            line=source[: constraint.start()].count("\n") + 1,
            text=constraint[0],
            kind="skip",
        )
    for node in root.named_children:
        name = get_text(get_field(node, "name")) if get_field(node, "name") is not None else ""
        body = get_field(node, "body")
        if node.type == "function_declaration" and re.match(r"(?:Test|Fuzz|Example)(?![a-z])", name) and body:
            if name == "TestMain":
                file.support[name] = _piece(node, kind="hook")
                continue
            calls = [part for part in walk(body) if part.type == "call_expression"]
            file.tests[name] = _make_test(
                name,
                node,
                body,
                tuple(iter_go_assertions(body)),
                tuple(
                    _piece(call)
                    for call in calls
                    if called_path(call)[-1:] and called_path(call)[-1] in GO_SKIPS
                ),
                tuple(_piece(row) for row in _iter_go_rows(body)),
                calls_something=bool(calls),
            )
        elif node.type in (
            "function_declaration",
            "method_declaration",
            "var_declaration",
            "const_declaration",
        ):
            file.support[name or shorten_source(get_text(node))[:40]] = _piece(node)
    return file


def _iter_go_rows(body: Node) -> Iterator[Node]:
    """Yield the rows of the literal tables of a test."""
    for node in walk(body):
        if node.type == "composite_literal":
            kind, values = get_field(node, "type"), get_field(node, "body")
            if (
                kind is not None
                and kind.type in ("slice_type", "map_type", "array_type")
                and values is not None
            ):
                yield from (value for value in values.named_children if value.type != "comment")


def _piece(node: Node, kind: SupportKind = "support", limit: Sequence[str] = ()) -> SourcePiece:
    source = ".".join(limit) if limit else normalised_source(node)
    return SourcePiece(
        source=source,
        line=line_of(node),
        text=shorten_source(get_text(node)),
        kind=kind,
    )


def compare_tests(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, TestFileChanges]:
    """Return path -> what a change does to the tests of a file; a test that was moved does not count as new.

    Args:
        before: Path -> old source of the changed test files.
        after: Path -> new source.
    """
    paths = sorted({*before, *after})
    old = {path: _read_tests(path, before.get(path, "")) for path in paths}
    new = {path: _read_tests(path, after.get(path, "")) for path in paths}
    compared = {path: compare_test_files(path, old[path], new[path]) for path in paths}
    added = [(path, new[path].tests[name]) for path in paths for name in compared[path].new_tests]
    for path in paths:
        moved: dict[str, tuple[str, str]] = {}
        for name in compared[path].removed_tests:
            found = next((place for place in added if asks_as_much(old[path].tests[name], place[1])), None)
            if found is not None:
                added.remove(found)
                moved[name] = (found[0], found[1].name)
        compared[path] = replace(compared[path], moved_tests=moved)
    for path in paths:
        left = tuple(test.name for place, test in added if place == path)
        compared[path] = replace(compared[path], new_tests=left)
    return compared


def _read_tests(path: str, source: str) -> TestFile:
    language = next(iter(detect_file_languages((path,))), None)
    if language is None or not source.strip():
        return TestFile()
    if LANGUAGES[language].parsed:
        return read_python_tests(source)
    return read_tree_tests(source, path, language) if has_grammar(language) else TestFile()
