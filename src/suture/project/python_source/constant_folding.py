"""Compute the value of a Python expression that consists of constants, without running it.

`"_get" + "frame"`, `"emarf"[::-1]` and `base64.b64decode("b3M=")` are as good as literals, so rules about names
must not depend on how a name is spelled. Only the operations of the tables below are carried out, on short values.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from suture.project.tuning import MAX_FOLDED_DEPTH, MAX_FOLDED_SIZE

NameResolver = Callable[[ast.expr], str]
"""Returns the full name of a function, such as `base64.b64decode`."""
ValueFinder = Callable[[str], ast.expr | None]
"""Returns the expression that is the only value of a variable, or `None`."""

TEXT_METHODS = frozenset((
    "join", "replace", "lower", "upper", "title", "capitalize", "swapcase", "strip", "lstrip", "rstrip",
    "removeprefix", "removesuffix", "decode", "encode", "format", "split", "casefold", "hex",
))  # fmt: skip
"""Methods of `str` and `bytes` that are carried out."""
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "chr": chr,
    "ord": ord,
    "str": str,
    "bytes": bytes,
    "bytearray": bytes,
    "list": list,
    "tuple": tuple,
    "reversed": lambda values: list(reversed(values)),
    "sorted": sorted,
    "int": int,
    "base64.b64decode": base64.b64decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.b32decode": base64.b32decode,
    "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": base64.a85decode,
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_hex": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
    "bytes.fromhex": bytes.fromhex,
    "bytearray.fromhex": bytes.fromhex,
}
"""Functions that are carried out; `codecs.decode` and `map` are separate."""
CODECS = frozenset(("rot13", "rot_13", "hex", "hex_codec", "base64", "utf8", "ascii", "latin1"))
"""Encodings that `codecs.decode` is carried out for. Decompression is not, because its result may be huge."""
OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.BitXor: operator.xor,
    ast.Mod: operator.mod,
    ast.Mult: operator.mul,
}
PLAIN = (-1, ord("s"))
"""Conversions in an f-string that leave a string as it is."""
LARGE_WIDTH = re.compile(r"\d{4,}|\*")
"""Matches a width in a format that would make the result huge."""
FAULTS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What an operation on constants raises if the program would raise there, too."""


