"""Unified diffs that `git apply` and `patch -p1` take, to the byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from suture.workspace.matching import Stretch, changed_stretches

EMPTY_BLOB = "e69de29"
CONTEXT = 3
"""Lines that are shown around a change."""
_NO_NEWLINE = "\n\\ No newline at end of file\n"


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
    changes = changed_stretches(old_lines, new_lines)
    if not changes:
        # An empty file comes or goes. Without git's hash of nothing, `patch` would not delete one.
        yield f"index 0000000..{EMPTY_BLOB}\n" if old is None else f"index {EMPTY_BLOB}..0000000\n"
        return
    yield f"--- {'/dev/null' if old is None else left + _end_of_name(left)}\n"
    yield f"+++ {'/dev/null' if new is None else right + _end_of_name(right)}\n"
    for hunk in _hunks(changes):
        yield from _shown(hunk, old_lines, new_lines)


def _hunks(changes: Sequence[Stretch]) -> Iterator[list[Stretch]]:
    """Changes whose surroundings touch belong together."""
    hunk = [changes[0]]
    for change in changes[1:]:
        if change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _shown(hunk: Sequence[Stretch], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
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
