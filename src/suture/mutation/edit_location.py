"""The statement, or head of a statement, that holds an edit.

The head of a statement is what precedes its block, such as `if a < b:` or `for (;;)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from suture.mutation.edits import Edit


@dataclass(frozen=True, kw_only=True)
class EditLocation:
    """A statement without its blocks, by byte offsets in its source.

    Attributes:
        start: Where it begins, in Python with its first line.
        end: Where its head ends: at its first block, or at its end.
        statement_end: Where the whole statement ends.
        is_handler: Whether it is the head of an `except` clause.
    """

    start: int
    end: int
    statement_end: int
    in_function: bool
    is_handler: bool

    def contains(self, edits: Sequence[Edit]) -> bool:
        """Return whether all edits of a change are inside the statement's head."""
        return all(self.start <= edit.start and edit.end <= self.end for edit in edits)


def select_smallest(locations: Iterable[EditLocation], edits: Sequence[Edit]) -> EditLocation | None:
    """Return the smallest location that holds all edits of a change; `None` if they span several."""
    holding = (location for location in locations if location.contains(edits))
    return min(holding, key=lambda location: location.end - location.start, default=None)