class ConstantFolder:
    """Compute the values of constant expressions of one module.

    Args:
        unknown: A string that stands for each part that is not constant. Without it, such an expression has no value.
    """

    def __init__(self, resolve: NameResolver, find_value: ValueFinder, unknown: str | None = None) -> None:
        self._unknown = unknown
        self._resolve = resolve
        self._find_value = find_value
        self._results: dict[ast.expr, Any] = {}
        """Results so far. Without them, `b = a + a; c = b + b; ...` would take exponential time."""

    def fold(self, node: ast.expr) -> Any:
        """Return the value of an expression (string, bytes, number or list), or `None` if it is not constant."""
        return self._fold(node, {}, 0)

    def _fold(self, node: ast.expr, variables: dict[str, Any], depth: int) -> Any:
        """Return a value or `None`.

        Args:
            variables: Values of the variables of the comprehension around the expression.
            depth: How many expressions are around this one.
        """
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str | bytes | int) else self._unknown
        if depth > MAX_FOLDED_DEPTH:
            return None
        if not variables and node in self._results:
            return self._results[node]
        if not variables:
            self._results[node] = self._unknown  # the answer for a variable that is defined by itself
        try:
            value = self._compute(node, variables, depth + 1)
        except FAULTS:
            value = None
        value = value if _is_small(value) else self._unknown
        if not variables:
            self._results[node] = value
        return value

    def _compute(self, node: ast.expr, variables: dict[str, Any], depth: int) -> Any:
        if isinstance(node, ast.Name):
            found = self._find_value(node.id)
            known = variables.get(node.id)
            return known if known is not None or found is None else self._fold(found, variables, depth)
        if isinstance(node, ast.BinOp):
            return self._compute_operation(node, variables, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._fold(node.operand, variables, depth)
        if isinstance(node, ast.JoinedStr):
            return self._join(node, variables, depth)
        if isinstance(node, ast.List | ast.Tuple):
            return self._fold_all(node.elts, variables, depth)
        if isinstance(node, ast.Subscript):
            owner = self._fold(node.value, variables, depth)
            return None if owner == self._unknown else owner[self._fold_index(node.slice, variables, depth)]
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._compute_comprehension(node, variables, depth)
        if isinstance(node, ast.Call):
            return self._compute_call(node, variables, depth)
        return None

    def _fold_all(self, nodes: list[ast.expr], variables: dict[str, Any], depth: int) -> list[Any] | None:
        values = [self._fold(node, variables, depth) for node in nodes[: MAX_FOLDED_SIZE + 1]]
        return None if any(value is None for value in values) else values

    def _compute_operation(self, node: ast.BinOp, variables: dict[str, Any], depth: int) -> Any:
        compute = OPERATORS.get(type(node.op))
        left = self._fold(node.left, variables, depth)
        if compute is None or left is None:
            return None
        # The right side of `%` is usually a tuple, which a list does not replace.
        right = self._fold(node.right, variables, depth)
        if right is None or (isinstance(left, str) and LARGE_WIDTH.search(left)):
            return None
        if isinstance(node.op, ast.Mult) and not (_fits(left) and _fits(right)):
            return None
        return compute(
            left, tuple(right) if isinstance(node.op, ast.Mod) and isinstance(right, list) else right
        )

    def _join(self, node: ast.JoinedStr, variables: dict[str, Any], depth: int) -> str | None:
        texts: list[str] = []
        for part in node.values:
            value = self._fold(part.value if isinstance(part, ast.FormattedValue) else part, variables, depth)
            if isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion not in PLAIN):
                value = self._unknown
            if value is None:
                return None
            texts.append(str(value))
        return "".join(texts)

    def _fold_index(self, node: ast.expr, variables: dict[str, Any], depth: int) -> Any:
        if not isinstance(node, ast.Slice):
            return self._fold(node, variables, depth)
        bounds = (node.lower, node.upper, node.step)
        return slice(
            *(None if bound is None else int(self._fold(bound, variables, depth)) for bound in bounds)
        )

    def _compute_comprehension(
        self, node: ast.ListComp | ast.GeneratorExp, variables: dict[str, Any], depth: int
    ) -> list[Any] | None:
        (generator, *others) = node.generators
        # Comprehensions inside of comprehensions would multiply the work.
        if variables or others or generator.ifs or not isinstance(generator.target, ast.Name):
            return None
        values = self._fold(generator.iter, variables, depth)
        name = generator.target.id
        found = [self._fold(node.elt, {name: value}, depth) for value in values]
        return None if any(value is None for value in found) else found

    def _compute_call(self, node: ast.Call, variables: dict[str, Any], depth: int) -> Any:
        function = self._resolve(node.func)
        if function == "map" and len(node.args) == 2 and self._resolve(node.args[0]) in FUNCTIONS:
            values = self._fold(node.args[1], variables, depth)
            return [FUNCTIONS[self._resolve(node.args[0])](value) for value in values]
        values = self._fold_all(node.args, variables, depth)
        options = {word.arg or "": self._fold(word.value, variables, depth) for word in node.keywords}
        is_format = isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        if values is None or "" in options or None in options.values() or (options and not is_format):
            return None
        if function == "codecs.decode":
            is_known = len(values) == 2 and str(values[1]).lower().replace("-", "") in CODECS
            return codecs.decode(*values) if is_known else None
        if function in FUNCTIONS:
            # `bytes(10**9)` is a gigabyte.
            is_size = function in ("bytes", "bytearray") and isinstance(values[0], int)
            return None if is_size else FUNCTIONS[function](*values)
        if isinstance(node.func, ast.Attribute) and node.func.attr in TEXT_METHODS:
            owner = self._fold(node.func.value, variables, depth)
            is_text = isinstance(owner, str | bytes) and not (
                node.func.attr == "format" and LARGE_WIDTH.search(str(owner))
            )
            is_decoding = node.func.attr in ("decode", "encode")
            if is_text and (
                not is_decoding or all(str(v).lower().replace("-", "") in CODECS for v in values[:1])
            ):
                return getattr(owner, node.func.attr)(*values, **options)
        return None


def _fits(value: Any) -> bool:
    return (
        len(value) <= MAX_FOLDED_SIZE
        if isinstance(value, str | bytes | list)
        else abs(value) <= MAX_FOLDED_SIZE
    )


def _is_small(value: Any) -> bool:
    if isinstance(value, str | bytes | list):
        return len(value) <= MAX_FOLDED_SIZE
    return isinstance(value, int) and abs(value) < 1 << 64
