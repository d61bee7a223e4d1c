"""What new code does that a person should know of: a scan before it is run, and before it is handed over.

It reads text, runs nothing and asks nobody; the rules are the languages' own, and Bandit's where the user
wants it. It is a second line: what code can do is bounded by the sandbox alone.
"""

from suture.project.safety.dependencies import Allowed, bounds_for, is_within
from suture.project.safety.manifests import plain_name, requested_in
from suture.project.safety.scanning import Finding, Levels, levels_of, new_findings, scan

__all__ = [
    "Allowed",
    "Finding",
    "Levels",
    "bounds_for",
    "is_within",
    "levels_of",
    "new_findings",
    "plain_name",
    "requested_in",
    "scan",
]
