"""Running untrusted code.

This package owns the sandbox: its back ends, its inputs and outputs, and the limits that hold inside. It does not know
what a test or a model is, and it never runs untrusted code without a sandbox. The only exception is the back end
`unsafe-subprocess`, which the user must name.
"""

from suture.core.settings.schema import IsolationLevel
from suture.sandbox.automatic_sandbox import AutomaticSandbox
from suture.sandbox.backends import diagnose_backends, find_sandbox_factories, open_sandbox
from suture.sandbox.bubblewrap import WRITABLE_DIR, BubblewrapSandbox, Requirement
from suture.sandbox.contract import (
    BOX,
    ISOLATION_LEVELS,
    LIBRARY,
    LIMIT_NAMES,
    Capabilities,
    Channel,
    MemoryEnforcement,
    Mount,
    ProgramLimits,
    RunRequest,
    RunResult,
    RunStatus,
    Sandbox,
    StartMode,
    SupportsCacheDir,
    SupportsCloseCallbacks,
    SupportsPreparation,
)
from suture.sandbox.mounts.mount_planning import mounts_for_interpreter
from suture.sandbox.pool import SandboxPool
from suture.sandbox.runtimes import (
    discover_interpreter,
    discover_programs,
    discover_toolchain,
    get_own_interpreter,
)
from suture.sandbox.runtimes.environments import lend_pytest

__all__ = [
    "BOX",
    "ISOLATION_LEVELS",
    "LIBRARY",
    "LIMIT_NAMES",
    "WRITABLE_DIR",
    "AutomaticSandbox",
    "BubblewrapSandbox",
    "Capabilities",
    "Channel",
    "IsolationLevel",
    "MemoryEnforcement",
    "Mount",
    "ProgramLimits",
    "Requirement",
    "RunRequest",
    "RunResult",
    "RunStatus",
    "Sandbox",
    "SandboxPool",
    "StartMode",
    "SupportsCacheDir",
    "SupportsCloseCallbacks",
    "SupportsPreparation",
    "diagnose_backends",
    "discover_interpreter",
    "discover_programs",
    "discover_toolchain",
    "find_sandbox_factories",
    "get_own_interpreter",
    "lend_pytest",
    "mounts_for_interpreter",
    "open_sandbox",
]
