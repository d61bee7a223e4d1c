"""The closed set of mutation operators: their codes, and a description of each for people.

The codes are keys of the priors in `mutation/tuning.py`, of the odds in `search/localisation/exception_clues.py`,
of the factors that memory learns, and of the tables of mutation testing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

OperatorName = Literal[
    "undefined_name", "unread_assignment", "unknown_attribute", "import_name",
    "comparison", "boolean_operator", "negation", "condition", "returned_condition",
    "arithmetic_operator", "operand", "sign_change", "off_by_one", "constant", "missing_term",
    "missing_concatenation",
    "variable", "attribute", "attribute_or_name", "called_name", "subscript_key", "sequence_part",
    "arguments", "missing_argument", "wrap_in_call", "unwrap_call", "accumulation", "initial_value",
    "generator", "return_value",
    "delete_statement", "move_statement", "change_block", "loop_control", "elif", "duplicate_statement",
    "guard", "fill_container", "missing_assignment", "missing_return", "copied_statement",
    "iteration", "bare_return", "final_return", "missing_initialisation", "early_loop_return",
    "append_element", "invented_function",
    "exception_class", "mutable_default",
    "reused_value", "reused_argument", "parameter_order", "decorator", "empty_iteration",
    "sibling_expression",
]  # fmt: skip

DESCRIPTIONS: Mapping[OperatorName, str] = {
    "undefined_name": "replace a name that nothing defines",
    "unread_assignment": "rename a variable that is assigned and never read",
    "unknown_attribute": "replace an attribute that no known type has",
    "import_name": "correct a misspelt import",
    "comparison": "change a comparison operator",
    "boolean_operator": "change `and` and `or`, or drop an operand",
    "negation": "add or remove a negation",
    "condition": "strengthen or weaken a condition",
    "returned_condition": "return a condition instead of a fixed boolean",
    "arithmetic_operator": "change an arithmetic operator",
    "operand": "drop or swap operands",
    "sign_change": "change the sign of a value",
    "off_by_one": "add or subtract one",
    "constant": "change a constant",
    "missing_term": "add a term or a factor",
    "missing_concatenation": "concatenate another sequence",
    "variable": "use another variable",
    "attribute": "read another attribute",
    "attribute_or_name": "read an attribute instead of the object, or the reverse",
    "called_name": "call another function or method",
    "subscript_key": "use another key",
    "sequence_part": "use an element or a slice instead of the whole, or the reverse",
    "arguments": "swap or drop arguments",
    "missing_argument": "add an argument",
    "wrap_in_call": "wrap a value in a call",
    "unwrap_call": "remove a call around a value",
    "accumulation": "combine a value with the previous one instead of replacing it",
    "initial_value": "start from another value",
    "generator": "change `yield`, `yield from` and `await`",
    "return_value": "return a computed value, or another value",
    "delete_statement": "delete a statement or its condition",
    "move_statement": "move a statement",
    "change_block": "move a statement into or out of a block",
    "loop_control": "change `break`, `continue`, `if` and `while`",
    "elif": "change `if` to `elif`, or the reverse",
    "duplicate_statement": "repeat a statement",
    "guard": "add a guard or a base case to a function",
    "fill_container": "put a value into a container",
    "missing_assignment": "add an assignment",
    "missing_return": "add a `return` at the end of a block",
    "copied_statement": "copy a statement of the same function",
    "iteration": "iterate over a range, or over indices and values",
    "bare_return": "give a bare `return` a value",
    "final_return": "add a `return` at the end of a function",
    "missing_initialisation": "initialise a variable",
    "early_loop_return": "move `else: return` after its loop",
    "append_element": "append one element instead of extending a list",
    "invented_function": "replace a call of a function that does not exist with arithmetic",
    "exception_class": "raise or catch another exception class",
    "mutable_default": "create a mutable default in each call",
    "reused_value": "assign a value that the file assigns in another place",
    "reused_argument": "pass an argument that other calls pass",
    "parameter_order": "pass arguments in the order of the parameters",
    "decorator": "add a decorator",
    "empty_iteration": "iterate over something instead of an empty literal",
    "sibling_expression": "use another expression of the same function",
}
"""The operators for Python are applied to a node in this order.

Where two of them make the same edit with the same weight, the earlier one keeps it.
"""


def describe_operator(name: str) -> str:
    """Return what an operator does, in words; the name itself if it is unknown."""
    return next((text for code, text in DESCRIPTIONS.items() if code == name), name)
