"""Open the sandbox that the settings name: one of the built-in back ends, or one that a package registers.

Container, E2B and unsafe-subprocess back ends are imported only when they are named, so that a plain run does
not pay for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path

from suture.core.plugins import load_plugin
from suture.core.settings.schema import KeySettings, SandboxSettings
from suture.errors import UsageError
from suture.sandbox.contract import Sandbox
from suture.sandbox.self_test import SelfTestedSandbox

ENTRY_POINT_GROUP = "suture.sandboxes"
"""Each entry point of this group loads to a function from `SandboxSettings` to a `Sandbox`."""
UNSAFE = "unsafe-subprocess"
"""The back end without isolation. It is never a default: the user must write its name."""
SandboxFactory = Callable[[SandboxSettings, KeySettings], Sandbox]


def _create_bubblewrap(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    from suture.sandbox.bubblewrap import BubblewrapSandbox

    return BubblewrapSandbox(mode=settings.mode)


def _create_container(settings: SandboxSettings, _: KeySettings) -> Sandbox:
    from suture.sandbox.container import ContainerSandbox

    return ContainerSandbox(
        host=settings.container_host, image=settings.image, runtime=settings.runtime, mode=settings.mode
    )


def _create_e2b(settings: SandboxSettings, keys: KeySettings) -> Sandbox:
    from suture.sandbox.e2b import E2bSandbox

    key = keys.e2b.get_secret_value() if keys.e2b is not None else ""
    return E2bSandbox(key=key, template=settings.e2b_template, mode=settings.mode)


def _create_unsafe_subprocess(settings: SandboxSettings, _: KeySettings) -> Sandbox:
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
        built_in=BUILT_IN,
        among=entry_points,
    )
    return lambda settings, _: create(settings)  # a package's back end does not get the user's keys


def open_sandbox(
    settings: SandboxSettings, *, keys: KeySettings | None = None, cache: Path | None = None
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
    create = partial(find_sandbox_factory(settings.backend), settings, keys or KeySettings())
    if settings.backend == UNSAFE:
        return create()  # a self-test attacks the sandbox, and would here attack the user's own machine
    return SelfTestedSandbox(create, minimum=settings.minimum_level, cache=cache)
