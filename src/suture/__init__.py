"""Suture: a coding agent that heals.

It writes code from a task, or repairs code that exists, in a sandbox, until tests that can be trusted pass.
The names here are loaded when they are first used: importing `suture` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.api import (
        ReviewAnswer,
        SelfHealingAgent,
        fork_from_iteration,
        heal,
        resume,
        run_sync,
        solve,
        stream,
    )
    from suture.ledger import Event
    from suture.records import Check, Result, Task

__all__ = [
    "Check",
    "Event",
    "Result",
    "ReviewAnswer",
    "SelfHealingAgent",
    "Task",
    "fork_from_iteration",
    "heal",
    "resume",
    "run_sync",
    "solve",
    "stream",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'suture' has no attribute {name!r}")
    rooms = {"Event": "suture.ledger", **dict.fromkeys(("Check", "Result", "Task"), "suture.records")}
    room = rooms.get(name, "suture.api")
    return getattr(import_module(room), name)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext suture` calls: it brings `%%heal`."""
    from suture.notebook.magic import load

    load(shell)
