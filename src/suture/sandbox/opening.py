"""From settings to a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from suture.errors import UsageError
from suture.sandbox.bubblewrap import BubblewrapSandbox
from suture.sandbox.contract import Sandbox
from suture.sandbox.vetting import VettedSandbox
from suture.settings.schema import SandboxSettings

__all__ = ["open_sandbox", "sandbox_makers"]


def open_sandbox(settings: SandboxSettings, *, cache: Path | None = None) -> Sandbox:
    """The sandbox that the settings name. Nothing is started yet; before its first use it is attacked.

    Args:
        settings: The group `sandbox`.
        cache: A folder that remembers how attacks have ended, until the next start of the machine.

    Raises:
        UsageError: There is none of this name.
    """
    makers = sandbox_makers(settings)
    if settings.backend not in makers:
        names = ", ".join(makers)
        raise UsageError(
            f"there is no sandbox {settings.backend!r}", remedy=f"sandbox.backend is one of {names}"
        )
    return VettedSandbox(makers[settings.backend], minimum=settings.minimum_level, cache=cache)


def sandbox_makers(settings: SandboxSettings) -> dict[str, Callable[[], Sandbox]]:
    """What makes each wall that may be tried on this machine without asking.

    Args:
        settings: The group `sandbox`.
    """
    return {"bubblewrap": partial(BubblewrapSandbox, mode=settings.mode)}
