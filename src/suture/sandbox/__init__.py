"""Running code that nobody has read, behind a wall.

This room owns the wall and what may pass through it, both ways. It does not know what a test or a model is,
and it never runs untrusted code without a wall.
"""

from suture.core.settings.schema import IsolationLevel
from suture.sandbox.backends import open_sandbox
from suture.sandbox.bubblewrap import KEPT, BubblewrapSandbox
from suture.sandbox.bubblewrap.diagnosis import Requirement
from suture.sandbox.contract import (
    BOX,
    LEVELS,
    LIBRARY,
    LIMITS,
    CachingSandbox,
    Capabilities,
    Channel,
    SupportsCloseCallbacks,
    MemoryEnforcement,
    Mode,
    Mount,
    ProgramLimits,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
)
from suture.sandbox.doctor import diagnose_backends, sandbox_makers
from suture.sandbox.mounts.planning import interpreter_mounts
from suture.sandbox.pool import SandboxPool
from suture.sandbox.runtimes.discovery import (
    discover_interpreter,
    discover_programs,
    discover_toolchain,
    own_interpreter,
)

__all__ = [
    "BOX",
    "KEPT",
    "LEVELS",
    "LIBRARY",
    "LIMITS",
    "BubblewrapSandbox",
    "CachingSandbox",
    "Capabilities",
    "Channel",
    "IsolationLevel",
    "SupportsCloseCallbacks",
    "MemoryEnforcement",
    "Mode",
    "Mount",
    "ProgramLimits",
    "Requirement",
    "RunRequest",
    "RunResult",
    "RunStatus",
    "Sandbox",
    "SandboxPool",
    "diagnose_backends",
    "discover_interpreter",
    "discover_programs",
    "discover_toolchain",
    "interpreter_mounts",
    "open_sandbox",
    "own_interpreter",
    "sandbox_makers",
]
