"""Trusted modules of the host's, imported once for all children."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Library:
    """Finds and loads modules that are held in memory.

    Args:
        sources: Module -> source.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder` has it."""
        below = any(other.startswith(name + ".") for other in self._sources)
        if name not in self._sources and not below:
            return None
        loader: Any = self
        return ModuleSpec(name, loader, origin=f"<{name}>", is_package=below)

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary one will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source."""
        source = self._sources.get(module.__name__, "")
        exec(compile(source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)


def take_library(sources: dict[str, str]) -> None:
    """Import modules, and leave no way to import more of them.

    Args:
        sources: Module -> source.
    """
    library: Any = Library(sources)
    sys.meta_path.insert(0, library)
    try:
        for name in sources:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(library)
