"""Turn a notebook cell into a project: its code, a test for each assert, and definitions of earlier cells."""

from __future__ import annotations

import ast
import builtins
import inspect
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from suture.errors import UsageError

CODE_FILE, TESTS_FILE, EARLIER_FILE = "cell.py", "test_cell.py", "earlier_cells.py"
"""Files of the project that a cell becomes."""
ASSERT_PLACEHOLDER = "# assert {} belongs here"
MAX_LITERAL_CHARS = 100_000
"""Length of a value that is copied from an earlier cell. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class CellProject:
    """A cell as files.

    Attributes:
        files: Path -> text.
        asserts: The asserts as written.
        header: The import line before the cell's code, for names of earlier cells; may be empty.
    """

    files: Mapping[str, str]
    asserts: tuple[str, ...]
    header: str

    def restore_cell(self, code: str) -> str:
        """Return the source of a cell with repaired code: each assert at its place, or at the end."""
        text, unplaced = code.removeprefix(self.header), []
        for number, source in enumerate(self.asserts, 1):
            placeholder = ASSERT_PLACEHOLDER.format(number)
            if placeholder in text:
                text = text.replace(placeholder, source, 1)
            else:  # the repair has removed the placeholder
                unplaced.append(source)
        return "\n".join([text.rstrip("\n"), *unplaced])


def make_cell_project(source: str, names: Mapping[str, object]) -> CellProject:
    """Return a cell as a project.

    Args:
        source: The cell's source.
        names: The names that the notebook's earlier cells have defined, with their values.

    Raises:
        UsageError: The cell is not plain Python, has no assert, or uses a value that cannot be copied.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as fault:
        location = f" at line {fault.lineno} below %%heal" if isinstance(fault, SyntaxError) else ""
        reason = fault.msg if isinstance(fault, SyntaxError) else fault
        raise UsageError(
            f"the cell is not plain Python{location}: {reason}",
            remedy="fix that first; move lines that start with ! or % to their own cell",
        ) from fault
    asserts = [node for node in tree.body if isinstance(node, ast.Assert)]
    if not asserts:
        raise UsageError("the cell has no assert to test the code with", remedy="add one below the code")
    lines = source.splitlines()
    code, assert_sources = _replace_asserts(lines, tree, asserts)
    defined, used = _defined_and_used_names(source)
    imported = _earlier_definitions(used - defined, names)
    header = f"{_import_line(EARLIER_FILE, set(imported))}\n" if imported else ""
    tests = _test_sources(asserts, assert_sources, defined, set(imported))
    files = {CODE_FILE: f"{header}{code}\n", TESTS_FILE: "\n\n\n".join(tests) + "\n"}
    if imported:
        files[EARLIER_FILE] = "\n\n".join(imported.values()) + "\n"
    return CellProject(files=files, asserts=tuple(assert_sources), header=header)


def _replace_asserts(lines: list[str], tree: ast.Module, asserts: list[ast.Assert]) -> tuple[str, list[str]]:
    """Return the code with a placeholder comment for each assert, and the asserts."""
    code_lines, assert_sources = list(lines), list[str]()
    for number, node in reversed(list(enumerate(asserts, 1))):
        start, end = node.lineno - 1, node.end_lineno or node.lineno
        for statement in tree.body:
            overlaps = statement.lineno - 1 < end and start < (statement.end_lineno or statement.lineno)
            if overlaps and statement is not node:
                message = f"line {node.lineno} contains more than an assert"
                raise UsageError(message, remedy="move the assert to its own line")
        assert_sources.insert(0, "\n".join(lines[start:end]))
        code_lines[start:end] = [ASSERT_PLACEHOLDER.format(number)]
    return "\n".join(code_lines), assert_sources


def _import_line(path: str, names: set[str]) -> str:
    return f"from {path.removesuffix('.py')} import {', '.join(sorted(names))}"


def _test_sources(
    asserts: list[ast.Assert], assert_sources: list[str], defined: set[str], imported: set[str]
) -> Iterator[str]:
    """Yield the imports of the test file, and then a test for each assert."""
    used = {node.id for statement in asserts for node in ast.walk(statement) if isinstance(node, ast.Name)}
    imports = ((CODE_FILE, used & defined), (EARLIER_FILE, used & imported))
    yield "\n".join(_import_line(path, names) for path, names in imports if names)
    for node, source in zip(asserts, assert_sources, strict=True):
        # Continuation lines are inside brackets or strings, where indenting is useless or wrong.
        yield f"def test_line_{node.lineno}():\n    {source}"


def _defined_and_used_names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that some source defines at module level, and the module-level names that it uses."""
    module = symtable.symtable(source, "cell", "exec")
    defined = {
        symbol.get_name() for symbol in module.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    used: set[str] = set()
    tables = [module]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table is module):
                used.add(symbol.get_name())
    return defined, used - set(dir(builtins))


def _earlier_definitions(names_needed: set[str], names: Mapping[str, object]) -> Mapping[str, str]:
    """Return the sources of definitions from earlier cells, with their own dependencies, by name.

    Unknown names are skipped: using one may be the bug to fix.
    """
    sources: dict[str, str] = {}
    queue = sorted(names_needed)
    while queue:
        name = queue.pop(0)
        if name in sources or name not in names:
            continue
        sources[name] = source = _source_for_name(name, names[name])
        defined, used = _defined_and_used_names(source)
        queue += sorted(used - defined)
    # Imports and values come before functions and classes, which may use them when they are defined.
    return dict(sorted(sources.items(), key=lambda item: item[1].startswith(("def ", "class ", "@"))))


def _source_for_name(name: str, value: object) -> str:
    """Return source that defines a name again in another process. Raises `UsageError` if there is none."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, qualified_name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if isinstance(value, type) or inspect.isroutine(value):
        if module not in (None, "__main__") and qualified_name.isidentifier():
            return f"from {module} import {qualified_name} as {name}"
        try:
            # Under another name, or nested in something else, its source would not define this name.
            source = inspect.cleandoc("\n" + inspect.getsource(value)) if qualified_name == name else ""
        except (OSError, TypeError):
            source = ""
        if source:
            return source
    else:
        text = repr(value)
        try:
            copy = ast.literal_eval(text) if len(text) <= MAX_LITERAL_CHARS else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            copy = None
        if type(copy) is type(value) and copy == value:
            return f"{name} = {text}"
    message = f"{name!r} comes from another cell, and its value cannot be copied"
    raise UsageError(message, remedy="define it in this cell")
