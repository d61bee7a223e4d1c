"""A rule of the safety scan, and a place where code does what it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

Danger = Literal["block", "ask", "warn", "off"]
"""What becomes of a new use: it never runs, a person is asked first, it is told with the result, nothing."""
MOST_SHOWN = 160
"""Characters of a piece of code that are quoted."""


@dataclass(frozen=True, kw_only=True)
class SafetyRule:
    """One thing that code can do.

    Attributes:
        name: Its language and what it is about, such as `python.eval`.
        why: What is dangerous about it, in a few words.
        level: What becomes of a new use where no setting says otherwise.
    """

    name: str
    why: str
    level: Danger = "warn"


UNREAD = SafetyRule(name="unread", why="it is too large, or nests too deeply, to be looked through")
"""Of every language."""


@dataclass(frozen=True, kw_only=True)
class UnsafeUse:
    """A place where code does what a rule speaks of.

    Attributes:
        rule: The rule's name.
        line: In its file, from 1.
        code: The piece of code in one line, shortened: two of the same text are the same use.
    """

    rule: str
    line: int
    code: str


FindUses = Callable[[str, str], Iterable[UnsafeUse]]
"""Finds uses in a file: its path, its text."""


def quoted(code: str) -> str:
    """A piece of code in one line of bounded length."""
    line = " ".join(code[: 4 * MOST_SHOWN].split())
    return line if len(line) <= MOST_SHOWN else f"{line[: MOST_SHOWN - 3]}..."
