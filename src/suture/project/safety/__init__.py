"""What new code does that a person should know of: a scan before it is run, and before it is handed over.

It reads text, runs nothing and asks nobody; the rules are the languages' own, and Bandit's where the user
wants it. It is a second line: what code can do is bounded by the sandbox alone.
"""

from suture.project.safety.dependencies import Allowed, find_version_bounds, is_version_allowed
from suture.project.safety.manifests import find_requested_packages, normalise_package_name
from suture.project.safety.scanning import Finding, Levels, resolve_levels, scan, scan_change

__all__ = [
    "Allowed",
    "Finding",
    "Levels",
    "find_requested_packages",
    "find_version_bounds",
    "is_version_allowed",
    "normalise_package_name",
    "resolve_levels",
    "scan",
    "scan_change",
]
