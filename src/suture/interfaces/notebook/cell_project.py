"""A notebook cell as a project: its code in one file, each assert a test, and definitions of earlier
cells.
"""

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
ASSERT_PLACEHOLDER = "# assert {} belongs here"
MAX_LITERAL_CHARS = 100_000
"""Length of a value that is copied from an earlier cell."""


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
        """Return the text of a cell with repaired code: each assert at its place, or at the end."""
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
        source: The cell's text.
        names: The definitions of the notebook's earlier cells.

    Raises:
        UsageError: The cell is not plain Python, has no assert, or uses a value that cannot be copied.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as fault:
        place = f" at line {fault.lineno} below %%heal" if isinstance(fault, SyntaxError) else ""
        why = fault.msg if isinstance(fault, SyntaxError) else fault
        raise UsageError(
            f"the cell is not plain Python{place}: {why}",
            remedy="fix that first; move lines that start with ! or % to their own cell",
        ) from fault
    asserts = [node for node in tree.body if isinstance(node, ast.Assert)]
    if not asserts:
        raise UsageError("the cell has no assert to test the code with", remedy="add one below the code")
    lines = source.splitlines()
    code, written = _replace_asserts(lines, tree, asserts)
    defined, used = _defined_and_used_names(source)
    imported = _earlier_definitions(used - defined, names)
    header = (
        f"from {EARLIER_FILE.removesuffix('.py')} import {', '.join(sorted(imported))}\n" if imported else ""
    )
    earlier = "\n\n".join(imported.values())
    return CellProject(
        files={
            CODE_FILE: f"{header}{code}\n",
            TESTS_FILE: "\n\n\n".join(_test_sources(asserts, written, defined, set(imported))) + "\n",
            **({EARLIER_FILE: f"{earlier}\n"} if earlier else {}),
        },
        asserts=tuple(written),
        header=header,
    )


def _replace_asserts(lines: list[str], tree: ast.Module, asserts: list[ast.Assert]) -> tuple[str, list[str]]:
    """Return the code with a placeholder comment for each assert, and the asserts."""
    code_lines, written = list(lines), list[str]()
    for number, node in reversed(list(enumerate(asserts, 1))):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        other_statements = (one for one in tree.body if one is not node)
        if any(one.lineno - 1 < last and first < (one.end_lineno or one.lineno) for one in other_statements):
            raise UsageError(
                f"line {node.lineno} contains more than an assert", remedy="move the assert to its own line"
            )
        written.insert(0, "\n".join(lines[first:last]))
        code_lines[first:last] = [ASSERT_PLACEHOLDER.format(number)]
    return "\n".join(code_lines), written


def _test_sources(
    asserts: list[ast.Assert], written: list[str], defined: set[str], imported: set[str]
) -> Iterator[str]:
    used = {node.id for one in asserts for node in ast.walk(one) if isinstance(node, ast.Name)}
    imports = ((CODE_FILE, used & defined), (EARLIER_FILE, used & imported))
    yield "\n".join(
        f"from {path.removesuffix('.py')} import {', '.join(sorted(names))}"
        for path, names in imports
        if names
    )
    for node, source in zip(asserts, written, strict=True):
        # Continuation lines are inside brackets or strings, where indenting is useless or wrong.
        yield f"def test_line_{node.lineno}():\n    {source}"


def _defined_and_used_names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a text defines at module level, and the module-level names that it uses."""
    top = symtable.symtable(source, "cell", "exec")
    defined = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    used: set[str] = set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {
            one.get_name()
            for one in table.get_symbols()
            if one.is_referenced() and (one.is_global() or table is top)
        }
    return defined, used - set(dir(builtins))


def _earlier_definitions(names_needed: set[str], names: Mapping[str, object]) -> Mapping[str, str]:
    """Return the sources of definitions from earlier cells, with their own dependencies, by name.

    Unknown names are skipped: using one may be the bug to fix.
    """
    found: dict[str, str] = {}
    waiting = sorted(names_needed)
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in names:
            continue
        found[name] = source = _source_for_name(name, names[name])
        defined, used = _defined_and_used_names(source)
        waiting += sorted(used - defined)
    values = {
        name: source for name, source in found.items() if not source.startswith(("def ", "class ", "@"))
    }
    return {**values, **{name: source for name, source in found.items() if name not in values}}


def _source_for_name(name: str, value: object) -> str:
    """Return source that defines a name again in another process.

    Raises:
        UsageError: There is no such source.
    """
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, called = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if isinstance(value, type) or inspect.isroutine(value):
        if module not in (None, "__main__") and called.isidentifier():
            return f"from {module} import {called} as {name}"
        try:
            source = inspect.cleandoc("\n" + inspect.getsource(value)) if called == name else ""
        except (OSError, TypeError):
            source = ""
        if source:
            return source
    else:
        text = repr(value)
        try:
            again = ast.literal_eval(text) if len(text) <= MAX_LITERAL_CHARS else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            again = None
        if type(again) is type(value) and again == value:
            return f"{name} = {text}"
    raise UsageError(
        f"{name!r} comes from another cell, and its value cannot be copied",
        remedy="define it in this cell",
    )
