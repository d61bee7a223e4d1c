"""Find the source of a failing test of JavaScript, TypeScript or Go: its block or function, with what it uses."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from suture.agents.context.code_units import CodeUnit, list_units
from suture.agents.context.python_test_source import MAX_HELPER_LINES, MAX_TEST_LINES, TestSource
from suture.core.records import Language
from suture.mutation.tree_sitter.syntax_tree import get_field, get_text, walk
from suture.mutation.tree_sitter.value_kinds import CALLS, STRINGS, parse_source_tree

if TYPE_CHECKING:
    from tree_sitter import Node

TEST_CALLS = ("test", "it", "describe", "suite", "context", "specify")
HOOK_CALLS = ("beforeEach", "beforeAll", "before")
"""Calls of hooks that run before the tests of a group."""
MAX_FRONT_LINES = 12
"""Lines of a long test that are shown before the cases of its table. Chosen by judgement; not measured."""
DECLARATIONS = (
    "short_var_declaration", "variable_declarator", "assignment_statement", "assignment_expression",
)  # fmt: skip
WORD = re.compile(r"[A-Za-z_$][\w$]*")


def find_tree_test(
    test_id: str, texts: Mapping[str, str], language: Language, failing_line: int | None, file: str
) -> TestSource | None:
    """Return the source of a test; `None` if it is not found.

    Args:
        test_id: `FILE::OUTER > INNER` in JavaScript, `PACKAGE::NAME/CASE` in Go.
        texts: Path -> text of the project's files in the language.
        failing_line: Line of `file` in which the test failed.
        file: The file of the failure; empty if it is not known.
    """
    owner, _, name = test_id.partition("::")
    if not name:
        return None
    reader = _BlockReader(texts, language, failing_line, file)
    if owner in texts:
        return reader.read_block(owner, [part.strip() for part in name.split(" > ")])
    folder = "" if owner == "." else owner
    files = [
        path for path in sorted(texts) if posixpath.dirname(path) == folder and path.endswith("_test.go")
    ]
    return reader.read_function(files, name)


class _BlockReader:
    def __init__(
        self, texts: Mapping[str, str], language: Language, failing_line: int | None, file: str
    ) -> None:
        self._texts = texts
        self._language = language
        self._failing_line = failing_line
        self._file = file
        self.source = TestSource()

    def read_block(self, path: str, names: Sequence[str]) -> TestSource | None:
        """Return the block of a test such as `test("adds", () => ...)`, with the groups around it."""
        root = parse_source_tree(self._texts[path], path, self._language)
        chain = _find_chain(root, names)
        if not chain:
            # The titles are computed at run time, often in a loop over a table in the group.
            chain = self._find_enclosing_blocks(root, path)
            small = next(
                (n for n, node in enumerate(chain) if _last(node) - _first(node) < MAX_TEST_LINES), None
            )
            chain = chain[: small + 1] if small is not None else chain
        if not chain:
            return None
        for group in chain[:-1]:
            self.source.add_lines(path, _first(group), _first(group))
            for hook in _find_hooks(group):
                self.source.add_lines(path, _first(hook), _last(hook))
        self._show_block(path, chain)
        return self.source

    def read_function(self, paths: Sequence[str], name: str) -> TestSource | None:
        """Return the function of a test of Go."""
        function, _, case = name.partition("/")
        for path in paths:
            root = parse_source_tree(self._texts[path], path, self._language)
            for node in root.named_children:
                if node.type == "function_declaration" and get_text(get_field(node, "name")) == function:
                    self._show_block(path, [node], case)
                    return self.source
        return None

    def _find_enclosing_blocks(self, root: Node, path: str) -> list[Node]:
        """Return the blocks that enclose the failing line, outermost first, if titles are computed at run time."""
        line = self._failing_line
        if line is None or self._file not in ("", path):
            return []
        return [node for node in _iter_blocks(root) if _first(node) <= line <= _last(node)]

    def _show_node(self, path: str, node: Node, case: str = "") -> None:
        first, last = _first(node), _last(node)
        self.source.add_lines(path, first, last)
        if last - first < MAX_TEST_LINES:
            return
        line = self._failing_line if self._file in ("", path) else None
        for table in _find_long_lists(node):
            kept = _find_case(table, case, line)
            inside = set(range(_first(table) + 1, _last(table)))
            if kept is None or len(inside) < MAX_HELPER_LINES:
                continue
            self.source.lines[path] -= inside - set(range(_first(kept), _last(kept) + 1))
            self.source.notes.append(
                f"the other {len(_elements(table)) - 1} cases of the table are not shown"
            )
        shown = sorted(self.source.lines[path] & set(range(first, last + 1)))
        if line is not None and len(shown) > MAX_TEST_LINES and first <= line <= last:
            keep = set(range(first, first + MAX_FRONT_LINES)) | set(
                range(line - MAX_TEST_LINES // 2, line + 6)
            )
            self.source.lines[path] -= set(shown) - keep
            self.source.notes.append(f"{len(set(shown) - keep)} lines of this test are not shown")

    def _show_block(self, path: str, chain: Sequence[Node], case: str = "") -> None:
        """Show the last of some nested blocks, and what the file declares that it or the hooks use."""
        self._show_node(path, chain[-1], case)
        hooks = [hook for group in chain[:-1] for hook in _find_hooks(group)]
        names = {name for node in (chain[-1], *hooks) for name in WORD.findall(get_text(node))}
        self.source.used = names
        self.source.calls = self._collect_calls(chain[-1])
        self._show_used(path, names)

    def _collect_calls(self, block: Node) -> set[str]:
        """Return the names of what the failing statement calls, or the whole block if that is not known."""
        line = self._failing_line
        statements = [n for n in walk(block) if line is not None and _first(n) <= line <= _last(n)]
        innermost = next((n for n in reversed(statements) if n.type.endswith("statement")), None)
        needed = _find_needed(block, innermost) if innermost is not None else [block]
        return {name for node in needed for name in _called_names(node)}

    def _show_used(self, path: str, names: set[str]) -> None:
        """Show imports, helpers and constants of the test's file that the test uses."""
        units = [unit for unit in list_units(path, self._texts[path], self._language) if not unit.owner]
        waiting = set(names)
        shown: set[CodeUnit] = set()
        while waiting:
            name = waiting.pop()
            for unit in units:
                is_used = unit.short_name == name or (unit.kind == "import" and name in unit.binds)
                if not is_used or unit in shown or self._is_shown(path, unit):
                    continue
                shown.add(unit)
                if unit.kind != "import" and unit.last - unit.first >= MAX_HELPER_LINES:
                    self.source.notes.append(f"{unit.last - unit.first + 1} lines of `{name}` are not shown")
                    continue
                self.source.add_lines(path, unit.first, unit.last)
                if unit.kind == "function":
                    waiting |= unit.calls - names

    def _is_shown(self, path: str, unit: CodeUnit) -> bool:
        return unit.first in self.source.lines.get(path, ())


