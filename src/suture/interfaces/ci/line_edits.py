"""A change as edits of whole lines, as services of code take them for suggestions and fixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from suture.project.workspace import changed_stretches, text_of


@dataclass(frozen=True, kw_only=True)
class LineEdit:
    """Lines of a file that become others.

    Attributes:
        path: The file.
        start: The first line that goes, counted from 1.
        end: The last one; `start - 1` where lines only come, before `start`.
        old: The lines that go, without their ends.
        new: The lines that come, without their ends.
    """

    path: str
    start: int
    end: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def line_edits_between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[LineEdit, ...]:
    """The edits that lead from one state of some files to another; a new file counts as one that was empty.

    Args:
        before: Path -> content.
        after: The same, changed.
    """
    found: list[LineEdit] = []
    for path in sorted(path for path in after if before.get(path) != after[path]):
        old, new = (text_of(files.get(path, b"")).split("\n") for files in (before, after))
        for start, end, other, stop in changed_stretches(old, new):
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
    """An edit that replaces at least one line: one that only adds takes the line above it along, or below.

    Args:
        edit: One of `edits_of(before, ...)`, of a file in it.
        before: The files that it is an edit of.
        prefix: Where these lie in the repository.
    """
    edit = replace(edit, path=prefix + edit.path)
    if edit.old:
        return edit
    lines = text_of(before[edit.path.removeprefix(prefix)]).split("\n")
    at = max(edit.start - 1, 1)
    line = lines[at - 1]
    new = (line, *edit.new) if edit.start > 1 else (*edit.new, line)
    return replace(edit, start=at, end=at, old=(line,), new=new)


def count_changed_lines(edits: tuple[LineEdit, ...]) -> int:
    """How many lines come and go."""
    return sum(len(edit.old) + len(edit.new) for edit in edits)
