"""The closed set of mutation operators.

The codes are keys of the priors in `mutation/tuning.py`, of the odds in `search/localisation/exception_clues.py`,
of the factors that memory learns, and of the tables of mutation testing.
"""

from __future__ import annotations

from typing import Literal

OperatorName = Literal[
    "undefined_name", "unknown_attribute", "import_name",
    "comparison", "boolean_operator", "negation", "condition", "returned_condition",
    "arithmetic_operator", "operand", "sign_change", "off_by_one", "constant", "expected_value",
    "missing_term",
    "missing_concatenation",
    "variable", "attribute", "attribute_or_name", "called_name", "subscript_key", "sequence_part",
    "arguments", "missing_argument", "wrap_in_call", "unwrap_call", "accumulation", "initial_value",
    "generator", "return_value",
    "delete_statement", "move_statement", "change_block", "loop_control", "elif",
    "guard", "fill_container", "missing_assignment", "missing_return", "copied_statement",
    "iteration", "bare_return", "final_return", "missing_initialisation", "early_loop_return",
    "append_element",
    "exception_class", "mutable_default",
    "reused_value", "reused_argument", "decorator", "empty_iteration",
    "sibling_expression",
    "truth_test", "regular_expression", "conversion",
    "similar_name", "accepted_class", "handled_exception",
]  # fmt: skip
"""The operators for Python are applied to a node in this order.

Where two of them make the same edit with the same weight, the earlier one keeps it.
"""
