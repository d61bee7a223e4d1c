"""Find the classes of other files of a project that a Python file inherits from, with the full names of their bases."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from suture.project.python_source.module_names import ModuleNames
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import decode_text

MAX_IMPORT_DEPTH = 6
"""Files through which a base is followed, with those that only import it again. Chosen by judgement."""


class BaseClasses:
    """The classes in the files of a project, each of which is read once, when a class that is analysed needs it.

    Args:
        before: The task's files, path -> content.
        after: The changed files, path -> text.
    """

    def __init__(self, before: Mapping[str, bytes], after: Mapping[str, str]) -> None:
        self._before, self._after = before, after
        self._modules: dict[str, _Module | None] = {}
        self._paths: dict[str, dict[str, str]] = {}
        """Last part of a module's name -> the modules with it, as path without suffix -> path of the file."""
        for path in (path for path in {**before, **after} if path.endswith(".py")):
            file = PurePosixPath(path)
            module = file.parent if file.stem == "__init__" else file.with_suffix("")
            self._paths.setdefault(module.name, {})[str(module)] = path

    def find_imported(self, path: str, text: str) -> Iterator[ast.ClassDef]:
        """Yield the classes of other files that classes of a file inherit from.

        Each is named as the file names it, such as `models.Base`. Its bases are those that no file of the project
        defines, its own and those of its bases.
        """
        tree = parse_module(text)
        bases = {
            ast.unparse(base): base
            for node in (ast.walk(tree) if tree is not None else ())
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if isinstance(base, ast.Name | ast.Attribute)
        }
        if tree is None or not bases:
            return
        module = _Module(path, tree)
        for name, base in bases.items():
            places = self._find_places(module, base) if name not in module.classes else []
            if places:
                yield self._read_class(name, places)

    def _read_class(self, name: str, places: Iterable[tuple[str, str]]) -> ast.ClassDef:
        bases: dict[str, None] = {}
        body: list[ast.stmt] = [ast.Pass()]
        waiting, known = [(place, 0, True) for place in places], set[tuple[str, str]]()
        while waiting:
            (path, class_name), depth, is_direct = waiting.pop()
            module = self._load(path)
            if (path, class_name) in known or depth == MAX_IMPORT_DEPTH or module is None:
                continue
            known.add((path, class_name))
            node = module.classes.get(class_name)
            if node is None:
                found = self._find_places(module, ast.Name(class_name))  # imported there only to be imported
                waiting += [(place, depth + 1, is_direct) for place in found]
                continue
            if is_direct and path in self._after:  # nothing in the other files is new
                body += node.body
            for base in node.bases:
                found = self._find_places(module, base)
                waiting += [(place, depth + 1, False) for place in found]
                full_name = module.names.resolve(base)
                if full_name and not found:
                    bases[full_name] = None
        return ast.ClassDef(
            name=name, bases=[ast.Name(base) for base in bases], keywords=[], body=body, decorator_list=[]
        )

    def _find_places(self, module: _Module, base: ast.expr) -> list[tuple[str, str]]:
        """Return where the project may define what a module names, each as path and name in that file."""
        full_name = module.names.resolve(base)
        if not full_name:
            is_own = isinstance(base, ast.Name) and base.id in module.classes
            return [(module.path, base.id)] if is_own and isinstance(base, ast.Name) else []
        source, _, name = full_name.rpartition(".")
        if source or full_name.startswith("."):
            sources = [source or "."]
        else:
            sources = module.names.star_modules
        return [(path, name) for source in sources for path in self._find_files(source, module.path)]

    def _find_files(self, module: str, importer: str) -> list[str]:
        """Return the files that a module's name may mean in a file; any folder may be one that Python searches."""
        parts = module.lstrip(".").replace(".", "/")
        level = len(module) - len(module.lstrip("."))
        known = self._paths.get(PurePosixPath(parts).name, {})
        if not level:
            if parts.partition("/")[0] in sys.stdlib_module_names:
                return [known[parts]] if parts in known else []
            return [path for name, path in known.items() if f"/{name}".endswith(f"/{parts}")]
        # `from . import base` gives `base` the name `..base`, as if it came from the folder above.
        for folders in (level, level - 1) if level > 1 else (level,):
            parents = PurePosixPath(importer).parents
            folder = parents[min(folders, len(parents)) - 1]
            target = folder / parts
            path = self._paths.get(target.name, {}).get(str(target))
            if path is not None:
                return [path]
        return []

    def _load(self, path: str) -> _Module | None:
        if path not in self._modules:
            text = self._after[path] if path in self._after else decode_text(self._before[path])
            tree = parse_module(text)
            self._modules[path] = _Module(path, tree) if tree is not None else None
        return self._modules[path]


class _Module:
    """A file, its names and the classes that it defines."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.names = ModuleNames(tree)
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
