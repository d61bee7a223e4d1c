"""The user's files: read once as bytes, compared, and written only when asked.

Nothing here writes to the user's tree but `apply_changes`, and nothing here runs the user's code.
"""

from suture.workspace.applying import Applied, apply_changes
from suture.workspace.diffs import unified_diff
from suture.workspace.protected import DEFAULT_PROTECTED, is_protected, is_test_file
from suture.workspace.snapshot import Snapshot, take_snapshot
from suture.workspace.texts import overlay, text_of

__all__ = [
    "DEFAULT_PROTECTED",
    "Applied",
    "Snapshot",
    "apply_changes",
    "is_protected",
    "is_test_file",
    "overlay",
    "take_snapshot",
    "text_of",
    "unified_diff",
]
