"""The knobs: one `Settings` in small groups, each value with its origin.

This room reads flags, variables and files when it is asked to, never at import time, and costs no import
but pydantic. It must not act on a setting: others do.
"""

from suture.core.settings.aliases import flags_from_arguments
from suture.core.settings.loading import Loaded, load_settings, requested_settings
from suture.core.settings.rendering import render_settings
from suture.core.settings.schema import (
    BudgetSettings,
    LoopSettings,
    ModelSettings,
    PathSettings,
    ProofSettings,
    RepairSettings,
    SafetySettings,
    SandboxSettings,
    Settings,
    StoreSettings,
)
from suture.core.settings.trust import (
    PROMPTS_FOLDER,
    RequestedSetting,
    digest_of_project,
    is_trusted,
    project_prompts,
    revoke_trust,
    trust_project,
    trusted_projects,
)
from suture.core.settings.writing import new_file, set_value

__all__ = [
    "PROMPTS_FOLDER",
    "BudgetSettings",
    "Loaded",
    "LoopSettings",
    "ModelSettings",
    "PathSettings",
    "ProofSettings",
    "RepairSettings",
    "RequestedSetting",
    "SafetySettings",
    "SandboxSettings",
    "Settings",
    "StoreSettings",
    "digest_of_project",
    "flags_from_arguments",
    "is_trusted",
    "load_settings",
    "new_file",
    "project_prompts",
    "render_settings",
    "requested_settings",
    "revoke_trust",
    "set_value",
    "trust_project",
    "trusted_projects",
]
