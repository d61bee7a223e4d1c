"""A change that a mutation operator proposes for one node of a syntax tree, in any language.

An operator is a function that yields changes of a node, each with a *weight*. A weight compares a change with
the other changes of the same operator: the likeliest repair has weight 1, and a change with 0.5 is held to be
half as likely. `OPERATOR_PRIORS` compares the operators with each other. The product of both is the *prior*
of a mutant, by which the search orders its candidates.

Almost all weights in the operators are chosen by judgement and not measured. A comment gives the reason of
the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import attrgetter

from suture.mutation import tuning
from suture.mutation.edits import Edit, Mutant, trim_edit
from suture.mutation.operator_names import OperatorName

REPEATABLE: frozenset[OperatorName] = frozenset((
    "comparison", "arithmetic_operator", "variable", "attribute", "called_name", "constant",
    "subscript_key", "wrap_in_call", "truth_test", "missing_argument", "regular_expression", "conversion",
))  # fmt: skip
"""Operators whose change is also offered at all places of one function at once, and at all of the file."""
FaultReporter = Callable[[OperatorName, int, Exception], None]
"""Takes the operator that raised an exception, the line of the node, and the exception."""
_POSITION = attrgetter("start", "end")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One way to change a node of a syntax tree.

    Attributes:
        note: The change in a few words, such as `< becomes <= in a < b`.
        weight: How likely the change is a repair, relative to the operator's other changes. The likeliest
            have 1. Single changes that are far likelier than the rest have more.
    """

    edits: tuple[Edit, ...]
    note: str
    weight: float = 1.0

    def trimmed_edits(self, source: bytes) -> tuple[Edit, ...]:
        """Return the edits sorted by offset, each reduced to the text that differs (see `trim_edit`)."""
        return tuple(trim_edit(edit, source) for edit in sorted(self.edits, key=_POSITION))


def replace_span(start: int, end: int, text: str, note: str, weight: float = 1.0) -> Change:
    """Return the change that replaces the bytes between two offsets of the source with a text."""
    return Change(edits=(Edit(start=start, end=end, text=text),), note=note, weight=weight)


def insert_text(offset: int, text: str, note: str, weight: float = 1.0) -> Change:
    """Return the change that inserts a text at a byte offset of the source."""
    return replace_span(offset, offset, text, note, weight)


def build_mutant(
    change: Change,
    edits: tuple[Edit, ...],
    operator: OperatorName,
    line: int,
    factor: float,
    *,
    in_function_body: bool,
) -> Mutant:
    """Return the mutant of a change, with the prior of its operator.

    Args:
        edits: Its trimmed edits.
        line: The first line that it changes, counted from 1.
        factor: Further factor on its prior.
        in_function_body: Whether all of the change lies in the body of a function.
    """
    return Mutant(
        edits=edits,
        operator=operator,
        line=line,
        prior=min(1.0, tuning.PRIOR_SCALE * tuning.OPERATOR_PRIORS[operator] * change.weight * factor),
        label=f"line {line}: {change.note}",
        in_function_body=in_function_body,
    )


def repeat_change(group: list[tuple[Edit, Mutant]], *, in_one_function: bool) -> Mutant:
    """Return the mutant that makes the same change at several places: people repeat mistakes.

    Args:
        group: `(edit, mutant)` for each place: the edit there, and the mutant that makes only this edit.
    """
    likeliest = max((mutant for _, mutant in group), key=lambda mutant: mutant.prior)
    return Mutant(
        edits=tuple(sorted((edit for edit, _ in group), key=lambda edit: edit.start)),
        operator=likeliest.operator,
        line=likeliest.line,
        prior=tuning.REPEATED_FACTOR * likeliest.prior,
        label=f"{likeliest.label}, and at {len(group) - 1} more place(s)",
        in_function_body=in_one_function and all(mutant.in_function_body for _, mutant in group),
    )


def last_part(text: str) -> str:
    """Return the last name of a dotted path: `c` of `a.b.c`."""
    return text.rpartition(".")[2]


def shorten(text: str) -> str:
    """Return a text on one line, cut where it is too long for a note."""
    line = " ".join(text.split())
    return line if len(line) <= tuning.MAX_NOTE_CHARS else f"{line[: tuning.MAX_NOTE_CHARS]}..."


def find_similar_names(name: str, others: Iterable[str]) -> list[tuple[str, float]]:
    """Return the names most similar to one that may be misspelt, each with its similarity: 1 for nearly the same."""
    matcher, similar = SequenceMatcher(b=name.lower()), []
    # The two quick bounds are much cheaper than the ratio itself.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    for other in dict.fromkeys(sorted(others)):
        matcher.set_seq1(other.lower())
        if other != name and all(ratio() >= tuning.MIN_NAME_SIMILARITY for ratio in ratios):
            similar.append((matcher.ratio(), other))
    similar.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(other, similarity) for similarity, other in similar[: tuning.MAX_SIMILAR_NAMES]]
