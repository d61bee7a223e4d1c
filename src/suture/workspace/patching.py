"""A unified diff back into files, exactly: no fuzz, no offset, nothing but what `unified_diff` writes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from suture.workspace.diffs import unified_diff

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
NO_NEWLINE = "\\ No newline at end of file\n"


class PatchRefused(ValueError):
    """The diff does not apply; the message says where."""


def apply_diff(files: Mapping[str, bytes], diff: str, *, reverse: bool = False) -> dict[str, bytes]:
    """Files with a diff applied.

    Args:
        files: POSIX path -> content.
        diff: As `unified_diff` writes it, with bytes that are not UTF-8 as surrogates.
        reverse: Whether to take the diff back: the files are what it leads to.

    Raises:
        PatchRefused: It does not fit these files to the byte, or is no such diff.
    """
    after = dict(files)
    for part in re.split(r"(?m)^(?=diff --git )", diff):
        if part:
            _apply_part(after, part, reverse)
    # Whatever else could be read in two ways (names, order, stray lines) shows here.
    if (unified_diff(after, files) if reverse else unified_diff(files, after)) != diff:
        raise PatchRefused("the diff is not what the difference of the two states reads like")
    return after


def _apply_part(files: dict[str, bytes], part: str, reverse: bool) -> None:
    lines = part.split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    path = _path_of(lines[0])
    head, hunks = _split(lines[1:])
    is_new = any(line.startswith("new file mode ") for line in head)
    is_gone = any(line.startswith("deleted file mode ") for line in head)
    if reverse:
        is_new, is_gone = is_gone, is_new
    if (path in files) == is_new:
        raise PatchRefused(f"{path!r} is {'there already' if is_new else 'missing'}")
    old = files.pop(path, b"").decode("utf-8", "surrogateescape")
    new = _apply_hunks(path, old, hunks, reverse)
    if is_gone and new:
        raise PatchRefused(f"{path!r} is not empty once all of it is deleted")
    if not is_gone:
        try:
            files[path] = new.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as fault:
            raise PatchRefused(f"{path!r} would hold what is no byte") from fault


def _path_of(line: str) -> str:
    text = line.removeprefix("diff --git ").removesuffix("\n")
    middle = len(text) // 2
    left, right = text[:middle], text[middle + 1 :]
    if left.startswith('"'):
        left, right = (name[1:-1].replace('\\"', '"').replace("\\\\", "\\") for name in (left, right))
    if not left.startswith("a/") or left[2:] != right[2:]:
        raise PatchRefused(f"{line.strip()!r} does not name one file")
    return left[2:]


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    at = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    return lines[:at], lines[at:]


def _apply_hunks(path: str, old: str, hunks: list[str], reverse: bool) -> str:
    before = [f"{line}\n" for line in old.split("\n")]
    last = before.pop()[:-1]
    before += [last] if last else []
    after: list[str] = []
    at = 0
    for start, removed, added in _read(path, hunks, reverse):
        if start < at or before[start : start + len(removed)] != removed:
            raise PatchRefused(f"{path!r} is not as the diff expects it at line {start + 1}")
        after += [*before[at:start], *added]
        at = start + len(removed)
    return "".join([*after, *before[at:]])


def _read(path: str, hunks: list[str], reverse: bool) -> list[tuple[int, list[str], list[str]]]:
    """Each hunk as the line (from 0) that it begins at, and what it reads like before and after."""
    found: list[tuple[int, list[str], list[str]]] = []
    both, sides = "+-" if reverse else "-+", ""
    for line in hunks:
        head = HUNK.fullmatch(line)
        if head:
            start, length = (head[3], head[4]) if reverse else (head[1], head[2])
            found.append((int(start) - (length != "0"), [], []))
        elif not found:
            raise PatchRefused(f"{path!r} has lines outside of any hunk")
        elif line == NO_NEWLINE:
            for side, text in zip(both, found[-1][1:], strict=True):
                if side in sides and text:
                    text[-1] = text[-1].removesuffix("\n")
        elif line[0] in " -+":
            sides = both if line[0] == " " else line[0]
            for side, text in zip(both, found[-1][1:], strict=True):
                if side in sides:
                    text.append(line[1:])
        else:
            raise PatchRefused(f"{path!r} has a line that is none of a diff: {line[:40]!r}")
    return found
