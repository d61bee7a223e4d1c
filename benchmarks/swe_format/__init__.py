"""Tasks in the form of SWE-bench: a repository at a commit, an issue, and hidden tests for a patch.

Records and repositories are local, and nothing is downloaded. A patch is graded outside of the run that made
it.
"""

from swe_format.patch_grading import grade_patch
from swe_format.repository_files import apply_patch, read_commit_files
from swe_format.swe_tasks import SweTask, format_prediction, read_predictions, read_tasks

__all__ = [
    "SweTask",
    "apply_patch",
    "format_prediction",
    "grade_patch",
    "read_commit_files",
    "read_predictions",
    "read_tasks",
]
