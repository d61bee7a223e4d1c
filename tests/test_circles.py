"""No two modules import each other, directly or through others, not even inside a function or for a type."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import suture
from test_layers import absolute_module

SOURCE = Path(suture.__file__).parent


def imports(source: Path) -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports; a package counts as its `__init__`."""
    files = {
        ".".join(("suture", *path.relative_to(source).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in source.rglob("*.py")
        if "own" not in path.parts  # tasks of the suite, which are nobody's code
    }
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        file = path.relative_to(source).as_posix()
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names} & files.keys()
            elif isinstance(node, ast.ImportFrom):
                base = absolute_module(node, file)
                named = {f"{base}.{alias.name}" for alias in node.names}
                found[name] |= (named & files.keys()) or ({base} & files.keys())
    return found


def test_nobody_imports_who_imports_them() -> None:
    TopologicalSorter(imports(SOURCE)).prepare()


@pytest.mark.parametrize(
    "back", ["import suture.one", "def f():\n    from suture.one import x", "from . import one"]
)
def test_a_circle_is_seen(tmp_path: Path, back: str) -> None:
    (tmp_path / "one.py").write_text("from suture import two\n")
    (tmp_path / "two.py").write_text("from suture.three import y\n")
    (tmp_path / "three.py").write_text(back + "\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path)).prepare()
