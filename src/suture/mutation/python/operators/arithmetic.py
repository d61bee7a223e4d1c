"""Arithmetic: wrong signs and operands, off by one, wrong constants, a missing term."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches

from suture.mutation.edits import Edit
from suture.mutation.sign_frequencies import frequency_ratio, augmented_frequency, binary_frequency
from suture.mutation.python.scope_names import guess_kind
from suture.mutation.python.python_tree import PythonTree, is_atom
from suture.mutation.changes import Change, Operator, replace_with, find_operator_sign

SIGNS: dict[type[ast.operator], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
    ast.MatMult: "@",
}
FAMILIES = (("+", "-", "*"), ("//", "/", "%"), ("&", "|", "^"), ("<<", ">>"), ("*", "**", "//"))
INDEXED = (ast.Subscript, ast.Slice)
CALCULATING = (*INDEXED, ast.Call, ast.Compare, ast.BinOp, ast.Return, ast.Assign, ast.AugAssign)
OPERANDS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
SMALL = 2
"""Numbers up to this stand everywhere, whatever they mean."""
ODD_ONE_OUT = 1.6
"""A number that the file names once, and one beside it that it names several times: 999 among 1000s."""


def _others(sign: str) -> tuple[str, ...]:
    near = [other for family in FAMILIES if sign in family for other in family]
    every = (*near, "-", "&", "//", *(s for s in SIGNS.values() if s != "@"))
    return tuple(dict.fromkeys(other for other in every if other != sign))


def _weight(number: int) -> float:
    """Of a sign by its place: the first few are likelier, where none of them is the more usual one."""
    return 1.0 - 0.1 * number if number < 4 else 0.6


def _sign(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if isinstance(node, ast.AugAssign):
        sign = SIGNS[type(node.op)]
        start, end = find_operator_sign(view, node.target, node.value, (f"{sign}=",))
        for number, other in enumerate(_others(sign) if end else ()):
            edit = Edit(start=start, end=end, text=f"{other}=")
            usual = frequency_ratio(augmented_frequency(sign, node.value), augmented_frequency(other, node.value))
            yield Change(edits=(edit,), note=f"{sign}= becomes {other}=", weight=_weight(number) * usual)
        if end:
            plain = Edit(start=start, end=end, text="=")
            yield Change(edits=(plain,), note=f"{sign}= becomes =", weight=0.5)
        return
    assert isinstance(node, ast.BinOp)
    sign = SIGNS[type(node.op)]
    start, end = find_operator_sign(view, node.left, node.right, (sign,))
    others = _others(sign) if end else ()
    if node in view.annotations:  # two types have no other sign between them
        others = tuple(other for other in others if other == "|")
    for number, other in enumerate(others):
        edit = Edit(start=start, end=end, text=other)
        note = f"{sign} becomes {other} in {view.text(node)}"
        usual = frequency_ratio(
            binary_frequency(node.left, sign, node.right), binary_frequency(node.left, other, node.right)
        )
        yield Change(edits=(edit,), note=note, weight=_weight(number) * usual)


def _operand(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    assert isinstance(node, ast.BinOp)
    left, right, sign = _tight(view, node.left), _tight(view, node.right), SIGNS[type(node.op)]
    yield replace_with(view, node, view.text(node.left), 0.9)
    yield replace_with(view, node, view.text(node.right), 0.8)
    if left != right and sign not in ("*", "&", "|", "^"):
        known = {guess_kind(node.left), guess_kind(node.right)}
        yield replace_with(view, node, f"{right} {sign} {left}", 0.4 if sign == "+" and "number" in known else 1.0)


def _negative(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if isinstance(node, ast.UnaryOp):
        usual = not isinstance(node.op, ast.Invert | ast.UAdd)
        if not isinstance(node.op, ast.Not):
            yield replace_with(view, node, view.text(node.operand), 0.8 if usual else 1.0)
        for sign in ("-", "not ", "~"):
            weight = 1.0 if sign == "-" and not usual else 0.5 if sign != "~" else 0.3
            yield replace_with(view, node, f"{sign}{_tight(view, node.operand)}", weight)
    elif isinstance(node, (ast.Return, ast.Assign)) and node.value and _may_be_number(node.value, view):
        yield replace_with(view, node.value, f"-{_tight(view, node.value)}", 0.6)


def _off_by_one(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if not isinstance(node, ast.expr) or not _may_be_number(node, view):
        return
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)) or _part_of_sum(node, view):
        return
    weight = _place_weight(node, view)
    if weight:
        text = _tight(view, node, sums=True)
        yield replace_with(view, node, f"{text} + 1", weight)
        yield replace_with(view, node, f"{text} - 1", weight)


def _place_weight(node: ast.expr, view: PythonTree) -> float:
    """How likely a number is off by one where it stands; 0 where nobody counts."""
    parent = view.parent(node)
    if isinstance(parent, ast.Tuple):
        node, parent = parent, view.parent(parent)
    if isinstance(parent, INDEXED) and node is not getattr(parent, "value", None):
        return 1.0
    if isinstance(parent, ast.Compare):
        return 0.9
    if isinstance(parent, ast.Call) and node is not parent.func:
        return 1.0 if isinstance(parent.func, ast.Name) and parent.func.id == "range" else 0.8
    return 0.6 if isinstance(parent, (ast.Return, ast.Assign, ast.AugAssign, ast.BinOp)) else 0.0


def _part_of_sum(node: ast.expr, view: PythonTree) -> bool:
    parent = view.parent(node)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Add, ast.Sub))


def _constant(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    if isinstance(node, ast.UnaryOp):
        inner = node.operand
        if isinstance(node.op, ast.USub) and isinstance(inner, ast.Constant) and type(inner.value) is int:
            yield from _number(node, -inner.value, view)
        return
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        if not isinstance(view.parent(node), ast.Return):
            yield replace_with(view, node, str(not value))
    elif isinstance(value, int):
        if not isinstance(view.parent(node), ast.UnaryOp):
            yield from _number(node, value, view)
    elif isinstance(value, float):
        near = (-value, 0.0, 1.0, value + 1, value - 1, 2 * value, value / 2, 10 * value, value / 10)
        yield from (replace_with(view, node, repr(other), 0.6) for other in dict.fromkeys(near) if other != value)
    elif isinstance(value, str) and not isinstance(view.parent(node), (ast.Expr, ast.JoinedStr)):
        yield from (replace_with(view, node, repr(text), 0.5) for text in _other_texts(value))
        yield from (replace_with(view, node, repr(text), 0.8) for text in _texts_like(value, view))
        yield replace_with(view, node, "None", 0.6 if not value else 0.2)


def _number(node: ast.expr, value: int, view: PythonTree) -> Iterator[Change]:
    """Off by one first, then what is usual, its sign, and twice as much."""
    near = (value + 1, value - 1, 0, 1, -value, 2, 2 * value)
    counts = view.cached("numbers", _numbers)
    for number, other in enumerate(dict.fromkeys(v for v in near if v != value)):
        is_odd = counts[value] == 1 and counts[other] > 1 and abs(other) > SMALL
        yield replace_with(view, node, str(other), (1.0 - 0.1 * number) * (ODD_ONE_OUT if is_odd else 1.0))


def _numbers(view: PythonTree) -> Counter[int]:
    """How often the file names a number."""
    constants = (node.value for node in ast.walk(view.tree) if isinstance(node, ast.Constant))
    return Counter(value for value in constants if type(value) is int)


def _other_texts(value: str) -> Iterator[str]:
    near = ("", " ", value.strip(), value.lower(), value.upper(), f"{value} ", f" {value}", f"{value}\n")
    cases = (value.capitalize(), value.title(), value.swapcase())
    cut = (value[1:], value[:-1], value[1:-1], value[2:-2])
    yield from dict.fromkeys(text for text in (*near, *cases, *cut) if text != value)


def _texts_like(value: str, view: PythonTree) -> list[str]:
    """Texts of the file that differ from one by a little: its case, a letter, what stands around it."""
    texts = view.cached("texts", _texts)
    found = [text for text in texts if text != value and text.casefold() == value.casefold()]
    if len(value) > 2:
        found += [t for t in texts if t != value and len(t) > 2 and (t in value or value in t)]
        found += get_close_matches(value, [t for t in texts if t != value], 3, 0.75)
    return list(dict.fromkeys(found))[:6]


def _texts(view: PythonTree) -> list[str]:
    nodes = (node for node in ast.walk(view.tree) if isinstance(node, ast.Constant))
    return list(dict.fromkeys(n.value for n in nodes if isinstance(n.value, str) and len(n.value) < 60))[:400]


def _missing_term(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """An operand that was left out: `k` where `k - skipped` is meant, `x` where `x ** 2` is."""
    if not isinstance(node, OPERANDS) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    parent = view.parent(node)
    if not isinstance(parent, CALCULATING) or not _may_be_number(node, view):
        return
    if isinstance(parent, ast.Call) and node is parent.func:
        return
    if isinstance(parent, ast.Subscript) and node is parent.value:
        return
    text = _tight(view, node)
    yield replace_with(view, node, f"{text} ** 2", 0.6)
    yield replace_with(view, node, f"{text} // 2", 0.5)
    names = view.scope_names(node)
    for other, fit in names.fitting("number", view.enclosing_statement(node).lineno):
        if other != text:
            weight = fit if names.kinds[other] == "number" else 0.7 * fit
            yield replace_with(view, node, f"{text} - {other}", weight)
            yield replace_with(view, node, f"{text} + {other}", weight)
            yield replace_with(view, node, f"{text} * {other}", 0.6 * weight)


def _missing_part(node: ast.AST, view: PythonTree) -> Iterator[Change]:
    """A list that lacks another list in front of it or behind it."""
    names, parent = view.scope_names(node), view.parent(node)
    if not isinstance(node, ast.expr) or not isinstance(parent, (ast.Return, ast.Assign, ast.Call)):
        return
    if guess_kind(node, names) != "sequence" or isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
        return
    text = view.text(node)
    for other, fit in names.fitting("sequence", view.enclosing_statement(node).lineno):
        if other != text:
            yield replace_with(view, node, f"{other} + {text}", fit)
            yield replace_with(view, node, f"{text} + {other}", fit)


def _switches(view: PythonTree) -> frozenset[str]:
    """Names that the file sets to true or false, and never to a number."""
    on: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(view.tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if isinstance(value, ast.Constant) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            named = {getattr(target, "id", getattr(target, "attr", "")) for target in targets}
            (on if isinstance(value.value, bool) else others).update(named)
    return frozenset(on - others)


def _may_be_number(node: ast.expr, view: PythonTree) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int and not isinstance(view.parent(node), ast.UnaryOp)
    if isinstance(node, ast.Name) and node.id in view.functions:
        return False
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in view.cached("switches", _switches):
            return False
    kind = guess_kind(node, view.scope_names(node))
    return kind in ("number", "unknown") and isinstance(node, OPERANDS)


def _tight(view: PythonTree, node: ast.expr, *, sums: bool = False) -> str:
    text = view.text(node)
    if is_atom(text) or isinstance(node, ast.Constant) or (sums and isinstance(node, ast.BinOp)):
        return text
    return f"({text})"


COUNTED = (ast.Name, ast.Constant, ast.BinOp, ast.Call, ast.Attribute, ast.Subscript)
LISTS = (ast.Name, ast.List, ast.ListComp)
OPERATORS = (
    Operator(name="arithmetic sign", prior=0.7, nodes=(ast.BinOp, ast.AugAssign), changes=_sign),
    Operator(name="operand", prior=0.5, nodes=(ast.BinOp,), changes=_operand),
    Operator(name="negative", prior=0.4, nodes=(ast.UnaryOp, ast.Return, ast.Assign), changes=_negative),
    Operator(name="off by one", prior=0.5, nodes=COUNTED, changes=_off_by_one),
    Operator(name="constant", prior=0.6, nodes=(ast.Constant, ast.UnaryOp), changes=_constant),
    Operator(name="missing term", prior=0.25, nodes=OPERANDS, changes=_missing_term),
    Operator(name="missing part", prior=0.25, nodes=LISTS, changes=_missing_part),
)
