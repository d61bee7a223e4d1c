"""Find the parts of a reply that may change files: blocks, search/replace blocks, patches, calls of edit tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from suture.agents.replies.edit_problems import ProblemCode
from suture.agents.replies.fenced_blocks import (
    CLOSING_FENCE,
    DATA_LABELS,
    OPENING_FENCE,
    SHELL_LABELS,
    CodeBlock,
    CodePart,
    IgnorablePart,
    ReplyPart,
    TextEdit,
    UnusablePart,
    fenced_blocks,
    named_path,
)
from suture.agents.replies.patch_parts import (
    ENVELOPE_END,
    ENVELOPE_FILE,
    ENVELOPE_START,
    find_diff_end,
    is_diff,
    parse_diff,
    parse_envelope,
    starts_diff,
)
from suture.agents.replies.structured_parts import find_elements, parse_json_parts
from suture.agents.replies.text_edits import DiffHunk
from suture.project.python_source.parsing import require_few_blocks
from suture.project.python_source.statement_edits import is_valid_python

HEAD = re.compile(r"^\s{0,3}<{4,9} ?(?:SEARCH|ORIGINAL|OLD|HEAD|BEFORE)\b\s*(.*?)\s*$")
DIVIDER = re.compile(r"^\s{0,3}={4,9}\s*$")
TAIL = re.compile(r"^\s{0,3}>{5,9}(?: ?[A-Za-z].*)?\s*$")
TAKEN = "\0"
"""Stands for the lines of a part that was read already, so that what is around it keeps its line numbers."""
OLD_TEXT = re.compile(r"\b(?:replace|change|find|before|old|from|original|current)\b", re.IGNORECASE)
NEW_TEXT = re.compile(
    r"^[*_#\s]*(?:with|by|to|into|becomes?|should be|after|new|(?:change|replace) (?:it|this|that|these)? ?"
    r"(?:to|with|by))\b[^.\n]{0,40}$",
    re.IGNORECASE,
)
"""Matches what precedes a block with old lines, and what is between it and the block with the new ones."""
DEFINITION = re.compile(
    r"^\s*(?:(?:export|default|async|public|static)\s+)*(?:def|class|function|func)\s+\w", re.MULTILINE
)
EDIT_KEY = re.compile(r"[\"'](?:old_?str(?:ing)?|new_?str(?:ing)?|file_text)[\"']\s*:", re.IGNORECASE)
"""A key of an edit tool's inputs, in a reply that is not JSON."""
MAX_JSON_STARTS = 20
"""Lines that are tried as the start of a JSON object in prose."""
SHELL_SUFFIXES = (".sh", ".bash", ".zsh")
HEREDOC = re.compile(
    r"^\s*(?:sudo\s+)?(?:cat|tee)\s+(?:>\s*(?P<path>\S+)\s*)?<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)"
    r"\s*(?:>\s*(?P<path_behind>\S+))?\s*$"
)
CODE_STARTS = ("def ", "class ", "import ", "from ", "@", "async ")
DIFF_LABELS = ("diff", "patch", "udiff")
OUTPUT_LABELS = (
    "console",
    "output",
    "stdout",
    "terminal",
    "text",
    "txt",
    "traceback",
    "pytb",
    "log",
    "plaintext",
)
WHOLE_FILE_WORDS = re.compile(
    r"\b(?:complete|full|entire|whole|updated|new)\b[^.\n]{0,40}?\b(?:file|module|content|contents|source)\b",
    re.IGNORECASE,
)


def scan_reply(text: str) -> list[ReplyPart]:
    """Return the parts of a reply in order, including those that change nothing."""
    text = text.replace("\r\n", "\n")
    parts, rest = _take_elements(text)
    lines = rest.split("\n")
    parts += _take_marked_parts(lines)
    parts += _read_blocks(lines)
    require_few_blocks(len(parts))
    return _join_replacements(sorted(parts, key=lambda part: part.line))


def _join_replacements(parts: Sequence[ReplyPart]) -> list[ReplyPart]:
    """Return the parts with pairs of blocks as one edit, as in "Replace ... with ..."."""
    joined: list[ReplyPart] = []
    for part in parts:
        old = joined[-1] if joined else None
        if (
            isinstance(old, CodePart)
            and isinstance(part, CodePart)
            and OLD_TEXT.search(next(iter(_last_lines(old.mentioned, 1)), ""))
            and NEW_TEXT.match(part.mentioned.strip())
            and part.path is None
            and not DEFINITION.search(part.code)
        ):
            hunk = DiffHunk(old=old.code, new=part.code)
            joined[-1] = TextEdit(
                line=old.line, path=old.path, mentioned=old.mentioned, is_closed=part.is_closed, hunks=(hunk,)
            )
        else:
            joined.append(part)
    return joined


