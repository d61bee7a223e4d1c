"""Find the last commits that touched some lines, in the versions of the project that were read with the task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from suture.core.records import Task
from suture.project.workspace import changed_ranges, decode_text

MAX_LISTED_COMMITS = 3


def find_commits(task: Task, path: str, ranges: Iterable[range]) -> list[str]:
    """Return `COMMIT SUBJECT` of the last commits that changed some lines of a file, the newest first.

    Args:
        path: A file of the task.
        ranges: Its lines of interest, from 1.
    """
    if path not in task.files or not task.earlier_versions:
        return []
    present = decode_text(task.files[path]).replace("\r\n", "\n")
    lines = {line for numbers in ranges for line in numbers}
    commits: list[str] = []
    versions = task.earlier_versions
    newer = versions[0].files.get(path, present)
    lines = _trace_back(newer, present, lines)[1]
    for version, older_version in pairwise(versions):
        older = older_version.files.get(path, present)
        touched, lines = _trace_back(older, newer, lines)
        if touched:
            commits.append(f"{version.commit[:8]} {version.subject}")
        newer = older
    return commits[:MAX_LISTED_COMMITS]


def _trace_back(older: str, newer: str, lines: set[int]) -> tuple[bool, set[int]]:
    """Return whether a change touched some lines of `newer`, and the same lines in `older`."""
    if older == newer or not lines:
        return False, lines
    changes = list(changed_ranges(older.split("\n"), newer.split("\n")))
    touched = any(_overlaps(start, end, lines) for _, _, start, end in changes)
    return touched, {old for line in lines if (old := _old_line(line, changes)) is not None}


def _overlaps(start: int, end: int, lines: set[int]) -> bool:
    """Whether a changed range, from 0 and empty where lines were deleted, is about some lines, from 1."""
    changed = set(range(start + 1, end + 1)) or {start, start + 1}
    return bool(changed & lines) if start != end else changed <= lines


def _old_line(line: int, changes: Sequence[tuple[int, int, int, int]]) -> int | None:
    """Return the number that a line had before some changes; `None` if it is new."""
    offset = 0
    for old_start, old_end, start, end in changes:
        if line <= start:
            break
        if line <= end:
            position = old_start + (line - start)
            return position if position <= old_end else None
        offset = old_end - end
    return line + offset
