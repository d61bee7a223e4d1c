"""What `suture doctor` tells about the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from suture.core.settings.schema import IsolationLevel, KeySettings, SandboxSettings
from suture.errors import SutureError
from suture.sandbox.backends import find_sandbox_factory
from suture.sandbox.bubblewrap.diagnosis import Requirement, bubblewrap_findings, kernel_findings
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.contract import Capabilities, Sandbox
from suture.sandbox.self_test import SelfTestedSandbox

ON_THIS_MACHINE = ("bubblewrap", "container")
"""What may be tried without asking; others are services, or bring code of their own."""

KEEPERS = {
    "cgroup2": "a control group limits memory in all",
    "cgroup1": "a control group limits memory in all",
    "engine": "the engine limits memory in all",
    "sampler": "memory in all is looked at every 50 ms",
    "none": "memory in all is not limited",
}


def diagnose_backends(
    makers: Mapping[str, Callable[[], Sandbox]],
    *,
    needed: str,
    minimum: IsolationLevel,
    cache: Path | None = None,
    bubblewraps: Iterable[str] | None = None,
) -> list[Requirement]:
    """Attack each wall and tell what it is worth, and what is missing for it; the one that is needed last.

    Not for use inside a running event loop.

    Args:
        makers: Name of a backend -> what makes it.
        needed: The backend that a run would use.
        minimum: The weakest level that will do.
        cache: As for `SelfTestedSandbox`.
        bubblewraps: Their paths, best first; by default those of this machine.
    """
    paths = find_bubblewraps() if bubblewraps is None else bubblewraps
    names = sorted(makers, key=lambda name: name == needed)
    backends = [asyncio.run(_attack(name, makers[name], name == needed, minimum, cache)) for name in names]
    kernel = [replace(finding, needed=needed == "bubblewrap") for finding in kernel_findings()]
    return [*kernel, *bubblewrap_findings(paths), *backends]


def find_sandbox_factories(settings: SandboxSettings, keys: KeySettings) -> dict[str, Callable[[], Sandbox]]:
    """What makes each wall that may be tried: those of this machine, and the one that the settings name.

    Args:
        settings: The group `sandbox`.
        keys: The group `keys`.
    """
    names = dict.fromkeys((*ON_THIS_MACHINE, settings.backend))
    return {name: partial(_make, name, settings, keys) for name in names}


def _make(name: str, settings: SandboxSettings, keys: KeySettings) -> Sandbox:
    return find_sandbox_factory(name)(settings, keys)


async def _attack(
    name: str, make: Callable[[], Sandbox], needed: bool, minimum: IsolationLevel, cache: Path | None
) -> Requirement:
    try:
        sandbox = SelfTestedSandbox(make, minimum=minimum, cache=cache)
    except SutureError as fault:
        return Requirement(name=name, ok=False, detail=fault.message, remedy=fault.remedy, needed=needed)
    try:
        found = await sandbox.capabilities()
    except SutureError as fault:
        return Requirement(name=name, ok=False, detail=fault.message, remedy=fault.remedy, needed=needed)
    finally:
        await sandbox.close()
    return Requirement(
        name=name,
        ok=found.meets_level(minimum),
        detail=describe_capabilities(found),
        remedy=f"sandbox.minimum_level is {minimum!r}: choose another wall with sandbox.backend",
        needed=needed,
    )


def describe_capabilities(found: Capabilities) -> str:
    """One line on what a wall is worth."""
    parts = [
        f"level {found.level}, {found.mode}",
        ", ".join(found.languages),
        KEEPERS[found.memory_enforcement],
    ]
    if found.missing_limits:
        parts.append(f"not limited: {', '.join(found.missing_limits)}")
    if found.reason:
        parts.append(found.reason)
    return "; ".join(parts)
