"""The one question that tells two plausible repairs apart, on the user's terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from suture.cli.terminal.output import note

if TYPE_CHECKING:
    from suture.api import Choice, Difference

CHOICES: dict[str, Choice] = {"1": "first", "2": "second", "n": "neither", "neither": "neither"}


async def ask_which_is_right(
    difference: Difference, read: Callable[[], Awaitable[str | None]]
) -> Choice | None:
    """Show an input and two answers, and wait for the number of the right one; no more input is no answer.

    Args:
        difference: What tells the repairs apart.
        read: The next line that is typed; `None` at the end of input.
    """
    first, second = difference.apart
    note(f"Two repairs pass all tests. For {difference.call} they give:")
    note(f"  1: {first}")
    note(f"  2: {second}")
    while True:
        note("Which is right: 1, 2 or neither?")
        typed = await read()
        if typed is None:
            return None
        said = typed.strip().lower()
        if said in CHOICES:
            return CHOICES[said]
