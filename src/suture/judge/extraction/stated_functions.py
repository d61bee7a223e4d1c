"""Finding the functions that a statement asks for, and their parameters, for Python."""

from __future__ import annotations

import ast
import builtins
import keyword
import math
import re
from collections.abc import Iterator
from itertools import islice

from suture.judge.extraction.prose_literals import find_call
from suture.judge.tuning import MAX_EXAMPLE_CALLS

DEF_NAME_RE = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
"""The header of a function that is no method."""
CALL_START_RE = re.compile(r"(?<![\w.@])[A-Za-z_]\w*\(")
FORMULA_RE = re.compile(r"`?\s*(?:=|:=|->|→|is\b|be\b)")
"""What follows a formula such as `g(x) = x + 1`, which defines a notation and asks for no function."""
_LISTED_NAME = r"`?[A-Za-z_]\w*(?:\([^()\n]{0,100}\))?`?"
NAME_LIST_RE = re.compile(
    r"\b(?:functions?|methods?|class(?:es)?|[Ww]rite|[Ii]mplement|[Cc]reate|[Dd]efine|[Pp]rovide):?\s{1,5}"
    r"(?:(?:an?|the|two|three|four|these|both|following|functions?|class(?:es)?|called|named):?\s{1,5})*"
    rf"(?P<names>{_LISTED_NAME}(?:\s{{0,5}},\s{{0,5}}(?:and\s{{1,5}})?{_LISTED_NAME}|\s{{1,5}}and\s{{1,5}}{_LISTED_NAME})*)"
)
"""Names that a statement asks for in one breath, such as `functions encode and decode`."""


def find_requested_functions(text: str, entry_point: str) -> frozenset[str]:
    """Return the functions and classes that a statement asks for: the entry point and those beside it.

    A name counts if it has a `def`, a signature such as `decode(text)`, or stands in a list such as `Write
    encode and decode`. A word of such a list may be no name: it matters only where the text also calls it.
    """
    names = {entry_point, *DEF_NAME_RE.findall(text)}
    names |= {name for name, _, is_formula in _find_signatures(text) if not is_formula}
    for match in NAME_LIST_RE.finditer(text):
        names |= set(re.findall(r"(?<![\w(,= ])[A-Za-z_]\w*|(?<=[,\s`])[A-Za-z_]\w*", match["names"]))
    return frozenset(name for name in names if name == entry_point or _may_be_requested(name))


def _may_be_requested(name: str) -> bool:
    return not (hasattr(builtins, name) or keyword.iskeyword(name) or hasattr(math, name))


def _find_signatures(text: str) -> Iterator[tuple[str, list[str], bool]]:
    """Yield (name, parameters, whether a formula follows) for each call whose arguments are all bare names."""
    for match in islice(CALL_START_RE.finditer(text), MAX_EXAMPLE_CALLS):
        call_and_end = find_call(text, match.start())
        if call_and_end is None:
            continue
        call, end = call_and_end
        parameters = [arg.id for arg in call.args if isinstance(arg, ast.Name)]
        is_signature = parameters and len(parameters) == len(call.args) and not call.keywords
        if is_signature and isinstance(call.func, ast.Name):
            yield call.func.id, parameters, FORMULA_RE.match(text, end) is not None


def find_parameters(text: str, function: str) -> list[str] | None:
    """Return the parameters that a function requires, in order; `None` if the text shows no signature.

    A stub counts first, then a signature in prose such as `add(a, b)`.
    """
    match = re.search(rf"^[ \t]*(?:async[ \t]+)?def\s+{re.escape(function)}\s*\(", text, re.MULTILINE)
    end = text.find(":\n", match.end()) if match else -1
    while match and end >= 0:
        try:
            tree = ast.parse(text[match.start() : end + 1].strip() + " ...")
        except SyntaxError:
            end = text.find(":\n", end + 1)
            continue
        stub = tree.body[0]
        if isinstance(stub, ast.FunctionDef) and not (stub.args.kwonlyargs or stub.args.vararg):
            arguments = [argument.arg for argument in (*stub.args.posonlyargs, *stub.args.args)]
            return arguments[: len(arguments) - len(stub.args.defaults)]
        return None
    signatures = (parameters for name, parameters, _ in _find_signatures(text) if name == function)
    return next(signatures, None)
