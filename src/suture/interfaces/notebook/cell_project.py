"""A cell as a project: its code in one file, each assert a test, and what it uses of earlier cells."""

from __future__ import annotations

import ast
import builtins
import inspect
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from suture.errors import UsageError

CODE, TESTS, EARLIER = "cell.py", "test_cell.py", "earlier_cells.py"
MARK = "# assert {} stands here"
MOST_LITERAL_CHARS = 100_000
"""Of a value that is taken along from an earlier cell."""


@dataclass(frozen=True, kw_only=True)
class CellProject:
    """A cell as files.

    Attributes:
        files: Path -> text.
        asserts: The asserts as they were written.
        header: The line before the cell's code, which takes names of earlier cells over; may be empty.
    """

    files: Mapping[str, str]
    asserts: tuple[str, ...]
    header: str

    def cell_of(self, code: str) -> str:
        """The text of a cell again, of its mended code: each assert where it stood, or at the end."""
        text, behind = code.removeprefix(self.header), []
        for number, source in enumerate(self.asserts, 1):
            mark = MARK.format(number)
            if mark in text:
                text = text.replace(mark, source, 1)
            else:  # whoever mended the code has left the comment out
                behind.append(source)
        return "\n".join([text.rstrip("\n"), *behind])


def make_cell_project(source: str, names: Mapping[str, object]) -> CellProject:
    """A cell as a project.

    Args:
        source: The cell's text.
        names: What the notebook's earlier cells have defined.

    Raises:
        UsageError: It is no plain Python, has no assert, or uses a value that cannot be taken along.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as fault:
        place = f" at line {fault.lineno} below %%heal" if isinstance(fault, SyntaxError) else ""
        why = fault.msg if isinstance(fault, SyntaxError) else fault
        raise UsageError(
            f"the cell is no plain Python{place}: {why}",
            remedy="mend that first; what begins with ! or % belongs into a cell of its own",
        ) from fault
    asserts = [node for node in tree.body if isinstance(node, ast.Assert)]
    if not asserts:
        raise UsageError(
            "the cell has no assert, so nothing says what is right", remedy="add one below the code"
        )
    lines = source.splitlines()
    code, written = _without(lines, tree, asserts)
    defined, used = _names(source)
    taken = _taken_along(used - defined, names)
    header = f"from {EARLIER.removesuffix('.py')} import {', '.join(sorted(taken))}\n" if taken else ""
    earlier = "\n\n".join(taken.values())
    return CellProject(
        files={
            CODE: f"{header}{code}\n",
            TESTS: "\n\n\n".join(_tests(asserts, written, defined, set(taken))) + "\n",
            **({EARLIER: f"{earlier}\n"} if earlier else {}),
        },
        asserts=tuple(written),
        header=header,
    )


def _without(lines: list[str], tree: ast.Module, asserts: list[ast.Assert]) -> tuple[str, list[str]]:
    """The code with a comment in place of each assert, and the asserts."""
    kept, written = list(lines), list[str]()
    for number, node in reversed(list(enumerate(asserts, 1))):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        beside = (one for one in tree.body if one is not node)
        if any(one.lineno - 1 < last and first < (one.end_lineno or one.lineno) for one in beside):
            raise UsageError(
                f"line {node.lineno} holds more than an assert", remedy="give it a line of its own"
            )
        written.insert(0, "\n".join(lines[first:last]))
        kept[first:last] = [MARK.format(number)]
    return "\n".join(kept), written


def _tests(
    asserts: list[ast.Assert], written: list[str], defined: set[str], taken: set[str]
) -> Iterator[str]:
    used = {node.id for one in asserts for node in ast.walk(one) if isinstance(node, ast.Name)}
    imports = ((CODE, used & defined), (EARLIER, used & taken))
    yield "\n".join(
        f"from {path.removesuffix('.py')} import {', '.join(sorted(names))}"
        for path, names in imports
        if names
    )
    for node, source in zip(asserts, written, strict=True):
        # Further lines lie in brackets or strings, where to indent them would be wrong or nothing.
        yield f"def test_line_{node.lineno}():\n    {source}"


def _names(source: str) -> tuple[set[str], set[str]]:
    """What a text defines at its top, and what it uses that is defined at the top of some text."""
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


def _taken_along(wanted: set[str], names: Mapping[str, object]) -> Mapping[str, str]:
    """The source of what earlier cells have defined, with what that needs itself, by name.

    A name that no cell has defined is left alone: to use it may be the fault.
    """
    found: dict[str, str] = {}
    waiting = sorted(wanted)
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in names:
            continue
        found[name] = source = _source_of(name, names[name])
        defined, used = _names(source)
        waiting += sorted(used - defined)
    values = {
        name: source for name, source in found.items() if not source.startswith(("def ", "class ", "@"))
    }
    return {**values, **{name: source for name, source in found.items() if name not in values}}


def _source_of(name: str, value: object) -> str:
    """Source that defines a name anew in another process.

    Raises:
        UsageError: There is none.
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
            again = ast.literal_eval(text) if len(text) <= MOST_LITERAL_CHARS else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            again = None
        if type(again) is type(value) and again == value:
            return f"{name} = {text}"
    raise UsageError(
        f"{name!r} comes from another cell, and a value like it cannot be taken along",
        remedy="define it in this cell",
    )
