"""The sandbox part of `suture doctor`: attack each available sandbox and report what it is worth."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from suture.core.settings.schema import IsolationLevel, KeySettings, SandboxSettings
from suture.errors import SutureError
from suture.sandbox.backends import find_sandbox_factory
from suture.sandbox.bubblewrap.diagnosis import Requirement, diagnose_bubblewraps, diagnose_kernel
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.contract import Capabilities, MemoryEnforcement, Sandbox
from suture.sandbox.self_test import SelfTestedSandbox

LOCAL_BACKENDS = ("bubblewrap", "container")
"""Back ends that may be tried without asking. Others are services, or come from packages."""

MEMORY_ENFORCEMENT_TEXT: dict[MemoryEnforcement, str] = {
    "cgroup2": "a control group limits total memory",
    "cgroup1": "a control group limits total memory",
    "engine": "the engine limits total memory",
    "sampler": "total memory is checked every 50 ms",
    "none": "total memory is not limited",
}


def diagnose_backends(
    factories: Mapping[str, Callable[[], Sandbox]],
    *,
    needed: str,
    minimum: IsolationLevel,
    cache: Path | None = None,
    bubblewraps: Iterable[str] | None = None,
) -> list[Requirement]:
    """Attack each sandbox and report what it is worth and what it lacks; the needed one comes last.

    This function starts an event loop, so it must not be called inside a running one.

    Args:
        factories: Back end -> the function that creates it.
        needed: The back end that a run would use.
        minimum: The weakest acceptable isolation level.
        cache: A folder for the results of the self-test.
        bubblewraps: Paths of bubblewrap programs, best first; by default those of this machine.
    """
    paths = find_bubblewraps() if bubblewraps is None else bubblewraps
    names = sorted(factories, key=lambda name: name == needed)
    backends = [
        asyncio.run(_diagnose(name, factories[name], name == needed, minimum, cache)) for name in names
    ]
    kernel = [replace(finding, needed=needed == "bubblewrap") for finding in diagnose_kernel()]
    return [*kernel, *diagnose_bubblewraps(paths), *backends]


def find_sandbox_factories(settings: SandboxSettings, keys: KeySettings) -> dict[str, Callable[[], Sandbox]]:
    """Return the factory of each back end that may be tried: the local ones, and the one in the settings."""

    def create(name: str) -> Sandbox:
        return find_sandbox_factory(name)(settings, keys)

    return {name: partial(create, name) for name in dict.fromkeys((*LOCAL_BACKENDS, settings.backend))}


async def _diagnose(
    name: str, create: Callable[[], Sandbox], needed: bool, minimum: IsolationLevel, cache: Path | None
) -> Requirement:
    sandbox = None
    try:
        sandbox = SelfTestedSandbox(create, minimum=minimum, cache=cache)
        capabilities = await sandbox.capabilities()
    except SutureError as fault:
        return Requirement(name=name, ok=False, detail=fault.message, remedy=fault.remedy, needed=needed)
    finally:
        if sandbox is not None:
            await sandbox.close()
    return Requirement(
        name=name,
        ok=capabilities.meets_level(minimum),
        detail=describe_capabilities(capabilities),
        remedy=f"sandbox.minimum_level is {minimum!r}: choose another sandbox with sandbox.backend",
        needed=needed,
    )


def describe_capabilities(capabilities: Capabilities) -> str:
    """Describe in one line what a sandbox is worth."""
    parts = [
        f"level {capabilities.level}, {capabilities.mode}",
        ", ".join(capabilities.languages),
        MEMORY_ENFORCEMENT_TEXT[capabilities.memory_enforcement],
    ]
    if capabilities.missing_limits:
        parts.append(f"not limited: {', '.join(capabilities.missing_limits)}")
    if capabilities.reason:
        parts.append(capabilities.reason)
    return "; ".join(parts)
