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
    from suture.core.ledger import Event
    from suture.core.records import Check, Result, Task

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


_PACKAGES = {
    "Check": "suture.core.records",
    "Event": "suture.core.ledger",
    "Result": "suture.core.records",
    "Task": "suture.core.records",
}
"""The package that defines each public name; every other name comes from `suture.api`."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'suture' has no attribute {name!r}")
    return getattr(import_module(_PACKAGES.get(name, "suture.api")), name)


def load_ipython_extension(shell: Any) -> None:
    """Register `%%heal`; IPython calls this for `%load_ext suture`."""
    from suture.interfaces.notebook.heal_magic import load

    load(shell)
