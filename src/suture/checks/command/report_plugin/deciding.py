"""What decides whether a test passed: code under test that puts another in its place decides nothing."""

from __future__ import annotations

import sys
from types import CodeType, FunctionType, MethodType
from typing import Any

OWNERS = ("_pytest.", "pluggy.", "unittest.")
BEHAVIOUR = (property, staticmethod, classmethod)


def deciding() -> dict[str, Any]:
    """Name of each function and method of what decides -> what it does now, where its module is loaded."""
    found = {}  # type: dict[str, Any]
    for name, module in list(sys.modules.items()):
        for own, value in list(vars(module).items()) if name.startswith(OWNERS) else ():
            if getattr(value, "__module__", None) != name:
                continue
            found[f"{name}.{own}"] = _does(value)
            if isinstance(value, type):
                found.update(
                    (f"{name}.{own}.{inner}", _does(part))
                    for inner, part in list(vars(value).items())
                    if callable(part) or isinstance(part, BEHAVIOUR)
                )
    return found


def changed_since(before: dict[str, Any]) -> list[str]:
    """Names of what is another now, is gone, or is new in a class that was there."""
    now = deciding()
    new = {name for name in now.keys() - before.keys() if name.rpartition(".")[0] in before}
    return sorted(new | {name for name, was in before.items() if now.get(name) is not was})


def files_of(names: list[str]) -> dict[str, str]:
    """Name of what is another now -> the file that it is written in; empty where nothing tells."""
    now = deciding()
    return {name: _file(now.get(name)) for name in names}


def _file(does: Any) -> str:
    return does.co_filename if isinstance(does, CodeType) else ""


def _does(value: Any) -> Any:
    """What stays the same object as long as a function does the same.

    Of nothing else an attribute is asked: `pytest.mark` makes a mark of each name that it is asked for, and
    refuses those that a project does not know.
    """
    function = value.fget if isinstance(value, property) else value
    if isinstance(function, (staticmethod, classmethod, MethodType)):
        function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else value
