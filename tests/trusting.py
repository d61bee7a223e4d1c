"""Loading the settings of a trusted project, as after `suture trust --yes`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from suture.core.settings import (
    LoadedSettings,
    compute_project_digest,
    find_requested_settings,
    load_settings,
    trust_project,
)
from suture.errors import UsageError

__all__ = ["load_trusted"]


def load_trusted(
    project: Path, flags: Mapping[str, object] | None, environ: Mapping[str, str]
) -> LoadedSettings:
    """Return the settings of a project whose own settings files are trusted."""
    folder = project if project.is_dir() else project.parent
    with contextlib.suppress(UsageError):  # loading reports what is wrong with the files
        digest = compute_project_digest(folder)
        home, requested = find_requested_settings(folder, environ)
        if requested:
            trust_project(home, folder, digest)
    return load_settings(project, flags, environ)
