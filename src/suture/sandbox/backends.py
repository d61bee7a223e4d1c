"""Open the sandbox that the settings name: one of the built-in back ends, or one that a package registers.

If they name none, bubblewrap is used, or containers where bubblewrap cannot be built.

Container, E2B and unsafe-subprocess back ends are imported only when they are named, so that a plain run does
not pay for them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

from suture.core.plugins import load_plugin
from suture.core.settings.schema import IsolationLevel, KeySettings, SandboxSettings
from suture.errors import SutureError, UsageError
from suture.sandbox.automatic_sandbox import AutomaticSandbox, is_replaceable
from suture.sandbox.bubblewrap.diagnosis import (
    Requirement,
    diagnose_bubblewraps,
    diagnose_kernel,
    explain_unavailable,
)
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.contract import Capabilities, MemoryEnforcement, Sandbox
from suture.sandbox.self_test import SelfTestedSandbox

ENTRY_POINT_GROUP = "suture.sandboxes"
"""Each entry point of this group loads to a function from `SandboxSettings` to a `Sandbox`."""
AUTO = "auto"
"""The default of `sandbox.backend`: the first of `LOCAL_BACKENDS` that can be built on this machine."""
LOCAL_BACKENDS = ("bubblewrap", "container")
"""Back ends that may be tried without asking, best first. Others are services, or come from packages."""
UNSAFE = "unsafe-subprocess"
"""The back end without isolation. It is never a default: the user must write its name."""
SandboxFactory = Callable[[SandboxSettings, KeySettings], Sandbox]


def _require_linux() -> None:
    """Refuse back ends that show this machine's own programs, because a sandbox can only run programs for Linux.

    Raises:
        SandboxUnavailable: This is another system.
    """
    if sys.platform != "linux":
        raise explain_unavailable({}, platform=sys.platform)


def _create_bubblewrap(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    _require_linux()
    from suture.sandbox.bubblewrap import BubblewrapSandbox

    return BubblewrapSandbox(mode=settings.mode)


def _create_container(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    _require_linux()
    from suture.sandbox.container import ContainerSandbox

    return ContainerSandbox(
        host=settings.container_host, image=settings.image, runtime=settings.runtime, mode=settings.mode
    )


def _create_e2b(settings: SandboxSettings, keys: KeySettings) -> Sandbox:
    from suture.sandbox.e2b import E2bSandbox

    key = keys.e2b.get_secret_value() if keys.e2b is not None else ""
    return E2bSandbox(key=key, template=settings.e2b_template, mode=settings.mode)


def _create_unsafe_subprocess(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    _require_linux()
    from suture.sandbox.unsafe_subprocess import UnsafeSubprocess

    if settings.minimum_level != "none":
        raise UsageError(
            f"the sandbox {UNSAFE!r} isolates nothing",
            remedy="set sandbox.minimum_level = 'none' too; every program may then do all that you may do",
        )
    return UnsafeSubprocess()


BUILT_IN: dict[str, SandboxFactory] = {
    "bubblewrap": _create_bubblewrap,
    "container": _create_container,
    "e2b": _create_e2b,
    UNSAFE: _create_unsafe_subprocess,
}


def find_sandbox_factory(name: str, entry_points: Iterable[EntryPoint] | None = None) -> SandboxFactory:
    """Return the function that creates a back end.

    Args:
        name: The value of `sandbox.backend`. A package cannot replace a built-in back end.
        entry_points: The entry points to search, for tests; by default those of installed packages.

    Raises:
        UsageError: No back end has this name.
        PrerequisiteError: The package that provides it cannot be imported.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    create = load_plugin(
        ENTRY_POINT_GROUP,
        name,
        what="sandbox",
        where="sandbox.backend",
        built_in=(AUTO, *BUILT_IN),
        among=entry_points,
    )
    return lambda settings, _: create(settings)  # a package's back end does not get the user's keys