def _take_elements(text: str) -> tuple[list[ReplyPart], str]:
    """Return the changes in XML elements, and the reply with `TAKEN` lines in their place."""
    parts: list[ReplyPart] = []
    rest, done = "", 0
    for start, end, found in find_elements(text):
        parts += found
        rest += text[done:start] + "\n".join([TAKEN] * (text.count("\n", start, end) + 1))
        done = end
    return parts, rest + text[done:]


def _take_marked_parts(lines: list[str]) -> list[ReplyPart]:
    """Return the search/replace blocks, envelopes and unfenced diffs; their lines are taken out."""
    blocks = {block.line: block for block in fenced_blocks("\n".join(lines))}
    parts: list[ReplyPart] = []
    index, path = 0, None
    while index < len(lines):
        line = lines[index]
        end = index
        if HEAD.match(line):
            path = _path_above(lines, index) or path
            end, part = _read_search_block(lines, index, path)
            parts.append(part)
        elif ENVELOPE_START.match(line) or ENVELOPE_FILE.match(line):
            end = _find_envelope_end(lines, index)
            parts += parse_envelope(lines[index:end], index)
        elif starts_diff(lines, index):
            end = find_diff_end(lines, index)
            parts += parse_diff(lines[index:end], ReplyPart(line=index, is_closed=end < len(lines)))
        elif index in blocks and not _has_marks(blocks[index]):
            index += blocks[index].line_count - 1
        if end > index:
            lines[index:end] = [TAKEN] * (end - index)
        index = max(index + 1, end)
    return parts


def _has_marks(block: CodeBlock) -> bool:
    """Return whether a fenced block has search/replace blocks or an envelope, which are read line by line."""
    lines = block.code.split("\n")
    has_marks = any(HEAD.match(line) or ENVELOPE_START.match(line) for line in lines)
    return has_marks and not is_valid_python(block.code)


def _path_above(lines: Sequence[str], index: int) -> str | None:
    """Return the path that the line above a block names, or the line above its fence, or the fence."""
    head = HEAD.match(lines[index])
    if head and head[1] and (path := named_path(head[1], "")):
        return path
    above = [line for line in lines[max(0, index - 8) : index] if line.strip()]
    above = above[max((n + 1 for n, line in enumerate(above) if line == TAKEN), default=0) :]
    if not above:
        return None
    fence = OPENING_FENCE.match(above[-1])
    if fence is None:
        return named_path(above[-1], "")
    return named_path(above[-2] if len(above) > 1 else "", fence[3])


def _read_search_block(lines: Sequence[str], start: int, path: str | None) -> tuple[int, ReplyPart]:
    """Return `(index after the block, its part)`."""
    below = range(start + 1, len(lines))
    end = next((n for n in below if TAIL.match(lines[n]) or HEAD.match(lines[n])), len(lines))
    quote = next((line.strip() for line in lines[start + 1 : end] if line.strip()), "")
    is_closed = end < len(lines) and TAIL.match(lines[end])
    mentioned = "\n".join(lines[max(0, start - 12) : start])
    dividers = [n for n in range(start + 1, end) if DIVIDER.match(lines[n])]
    hunks = [
        DiffHunk(old=_join(lines[start + 1 : n]), new=_join(lines[n + 1 : end]))
        for n in dividers
        if lines[n].strip() == "=" * 7 or len(dividers) == 1
    ]
    if not is_closed or len(hunks) != 1:
        code: ProblemCode = "unreadable" if is_closed else "incomplete"
        after = end + 1 if is_closed else end
        return after, UnusablePart(line=start, path=path, code=code, quote=quote)
    return end + 1, TextEdit(line=start, path=path, mentioned=mentioned, hunks=tuple(hunks))


