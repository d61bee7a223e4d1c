"""A change as edits of whole lines, the form that code hosts take as suggestions and fixes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.project.workspace import changed_ranges, decode_text

HUNK_HEADER = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d{1,9})(?:,(\d{1,9}))? @@", re.MULTILINE)
"""The header of a hunk in a unified diff: the first new line, and the number of new lines if it is not 1."""


@dataclass(frozen=True, kw_only=True)
class LineEdit:
    """Lines of a file that are replaced by others.

    Attributes:
        start: The first replaced line, counted from 1.
        end: The last replaced line; `start - 1` if lines are only inserted, before `start`.
        old: The replaced lines, without line ends.
        new: The new lines, without line ends.
    """

    path: str
    start: int
    end: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def line_edits_between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[LineEdit, ...]:
    """Return the edits between two states of some files (path -> content); a new file counts as an empty one."""
    edits: list[LineEdit] = []
    for path in sorted(path for path in after if before.get(path) != after[path]):
        old, new = (decode_text(files.get(path, b"")).split("\n") for files in (before, after))
        for old_start, old_end, new_start, new_end in changed_ranges(old, new):
            edits.append(
                LineEdit(
                    path=path,
                    start=old_start + 1,
                    end=old_end,
                    old=tuple(old[old_start:old_end]),
                    new=tuple(new[new_start:new_end]),
                )
            )
    return tuple(edits)


def widen_to_replacement(edit: LineEdit, before: Mapping[str, bytes], prefix: str) -> LineEdit:
    """Return an edit that replaces at least one line: a pure insertion includes a neighbouring line.

    Args:
        prefix: The path of these files inside the repository, which the new edit's path begins with.
    """
    path = prefix + edit.path
    if edit.old:
        return replace(edit, path=path)
    lines = decode_text(before[edit.path]).split("\n")
    neighbour_number = max(edit.start - 1, 1)
    neighbour = lines[neighbour_number - 1]
    new = (neighbour, *edit.new) if edit.start > 1 else (*edit.new, neighbour)
    return LineEdit(path=path, start=neighbour_number, end=neighbour_number, old=(neighbour,), new=new)


def count_changed_lines(edits: tuple[LineEdit, ...]) -> int:
    """Return the number of removed and added lines."""
    return sum(len(edit.old) + len(edit.new) for edit in edits)


def hunk_ranges(patch: str) -> list[range]:
    """Return the numbers of the new lines in each hunk of a file's unified diff, those of context included."""
    headers = HUNK_HEADER.findall(patch)
    return [range(int(start), int(start) + int(count or 1)) for start, count in headers]
