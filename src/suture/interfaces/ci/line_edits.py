"""A change as edits of whole lines, the form that code hosts take as suggestions and fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.project.workspace import changed_ranges, decode_text


@dataclass(frozen=True, kw_only=True)
class LineEdit:
    """Lines of a file that are replaced by others.

    Attributes:
        path: The file.
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
    """Return the edits from one state of some files to another; a new file counts as a formerly empty one.

    Args:
        before: Path -> content.
        after: Path -> content after the change.
    """
    found: list[LineEdit] = []
    for path in sorted(path for path in after if before.get(path) != after[path]):
        old, new = (decode_text(files.get(path, b"")).split("\n") for files in (before, after))
        for start, end, other, stop in changed_ranges(old, new):
            found.append(
                LineEdit(
                    path=path,
                    start=start + 1,
                    end=end,
                    old=tuple(old[start:end]),
                    new=tuple(new[other:stop]),
                )
            )
    return tuple(found)


def widen_to_replacement(edit: LineEdit, before: Mapping[str, bytes], prefix: str) -> LineEdit:
    """Return an edit that replaces at least one line: a pure insertion includes a neighbouring line.

    Args:
        edit: One of `line_edits_between(before, ...)`, of a file in `before`.
        before: The files before the change.
        prefix: Path of these files inside the repository.
    """
    edit = replace(edit, path=prefix + edit.path)
    if edit.old:
        return edit
    lines = decode_text(before[edit.path.removeprefix(prefix)]).split("\n")
    at = max(edit.start - 1, 1)
    line = lines[at - 1]
    new = (line, *edit.new) if edit.start > 1 else (*edit.new, line)
    return replace(edit, start=at, end=at, old=(line,), new=new)


def count_changed_lines(edits: tuple[LineEdit, ...]) -> int:
    """Return the number of removed and added lines."""
    return sum(len(edit.old) + len(edit.new) for edit in edits)
