"""Markdown for services of code, in which text of others can be nothing but text."""

from __future__ import annotations

import re

from suture.interfaces.narrative.lines import printable

MOST_BLOCK_CHARS = 20_000
"""Of one block; a comment at GitHub holds 65,536."""
MOST_SPAN_CHARS = 200


def block(text: str, language: str = "") -> str:
    """Text as a fenced block that nothing in it can end.

    Args:
        text: Of anybody; it is cut after `MOST_BLOCK_CHARS`.
        language: Ours, such as `diff`.
    """
    shown = printable(text)
    if len(shown) > MOST_BLOCK_CHARS:
        shown = f"{shown[:MOST_BLOCK_CHARS]}\n... {len(shown) - MOST_BLOCK_CHARS:,} characters more"
    fence = "`" * max(3, 1 + _longest(shown))
    return f"{fence}{language}\n{shown.rstrip()}\n{fence}\n"


def is_shown_whole(text: str) -> bool:
    """Whether a block shows a text to the letter, so that a service may put it into a file."""
    return bool(text) and text == printable(text).rstrip() and len(text) <= MOST_BLOCK_CHARS


def span(text: str) -> str:
    """Text as code within a line; it names no person, links nowhere, and can stand in a table."""
    shown = " ".join(printable(text).split())
    if len(shown) > MOST_SPAN_CHARS:
        shown = f"{shown[: MOST_SPAN_CHARS - 1]}…"
    # In a table a bar ends its cell, in code too; `\|` is the one escape that tables know there.
    ticks = "`" * (1 + _longest(shown))
    space = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{ticks}{space}{shown.replace('|', chr(92) + '|')}{space}{ticks}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
