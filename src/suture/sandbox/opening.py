"""From settings to a sandbox."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from suture.sandbox.backends import find_maker
from suture.sandbox.contract import Sandbox
from suture.sandbox.unsafe import UnsafeSubprocess
from suture.sandbox.vetting import VettedSandbox
from suture.settings.schema import KeySettings, SandboxSettings

__all__ = ["open_sandbox"]


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
    make = partial(find_maker(settings.backend), settings, keys or KeySettings())
    if settings.backend == UnsafeSubprocess.name:
        return make()  # attacks would hit the user's own machine
    return VettedSandbox(make, minimum=settings.minimum_level, cache=cache)
