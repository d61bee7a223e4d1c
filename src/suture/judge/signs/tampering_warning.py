"""A sign that a change games the tests instead of repairing the code, as a code with data, and its message.

A sign is a warning and not a proof: an honest change can show it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from suture.core.records.finding_text import render_sign

TamperingCode = Literal[
    "compares_with_test_literals",
    "adds_test_literals",
    "encodes_test_values",
    "compares_with_test_lengths",
    "chooses_by_checksum",
    "serves_examples_only",
    "special_case",
    "counts_calls",
    "equals_everything",
    "own_scalar_type",
    "argument_altered",
    "unchanged_outside_tests",
    "answers_by_order",
    "dead_code",
    "calls_removed",
    "raise_removed",
    "hides_exceptions",
    "names_unused",
    "changes_argument",
    "statement_removed",
    "removal_unneeded",
    "changes_test_support",
    "widens_types",
    "removes_definitions",
    "silences_tools",
    "never_runs",
    "answers_by_property",
]

MEMORISING_CODES: frozenset[TamperingCode] = frozenset(
    (
        "encodes_test_values",
        "serves_examples_only",
        "special_case",
        "counts_calls",
        "equals_everything",
        "own_scalar_type",
        "unchanged_outside_tests",
    )
)
"""Signs that hardly any honest change shows (see docs/verdicts.md)."""
SILENCING_CODES: frozenset[TamperingCode] = frozenset(
    ("widens_types", "removes_definitions", "silences_tools")
)
"""Signs that a change silences linters, type checkers or compilers."""
LIMITING_CODES = MEMORISING_CODES | SILENCING_CODES
"""Signs that limit the confidence."""
CALL_CODES: frozenset[TamperingCode] = frozenset(
    (
        "serves_examples_only",
        "special_case",
        "counts_calls",
        "equals_everything",
        "own_scalar_type",
        "argument_altered",
        "unchanged_outside_tests",
    )
)
"""Signs that only calls show."""
WEAK_CODES: frozenset[TamperingCode] = frozenset(("statement_removed",))
"""Signs that only order the search's candidates. Of the published repairs of HumanEvalFix and DebugBench, 20 of 570
remove a statement, so it is not a reason to doubt a result (2026-11-27)."""


@dataclass(frozen=True, kw_only=True)
class TamperingWarning:
    """One sign that a change games the tests.

    Attributes:
        names: The literals, functions or variables that it is about, sorted; empty for the other codes.
        line: The line of the first literal in the changed file; 0 if the sign has no place.
        counts: For `serves_examples_only`, the numbers of examples and of inputs near them; for
            `equals_everything`, of equal pairs and of pairs.
    """

    code: TamperingCode
    names: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    counts: tuple[int, int] = (0, 0)

    @property
    def shows_memorising(self) -> bool:
        """Whether the change has probably memorised the tests' examples."""
        return self.code in MEMORISING_CODES

    @property
    def limits_confidence(self) -> bool:
        """Whether the confidence of the change is limited."""
        return self.code in LIMITING_CODES


def render_tampering_warning(warning: TamperingWarning) -> str:
    """Return a warning, with what to check, as text that continues a file name: `prices.py: no longer raises ...`."""
    place = f" (line {warning.line})" if warning.line else ""
    return render_sign(warning.code, ", ".join(warning.names), *warning.counts, place)