def _find_needed(block: Node, statement: Node) -> list[Node]:
    """Return the statement around the failing line, and the declarations before it that its names come from."""
    statement = _find_condition(statement)
    needed, names = [statement], set(WORD.findall(get_text(statement)))
    earlier = [n for n in walk(block) if n.type in DECLARATIONS and n.start_byte < statement.start_byte]
    for node in sorted(earlier, key=lambda node: -node.start_byte):
        left = get_field(node, "left", "name")
        if left is not None and names & set(WORD.findall(get_text(left))):
            needed.append(node)
            names |= set(WORD.findall(get_text(node)))
    return needed


def _find_condition(statement: Node) -> Node:
    """Return the `if` around a statement that reports a failure, because its condition is what fails."""
    above = statement.parent
    while above is not None and above.type in ("if_statement", "statement_block", "block", "statement_list"):
        if above.type == "if_statement":
            return above
        above = above.parent
    return statement


def _called_names(node: Node) -> Iterator[str]:
    for part in walk(node):
        if part.type in CALLS:
            yield get_text(get_field(part, "function", "constructor")).rpartition(".")[2]


def _first(node: Node) -> int:
    return node.start_point[0] + 1


def _last(node: Node) -> int:
    return node.end_point[0] + 1


def _iter_blocks(root: Node) -> Iterator[Node]:
    """Yield the statements of calls such as `describe(...)` and `test.each(...)(...)`, outer ones first."""
    return (node for node in walk(root) if _get_called_name(node) in TEST_CALLS)


def _get_called_name(statement: Node) -> str:
    """Return the first name of the call that a statement is, such as `test` of `test.each(...)(...)`."""
    call = statement.named_children[0] if statement.named_children else None
    if statement.type != "expression_statement" or call is None or call.type != "call_expression":
        return ""
    name = re.match(r"[\w$]+", get_text(call))
    return name[0] if name is not None else ""


def _find_chain(root: Node, names: Sequence[str]) -> list[Node]:
    """Return the nested blocks whose titles are the names; empty if there are none."""
    chain: list[Node] = []
    inside = root
    for name in names:
        block = next((node for node in _iter_blocks(inside) if node != inside and _title(node) == name), None)
        if block is None:
            return []
        chain.append(block)
        inside = block
    return chain


def _title(block: Node) -> str:
    arguments = get_field(block.named_children[0], "arguments")
    title = arguments.named_children[0] if arguments is not None and arguments.named_children else None
    return get_text(title)[1:-1] if title is not None and title.type in (*STRINGS, "template_string") else ""


def _find_hooks(group: Node) -> Iterator[Node]:
    """Yield the hooks of a group that run before its tests, without those of the groups inside it."""
    for node in walk(group):
        if _get_called_name(node) in HOOK_CALLS and _find_group(node) == group:
            yield node


def _find_group(statement: Node) -> Node | None:
    """Return the innermost group that contains a statement."""
    above = statement.parent
    while above is not None and _get_called_name(above) not in TEST_CALLS:
        above = above.parent
    return above


def _find_long_lists(node: Node) -> list[Node]:
    lists = [n for n in walk(node) if n.type in ("literal_value", "array") and len(_elements(n)) > 2]
    return [n for n in lists if not any(n != o and o.start_byte <= n.start_byte < o.end_byte for o in lists)]


def _elements(table: Node) -> list[Node]:
    return [child for child in table.named_children if child.type != "comment"]


def _find_case(table: Node, case: str, line: int | None) -> Node | None:
    """Return the element of a table that failed: by its name, with `_` for blanks, or by the line."""
    for element in _elements(table):
        texts = [get_text(n)[1:-1].replace(" ", "_") for n in walk(element) if n.type in STRINGS]
        if (case and case in texts) or (line is not None and _first(element) <= line <= _last(element)):
            return element
    return None