def open_sandbox(
    settings: SandboxSettings,
    *,
    keys: KeySettings | None = None,
    cache: Path | None = None,
) -> Sandbox:
    """Return the sandbox that the settings name. Nothing is started until its first use.

    Args:
        settings: The settings group `sandbox`.
        keys: The settings group `keys`, for a sandbox that is a service.
        cache: A folder that keeps the results of the self-test until the machine is restarted.

    Raises:
        UsageError: No sandbox has this name, or it isolates nothing and `minimum_level` asks for more.
        PrerequisiteError: The package that provides it cannot be imported.
    """

    def open_backend(name: str) -> SelfTestedSandbox:
        create = partial(find_sandbox_factory(name), settings, keys or KeySettings())
        return SelfTestedSandbox(create, minimum=settings.minimum_level, cache=cache)

    if settings.backend == UNSAFE:
        # A self-test attacks the sandbox, and here it would attack the user's own machine.
        return _create_unsafe_subprocess(settings, KeySettings())
    if settings.backend == AUTO:
        preferred, substitute = LOCAL_BACKENDS
        return AutomaticSandbox(
            open_backend(preferred),
            partial(open_backend, substitute),
            minimum=settings.minimum_level,
        )
    return open_backend(settings.backend)


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
    """Attack each sandbox and report how well it isolates and what it lacks; the needed one comes last.

    If the settings name none (`auto`), the needed one is that which `AutomaticSandbox` chooses.

    This function starts an event loop, so it must not be called inside a running one.

    Args:
        factories: Back end -> the function that creates it.
        needed: The back end that the settings name.
        minimum: The weakest acceptable isolation level.
        cache: A folder for the results of the self-test.
        bubblewraps: Paths of bubblewrap programs, best first; by default those of this machine.
    """
    paths = find_bubblewraps() if bubblewraps is None else bubblewraps
    faults: dict[str, SutureError] = {}
    findings = [
        asyncio.run(_diagnose(name, create, minimum, cache, faults)) for name, create in factories.items()
    ]
    if needed == AUTO:
        preferred, substitute = LOCAL_BACKENDS
        is_unusable = preferred in faults and is_replaceable(faults[preferred])
        works = any(finding.name == substitute and finding.ok for finding in findings)
        needed = substitute if is_unusable and works else preferred
    backends = sorted(
        (replace(finding, needed=finding.name == needed) for finding in findings),
        key=lambda finding: finding.needed,
    )
    kernel = [
        replace(finding, needed=needed == "bubblewrap") for finding in diagnose_kernel(platform=sys.platform)
    ]
    return [*kernel, *diagnose_bubblewraps(paths), *backends]


def find_sandbox_factories(settings: SandboxSettings, keys: KeySettings) -> dict[str, Callable[[], Sandbox]]:
    """Return the factory of each back end that may be tried: the local ones, and the one in the settings."""

    def create(name: str) -> Sandbox:
        return find_sandbox_factory(name)(settings, keys)

    names = dict.fromkeys((*LOCAL_BACKENDS, settings.backend))
    return {name: partial(create, name) for name in names if name != AUTO}


async def _diagnose(
    name: str,
    create: Callable[[], Sandbox],
    minimum: IsolationLevel,
    cache: Path | None,
    faults: dict[str, SutureError],
) -> Requirement:
    """Return how well a sandbox isolates; an error that it raises is added to `faults`."""
    sandbox = None
    try:
        sandbox = SelfTestedSandbox(create, minimum=minimum, cache=cache)
        capabilities = await sandbox.capabilities()
    except SutureError as fault:
        faults[name] = fault
        return Requirement(name=name, ok=False, detail=fault.message, remedy=fault.remedy)
    finally:
        if sandbox is not None:
            await sandbox.close()
    return Requirement(
        name=name,
        ok=capabilities.meets_level(minimum),
        detail=describe_capabilities(capabilities),
        remedy=f"sandbox.minimum_level is {minimum!r}: choose another sandbox with sandbox.backend",
    )


def describe_capabilities(capabilities: Capabilities) -> str:
    """Describe in one line how well a sandbox isolates."""
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
