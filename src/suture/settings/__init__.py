"""The knobs: one `Settings` in small groups, each value with its origin.

This room reads flags, variables and files when it is asked to, never at import time, and costs no import
but pydantic. It must not act on a setting: others do.
"""

from suture.settings.arguments import flags_from_arguments, successor_of
from suture.settings.loading import (
    Loaded,
    SettingDescription,
    describe_settings,
    load_settings,
    render_settings,
)
from suture.settings.schema import (
    BudgetSettings,
    KeySettings,
    LoopSettings,
    ModelSettings,
    PathSettings,
    ProofSettings,
    RepairSettings,
    RoleSettings,
    SandboxSettings,
    Settings,
)

__all__ = [
    "BudgetSettings",
    "KeySettings",
    "Loaded",
    "LoopSettings",
    "ModelSettings",
    "PathSettings",
    "ProofSettings",
    "RepairSettings",
    "RoleSettings",
    "SandboxSettings",
    "SettingDescription",
    "Settings",
    "describe_settings",
    "flags_from_arguments",
    "load_settings",
    "render_settings",
    "successor_of",
]
