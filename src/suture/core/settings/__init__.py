"""Settings: one `Settings` object in small groups, where each value knows its origin.

The package reads flags, variables and files only when a caller asks for it, never at import time, and imports
nothing heavier than pydantic. It does not act on any setting.
"""

from suture.core.settings.aliases import flags_from_arguments
from suture.core.settings.loading import LoadedSettings, find_requested_settings, load_settings
from suture.core.settings.rendering import render_settings
from suture.core.settings.schema import (
    BudgetSettings,
    CertificationSettings,
    JudgeSettings,
    LoopSettings,
    ModelSettings,
    PathSettings,
    ProfileSettings,
    RepairSettings,
    SafetySettings,
    SandboxSettings,
    Settings,
    StoreSettings,
)
from suture.core.settings.setting_changes import create_settings_file, set_value
from suture.core.settings.trust import (
    PROMPTS_FOLDER,
    RequestedSetting,
    compute_project_digest,
    is_trusted,
    project_prompts,
    revoke_trust,
    trust_project,
    trusted_projects,
)

__all__ = [
    "PROMPTS_FOLDER",
    "BudgetSettings",
    "CertificationSettings",
    "JudgeSettings",
    "LoadedSettings",
    "LoopSettings",
    "ModelSettings",
    "PathSettings",
    "ProfileSettings",
    "RepairSettings",
    "RequestedSetting",
    "SafetySettings",
    "SandboxSettings",
    "Settings",
    "StoreSettings",
    "compute_project_digest",
    "create_settings_file",
    "find_requested_settings",
    "flags_from_arguments",
    "is_trusted",
    "load_settings",
    "project_prompts",
    "render_settings",
    "revoke_trust",
    "set_value",
    "trust_project",
    "trusted_projects",
]
