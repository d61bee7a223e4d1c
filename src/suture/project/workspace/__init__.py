"""The user's files: read once as bytes, compared, and written only when asked.

Nothing here writes to the user's tree but `apply_changes`, nothing but a landed commit writes to the user's
repository, and nothing here runs the user's code.
"""

from suture.project.workspace.applying import apply_changes, missing_folders, remove_empty_folders
from suture.project.workspace.commits import CommitPlan, land_branch, land_on_head, plan_commit
from suture.project.workspace.diffs import PatchRefused, apply_diff, unified_diff
from suture.project.workspace.history import earlier_versions
from suture.project.workspace.line_matching import changed_stretches
from suture.project.workspace.protected import (
    DEFAULT_PROTECTED,
    TEST_FILES,
    default_protected,
    is_protected,
    is_test_file,
)
from suture.project.workspace.repository import Repository, open_repository
from suture.project.workspace.snapshot import UNSPEAKABLE, Snapshot, take_snapshot
from suture.project.workspace.text_files import overlay, text_of

__all__ = [
    "DEFAULT_PROTECTED",
    "TEST_FILES",
    "UNSPEAKABLE",
    "CommitPlan",
    "PatchRefused",
    "Repository",
    "Snapshot",
    "apply_changes",
    "apply_diff",
    "changed_stretches",
    "default_protected",
    "earlier_versions",
    "is_protected",
    "is_test_file",
    "land_branch",
    "land_on_head",
    "missing_folders",
    "open_repository",
    "overlay",
    "plan_commit",
    "remove_empty_folders",
    "take_snapshot",
    "text_of",
    "unified_diff",
]
