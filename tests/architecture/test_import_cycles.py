"""No two modules import each other, directly or through others, not even inside a function or for a type."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, absolute_module, source_files


def module_imports(source: Path) -> dict[str, set[str]]:
    """Return each of our modules with those that it imports; a package counts as its `__init__`."""
    files = {module_name(file.path): file for file in source_files(source)}
    imports: dict[str, set[str]] = {}
    for module, file in files.items():
        imports[module] = set()
        for node in file.nodes:
            if isinstance(node, ast.Import):
                imports[module] |= {alias.name for alias in node.names} & files.keys()
            elif isinstance(node, ast.ImportFrom):
                base = absolute_module(node, file.path)
                submodules = {f"{base}.{alias.name}" for alias in node.names} & files.keys()
                imports[module] |= submodules or ({base} & files.keys())
    return imports


def module_name(path: str) -> str:
    return ".".join(("suture", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def test_modules_do_not_import_each_other() -> None:
    TopologicalSorter(module_imports(SOURCE)).prepare()


@pytest.mark.parametrize(
    "closing_import", ["import suture.one", "def f():\n    from suture.one import x", "from . import one"]
)
def test_a_cycle_is_found(tmp_path: Path, closing_import: str) -> None:
    (tmp_path / "one.py").write_text("from suture import two\n")
    (tmp_path / "two.py").write_text("from suture.three import y\n")
    (tmp_path / "three.py").write_text(f"{closing_import}\n")
    with pytest.raises(CycleError):
        TopologicalSorter(module_imports(tmp_path)).prepare()
