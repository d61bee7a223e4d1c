"""Suture: a coding agent that repairs code whose tests fail, and writes code from a task.

Everything that it proposes runs in a sandbox, and only what trusted tests confirm is accepted. Each name here is
loaded when it is first used, so that `import suture` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.api import (
        HealOptions,
        ReviewAnswer,
        RunOptions,
        SelfHealingAgent,
        WriteOptions,
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
    "HealOptions",
    "Result",
    "ReviewAnswer",
    "RunOptions",
    "SelfHealingAgent",
    "Task",
    "WriteOptions",
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
"""The package that defines each public name. Every other name comes from `suture.api`."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'suture' has no attribute {name!r}")
    return getattr(import_module(_PACKAGES.get(name, "suture.api")), name)


def load_ipython_extension(shell: Any) -> None:
    """Register the magic `%%heal`. IPython calls this for `%load_ext suture`."""
    from suture.interfaces.notebook.heal_magic import register_magic

    register_magic(shell)
