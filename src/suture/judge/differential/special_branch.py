"""A new branch or table of a change that may serve only examples of the tests."""

from __future__ import annotations

from dataclasses import dataclass

from suture.mutation.edits import Edit, apply_edits


@dataclass(frozen=True, kw_only=True)
class SpecialBranch:
    """A new branch with a rare literal in its condition or answer, or a new table.

    Attributes:
        path: Its file.
        function: Name of the function around it, or of the first one that reads the table.
        line: Its line, from 1.
        source: The source of the file.
        edit: What switches the branch off, or empties the table.
        literals: The literals in the condition, or in the table.
        is_edge_case: Whether its condition compares only with values that are common in code, such as 0 and 1.
        counts_calls: Whether its condition depends on what the function itself changes in a variable of the module.
        is_table: Whether it is a table.
        is_certain: Whether it is known to serve only an example; otherwise nothing shows what else it serves.
        is_untried: Whether there was no time to compare the code without it.
    """

    path: str
    function: str
    line: int
    source: str
    edit: Edit
    literals: tuple[object, ...] = ()
    is_edge_case: bool = False
    counts_calls: bool = False
    is_table: bool = False
    is_certain: bool = False
    is_untried: bool = False

    @property
    def without(self) -> str:
        """The source of the file with the branch switched off, or with an empty table."""
        return apply_edits(self.source, [self.edit])
