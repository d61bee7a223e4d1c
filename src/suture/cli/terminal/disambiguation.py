"""`--ask`: the one question that tells two plausible repairs apart, on the user's terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.cli.terminal.output import note

if TYPE_CHECKING:
    from suture.api import Choice, Difference
    from suture.cli.terminal.progress import Progress

__all__ = ["ask_which_is_right"]

CHOICES: dict[str, Choice] = {"1": "first", "2": "second", "n": "neither", "neither": "neither"}


def ask_which_is_right(progress: Progress, difference: Difference) -> Choice | None:
    """Show an input and two answers, and wait for the number of the right one; no more input is no answer."""
    first, second = difference.apart
    with progress.paused():
        note(f"Two repairs pass all tests. For {difference.call} they give:")
        note(f"  1: {first}")
        note(f"  2: {second}")
        while True:
            note("Which is right: 1, 2 or neither?")
            try:
                said = input().strip().lower()
            except EOFError:
                return None
            if said in CHOICES:
                return CHOICES[said]
