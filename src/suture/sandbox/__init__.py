"""Running code that nobody has read, behind a wall.

This room owns the wall and what may pass through it, both ways. It does not know what a test or a model is,
and it never runs untrusted code without a wall.
"""

from suture.sandbox.contract import (
    BOX,
    Channel,
    Mount,
    ProgramLimits,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
)
from suture.sandbox.interpreter import discover_interpreter, own_interpreter

__all__ = [
    "BOX",
    "Channel",
    "Mount",
    "ProgramLimits",
    "RunRequest",
    "RunResult",
    "RunStatus",
    "Sandbox",
    "discover_interpreter",
    "own_interpreter",
]
