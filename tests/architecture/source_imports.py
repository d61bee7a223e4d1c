"""Parse the files of `src/suture` and list what they import, for the tests of the architecture."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import suture

SOURCE = Path(suture.__file__).parent


@dataclass(frozen=True)
class SourceFile:
    """A Python file with its syntax tree."""

    path: str
    """The path below the folder that was read."""
    tree: ast.Module

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the syntax tree."""
        return [*ast.walk(self.tree)]

    @cached_property
    def imported_names(self) -> Sequence[tuple[int, str]]:
        """The line and dotted name of everything that the file imports or reaches by an attribute."""
        return [*find_imported_names(self.nodes, self.path)]


@cache
def source_files(source: Path) -> Sequence[SourceFile]:
    """Return each Python file below `source` except the tasks of the benchmark and the skeletons of projects.

    All tests of a process share the result: parsing the source takes longer than any test.
    """
    paths = [(path.relative_to(source).as_posix(), path) for path in sorted(source.rglob("*.py"))]
    return [
        SourceFile(path=name, tree=ast.parse(path.read_text("utf-8")))
        for name, path in paths
        if "/own/" not in name and not name.startswith("project/skeletons/python_")
    ]


def find_imported_names(nodes: Sequence[ast.AST], file: str) -> Iterator[tuple[int, str]]:
    aliases: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                aliases[alias.asname or top] = alias.name if alias.asname else top
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = absolute_module(node, file)
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{base}.{alias.name}"
                yield node.lineno, f"{base}.{alias.name}"
    for node in nodes:
        if (isinstance(node, ast.Attribute) and (name := dotted_name(node, aliases))) or (
            isinstance(node, ast.Call) and (name := dynamic_import(node, aliases))
        ):
            yield node.lineno, name


def absolute_module(node: ast.ImportFrom, file: str) -> str:
    """Return the absolute name of the module that an import names, also for a relative import."""
    if node.level == 0:
        return node.module or ""
    package = ["suture", *Path(file).parent.parts]
    parents = package[: len(package) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def dotted_name(node: ast.Attribute, aliases: dict[str, str]) -> str:
    """Return the full name of an attribute of an imported module, or an empty string."""
    parts: list[str] = []
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    base = aliases.get(value.id, "") if isinstance(value, ast.Name) else ""
    return ".".join([base, *reversed(parts)]) if base else ""


def dynamic_import(node: ast.Call, aliases: dict[str, str]) -> str:
    """Return the module that `importlib.import_module` or `__import__` loads by a literal name, if any."""
    called = node.func
    if isinstance(called, ast.Attribute):
        name = dotted_name(called, aliases)
    else:
        name = aliases.get(called.id, called.id) if isinstance(called, ast.Name) else ""
    argument = node.args[0] if node.args else None
    if name in ("__import__", "importlib.import_module") and isinstance(argument, ast.Constant):
        return str(argument.value)
    return ""
