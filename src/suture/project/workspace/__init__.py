"""The user's files: read once as bytes, compared, and written only on request.

Only `apply_changes` writes to the user's tree, only a commit that the user asked for writes to the user's
repository, and nothing here runs the user's code.
"""

from suture.project.workspace.applying import (
    TreeNotReverted,
    apply_changes,
    missing_folders,
    remove_empty_folders,
    remove_partial_files,
    require_unchanged,
)
from suture.project.workspace.commits import (
    CommitPlan,
    commit_on_branch,
    commit_on_head,
    plan_commit,
    restage,
)
from suture.project.workspace.diffs import DiffDoesNotApply, apply_diff, unified_diff
from suture.project.workspace.history import find_earlier_versions
from suture.project.workspace.ignored_files import render_exclusion
from suture.project.workspace.line_matching import changed_ranges
from suture.project.workspace.protected import (
    DEFAULT_PROTECTED,
    TEST_FILES,
    default_protected,
    is_protected,
    is_test_file,
)
from suture.project.workspace.repository import Repository, RepositoryBusy, open_repository
from suture.project.workspace.snapshot import Snapshot, take_snapshot, take_snapshot_with_parents
from suture.project.workspace.text_files import decode_text, is_creatable, overlay_candidate

__all__ = [
    "DEFAULT_PROTECTED",
    "TEST_FILES",
    "CommitPlan",
    "DiffDoesNotApply",
    "Repository",
    "RepositoryBusy",
    "Snapshot",
    "TreeNotReverted",
    "apply_changes",
    "apply_diff",
    "changed_ranges",
    "commit_on_branch",
    "commit_on_head",
    "decode_text",
    "default_protected",
    "find_earlier_versions",
    "is_creatable",
    "is_protected",
    "is_test_file",
    "missing_folders",
    "open_repository",
    "overlay_candidate",
    "plan_commit",
    "remove_empty_folders",
    "remove_partial_files",
    "render_exclusion",
    "require_unchanged",
    "restage",
    "take_snapshot",
    "take_snapshot_with_parents",
    "unified_diff",
]
