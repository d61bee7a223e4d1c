"""Benchmark tasks that are folders: aider's polyglot exercises, and tasks in Harbor's format.

A run sees the instruction and the files to work on. Tests are read here, and enter the sandbox only to grade an attempt
that has ended. The exception is the second attempt at a polyglot exercise: that benchmark gives it the tests' output.
"""

from suture.bench.folder_tasks.folder_rows import AttemptRow, FolderRow, TaskSummary, summarise_rows
from suture.bench.folder_tasks.folder_task import FolderTask
from suture.bench.folder_tasks.harbor import load_harbor_tasks
from suture.bench.folder_tasks.measuring import load_folder_tasks, measure_folder, take_first
from suture.bench.folder_tasks.polyglot import load_polyglot_tasks

__all__ = [
    "AttemptRow",
    "FolderRow",
    "FolderTask",
    "TaskSummary",
    "load_folder_tasks",
    "load_harbor_tasks",
    "load_polyglot_tasks",
    "measure_folder",
    "summarise_rows",
    "take_first",
]
