"""Read the patches of a reply: unified diffs, and the envelopes of `apply_patch`.

Models cannot count lines: the numbers in a diff are only used to choose between equal places, its counts are
not used at all, and a context line may lack the blank before it. Both may be missing, and so may be the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from suture.agents.replies.fenced_blocks import CodePart, ReplyPart, TextEdit, UnusablePart
from suture.agents.replies.text_edits import DiffHunk

ENVELOPE_START = re.compile(r"^\s*\*{3} Begin Patch\s*$")
ENVELOPE_END = re.compile(r"^\s*\*{3} End Patch\s*$")
ENVELOPE_FILE = re.compile(r"^\*{3} (Add|Update|Delete) File:\s*(.+?)\s*$")
MOVE = re.compile(r"^\*{3} Move to:\s*(.+?)\s*$")
END_OF_FILE = re.compile(r"^\*{3} End of File\s*$")
GIT_HEADER = re.compile(r"^diff --git \"?a/(.+?)\"? \"?b/(.+?)\"?\s*$")
OLD_NAME = re.compile(r"^--- +(\S.*?)(?:\t.*)?\s*$")
NEW_NAME = re.compile(r"^\+\+\+ +(\S.*?)(?:\t.*)?\s*$")
HUNK_HEADER = re.compile(r"^@@(?:\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?)?\s*(?:(?:\.{3}|@@)\s*)?(.*?)\s*$")
EXTENDED_HEADER = re.compile(
    r"^(?:index [0-9a-f]|(?:new|deleted) file mode|(?:old|new) mode|similarity index|dissimilarity index"
    r"|rename (?:from|to)|copy (?:from|to)|Index: |={60,}|Binary files )"
)
NO_PATH = ("/dev/null", "dev/null")


def starts_diff(lines: Sequence[str], index: int) -> bool:
    """Return whether a diff of a file begins at a line."""
    line = lines[index]
    if GIT_HEADER.match(line):
        return True
    following = lines[index + 1] if index + 1 < len(lines) else ""
    return bool(OLD_NAME.match(line) and NEW_NAME.match(following))


def is_diff(lines: Sequence[str]) -> bool:
    """Return whether unmarked lines are a diff: they have a header, or the header of a hunk."""
    return any(
        starts_diff(lines, index) or (HUNK_HEADER.match(line) and line.startswith("@@ -"))
        for index, line in enumerate(lines)
    )


def find_diff_end(lines: Sequence[str], start: int) -> int:
    """Return the index after the last line of a diff that is in the reply without a fence."""
    index, end = start, start
    in_hunk = False
    while index < len(lines):
        line = lines[index]
        if starts_diff(lines, index) or HUNK_HEADER.match(line):
            in_hunk = bool(HUNK_HEADER.match(line))
        elif NEW_NAME.match(line) and not in_hunk:
            in_hunk = True
        elif not (EXTENDED_HEADER.match(line) or (in_hunk and line[:1] in ("", " ", "+", "-", "\\", "\t"))):
            break
        index += 1
        end = index if line.strip() else end
    return end


def parse_diff(lines: Sequence[str], part: ReplyPart) -> list[ReplyPart]:
    """Return the parts of a diff, one for each file.

    Args:
        part: Where it is in the reply, and the file that is meant if the diff names none.
    """
    starts = [n for n in range(len(lines)) if starts_diff(lines, n)]
    # The names below `diff --git` belong to it.
    starts = [
        n for i, n in enumerate(starts)
        if not (i and GIT_HEADER.match(lines[starts[i - 1]]) and all(
            EXTENDED_HEADER.match(line) for line in lines[starts[i - 1] + 1 : n]))
    ]  # fmt: skip
    if not starts or any(line[:1] in ("+", "-") for line in lines[: starts[0]]):
        starts.insert(0, 0)
    parts = [
        _parse_file_diff(lines[start:end], part)
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]
    return [parsed for parsed in parts if parsed is not None]


def _parse_file_diff(lines: Sequence[str], part: ReplyPart) -> ReplyPart | None:
    old_path = new_path = None
    header_end = 0
    renames = False
    for index, line in enumerate(lines):
        if match := GIT_HEADER.match(line):
            old_path, new_path = match[1], match[2]
        elif (match := OLD_NAME.match(line)) and starts_diff(lines, index):
            old_path = match[1]
        elif (match := NEW_NAME.match(line)) and index and OLD_NAME.match(lines[index - 1]):
            new_path = match[1]
        elif EXTENDED_HEADER.match(line):
            renames |= line.startswith("rename ")
        else:
            break
        header_end = index + 1
    is_new = old_path in NO_PATH or any(line.startswith("new file mode") for line in lines[:header_end])
    deletes = new_path in NO_PATH or any(line.startswith("deleted file mode") for line in lines[:header_end])
    named = old_path if deletes else new_path
    path = _strip_prefix(named, old_path) if named else part.path
    if deletes or renames:
        return UnusablePart(line=part.line, path=_strip_prefix(old_path or named or ""), code="deletes_file")
    hunks = tuple(_parse_hunks(lines[header_end:]))
    if not hunks and not is_new:
        return None
    return TextEdit(
        line=part.line,
        path=path,
        mentioned=part.mentioned,
        is_closed=part.is_closed,
        hunks=hunks,
        is_new=is_new,
    )


def _strip_prefix(path: str, other: str | None = None) -> str:
    """Return a path without the `a/` or `b/` of git, and without quotation marks."""
    path = path.strip('"`')
    if re.match(r"[ab]/", path) and (other is None or re.match(r'"?[ab]/', other) or other in NO_PATH):
        return path[2:]
    return path


def _parse_hunks(lines: Sequence[str]) -> Iterator[DiffHunk]:
    """Yield the hunks that change something."""
    header: re.Match[str] | None = None
    body: list[str] = []
    for line in [*lines, "@@"]:
        match = HUNK_HEADER.match(line)
        if match is None:
            body.append(line)
            continue
        line_number = int(header[1]) if header and header[1] else None
        sections = (header[2],) if header and header[2] else ()
        hunk = make_hunk(body, line_number, sections)
        if hunk is not None:
            yield hunk
        header, body = match, []


def make_hunk(
    body: Sequence[str], line: int | None = None, sections: tuple[str, ...] = (), *, is_at_end: bool = False
) -> DiffHunk | None:
    """Return a hunk from its lines; `None` if it changes nothing."""
    lines = [text for text in body if not text.startswith("\\")]
    while lines and not lines[-1].strip():
        lines.pop()  # Blank lines after the last hunk belong to the reply.
    while lines and not lines[0]:
        lines.pop(0)
    if not any(text[:1] in ("+", "-") for text in lines):
        return None
    marked = _pair(lines, keep_blank=False)
    unmarked = _pair(lines, keep_blank=True)
    variant = DiffHunk(old=unmarked[0], new=unmarked[1], line=line, sections=sections, is_at_end=is_at_end)
    if not marked[0] and line is not None:
        line += 1  # Git names the line above an insertion.
    return DiffHunk(
        old=marked[0],
        new=marked[1],
        line=line,
        sections=sections,
        is_at_end=is_at_end,
        variants=() if unmarked == marked else (variant,),
    )


def _pair(lines: Sequence[str], *, keep_blank: bool) -> tuple[str, str]:
    """Return the lines before and after a hunk is applied.

    Args:
        keep_blank: Whether the blank before an unchanged line belongs to the line.
    """
    old: list[str] = []
    new: list[str] = []
    for line in lines:
        if line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            text = line if keep_blank else line.removeprefix(" ")
            old.append(text)
            new.append(text)
    return "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)


def parse_envelope(lines: Sequence[str], start: int) -> list[ReplyPart]:
    """Return the parts of an `apply_patch` envelope, one for each file.

    Args:
        start: Index of the first of them in the reply.
    """
    is_closed = any(ENVELOPE_END.match(line) for line in lines)
    lines = ["" if ENVELOPE_END.match(line) else line for line in lines]
    starts = [n for n, line in enumerate(lines) if ENVELOPE_FILE.match(line)]
    if not starts:
        return [UnusablePart(line=start, code="unreadable", quote=next(iter(lines), ""))]
    parts: list[ReplyPart] = []
    for first, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        match = ENVELOPE_FILE.match(lines[first])
        if match is None:  # pragma: no cover - `starts` holds matches only
            continue
        part = _parse_envelope_file(match[1], match[2], lines[first + 1 : end], start + first)
        parts.append(replace(part, is_closed=is_closed or end < len(lines)))
    return parts


def _parse_envelope_file(action: str, path: str, body: Sequence[str], line: int) -> ReplyPart:
    if action == "Delete" or any(MOVE.match(text) for text in body[:1]):
        return UnusablePart(line=line, path=path, code="deletes_file")
    if action == "Add":
        added = [text.removeprefix("+") for text in body if text.startswith("+") or text.strip()]
        code = "".join(f"{text}\n" for text in added)
        return CodePart(line=line, path=path, code=code, is_whole=True)
    hunks: list[DiffHunk] = []
    sections: list[str] = []
    chunk: list[str] = []
    for text in [*body, "@@"]:
        is_end = END_OF_FILE.match(text) is not None
        if not text.startswith("@@") and not is_end:
            chunk.append(text)
            continue
        hunk = make_hunk(chunk, sections=tuple(sections), is_at_end=is_end)
        if hunk is not None:
            hunks.append(hunk)
            sections = []
        chunk = []
        if text.startswith("@@"):
            header = HUNK_HEADER.match(text)
            sections += [header[2]] if header and header[2] else []
    return TextEdit(line=line, path=path, hunks=tuple(hunks))
