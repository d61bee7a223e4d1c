"""Fenced blocks in a model's reply, however untidy it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Block", "fenced_blocks"]

FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*([^`\n]*)$")
PATH = r"[\w./-]+\.[A-Za-z]{1,4}"
PATH_LINE = re.compile(rf"^\s*(?:#+|//|\*\*|File:|[-*])?\s*(?:[Ff]ile(?:name)?:?\s*)?[`*]*({PATH})[`*:]*\s*$")
PATH_IN_INFO = re.compile(rf"\b({PATH})\s*$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes:
        code: What stands between the fences.
        path: The file it says it is, where the line before it, its info string or its first line names one.
        closed: Whether the closing fence was there; it is not where the reply was cut.
    """

    code: str
    path: str | None = None
    closed: bool = True


def fenced_blocks(text: str) -> list[Block]:
    """All fenced blocks, in order. A block whose end is missing reaches to the end of the text."""
    blocks: list[Block] = []
    fence: str | None = None
    info = before = ""
    body: list[str] = []
    for line in text.splitlines():
        match = FENCE.match(line)
        if fence is None:
            if match:
                fence, info, body = match[1], match[2].strip(), []
            elif line.strip():
                before = line
        elif match and match[1].startswith(fence) and not match[2].strip():
            blocks.append(_block(body, info, before, closed=True))
            fence, before = None, ""
        else:
            body.append(line)
    if fence is not None and any(line.strip() for line in body):
        blocks.append(_block(body, info, before, closed=False))
    return blocks


def _block(body: list[str], info: str, before: str, *, closed: bool) -> Block:
    first = body[0] if body and body[0].lstrip().startswith("#") else ""
    named = PATH_LINE.match(before) or PATH_IN_INFO.search(info) or PATH_LINE.match(first)
    path = named[1].removeprefix("./") if named else None
    return Block(code="\n".join(body).rstrip() + "\n", path=path, closed=closed)
