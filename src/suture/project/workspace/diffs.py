"""Create unified diffs that `git apply` and `patch -p1` accept, and apply them exactly.

Diffs are exact to the byte. They are applied without fuzz and without offsets, and only if `unified_diff`
could have written them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from suture.project.workspace.line_matching import LineRange, changed_ranges

EMPTY_BLOB = "e69de29"
"""Beginning of git's hash of an empty file."""
CONTEXT = 3
"""Lines of context around a change, as in git."""

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
"""Matches the header of a hunk: first line and length before, first line and length after."""
NO_NEWLINE = "\\ No newline at end of file\n"
"""The line after one that ends its file without a newline."""


def unified_diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """Return the difference between two sets of files as git shows it.

    Bytes that are not UTF-8 become surrogates: encode the diff with `surrogateescape`.

    Args:
        before: POSIX path -> content.
        after: The same. A path that is missing here is deleted.
    """
    parts: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            parts.extend(_file_diff(path, old, new))
    return "".join(parts)


def _file_diff(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Yield the lines of the diff of one file; `None` stands for a file that does not exist."""
    old_name, new_name = _quote(f"a/{path}"), _quote(f"b/{path}")
    yield f"diff --git {old_name} {new_name}\n"
    if old is None:
        yield "new file mode 100644\n"
    if new is None:
        yield "deleted file mode 100644\n"
    old_lines, new_lines = _decode_lines(old), _decode_lines(new)
    changes = changed_ranges(old_lines, new_lines)
    if not changes:
        # An empty file is created or deleted. `patch` deletes it only with git's hash of an empty file.
        yield f"index 0000000..{EMPTY_BLOB}\n" if old is None else f"index {EMPTY_BLOB}..0000000\n"
        return
    yield f"--- {'/dev/null' if old is None else old_name + _end_of_name(old_name)}\n"
    yield f"+++ {'/dev/null' if new is None else new_name + _end_of_name(new_name)}\n"
    for hunk in _hunks(changes):
        yield from _render_hunk(hunk, old_lines, new_lines)


def _hunks(changes: Sequence[LineRange]) -> Iterator[list[LineRange]]:
    """Yield the changes in groups. Changes whose lines of context touch are in one group, a hunk."""
    hunk = [changes[0]]
    for change in changes[1:]:
        if change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _render_hunk(hunk: Sequence[LineRange], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a hunk: its header, and the changes with their context."""
    before = min(CONTEXT, hunk[0][0])
    after = min(CONTEXT, len(old) - hunk[-1][1])
    start, end = hunk[0][0] - before, hunk[-1][1] + after
    yield f"@@ -{_span(start, end)} +{_span(hunk[0][2] - before, hunk[-1][3] + after)} @@\n"
    old_done = start
    for old_first, old_last, new_first, new_last in hunk:
        yield from (_line(" ", line) for line in old[old_done:old_first])
        yield from (_line("-", line) for line in old[old_first:old_last])
        yield from (_line("+", line) for line in new[new_first:new_last])
        old_done = old_last
    yield from (_line(" ", line) for line in old[old_done:end])


def _span(start: int, end: int) -> str:
    """Render a range of lines for the header of a hunk. An empty range is named by the line before it."""
    length = end - start
    if length == 1:
        return f"{start + 1}"
    return f"{start + 1 if length else start},{length}"


def _line(sign: str, line: str) -> str:
    """Return a line of a hunk, with the note that the file ends without a newline if it does."""
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"


def _decode_lines(content: bytes | None) -> list[str]:
    return split_lines((content or b"").decode("utf-8", "surrogateescape"))


def split_lines(text: str) -> list[str]:
    """Return the lines of a string with their line ends; the last line may have none."""
    # Only \n ends a line of a diff; `splitlines` splits at other characters, too.
    *lines, last_line = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last_line] if last_line else [])


def _quote(name: str) -> str:
    """Return a path as the header of a diff names it."""
    # Like git's C-style quoting; names with control characters are never in a snapshot.
    if '"' not in name and "\\" not in name:
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _end_of_name(name: str) -> str:
    """Return what ends a path in the header of a diff."""
    return "\t" if " " in name else ""  # otherwise `patch` reads what follows the space as a date


class DiffDoesNotApply(ValueError):
    """The diff does not apply. The message says where."""


