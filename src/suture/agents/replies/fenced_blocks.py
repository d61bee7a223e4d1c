"""Fenced blocks in a reply, and the files that they name."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from suture.agents.tuning import MAX_CLOSING_FENCES
from suture.project.python_source.parsing import parse_module, require_few_blocks
from suture.project.python_source.statements import is_valid_python, remove_statements
from suture.project.tuning import MAX_FILE_NAME_LINE_CHARS

# A fence may be part of a list item, directly after its number.
OPENING_FENCE = re.compile(r"^(\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?)(`{3,}|~{3,})\s*([^`\n]*)$")
CLOSING_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})\s*$")
PATH = r"[\w./-]+\.[A-Za-z]{1,4}"
MARKS = r"(?:(?:#+|//|<!--|>|[-*+]|\d{1,2}[.)])\s+)*(?:#|//)?\s{0,8}"
KIND = r"(?:(?:create|file(?:name)?|path|module)\b\s*(?:\d{1,2})?\s*:?[\s*_]{0,8})?"
SAID = r"(?:\s*(?:\([^()]{0,80}\)|[-\u2013\u2014:]\s.{0,120}|-->))?"
PATH_LINE = re.compile(
    rf"^\s*{MARKS}[*_]{{0,4}}(?:\d{{1,2}}[.)]\s+)?{KIND}[`*_'\"]{{0,6}}({PATH})[`*_'\":]*{SAID}\s*$",
    re.IGNORECASE,
)
"""A line about one file: a heading, list item or comment, plain, bold or in backticks."""
PATH_IN_PROSE = re.compile(
    rf"^\s*[*_]*(?:here|save|put|now|then|and|next|first|finally|the|content|create|update|add|this)\b"
    rf"[^`]{{0,60}}`({PATH})`[^`\w]{{0,60}}$",
    re.IGNORECASE,
)
PATH_IN_INFO = re.compile(rf"\b({PATH})[\"'}}\]]*\s*$")
FILE_TAG = re.compile(rf"^\s*<file\s+(?:path|name|src)=[\"']?({PATH})[\"']?\s*>\s*$", re.IGNORECASE)
FILE_END = re.compile(r"^\s*</file>\s*$", re.IGNORECASE)
PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.)(?: |$)")
NOT_CODE_LABELS = frozenset(
    {
        "bash",
        "cmd",
        "console",
        "csv",
        "diff",
        "dockerfile",
        "html",
        "ini",
        "json",
        "makefile",
        "markdown",
        "md",
        "output",
        "patch",
        "plaintext",
        "powershell",
        "pytb",
        "sh",
        "shell",
        "sql",
        "stdout",
        "terminal",
        "text",
        "toml",
        "traceback",
        "txt",
        "xml",
        "yaml",
        "yml",
        "zsh",
    }
)
"""Labels of blocks that are not Python. A diff is not applied either: small models cannot count lines."""
TAG_FENCE = "~" * 12
"""Longer than any fence inside a file."""


@dataclass(frozen=True, kw_only=True)
class CodeBlock:
    """A fenced block of a reply, with what the reply says about it.

    Attributes:
        code: The text between the fences.
        path: The file that it represents, named by the line before it, its info string or its first line.
        is_closed: Whether there is a closing fence; a cut-off reply has none.
        info: The text after the opening fence.
        line_before: The last line of text before the block.
    """

    code: str
    path: str | None = None
    is_closed: bool = True
    info: str = ""
    line_before: str = ""

    @property
    def label(self) -> str:
        """Return the first word after the fence, such as `python`; empty if there is none."""
        return re.split(r"[\s:,{}]+", self.info.strip(" {.").lower())[0]

    @property
    def may_be_code(self) -> bool:
        """Return whether the label allows that this is Python."""
        return self.label not in NOT_CODE_LABELS


def fenced_blocks(text: str) -> list[CodeBlock]:
    """Return all fenced blocks in order. A block without an end extends to the end of the text."""
    # Not str.splitlines: a string in the code may contain a form feed or U+2028.
    lines = _tags_as_fences([line.removesuffix("\r") for line in text.split("\n")])
    closings = [(number, match) for number, line in enumerate(lines) if (match := CLOSING_FENCE.match(line))]
    blocks: list[CodeBlock] = []
    before, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        opening = OPENING_FENCE.match(line)
        if opening is None:
            before = line if line.strip() else before
            continue
        end = _find_end(lines, number, opening, closings)
        require_few_blocks(len(blocks))
        body = _dedented(lines[number:end], len(opening[1]))
        if end < len(lines) or any(content.strip() for content in body):
            blocks.append(_block(body, opening[3].strip(), before, closed=end < len(lines)))
        before, number = "", end + 1
    return blocks


def _tags_as_fences(lines: list[str]) -> list[str]:
    """Return the lines with `<file path="...">` tags as fences, unless there is a fence between them."""
    converted = list(lines)
    for at, line in enumerate(lines):
        tag = FILE_TAG.match(line)
        if tag is None:
            continue
        ends = (n for n in range(at + 1, len(lines)) if FILE_END.match(lines[n]) or FILE_TAG.match(lines[n]))
        end = next(ends, len(lines))
        if not any(OPENING_FENCE.match(lines[n]) for n in range(at + 1, end)):
            converted[at] = f"{TAG_FENCE} {tag[1]}"
            if end < len(lines) and FILE_END.match(lines[end]):
                converted[end] = TAG_FENCE
    return converted


def _find_end(
    lines: Sequence[str], start: int, opening: re.Match[str], closings: Sequence[tuple[int, re.Match[str]]]
) -> int:
    """Return the number of the line that closes a block; a fence inside one of its strings does not."""
    behind = closings[bisect.bisect_left(closings, start, key=lambda closing: closing[0]) :]
    ends = list(islice((n for n, closing in behind if _closes(closing, opening)), MAX_CLOSING_FENCES))
    if not ends:
        return len(lines)
    if CodeBlock(code="", info=opening[3]).may_be_code:
        for end in ends:
            if is_valid_python("\n".join(_dedented(lines[start:end], len(opening[1])))):
                return end
    return ends[0]


def _closes(closing: re.Match[str], opening: re.Match[str]) -> bool:
    return closing[2].startswith(opening[2]) and len(closing[1]) <= len(opening[1]) + 3


def _dedented(lines: Sequence[str], width: int) -> list[str]:
    return [line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines]


def _block(body: Sequence[str], info: str, before: str, *, closed: bool) -> CodeBlock:
    first = body[0] if body and body[0].lstrip().startswith(("#", "//", "<!--")) else ""
    path = named_path(before, info, first)
    code = _strip_interpreter_prompts("\n".join(body).rstrip() + "\n")
    return CodeBlock(code=code, path=path, is_closed=closed, info=info, line_before=before)


def named_path(before: str, info: str, first: str = "") -> str | None:
    """Return the file that the line before a block, its info string or its first line names."""
    before, info, first = (
        line if len(line) <= MAX_FILE_NAME_LINE_CHARS else "" for line in (before, info, first)
    )
    named = (
        FILE_TAG.match(before)
        or PATH_LINE.match(before)
        or PATH_IN_INFO.search(info)
        or PATH_LINE.match(first)
        or PATH_IN_PROSE.match(before)
    )
    return named[1].removeprefix("./") if named else None


def _strip_interpreter_prompts(code: str) -> str:
    """Return the input of an interpreter session, without its output and calls that show values."""
    if not code.lstrip().startswith(">>>") or is_valid_python(code):
        return code
    typed = "".join(PROMPT.sub("", line, count=1) + "\n" for line in code.split("\n") if PROMPT.match(line))
    tree = parse_module(typed)
    if tree is None:
        return typed
    return remove_statements(typed, tree, [node for node in tree.body if isinstance(node, ast.Expr)])
