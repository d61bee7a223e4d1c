"""Compute expressions of constants, so that a literal is recognised however it is spelled.

A literal of the tests can be composed: `chr(111) + "k"`, `"-".join(("a", "b"))`, `5 * 1000 + 43`. Nothing of the code
runs: only operators and functions of plain values are computed, within limits.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

MAX_VALUE_CHARS = 1000
"""Maximum number of characters of a computed string. Chosen by judgement; not measured."""
MAX_NUMBER = 1 << 128
MAX_FACTOR = 1000
"""Maximum number of repetitions of a string, and of bits in a shift or power."""
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (chr, ord, int, float, str, len, sum, abs, ascii, hex)
}
METHODS = frozenset(
    (
        "join",
        "lower",
        "upper",
        "title",
        "capitalize",
        "swapcase",
        "strip",
        "replace",
        "encode",
        "decode",
        "hex",
        "fromhex",
    )
)
DISGUISE = "composed"
"""The `kind` of a constant that stands for a string composed by calls or subscripts, which nobody writes for a plain
string."""
FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


def fold_constants(tree: ast.Module) -> ast.Module:
    """Return a copy of a module in which each outermost expression of constants is one constant.

    The walk is not recursive: each `elif` and each term of a sum is one level deeper than the one before.
    """
    folded = copy(tree)
    pending: list[ast.AST] = [folded]
    places: list[tuple[Any, Any]] = []
    while pending:
        node = pending.pop()
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, value[:])
            holder: Any = getattr(node, name) if isinstance(value, list) else vars(node)
            for key, part in enumerate(value) if isinstance(value, list) else [(name, value)]:
                if isinstance(part, ast.AST) and part._fields:
                    holder[key] = copy(part)
                    places.append((holder, key))
                    pending.append(holder[key])
    for holder, key in reversed(places):  # the parts of an expression before the expression
        holder[key] = _fold(holder[key])
    return folded


def _fold(node: ast.AST) -> ast.AST:
    """Return the constant that an expression is, or else the node itself."""
    if not isinstance(node, (ast.BinOp, ast.Call, ast.Subscript, ast.JoinedStr)):
        return node
    try:
        value = _compute(node)
    except FAULTS:
        return node
    if not isinstance(value, (str, bytes, int, float)):
        return node
    if not isinstance(value, (int, float)) or value >= 0:
        is_disguised = (isinstance(node, (ast.Call, ast.Subscript)) and not _is_plain_call(node)) or any(
            isinstance(part, ast.Constant) and part.kind == DISGUISE for part in ast.walk(node)
        )
        return ast.copy_location(ast.Constant(value, kind=DISGUISE if is_disguised else None), node)
    # The sign before a number is not part of the literal.
    return ast.copy_location(ast.UnaryOp(ast.USub(), ast.copy_location(ast.Constant(-value), node)), node)


def _is_plain_call(node: ast.expr) -> bool:
    """Return whether a node is a call that honest code also makes with literals: `",".join(["a", "b"])`, `hex(255)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
            return True
        case ast.Call(func=ast.Name(id="hex" | "str"), args=[ast.Constant()]):
            return True
    return False


def list_disguised_texts(folded: ast.Module) -> set[str]:
    """Return the `repr` of each string of a module that calls or subscripts compose: `chr(111) + "hm"`.

    Args:
        folded: What `fold_constants` returned.
    """
    constants = (
        node for node in ast.walk(folded) if isinstance(node, ast.Constant) and node.kind == DISGUISE
    )
    return {
        repr(node.value)
        for node in constants
        if isinstance(node.value, str) and any(map(str.isalnum, node.value)) and len(node.value) > 1
    }


def _compute(node: ast.expr | None) -> Any:
    """Return the value of an expression of constants.

    Raises:
        ValueError: It is not such an expression, or its value is too large. The other faults are those of the
            operators.
    """
    value = _compute_unlimited(node)
    is_large = (
        len(value) > MAX_VALUE_CHARS
        if hasattr(value, "__len__")
        else isinstance(value, (int, float)) and abs(value) > MAX_NUMBER
    )
    if is_large:
        raise ValueError("too large")
    return value


def _compute_unlimited(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_compute(operand)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_compute(part) for part in parts]
        case ast.JoinedStr(values=parts):
            return "".join(str(_compute(part)) for part in parts)
        case ast.FormattedValue(value=part, conversion=-1, format_spec=None):
            return _compute(part)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return _apply(sign, _compute(left), _compute(right))
        case ast.Subscript(value=owner, slice=ast.Slice(lower=lower, upper=upper, step=step)):
            limits = [None if limit is None else _compute(limit) for limit in (lower, upper, step)]
            return _compute(owner)[slice(*limits)]
        case ast.Subscript(value=owner, slice=index):
            return _compute(owner)[_compute(index)]
        case ast.Call(func=function, args=arguments, keywords=[]):
            return _call(function, [_compute(argument) for argument in arguments])
    raise ValueError("no constant")


def _apply(sign: ast.operator, first: Any, second: Any) -> Any:
    """Apply an operator, unless its result may be far larger than its operands."""
    is_text = isinstance(first, (str, bytes, list)) or isinstance(second, (str, bytes, list))
    size = 0
    if isinstance(sign, ast.LShift):
        size = second
    elif isinstance(sign, ast.Pow) and isinstance(first, int) and isinstance(second, int):
        size = first.bit_length() * second
    elif isinstance(sign, ast.Mult) and is_text:
        size = max(value for value in (first, second) if isinstance(value, int))
    if size > MAX_FACTOR:
        raise ValueError("too large")
    if isinstance(sign, ast.Mod) and is_text:
        raise ValueError("a format may have any width")
    return OPERATORS[type(sign)](first, second)


def _call(function: ast.expr, arguments: list[Any]) -> Any:
    match function:
        case ast.Name(id="bytes") if arguments and isinstance(arguments[0], list):
            return bytes(*arguments)
        case ast.Name(id=name) if name in FUNCTIONS:
            return FUNCTIONS[name](*arguments)
        case ast.Attribute(value=ast.Name(id="bytes"), attr="fromhex"):
            return bytes.fromhex(*arguments)
        case ast.Attribute(value=owner, attr=name) if name in METHODS:
            return getattr(_compute(owner), name)(*arguments)
    raise ValueError("no function of plain values")
