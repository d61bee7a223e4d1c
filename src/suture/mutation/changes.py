"""A change that an operator proposes for one node of a syntax tree, in any language."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from suture.mutation.edits import Edit, Mutant, trim_edit
from suture.mutation.operator_names import OperatorName
from suture.mutation.tuning import MAX_NOTE_CHARS, OPERATOR_PRIORS, PRIOR_SCALE, REPEATED_FACTOR

REPEATABLE: frozenset[OperatorName] = frozenset(
    (
        "comparison",
        "arithmetic_operator",
        "variable",
        "attribute",
        "called_name",
        "constant",
        "subscript_key",
    )
)
"""Operators whose change may be needed at several places of one function."""
_POSITION = attrgetter("start", "end")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One way to change a node.

    Attributes:
        edits: The edits of the source.
        note: The change in a few words.
        weight: How likely the change is beside the operator's other changes; 1 for the likeliest.
    """

    edits: tuple[Edit, ...]
    note: str
    weight: float = 1.0

    def trimmed_edits(self, source: bytes) -> tuple[Edit, ...]:
        """Return the edits in their order, without the text that they only put back."""
        return tuple(trim_edit(edit, source) for edit in sorted(self.edits, key=_POSITION))


def build_mutant(
    change: Change,
    edits: tuple[Edit, ...],
    operator: OperatorName,
    *,
    line: int,
    factor: float,
    in_function_body: bool,
) -> Mutant:
    """Return the mutant of a change, with the prior of its operator.

    Args:
        change: The change.
        edits: Its trimmed edits.
        operator: The operator that made it.
        line: The first line that it changes, counted from 1.
        factor: Further factor on its prior.
        in_function_body: As in `Mutant`.
    """
    return Mutant(
        edits=edits,
        operator=operator,
        line=line,
        prior=min(1.0, PRIOR_SCALE * OPERATOR_PRIORS[operator] * change.weight * factor),
        label=f"line {line}: {change.note}",
        in_function_body=in_function_body,
    )


def repeat_in_function(group: list[tuple[Edit, Mutant]]) -> Mutant:
    """Return the mutant that makes the same change at each place of a function: people repeat mistakes.

    Args:
        group: The edit of each place, and its mutant.
    """
    likeliest = max((mutant for _, mutant in group), key=lambda mutant: mutant.prior)
    return Mutant(
        edits=tuple(sorted((edit for edit, _ in group), key=lambda edit: edit.start)),
        operator=likeliest.operator,
        line=likeliest.line,
        prior=REPEATED_FACTOR * likeliest.prior,
        label=f"{likeliest.label}, and at {len(group) - 1} more place(s) of the function",
        in_function_body=all(mutant.in_function_body for _, mutant in group),
    )


def shorten(text: str) -> str:
    """Return a text on one line, cut where it is too long for a note."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_NOTE_CHARS else f"{line[:MAX_NOTE_CHARS]}..."
