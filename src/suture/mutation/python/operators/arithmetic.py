"""Changes arithmetic: operators, operands, off-by-one errors, constants, missing terms.

`suture.mutation.changes` explains the weights. "Sign" means an operator of Python here, because "operator" means a
mutation operator.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

from suture.mutation.changes import Change, replace_span, rewrite_number, rewrite_text, shorten
from suture.mutation.python.python_tree import (
    PythonOperator,
    PythonTree,
    find_operator_sign,
    is_atom,
    is_read,
    replace_with,
)
from suture.mutation.python.scope_names import guess_kind
from suture.mutation.sign_frequencies import augmented_frequency, binary_frequency, frequency_ratio
from suture.mutation.tuning import MAX_REUSED, ODD_NUMBER_FACTOR, UBIQUITOUS_NUMBER

SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.MatMult: "@",
}  # fmt: skip
"""Class of an operator's node -> the operator as it is written."""
FAMILIES = (("+", "-", "*"), ("//", "/", "%"), ("&", "|", "^"), ("<<", ">>"), ("*", "**", "//"))
"""Signs that are mistaken for each other. Chosen by judgement; not measured."""
LITERAL = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>'''|\"\"\"|'|\")")
REGEX_SIGNS = ("\\s", "\\d", "\\w", "\\b", "[^", "(?", ".*", ".+", "\\.", "]+", "]*", ")*", "$")
"""Strings with one of these characters are taken to be regular expressions."""
REPLACEMENTS = (
    (r"\$(?!.)", ("", "{slash}Z")), (r"(?<!\$)(?!.)", ("$", "{slash}Z", "{slash}b")),
    (r"(?<!.)\^", ("",)), (r"(?<!.)(?!\^)", ("^", "{slash}b")),
    (r"(?<=(?<!\\)[*+}])(?!\?)", ("?",)), (r"(?<=[*+}])\?", ("",)),
    (r"(?<!\\)\*", ("+",)), (r"(?<!\\)\+", ("*",)),
    (r"(?<![\\\]])\.(?![*+?{])", ("{slash}.",)), (r" ", ("{slash}s", "{slash}s*")),
    (r"(?<=(?<!\\)\[\^)|(?<=(?<!\\)\[)(?!\^)", ("{slash}n", "{slash}s", "-", "_")),
)  # fmt: skip
"""Pattern of a part -> what may replace it. `{slash}` is a backslash as the literal has it."""
INDEXED = (ast.Subscript, ast.Slice)
CALCULATING = (*INDEXED, ast.Call, ast.Compare, ast.BinOp, ast.Return, ast.Assign, ast.AugAssign)
"""Parents at whose children a term may be missing."""
OPERANDS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
"""Expressions, other than constants, that may be numbers."""


def _other_operators(sign: str) -> tuple[str, ...]:
    """Return all other signs: those of the same family first, then one of each of the larger families.

    `@` is never offered, because hardly any type other than matrices has it.
    """
    same_family = [other for family in FAMILIES if sign in family for other in family]
    signs = (*same_family, "-", "&", "//", *(other for other in SIGNS.values() if other != "@"))
    return tuple(dict.fromkeys(other for other in signs if other != sign))


def _rank_weight(rank: int) -> float:
    """Return the weight of a sign by its rank: the first few are likelier, whatever their frequency is."""
    return 1.0 - 0.1 * rank if rank < 4 else 0.6


def _change_operator(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace the operator of a binary operation or an augmented assignment."""
    if isinstance(node, ast.AugAssign):
        sign = SIGNS[type(node.op)]
        start, end = find_operator_sign(tree, node.target, node.value, f"{sign}=")
        old_frequency = augmented_frequency(sign, node.value)
        for rank, other in enumerate(_other_operators(sign) if end else ()):
            weight = _rank_weight(rank)
            weight *= frequency_ratio(old_frequency, augmented_frequency(other, node.value))
            yield replace_span(start, end, f"{other}=", f"{sign}= becomes {other}=", weight)
        if end:
            yield replace_span(start, end, "=", f"{sign}= becomes =", 0.5)
        return
    assert isinstance(node, ast.BinOp)
    sign = SIGNS[type(node.op)]
    start, end = find_operator_sign(tree, node.left, node.right, sign)
    others = _other_operators(sign) if end else ()
    if node in tree.annotations:  # two types have no other operator between them
        others = tuple(other for other in others if other == "|")
    old_frequency = binary_frequency(node.left, sign, node.right)
    for rank, other in enumerate(others):
        note = f"{sign} becomes {other} in {tree.text(node)}"
        ratio = frequency_ratio(old_frequency, binary_frequency(node.left, other, node.right))
        yield replace_span(start, end, other, note, _rank_weight(rank) * ratio)


def _change_operands(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Drop an operand, or swap the two."""
    assert isinstance(node, ast.BinOp)
    left, right = _parenthesised(tree, node.left), _parenthesised(tree, node.right)
    sign = SIGNS[type(node.op)]
    yield replace_with(tree, node, tree.text(node.left), 0.9)
    yield replace_with(tree, node, tree.text(node.right), 0.8)
    if left != right and sign not in ("*", "&", "|", "^"):  # the order of their operands has no effect
        # The order matters in a sum of strings or lists, but not of numbers.
        is_sum = sign == "+" and "number" in (guess_kind(node.left), guess_kind(node.right))
        yield replace_with(tree, node, f"{right} {sign} {left}", 0.4 if is_sum else 1.0)


def _change_sign(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Remove or change a unary sign, or negate a value that is returned or assigned."""
    if isinstance(node, ast.UnaryOp):
        is_unusual = isinstance(node.op, ast.Invert | ast.UAdd)
        if not isinstance(node.op, ast.Not):
            yield replace_with(tree, node, tree.text(node.operand), 1.0 if is_unusual else 0.8)
        for sign in ("-", "not ", "~"):
            weight = 1.0 if sign == "-" and is_unusual else 0.5 if sign != "~" else 0.3
            yield replace_with(tree, node, f"{sign}{_parenthesised(tree, node.operand)}", weight)
    elif isinstance(node, ast.Slice):
        for bound in (node.lower, node.upper):
            if bound is not None and not isinstance(bound, ast.UnaryOp):
                yield replace_with(tree, bound, f"-{_parenthesised(tree, bound)}", 0.3)
    elif isinstance(node, (ast.Return, ast.Assign)) and node.value and _may_be_number(node.value, tree):
        yield replace_with(tree, node.value, f"-{_parenthesised(tree, node.value)}", 0.6)


def _add_or_subtract_one(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add one to a number, or subtract one."""
    if not isinstance(node, ast.expr) or not _may_be_number(node, tree):
        return
    parent = tree.parent(node)
    is_summand = isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))
    if not is_read(node) or is_summand:  # the whole sum gets the one
        return
    weight = _position_weight(node, tree)
    if weight:
        text = _parenthesised(tree, node, sums=True)
        yield replace_with(tree, node, f"{text} + 1", weight)
        yield replace_with(tree, node, f"{text} - 1", weight)


def _position_weight(node: ast.expr, tree: PythonTree) -> float:
    """Return how likely a number is off by one in its position; 0 in positions where that is unusual."""
    parent = tree.parent(node)
    if isinstance(parent, ast.Tuple):  # an element counts like its tuple: `a[i, j]`, `return a, b`
        node, parent = parent, tree.parent(parent)
    if isinstance(parent, INDEXED) and node is not getattr(parent, "value", None):
        return 1.0
    if isinstance(parent, ast.Compare):
        return 0.9
    if isinstance(parent, ast.Call) and node is not parent.func:
        return 1.0 if isinstance(parent.func, ast.Name) and parent.func.id == "range" else 0.8
    return 0.6 if isinstance(parent, (ast.Return, ast.Assign, ast.AugAssign, ast.BinOp)) else 0.0


def _change_constant(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Replace a constant with a similar one."""
    if isinstance(node, ast.UnaryOp):
        operand = node.operand
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) is int:
            yield from _other_numbers(node, -operand.value, tree)
        return
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        if not isinstance(tree.parent(node), ast.Return):  # the operator `returned_condition` changes these
            yield replace_with(tree, node, str(not value))
    elif isinstance(value, int):
        if not isinstance(tree.parent(node), ast.UnaryOp):  # `-1` is changed as a whole, above
            yield from _other_numbers(node, value, tree)
    elif isinstance(value, float):
        numbers = (-value, 0.0, 1.0, value + 1, value - 1, 2 * value, value / 2, 10 * value, value / 10)
        for other in dict.fromkeys(numbers):
            if other != value:
                yield replace_with(tree, node, repr(other), 0.6)
    # A string that is a statement is a docstring, and a string in an f-string has no quotes of its own.
    elif isinstance(value, str) and not isinstance(tree.parent(node), (ast.Expr, ast.JoinedStr)):
        yield from (replace_with(tree, node, repr(text), 0.5) for text in _other_texts(value))
        yield from (replace_with(tree, node, repr(text), 0.8) for text in _similar_texts(value, tree))
        yield replace_with(tree, node, "None", 0.6 if not value else 0.2)


def _other_numbers(node: ast.expr, value: int, tree: PythonTree) -> Iterator[Change]:
    """Yield other numbers: off by one first, then common ones, the negative, and the double."""
    similar = (value + 1, value - 1, 0, 1, -value, 2, 2 * value)
    counts = tree.cached("numbers", _count_numbers)
    for rank, other in enumerate(dict.fromkeys(number for number in similar if number != value)):
        is_odd = counts[value] == 1 and counts[other] > 1 and abs(other) > UBIQUITOUS_NUMBER
        weight = (1.0 - 0.1 * rank) * (ODD_NUMBER_FACTOR if is_odd else 1.0)
        yield replace_with(tree, node, str(other), weight)


def _count_numbers(tree: PythonTree) -> Counter[int]:
    """Return how often each integer appears in the file."""
    constants = (node.value for node in tree.nodes if isinstance(node, ast.Constant))
    return Counter(value for value in constants if type(value) is int)


def _other_texts(value: str) -> Iterator[str]:
    """Yield variants of a string: other blanks, another case, and fewer characters at its ends."""
    texts = (
        "", " ", value.strip(), value.lower(), value.upper(), f"{value} ", f" {value}", f"{value}\n",
        value.capitalize(), value.title(), value.swapcase(),
        value[1:], value[:-1], value[1:-1], value[2:-2],
    )  # fmt: skip
    yield from dict.fromkeys(text for text in texts if text != value)


def _similar_texts(value: str, tree: PythonTree) -> list[str]:
    """Return strings of the file that differ a little from a given one: in case, a letter, or what surrounds it.

    Strings of one or two letters are similar to too many others. All limits are chosen by judgement.
    """
    texts = [text for text in tree.cached("texts", _collect_texts) if text != value]
    similar = [text for text in texts if text.casefold() == value.casefold()]
    if len(value) > 2:
        similar += [text for text in texts if len(text) > 2 and (text in value or value in text)]
        similar += get_close_matches(value, texts, 3, 0.75)
    return list(dict.fromkeys(similar))[:6]


def _collect_texts(tree: PythonTree) -> list[str]:
    """Return the first short strings of the file, each once. Both limits are chosen by judgement."""
    nodes = (node for node in tree.nodes if isinstance(node, ast.Constant))
    return list(dict.fromkeys(n.value for n in nodes if isinstance(n.value, str) and len(n.value) < 60))[:400]


def _use_expected_value(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Change a literal as the actual value of a failing test differs from the expected one."""
    assert isinstance(node, (ast.Constant, ast.JoinedStr))
    value = getattr(node, "value", "")
    if isinstance(value, str) and tree.differences and not isinstance(tree.parent(node), ast.Expr):
        start, end = tree.span(node)
        text = tree.raw[start:end].decode("utf-8", "surrogatepass")
        for first, last, new, weight in rewrite_text(text, tree.differences):
            changed = f"{text[:first]}{new}{text[last:]}"
            yield replace_span(start, end, changed, f"{shorten(text)} becomes {shorten(changed)}", weight)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        for number, weight in rewrite_number(value, tree.differences):
            yield replace_with(tree, node, repr(number), weight)


def _change_regex(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Change a part of a regular expression."""
    assert isinstance(node, ast.Constant)
    if not isinstance(node.value, str) or not any(sign in node.value for sign in REGEX_SIGNS):
        return
    start, end = tree.span(node)
    text = tree.raw[start:end].decode("utf-8", "surrogatepass")
    literal = LITERAL.match(text)
    if literal is None or isinstance(tree.parent(node), (ast.Expr, ast.JoinedStr)):
        return
    pattern = text[literal.end() : len(text) - len(literal["quote"])]
    slash = "\\" if "r" in literal["prefix"].lower() else "\\\\"
    for part, replacements in REPLACEMENTS:
        for match in list(re.finditer(part, pattern, re.DOTALL))[:MAX_REUSED]:
            offset = start + len(text[: literal.end() + match.start()].encode("utf-8", "surrogatepass"))
            for replacement in replacements:
                new = replacement.replace("{slash}", slash)
                note = f"{shorten(pattern)}: {match[0]!r} becomes {new!r}"
                yield replace_span(offset, offset + len(match[0]), new, note)


def _add_term(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Add an operand: `k` becomes `k - skipped`, `x` becomes `x ** 2`."""
    if not isinstance(node, OPERANDS) or not is_read(node):
        return
    parent = tree.parent(node)
    if not isinstance(parent, CALCULATING) or not _may_be_number(node, tree):
        return
    if tree.is_called(node) or (isinstance(parent, ast.Subscript) and node is parent.value):
        return  # what is called or indexed is not a number
    text = _parenthesised(tree, node)
    yield replace_with(tree, node, f"{text} ** 2", 0.6)
    yield replace_with(tree, node, f"{text} // 2", 0.5)
    names = tree.scope_names(node)
    for other, fit in names.fitting("number", tree.enclosing_statement(node).lineno):
        if other != text:
            is_number = "number" in (names.kinds[other], names.observed.get(other))
            weight = fit if is_number else 0.7 * fit
            yield replace_with(tree, node, f"{text} - {other}", weight)
            yield replace_with(tree, node, f"{text} + {other}", weight)
            yield replace_with(tree, node, f"{text} * {other}", 0.6 * weight)


def _add_concatenation(node: ast.AST, tree: PythonTree) -> Iterator[Change]:
    """Concatenate another list, before or after a list."""
    names, parent = tree.scope_names(node), tree.parent(node)
    if not isinstance(node, ast.expr) or not isinstance(parent, (ast.Return, ast.Assign, ast.Call)):
        return
    if guess_kind(node, names) != "sequence" or isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
        return
    text = tree.text(node)
    for other, fit in names.fitting("sequence", tree.enclosing_statement(node).lineno):
        if other != text:
            yield replace_with(tree, node, f"{other} + {text}", fit)
            yield replace_with(tree, node, f"{text} + {other}", fit)


def _find_boolean_names(tree: PythonTree) -> frozenset[str]:
    """Return names that the file sets to true or false, and never to a number."""
    booleans: set[str] = set()
    others: set[str] = set()
    for node in tree.nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            names = {getattr(target, "id", getattr(target, "attr", "")) for target in targets}
            (booleans if isinstance(value.value, bool) else others).update(names)
    return frozenset(booleans - others)


def _may_be_number(node: ast.expr, tree: PythonTree) -> bool:
    """Return whether an expression is an integer, or an operand that nothing shows to be something else."""
    if isinstance(node, ast.Constant):
        # `type`, because a boolean is an instance of `int`. The `1` of `-1` is only a part of a number.
        return type(node.value) is int and not isinstance(tree.parent(node), ast.UnaryOp)
    if isinstance(node, ast.Name) and node.id in tree.functions:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in tree.cached("boolean names", _find_boolean_names):
            return False
    names = tree.scope_names(node)
    if isinstance(node, ast.Name) and names.is_unlike(node.id, "number"):
        return False
    return guess_kind(node, names) in ("number", "unknown") and isinstance(node, OPERANDS)


def _parenthesised(tree: PythonTree, node: ast.expr, *, sums: bool = False) -> str:
    """Return the source of an operand, in parentheses where it needs them.

    Args:
        sums: Whether the source becomes the left operand of a sum, where no other operation needs parentheses.
    """
    text = tree.text(node)
    if is_atom(text) or isinstance(node, ast.Constant) or (sums and isinstance(node, ast.BinOp)):
        return text
    return f"({text})"


COUNTABLE = (ast.Name, ast.Constant, ast.BinOp, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that may be off by one."""
LISTS = (ast.Name, ast.List, ast.ListComp)
"""Expressions that may be a list."""
OPERATORS = (
    PythonOperator(name="arithmetic_operator", nodes=(ast.BinOp, ast.AugAssign), changes=_change_operator),
    PythonOperator(name="operand", nodes=(ast.BinOp,), changes=_change_operands),
    PythonOperator(
        name="sign_change", nodes=(ast.UnaryOp, ast.Slice, ast.Return, ast.Assign), changes=_change_sign
    ),
    PythonOperator(name="off_by_one", nodes=COUNTABLE, changes=_add_or_subtract_one),
    PythonOperator(name="constant", nodes=(ast.Constant, ast.UnaryOp), changes=_change_constant),
    PythonOperator(name="expected_value", nodes=(ast.Constant, ast.JoinedStr), changes=_use_expected_value),
    PythonOperator(name="regular_expression", nodes=(ast.Constant,), changes=_change_regex),
    PythonOperator(name="missing_term", nodes=OPERANDS, changes=_add_term),
    PythonOperator(name="missing_concatenation", nodes=LISTS, changes=_add_concatenation),
)
