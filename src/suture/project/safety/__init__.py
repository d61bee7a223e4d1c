"""Scan new code for what a person should know about before it runs, and before it is delivered.

The package only reads source: it runs nothing and asks no questions. The rules are those of the languages, and Bandit's
if the user wants it. The scan is a second line of defence: only the sandbox limits what code can do.
"""

from suture.project.safety.dependencies import Allowed, find_version_bounds, is_version_allowed
from suture.project.safety.manifests import find_requested_packages
from suture.project.safety.package_requirements import normalise_package_name
from suture.project.safety.scanning import Finding, Levels, resolve_levels, scan_change, scan_files

__all__ = [
    "Allowed",
    "Finding",
    "Levels",
    "find_requested_packages",
    "find_version_bounds",
    "is_version_allowed",
    "normalise_package_name",
    "resolve_levels",
    "scan_change",
    "scan_files",
]
