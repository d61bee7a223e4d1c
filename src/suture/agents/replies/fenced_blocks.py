"""Find the fenced blocks of code in a reply, and the files that they name."""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from suture.agents.replies.edit_problems import ProblemCode
from suture.agents.replies.text_edits import DiffHunk
from suture.agents.tuning import MAX_CLOSING_FENCES
from suture.project.python_source.parsing import parse_module, require_few_blocks
from suture.project.python_source.statement_edits import is_valid_python, remove_statements
from suture.project.tuning import MAX_FILE_NAME_LINE_CHARS

# A fence may be part of a list item, directly after its number.
OPENING_FENCE = re.compile(r"^(\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?)(`{3,}|~{3,})\s*([^`\n]*)$")
CLOSING_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})\s*$")
PATH = r"[\w./-]+\.[A-Za-z]{1,4}"
"""A file name with an ending, in any folder. The next three are what may surround it in a line of `PATH_LINE`."""
LIST_MARKS = r"(?:(?:#+|//|<!--|>|[-*+]|\d{1,2}[.)])\s+)*(?:#|//)?\s{0,8}"
KIND = r"(?:(?:create|file(?:name)?|path|module)\b\s*(?:\d{1,2})?\s*:?[\s*_]{0,8})?"
REMARK = r"(?:\s*(?:\([^()]{0,80}\)|[-\u2013\u2014:]\s.{0,120}|-->))?"
PATH_LINE = re.compile(
    rf"^\s*{LIST_MARKS}[*_]{{0,4}}(?:\d{{1,2}}[.)]\s+)?{KIND}[`*_'\"]{{0,6}}({PATH})[`*_'\":]*{REMARK}\s*$",
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
SHELL_LABELS = frozenset(
    ("bash", "cmd", "console", "output", "powershell", "sh", "shell", "stdout", "terminal", "zsh")
)
"""Labels of blocks that show how a file is used."""
DATA_LABELS = frozenset(("csv", "html", "ini", "json", "sql", "toml", "xml", "yaml", "yml"))
PROSE_LABELS = frozenset(("markdown", "md", "plaintext", "pytb", "text", "traceback", "txt"))
BUILD_LABELS = frozenset(("diff", "dockerfile", "makefile", "patch"))
NOT_CODE_LABELS = SHELL_LABELS | DATA_LABELS | PROSE_LABELS | BUILD_LABELS
"""Labels of blocks that are not Python. A diff is not applied either: small models cannot count lines."""
TAG_FENCE = "~" * 12
"""A fence that is longer than any fence inside a file."""


@dataclass(frozen=True, kw_only=True)
class CodeBlock:
    """A fenced block of a reply, with what the reply says about it.

    Attributes:
        path: The file that it represents, named by the line before it, its info string or its first line.
        is_closed: Whether there is a closing fence; a cut-off reply has none.
        info: The text after the opening fence.
        line_before: The last line of text before the block.
        line: Index of the line with the opening fence.
        line_count: Number of its lines with both fences.
        is_tag: Whether it is between `<file>` tags instead of fences.
    """

    code: str
    path: str | None = None
    is_closed: bool = True
    info: str = ""
    line_before: str = ""
    line: int = 0
    line_count: int = 0
    is_tag: bool = False

    @property
    def label(self) -> str:
        """Return the first word after the fence, such as `python`; empty if there is none."""
        return re.split(r"[\s:,{}]+", self.info.strip(" {.").lower())[0]

    @property
    def may_be_code(self) -> bool:
        """Return whether the label allows that this is Python."""
        return self.label not in NOT_CODE_LABELS


def fenced_blocks(text: str) -> list[CodeBlock]:
    """Return all fenced blocks in order. A block without a closing fence extends to the end of the reply."""
    # Not str.splitlines: a string in the code may contain a form feed or U+2028.
    lines = _tags_as_fences([line.removesuffix("\r") for line in text.split("\n")])
    closings = [(number, match) for number, line in enumerate(lines) if (match := CLOSING_FENCE.match(line))]
    blocks: list[CodeBlock] = []
    line_before, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        opening = OPENING_FENCE.match(line)
        if opening is None:
            line_before = line if line.strip() else line_before
            continue
        end = _find_end(lines, number, opening, closings)
        require_few_blocks(len(blocks))
        body = _dedent(lines[number:end], len(opening[1]))
        is_closed = end < len(lines)
        if is_closed or any(content.strip() for content in body):
            block = _make_block(body, opening[3].strip(), line_before, is_closed=is_closed)
            size = end + is_closed - number + 1
            is_tag = opening[2] == TAG_FENCE
            blocks.append(replace(block, line=number - 1, line_count=size, is_tag=is_tag))
        line_before, number = "", end + 1
    return blocks


def _tags_as_fences(lines: list[str]) -> list[str]:
    """Return the lines with `<file path="...">` tags as fences, unless there is a fence between them."""
    converted = list(lines)
    for start, line in enumerate(lines):
        tag = FILE_TAG.match(line)
        if tag is None:
            continue
        below = range(start + 1, len(lines))
        end = next((n for n in below if FILE_END.match(lines[n]) or FILE_TAG.match(lines[n])), len(lines))
        if not any(OPENING_FENCE.match(lines[n]) for n in range(start + 1, end)):
            converted[start] = f"{TAG_FENCE} {tag[1]}"
            if end < len(lines) and FILE_END.match(lines[end]):
                converted[end] = TAG_FENCE
    return converted


def _find_end(
    lines: Sequence[str], start: int, opening: re.Match[str], closings: Sequence[tuple[int, re.Match[str]]]
) -> int:
    """Return the number of the line that closes a block."""
    below = closings[bisect.bisect_left(closings, start, key=lambda closing: closing[0]) :]
    ends = list(islice((n for n, closing in below if _closes(closing, opening)), MAX_CLOSING_FENCES))
    if not ends:
        return len(lines)
    if not CodeBlock(code="", info=opening[3]).may_be_code:
        return ends[0]
    indent = len(opening[1])  # Strings may contain fences: the first end counts that makes the code valid.
    valid = (end for end in ends if is_valid_python("\n".join(_dedent(lines[start:end], indent))))
    return next(valid, ends[0])


def _closes(closing: re.Match[str], opening: re.Match[str]) -> bool:
    # As in CommonMark, up to three blanks of indentation do not matter.
    # The lines of a diff begin with a sign or a blank, so that only a fence at the margin ends it.
    surplus = 0 if CodeBlock(code="", info=opening[3]).label in ("diff", "patch") else 3
    return closing[2].startswith(opening[2]) and len(closing[1]) <= len(opening[1]) + surplus


def _dedent(lines: Sequence[str], width: int) -> list[str]:
    """Remove up to `width` blanks from the start of each line."""
    return [line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines]


def _make_block(body: Sequence[str], info: str, line_before: str, *, is_closed: bool) -> CodeBlock:
    comment = body[0] if body and body[0].lstrip().startswith(("#", "//", "<!--")) else ""
    path = named_path(line_before, info, comment)
    code = _strip_interpreter_prompts("\n".join(body).rstrip() + "\n")
    return CodeBlock(code=code, path=path, is_closed=is_closed, info=info, line_before=line_before)


def named_path(line_before: str, info: str, comment: str = "") -> str | None:
    """Return the file that the line before a block, its info string or the comment at its top names."""
    line_before, info, comment = (
        text if len(text) <= MAX_FILE_NAME_LINE_CHARS else "" for text in (line_before, info, comment)
    )
    match = (
        FILE_TAG.match(line_before)
        or PATH_LINE.match(line_before)
        or PATH_IN_INFO.search(info)
        or PATH_LINE.match(comment)
        or PATH_IN_PROSE.match(line_before)
    )
    return match[1].removeprefix("./") if match else None


def _strip_interpreter_prompts(code: str) -> str:
    """Return the input of an interpreter session, without its output and calls that show values."""
    if not code.lstrip().startswith(">>>") or is_valid_python(code):
        return code
    inputs = "".join(PROMPT.sub("", line, count=1) + "\n" for line in code.split("\n") if PROMPT.match(line))
    tree = parse_module(inputs)
    if tree is None:
        return inputs
    return remove_statements(inputs, tree, [node for node in tree.body if isinstance(node, ast.Expr)])


@dataclass(frozen=True, kw_only=True)
class ReplyPart:
    """A part of a reply.

    Attributes:
        line: Index of its first line in the reply.
        path: The file that it names, as the reply writes it.
        mentioned: The text before it, which may name a file or a class.
        is_closed: Whether its end is in the reply.
    """

    line: int = 0
    path: str | None = None
    mentioned: str = ""
    is_closed: bool = True


@dataclass(frozen=True, kw_only=True)
class TextEdit(ReplyPart):
    """Text to replace in a file: a search/replace block, a diff of one file, or the call of an edit tool.

    Attributes:
        is_new: Whether the diff says that the file is new.
    """

    hunks: tuple[DiffHunk, ...] = ()
    is_new: bool = False


@dataclass(frozen=True, kw_only=True)
class CodePart(ReplyPart):
    """Code without a place: a whole file, or some of its definitions.

    Attributes:
        code: The source code, with a newline at the end unless it is empty.
        is_whole: Whether the reply says that this is the whole file.
        label: The language that the reply names, such as `python`; lower case.
    """

    code: str = ""
    is_whole: bool = False
    label: str = ""

    @property
    def may_be_code(self) -> bool:
        """Return whether the label allows that this is Python."""
        return self.label not in NOT_CODE_LABELS


@dataclass(frozen=True, kw_only=True)
class UnusablePart(ReplyPart):
    """A part that is meant as a change and cannot be one.

    Attributes:
        code: Why; it is shown to the model.
        quote: Its first line.
    """

    code: ProblemCode
    quote: str = ""


@dataclass(frozen=True, kw_only=True)
class IgnorablePart(ReplyPart):
    """A block that changes nothing, such as a command or a log."""
