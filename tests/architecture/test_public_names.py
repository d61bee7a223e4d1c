"""Each package has a docstring and a sorted `__all__` of names that exist; a constant has one value."""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import suture

SOURCE = Path(suture.__file__).parent


def find_modules() -> list[str]:
    """Return the names of all packages and of the top-level modules."""
    packages = [path.parent for path in SOURCE.rglob("__init__.py")]
    modules = [
        path.with_suffix("") for path in SOURCE.glob("*.py") if path.stem not in ("__init__", "__main__")
    ]
    return sorted(".".join(("suture", *path.relative_to(SOURCE).parts)) for path in (*packages, *modules))


def sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("name", find_modules())
def test_a_module_has_a_docstring_and_a_sorted_all(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"

    names = getattr(module, "__all__", None)
    if names is None:
        # Submodules are attributes once another test has imported them.
        own = [key for key, value in vars(module).items() if not isinstance(value, ModuleType)]
        assert not [key for key in own if not key.startswith("_")], f"{name} has names but no __all__"
        return
    assert list(names) == sorted(set(names), key=sort_key)

    missing = [key for key in names if not hasattr(module, key)]
    assert missing == []


def test_the_modules_are_found() -> None:
    assert {
        "suture",
        "suture.errors",
        "suture.core.ledger",
        "suture.core.settings",
        "suture.project.workspace",
    } <= set(find_modules())


def find_repeated_constants(source: str) -> set[str]:
    """Return the constants that statements of a module assign more than once."""
    statements = ast.parse(source).body
    targets = [target for node in statements if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in statements if isinstance(node, ast.AnnAssign)]
    counts = Counter(target.id for target in targets if isinstance(target, ast.Name))
    return {name for name, count in counts.items() if count > 1 and name.isupper()}


def test_a_constant_has_one_value() -> None:
    repeated = {
        str(path.relative_to(SOURCE)): names
        for path in SOURCE.rglob("*.py")
        if (names := find_repeated_constants(path.read_text(encoding="utf-8")))
    }
    assert repeated == {}


def test_a_constant_with_two_values_is_found() -> None:
    assert find_repeated_constants("LIMIT = 1\nOTHER = 2\nLIMIT: int = 3\n") == {"LIMIT"}
