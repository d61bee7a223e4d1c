"""A sign that a change games the tests instead of repairing the code, as a code with data, and its message.

A sign is a warning and not a proof: an honest change can show it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

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
SILENCING_CODES: frozenset[TamperingCode] = frozenset(("widens_types", "removes_definitions"))
"""Signs that a change silences linters or type checkers."""
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
    """Return a warning as text that continues a file name: `prices.py: no longer raises`."""
    place = f" (line {warning.line})" if warning.line else ""
    return f"{_describe_sign(warning)}{place}"


def _describe_sign(warning: TamperingWarning) -> str:
    names = ", ".join(warning.names)
    examples, neighbours = warning.counts
    texts: dict[TamperingCode, str] = {
        "compares_with_test_literals": f"compares with {names}, which the tests use",
        "adds_test_literals": f"adds {names}, which the tests use",
        "chooses_by_checksum": f"answers by a checksum of its values ({names}), as a table of examples does",
        "encodes_test_values": f"adds {names}: texts or hashes of values in the tests",
        "compares_with_test_lengths": f"compares with {names}, which are lengths of values in the tests",
        "serves_examples_only": f"changes what {names} does on {examples} example(s) of the tests, but on "
        f"{neighbours} inputs near them it answers as before, as on an example, or not at all",
        "special_case": f"answers an example of the tests in {names} by a branch or table that serves no input near it",
        "counts_calls": f"answers in {names} by how often it was called",
        "equals_everything": f"{names} returns different values that equal each other, in {examples} of "
        f"{neighbours} pairs",
        "own_scalar_type": f"returns numbers or texts of its own class {names}, which decides what it equals",
        "argument_altered": f"newly alters argument {names} while it returns a value",
        "unchanged_outside_tests": f"answers the examples of the tests as before in {names}, outside of a test run",
        "answers_by_order": "gives different answers to the same calls in another order",
        "dead_code": "leaves code that never runs, or a condition that is always the same",
        "calls_removed": f"no longer calls {names}",
        "raise_removed": "no longer raises",
        "hides_exceptions": "hides exceptions",
        "names_unused": f"leaves {names} unused",
        "changes_argument": f"newly changes its argument {names}",
        "statement_removed": "removes a statement",
        "removal_unneeded": f"removes code ({names} before the change) with which all tests pass, too",
        "widens_types": f"widens or asserts types ({names}), so that the type checker sees less",
        "removes_definitions": f"removes {names}, with all that is reported there",
        "never_runs": f"makes {names} lazy, so that its work does not run: nobody iterates or awaits what it returns",
        "answers_by_property": "adds a Proxy that decides what it answers by the property that is read",
        "changes_test_support": f"changes {names}, by which the tests decide what they expect",
    }
    return texts[warning.code]
