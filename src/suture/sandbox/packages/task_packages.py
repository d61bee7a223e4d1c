"""Choose the package set for a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from suture.core.records import Task
from suture.core.settings import Settings
from suture.project.languages import LANGUAGES
from suture.project.safety import resolve_levels
from suture.sandbox.packages.added_packages import ADDERS, AddedPackages
from suture.sandbox.packages.installer import InstalledPackages
from suture.sandbox.packages.package_sets import NewProjectPackages, ignore_installed


def packages_for_task(
    task: Task,
    settings: Settings,
    *,
    may_fetch: bool = True,
    on_installed: Callable[[InstalledPackages], None] = ignore_installed,
) -> NewProjectPackages | AddedPackages | None:
    """Return the packages of a new project, or those added to an existing one; `None` for any other task.

    Args:
        settings: They decide what may be fetched, and where it is cached.
        may_fetch: Whether sets that are not cached are fetched.
        on_installed: Called once with each set.
    """
    if task.project is None:
        return None
    safety = settings.safety
    levels = resolve_levels(safety)
    options: dict[str, Any] = {
        "language": task.language,
        "cache": settings.paths.cache,
        "may_fetch": may_fetch and safety.approve_deps != "never",
        "sandboxed": safety.fetch_packages == "sandbox",
        "hosts": safety.package_hosts,
        "allowed": {} if levels.level_for("dependency.unlisted") == "off" else levels.allowed,
        "on_installed": on_installed,
    }
    if task.project.is_new:
        return NewProjectPackages(**options)
    client = LANGUAGES[task.language].package_client
    return AddedPackages(base=task.files, **options) if client in ADDERS else None
