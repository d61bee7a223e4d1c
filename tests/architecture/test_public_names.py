"""What a room offers: a docstring, and a sorted list of names that are really there."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import suture

SOURCE = Path(suture.__file__).parent


def rooms() -> list[str]:
    packages = [path.parent for path in SOURCE.rglob("__init__.py")]
    modules = [
        path.with_suffix("") for path in SOURCE.glob("*.py") if path.stem not in ("__init__", "__main__")
    ]
    return sorted(".".join(("suture", *path.relative_to(SOURCE).parts)) for path in (*packages, *modules))


def sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("room", rooms())
def test_a_room_says_what_it_owns_and_offers_sorted_names(room: str) -> None:
    module = importlib.import_module(room)
    assert module.__doc__, f"{room} has no docstring"
    names = getattr(module, "__all__", None)
    if names is None:
        # Modules of its own are there once some other test has imported them.
        own = [name for name, value in vars(module).items() if not isinstance(value, ModuleType)]
        assert not [name for name in own if not name.startswith("_")], f"{room} has names but no __all__"
        return
    assert list(names) == sorted(set(names), key=sort_key)
    missing = [name for name in names if not hasattr(module, name)]
    assert missing == []


def test_the_rooms_are_found() -> None:
    assert {
        "suture",
        "suture.errors",
        "suture.core.ledger",
        "suture.core.settings",
        "suture.project.workspace",
    } <= set(rooms())
