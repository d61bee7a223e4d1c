"""From settings to a sandbox: the backends by name, ours and those that installed packages bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

from suture.core.plugins import load_plugin
from suture.core.settings.schema import KeySettings, SandboxSettings
from suture.errors import UsageError
from suture.sandbox.bubblewrap import BubblewrapSandbox
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.contract import Sandbox
from suture.sandbox.e2b import E2bSandbox
from suture.sandbox.self_test import SelfTestedSandbox
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess

GROUP = "suture.sandboxes"
"""The group of entry points: each loads to a function from `SandboxSettings` to a `Sandbox`."""

Maker = Callable[[SandboxSettings, KeySettings], Sandbox]


def _bubblewrap(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    return BubblewrapSandbox(mode=settings.mode)


def _container(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    return ContainerSandbox(
        host=settings.container_host,
        image=settings.image,
        runtime=settings.runtime,
        mode=settings.mode,
    )


def _e2b(settings: SandboxSettings, keys: KeySettings) -> Sandbox:
    key = keys.e2b.get_secret_value() if keys.e2b is not None else ""
    return E2bSandbox(key=key, template=settings.e2b_template, mode=settings.mode)


def _unsafe(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    if settings.minimum_level != "none":
        raise UsageError(
            "the sandbox 'unsafe-subprocess' isolates nothing",
            remedy="set sandbox.minimum_level = 'none' too, where every program may do all that you may do",
        )
    return UnsafeSubprocess()


MAKERS: dict[str, Maker] = {
    "bubblewrap": _bubblewrap,
    "container": _container,
    "e2b": _e2b,
    "unsafe-subprocess": _unsafe,
}


def find_sandbox_factory(name: str, found: Iterable[EntryPoint] | None = None) -> Maker:
    """What makes a backend.

    Args:
        name: As `sandbox.backend` has it. A package's own cannot take the name of one of ours.
        found: What installed packages bring, where that is known already.

    Raises:
        UsageError: There is none of this name.
        PrerequisiteError: The package that brings it does not load.
    """
    if name in MAKERS:
        return MAKERS[name]
    make = load_plugin(GROUP, name, what="sandbox", where="sandbox.backend", ours=MAKERS, among=found)
    return lambda settings, _: make(settings)


def open_sandbox(
    settings: SandboxSettings, *, keys: KeySettings | None = None, cache: Path | None = None
) -> Sandbox:
    """The sandbox that the settings name. Nothing is started yet; before its first use it is attacked.

    Args:
        settings: The group `sandbox`.
        keys: The group `keys`, for a sandbox that is a service.
        cache: A folder that remembers how attacks have ended, until the next start of the machine.

    Raises:
        UsageError: There is no sandbox of this name, or it isolates nothing and `minimum_level` says more.
        PrerequisiteError: The package that brings it does not load.
    """
    make = partial(find_sandbox_factory(settings.backend), settings, keys or KeySettings())
    if settings.backend == UnsafeSubprocess.name:
        return make()  # attacks would hit the user's own machine
    return SelfTestedSandbox(make, minimum=settings.minimum_level, cache=cache)
