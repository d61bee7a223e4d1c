"""From settings to a sandbox."""

from __future__ import annotations

from suture.sandbox.bubblewrap import BubblewrapSandbox
from suture.sandbox.contract import Sandbox
from suture.settings.schema import SandboxSettings

__all__ = ["open_sandbox"]


def open_sandbox(settings: SandboxSettings) -> Sandbox:
    """The sandbox that the settings name. Nothing is started yet.

    Args:
        settings: The group `sandbox`.
    """
    match settings.backend:
        case "bubblewrap":
            return BubblewrapSandbox()