def apply_diff(files: Mapping[str, bytes], diff: str, *, reverse: bool = False) -> dict[str, bytes]:
    """Return files with a diff applied.

    Args:
        files: POSIX path -> content.
        diff: A diff of `unified_diff`, with bytes that are not UTF-8 as surrogates.
        reverse: Whether to revert the diff; the files are then its result.

    Raises:
        DiffDoesNotApply: It does not match these files exactly, or is not such a diff.
    """
    after = dict(files)
    for part in re.split(r"(?m)^(?=diff --git )", diff):
        if part:
            _apply_part(after, part, reverse)
    # This check also detects everything ambiguous: names, order, stray lines.
    if (unified_diff(after, files) if reverse else unified_diff(files, after)) != diff:
        raise DiffDoesNotApply("the diff is not what `unified_diff` writes for these two states")
    return after


def _apply_part(files: dict[str, bytes], part: str, reverse: bool) -> None:
    """Apply the part of a diff that is about one file."""
    lines = split_lines(part)
    path = _parse_path(lines[0])
    header_end = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
    head, hunks = lines[1:header_end], lines[header_end:]
    is_new = any(line.startswith("new file mode ") for line in head)
    is_deleted = any(line.startswith("deleted file mode ") for line in head)
    if reverse:
        is_new, is_deleted = is_deleted, is_new
    if (path in files) == is_new:
        raise DiffDoesNotApply(f"{path!r} is {'there already' if is_new else 'missing'}")
    old = files.pop(path, b"").decode("utf-8", "surrogateescape")
    new = _apply_hunks(path, old, hunks, reverse)
    if is_deleted and new:
        raise DiffDoesNotApply(f"{path!r} is not empty once all of it is deleted")
    if not is_deleted:
        try:
            files[path] = new.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as fault:
            raise DiffDoesNotApply(f"{path!r} would contain a character that is no byte") from fault


def _parse_path(line: str) -> str:
    """Return the path in the first line of a file's diff."""
    text = line.removeprefix("diff --git ").removesuffix("\n")
    # The two names differ only in `a` and `b`, so that the space between them is in the middle.
    middle = len(text) // 2
    left, right = text[:middle], text[middle + 1 :]
    if left.startswith('"'):
        left, right = (name[1:-1].replace('\\"', '"').replace("\\\\", "\\") for name in (left, right))
    if not left.startswith("a/") or left[2:] != right[2:]:
        raise DiffDoesNotApply(f"{line.strip()!r} does not name one file")
    return left[2:]


def _apply_hunks(path: str, old: str, hunks: list[str], reverse: bool) -> str:
    """Return the content of a file with the hunks of its diff applied."""
    before = split_lines(old)
    after: list[str] = []
    next_index = 0
    for start, removed, added in _parse_hunks(path, hunks, reverse):
        if start < next_index or before[start : start + len(removed)] != removed:
            raise DiffDoesNotApply(f"{path!r} is not as the diff expects it at line {start + 1}")
        after += [*before[next_index:start], *added]
        next_index = start + len(removed)
    return "".join([*after, *before[next_index:]])


def _parse_hunks(path: str, hunks: list[str], reverse: bool) -> list[tuple[int, list[str], list[str]]]:
    """Return `(index of its first line, its old lines, its new lines)` of each hunk."""
    parsed: list[tuple[int, list[str], list[str]]] = []
    # `signs` are those of the old and of the new lines; `line_signs` are those of the last line that was read.
    signs, line_signs = "+-" if reverse else "-+", ""
    for line in hunks:
        header = HUNK.fullmatch(line)
        if header:
            start, length = (header[3], header[4]) if reverse else (header[1], header[2])
            # An empty range is named by the line before it (see `_span`), and others by their first line, from 1.
            parsed.append((int(start) - (length != "0"), [], []))
        elif not parsed:
            raise DiffDoesNotApply(f"{path!r} has lines outside of any hunk")
        elif line == NO_NEWLINE:
            for sign, text in zip(signs, parsed[-1][1:], strict=True):
                if sign in line_signs and text:
                    text[-1] = text[-1].removesuffix("\n")
        elif line[0] in " -+":
            line_signs = signs if line[0] == " " else line[0]
            for sign, text in zip(signs, parsed[-1][1:], strict=True):
                if sign in line_signs:
                    text.append(line[1:])
        else:
            raise DiffDoesNotApply(f"{path!r} has a line that is none of a diff: {line[:40]!r}")
    return parsed