def _join(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _find_envelope_end(lines: Sequence[str], start: int) -> int:
    """Return the index after an envelope. One without an end extends to the fence or the end of the reply."""
    for index in range(start, len(lines)):
        if ENVELOPE_END.match(lines[index]):
            return index + 1
        if index > start and (CLOSING_FENCE.match(lines[index]) or lines[index] == TAKEN):
            return index
    return len(lines)


def _read_blocks(lines: list[str]) -> list[ReplyPart]:
    """Return the parts in the fenced blocks, or in the reply itself if nothing is fenced."""
    text = "\n".join(lines)
    blocks = fenced_blocks(text)
    parts: list[ReplyPart] = []
    previous_end = 0
    for block in blocks:
        mentioned = "\n".join(line for line in lines[previous_end : block.line] if line != TAKEN)
        previous_end = block.line + block.line_count
        if TAKEN in block.code:
            continue
        parts += _read_block(block, mentioned)
    if TAKEN not in text and all(isinstance(part, IgnorablePart) for part in parts):
        parts += _find_json_in_prose(_blank_blocks(lines, blocks))
    return parts


def _blank_blocks(lines: Sequence[str], blocks: Sequence[CodeBlock]) -> str:
    """Return the reply without its fenced blocks."""
    fenced = {n for block in blocks for n in range(block.line, block.line + block.line_count)}
    return "\n".join("" if number in fenced else line for number, line in enumerate(lines))


def _find_json_in_prose(text: str) -> list[ReplyPart]:
    """Return the changes in a JSON object with prose around it, such as a tool call."""
    end = max(text.rfind("}"), text.rfind("]")) + 1
    for match in islice(re.finditer(r"^[ \t]*[{\[]", text, re.MULTILINE), MAX_JSON_STARTS):
        line = text.count("\n", 0, match.start())
        if parts := parse_json_parts(text[match.start() : end], line):
            return parts
        if EDIT_KEY.search(text, match.start()):
            return [
                UnusablePart(line=line, code="unreadable", quote=text[match.start() :].partition("\n")[0])
            ]
    return []


def _read_block(block: CodeBlock, mentioned: str) -> list[ReplyPart]:
    part = ReplyPart(line=block.line, path=block.path, mentioned=mentioned, is_closed=block.is_closed)
    lines = block.code.rstrip("\n").split("\n")
    label = block.label
    if label in DIFF_LABELS or is_diff(lines):
        parsed = parse_diff(lines, part)
        return parsed or [UnusablePart(line=block.line, path=block.path, code="unreadable", quote=lines[0])]
    is_script = (block.path or "").endswith(SHELL_SUFFIXES)  # a file of the project, and no command
    if label in SHELL_LABELS and not is_script:
        written = _read_heredocs(lines, block.line)
        return written or [IgnorablePart(line=block.line, path=block.path)]
    if label in ("json", "jsonc", "json5", "tool_call", "tool_code", ""):
        parts = parse_json_parts(block.code, block.line, mentioned, block.path)
        if parts:
            return parts
        if EDIT_KEY.search(block.code) and not is_valid_python(block.code):
            problem: ProblemCode = "unreadable" if block.is_closed else "incomplete"
            return [UnusablePart(line=block.line, path=block.path, code=problem, quote=lines[0])]
    is_data = label in DATA_LABELS and not WHOLE_FILE_WORDS.search(block.line_before)
    if block.path is None and (label in OUTPUT_LABELS or is_data):
        return [IgnorablePart(line=block.line)]
    code = "" if not block.code.strip() else block.code
    says_whole = block.path is not None and WHOLE_FILE_WORDS.search("\n".join(_last_lines(mentioned, 3)))
    is_whole = block.is_tag or bool(says_whole)
    return [
        CodePart(
            line=part.line,
            path=part.path,
            mentioned=mentioned,
            code=code,
            label=label,
            is_closed=block.is_closed,
            is_whole=is_whole,
        )
    ]


def _last_lines(text: str, count: int) -> list[str]:
    return [line for line in text.split("\n") if line.strip()][-count:]


def _read_heredocs(lines: Sequence[str], start: int) -> list[ReplyPart]:
    """Return the files that a shell command writes, as in `cat > path <<'EOF'`."""
    parts: list[ReplyPart] = []
    index = 0
    while index < len(lines):
        match = HEREDOC.match(lines[index])
        index += 1
        path = match and (match["path"] or match["path_behind"])
        if not match or not path:
            continue
        end = next((n for n in range(index, len(lines)) if lines[n].strip() == match["end"]), len(lines))
        code = _join(lines[index:end])
        parts.append(CodePart(line=start + index, path=path.strip("'\""), code=code, is_whole=True))
        index = end + 1
    return parts


def find_unfenced_code(text: str) -> list[CodePart]:
    """Return the code of a reply without any fence: from the first line that starts like code to the last valid end."""
    lines = text.replace("\r\n", "\n").split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith(CODE_STARTS)), None)
    if start is None:
        return []
    if is_valid_python(text):
        start = 0
    for end in range(len(lines), start, -1):
        code = "\n".join(lines[start:end]).rstrip() + "\n"
        if is_valid_python(code):
            return [CodePart(line=start, code=code, mentioned="\n".join(lines[:start]), label="python")]
    return []


def remove_edits(text: str) -> str:
    """Return a reply without its edit blocks and patches."""
    lines = text.split("\n")
    _take_marked_parts(lines)
    return "\n".join(line for line in lines if line != TAKEN)
