"""Find the classes that a Python file imports from other files of its project, with the full names of their bases."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text

MAX_IMPORT_DEPTH = 3
"""Files through which bases are followed, each imported by the one before. Chosen by judgement."""


class BaseClasses:
    """The classes in the files of a project, which are read when a file that is analysed imports them.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """

    def __init__(self, before: Mapping[str, bytes], after: Mapping[str, str]) -> None:
        self._before, self._after = before, after
        self._paths: dict[str, list[str]] = {}
        """Last part of the name of a module -> the files that may be this module."""
        for path in (path for path in {**before, **after} if path.endswith(".py")):
            file = PurePosixPath(path)
            stem = file.parent.name if file.stem == "__init__" else file.stem
            self._paths.setdefault(stem, []).append(path)

    def find_imported(self, text: str, depth: int = 0) -> Iterator[ast.ClassDef]:
        """Yield the classes that a file imports by `from ... import`, and the bases of these in further files."""
        tree = parse_module(text) if depth < MAX_IMPORT_DEPTH else None
        used = _find_base_names(tree) if tree is not None else set[str]()
        for node in ast.walk(tree) if used and tree is not None else ():
            if isinstance(node, ast.ImportFrom):
                wanted = {alias.name: alias.asname or alias.name for alias in node.names}
                if used & {*wanted.values()}:
                    for path in self._paths.get((node.module or "").rpartition(".")[2], ()):
                        yield from self._read_classes(path, wanted, depth)

    def _read_classes(self, path: str, wanted: Mapping[str, str], depth: int) -> Iterator[ast.ClassDef]:
        text = self._after[path] if path in self._after else decode_text(self._before[path])
        tree = parse_module(text)
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)] if tree is not None else []
        if not any(node.name in wanted for node in classes) or tree is None:
            return
        names = ModuleNames(tree)
        for node in classes:
            bases = [names.resolve(base) or ast.unparse(base) for base in node.bases]
            yield ast.ClassDef(
                name=wanted.get(node.name, node.name),
                bases=[ast.parse(base.lstrip("."), mode="eval").body for base in bases],
                keywords=[],
                body=node.body if path in self._after else [ast.Pass()],  # nothing there is new
                decorator_list=[],
            )
        yield from self.find_imported(text, depth + 1)


def _find_base_names(tree: ast.Module) -> set[str]:
    return {
        base.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name)
    }
