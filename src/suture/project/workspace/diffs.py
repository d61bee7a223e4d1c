"""Unified diffs that `git apply` and `patch -p1` take, to the byte; and such a diff back into files.

That way is exact: no fuzz, no offset, nothing but what `unified_diff` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from suture.project.workspace.line_matching import LineRange, changed_ranges

EMPTY_BLOB = "e69de29"
CONTEXT = 3
"""Lines that are shown around a change."""
_NO_NEWLINE = "\n\\ No newline at end of file\n"

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """The changes from one set of files to another, as git would show them.

    Args:
        before: POSIX path -> content.
        after: The same; a path that is missing here is deleted.

    Returns:
        A diff. Bytes that are not UTF-8 stand as surrogates: write it with `surrogateescape`.
    """
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts.extend(_file_diff(path, old, new))
    return "".join(parts)


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    left, right = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    yield f"diff --git {left} {right}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    old_lines, new_lines = _lines(old or b""), _lines(new or b"")
    changes = changed_ranges(old_lines, new_lines)
    if not changes:
        # An empty file comes or goes. Without git's hash of nothing, `patch` would not delete one.
        yield f"index 0000000..{EMPTY_BLOB}\n" if old is None else f"index {EMPTY_BLOB}..0000000\n"
        return
    yield f"--- {'/dev/null' if old is None else left + _end_of_name(left)}\n"
    yield f"+++ {'/dev/null' if new is None else right + _end_of_name(right)}\n"
    for hunk in _hunks(changes):
        yield from _shown(hunk, old_lines, new_lines)


def _hunks(changes: Sequence[LineRange]) -> Iterator[list[LineRange]]:
    """Changes whose surroundings touch belong together."""
    hunk = [changes[0]]
    for change in changes[1:]:
        if change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _shown(hunk: Sequence[LineRange], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """A hunk with its head and its surroundings."""
    before = min(CONTEXT, hunk[0][0])
    after = min(CONTEXT, len(old) - hunk[-1][1])
    start, end = hunk[0][0] - before, hunk[-1][1] + after
    yield f"@@ -{_span(start, end)} +{_span(hunk[0][2] - before, hunk[-1][3] + after)} @@\n"
    at = start
    for first, last, other, stop in hunk:
        yield from (_line(" ", line) for line in old[at:first])
        yield from (_line("-", line) for line in old[first:last])
        yield from (_line("+", line) for line in new[other:stop])
        at = last
    yield from (_line(" ", line) for line in old[at:end])


def _span(start: int, end: int) -> str:
    """Lines as a hunk's head names them: an empty stretch by the line before it."""
    length = end - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}{_NO_NEWLINE}"


def _lines(content: bytes) -> list[str]:
    # Only \n ends a line of a diff; `splitlines` knows many more.
    text = content.decode("utf-8", "surrogateescape")
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _quoted(name: str) -> str:
    # As git's C-style quoting; names with control characters never enter a snapshot.
    if '"' not in name and "\\" not in name:
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _end_of_name(name: str) -> str:
    return "\t" if " " in name else ""  # or `patch` would take what follows the space for a date


class DiffDoesNotApply(ValueError):
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
        raise DiffDoesNotApply("the diff is not what the difference of the two states reads like")
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
        raise DiffDoesNotApply(f"{path!r} is {'there already' if is_new else 'missing'}")
    old = files.pop(path, b"").decode("utf-8", "surrogateescape")
    new = _apply_hunks(path, old, hunks, reverse)
    if is_gone and new:
        raise DiffDoesNotApply(f"{path!r} is not empty once all of it is deleted")
    if not is_gone:
        try:
            files[path] = new.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as fault:
            raise DiffDoesNotApply(f"{path!r} would hold what is no byte") from fault


def _path_of(line: str) -> str:
    text = line.removeprefix("diff --git ").removesuffix("\n")
    middle = len(text) // 2
    left, right = text[:middle], text[middle + 1 :]
    if left.startswith('"'):
        left, right = (name[1:-1].replace('\\"', '"').replace("\\\\", "\\") for name in (left, right))
    if not left.startswith("a/") or left[2:] != right[2:]:
        raise DiffDoesNotApply(f"{line.strip()!r} does not name one file")
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
            raise DiffDoesNotApply(f"{path!r} is not as the diff expects it at line {start + 1}")
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
            raise DiffDoesNotApply(f"{path!r} has lines outside of any hunk")
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
            raise DiffDoesNotApply(f"{path!r} has a line that is none of a diff: {line[:40]!r}")
    return found
