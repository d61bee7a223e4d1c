"""From settings to a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from suture.sandbox.bubblewrap import BubblewrapSandbox
from suture.sandbox.contract import Sandbox
from suture.sandbox.vetting import VettedSandbox
from suture.settings.schema import SandboxSettings

__all__ = ["open_sandbox"]


def open_sandbox(settings: SandboxSettings, *, cache: Path | None = None) -> Sandbox:
    """The sandbox that the settings name. Nothing is started yet; before its first use it is attacked.

    Args:
        settings: The group `sandbox`.
        cache: A folder that remembers how attacks have ended, until the next start of the machine.
    """
    return VettedSandbox(_maker(settings), minimum=settings.minimum_level, cache=cache)


def _maker(settings: SandboxSettings) -> Callable[[], Sandbox]:
    match settings.backend:
        case "bubblewrap":
            return partial(BubblewrapSandbox, mode=settings.mode)
