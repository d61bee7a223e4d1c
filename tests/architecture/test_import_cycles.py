"""No two modules import each other, directly or through others, not even inside a function or for a type."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, absolute_module, source_files


def module_imports(source: Path) -> dict[str, set[str]]:
    """Return each module with our modules that it imports; a package counts as its `__init__`."""
    trees = {
        ".".join(("suture", *Path(file).with_suffix("").parts)).removesuffix(".__init__"): (file, tree)
        for file, tree in source_files(source)
    }
    found: dict[str, set[str]] = {}
    for name, (file, tree) in trees.items():
        found[name] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names} & trees.keys()
            elif isinstance(node, ast.ImportFrom):
                base = absolute_module(node, file)
                submodules = {f"{base}.{alias.name}" for alias in node.names} & trees.keys()
                found[name] |= submodules or ({base} & trees.keys())
    return found


def test_modules_do_not_import_each_other() -> None:
    TopologicalSorter(module_imports(SOURCE)).prepare()


@pytest.mark.parametrize(
    "back", ["import suture.one", "def f():\n    from suture.one import x", "from . import one"]
)
def test_a_cycle_is_found(tmp_path: Path, back: str) -> None:
    (tmp_path / "one.py").write_text("from suture import two\n")
    (tmp_path / "two.py").write_text("from suture.three import y\n")
    (tmp_path / "three.py").write_text(f"{back}\n")
    with pytest.raises(CycleError):
        TopologicalSorter(module_imports(tmp_path)).prepare()
