"""Tasks in the form of SWE-bench: a repository at a commit, an issue, and hidden tests for a patch.

Records and repositories are local; nothing is fetched. A patch is graded outside of the run that made it.
"""

from suture.bench.swe.grading import grade_patch
from suture.bench.swe.records import SweTask, prediction, read_predictions, read_tasks
from suture.bench.swe.trees import files_at, patched

__all__ = [
    "SweTask",
    "files_at",
    "grade_patch",
    "patched",
    "prediction",
    "read_predictions",
    "read_tasks",
]
