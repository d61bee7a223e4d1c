"""The assertions of a Python test: what each one compares, how strictly, and whether its failure can be lost."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from suture.judge.test_changes.assertion import BROAD_EXCEPTIONS, Assertion, Strength, shorten_source

CHECKING_NAME = re.compile(r"_*(?:assert|check|verify|expect|ensure|validate)", re.IGNORECASE)
"""Matches the name of a helper that asserts."""
CATCHING_EXCEPTIONS = BROAD_EXCEPTIONS | {"AssertionError"}
"""Exceptions whose handler catches a failed assertion; an empty name is a bare `except`."""
EQUALITY_METHODS = re.compile(
    r"assert(?:Equals?|Is|IsNone|(?:Dict|List|Tuple|Set|Sequence|MultiLine|Count)Equal"
    r"|_called_once_with|_called_with|_has_calls|_not_called|_called_once|_any_call"
    r"|_awaited_once_with|_array_equal|_frame_equal|_series_equal|_equal)$"
)
APPROXIMATE_METHODS = re.compile(r"assert(?:AlmostEquals?|_allclose|_almost_equal|_approx_equal)$")
TRUTH_METHODS = re.compile(r"assert(?:True|False|IsNotNone|_)$")
TOLERANCE_ARGUMENTS = ("rel", "abs", "delta", "rel_tol", "abs_tol", "rtol", "atol", "places", "decimal")
"""Arguments that bound the error of a comparison. Of `places` and `decimal`, a smaller number is wider."""


def iter_assertions(body: Sequence[ast.stmt]) -> Iterator[Assertion]:
    """Yield the assertions of a test's statements, in their order."""
    yield from _iter_block(body, is_guarded=False, is_conditional=False)


def show_source(node: ast.AST) -> str:
    """Return the source of a node in one line, shortened."""
    return shorten_source(ast.unparse(node))


def _iter_block(body: Sequence[ast.stmt], *, is_guarded: bool, is_conditional: bool) -> Iterator[Assertion]:
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _iter_block(
                    statement.body,
                    is_guarded=is_guarded,
                    is_conditional=is_conditional or not _mentions(body, statement.name),
                )
            case ast.If():
                for block in (statement.body, statement.orelse):
                    yield from _iter_block(block, is_guarded=is_guarded, is_conditional=True)
            case ast.Try() | ast.TryStar():
                catches = any(map(_catches_failures, statement.handlers)) or _leaves(statement.finalbody)
                yield from _iter_block(
                    statement.body, is_guarded=is_guarded or catches, is_conditional=is_conditional
                )
                rest = [*(s for handler in statement.handlers for s in handler.body), *statement.orelse]
                yield from _iter_block(
                    [*rest, *statement.finalbody], is_guarded=is_guarded, is_conditional=is_conditional
                )
            case ast.With() | ast.AsyncWith():
                yield from _iter_with(statement, is_guarded=is_guarded, is_conditional=is_conditional)
            case ast.For() | ast.AsyncFor() | ast.While():
                yield from _iter_block(
                    statement.body,
                    is_guarded=is_guarded,
                    is_conditional=is_conditional or _never_repeats(statement),
                )
            case ast.Assert() | ast.Expr():
                assertion = _read_assertion(statement, is_guarded=is_guarded, is_conditional=is_conditional)
                if assertion is not None:
                    yield assertion


def _mentions(body: Sequence[ast.stmt], name: str) -> bool:
    """Return whether a name is read in some statements."""
    return any(
        isinstance(node, ast.Name) and node.id == name for statement in body for node in ast.walk(statement)
    )


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Return whether the block of a `finally` returns, which loses the exception."""
    return any(isinstance(statement, ast.Return | ast.Break | ast.Continue) for statement in body)


def _never_repeats(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Return whether the body of a loop never runs, as over an empty literal."""
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and not loop.test.value
    return isinstance(loop.iter, ast.Tuple | ast.List) and not loop.iter.elts


def _iter_with(
    statement: ast.With | ast.AsyncWith, *, is_guarded: bool, is_conditional: bool
) -> Iterator[Assertion]:
    suppresses = False
    for item in statement.items:
        call = item.context_expr
        if not isinstance(call, ast.Call):
            continue
        name = _called_name(call)
        if name == "suppress":
            suppresses |= any(ast.unparse(arg).rpartition(".")[2] in CATCHING_EXCEPTIONS for arg in call.args)
        elif name in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "assertLogs"):
            # An assertion that is expected to fail demands nothing.
            suppresses |= bool(CATCHING_EXCEPTIONS.intersection(_exception_names(call.args[:1])))
            yield Assertion(
                subject="; ".join(map(show_source, statement.body)),
                strength=Strength.EQUALITY,
                expected=", ".join(ast.unparse(keyword.value) for keyword in call.keywords)
                or ", ".join(map(ast.unparse, call.args[1:])),
                exceptions=_exception_names(call.args[:1]),
                is_guarded=is_guarded,
                is_conditional=is_conditional,
                line=statement.lineno,
                text=show_source(call),
            )
    yield from _iter_block(statement.body, is_guarded=is_guarded or suppresses, is_conditional=is_conditional)


def _exception_names(arguments: Sequence[ast.expr]) -> tuple[str, ...]:
    nodes = [
        element
        for argument in arguments
        for element in (argument.elts if isinstance(argument, ast.Tuple) else [argument])
    ]
    return tuple(sorted(ast.unparse(node).rpartition(".")[2] for node in nodes))


def _catches_failures(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches a failed assertion and does not raise again."""
    names = _exception_names([handler.type]) if handler.type is not None else ("",)
    raises = any(isinstance(node, ast.Raise) for statement in handler.body for node in ast.walk(statement))
    fails = any(
        isinstance(node, ast.Call) and _called_name(node) == "fail"
        for statement in handler.body
        for node in ast.walk(statement)
    )
    return bool(CATCHING_EXCEPTIONS.intersection(names)) and not raises and not fails


def _called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _read_assertion(
    statement: ast.Assert | ast.Expr, *, is_guarded: bool, is_conditional: bool
) -> Assertion | None:
    test: ast.expr
    if isinstance(statement, ast.Assert):
        subject, strength, expected, tolerances = _read_condition(statement.test)
    else:
        test = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
        read = _read_call(test) if isinstance(test, ast.Call) else None
        if read is None:
            return None
        subject, strength, expected, tolerances = read
    return Assertion(
        subject=subject,
        strength=strength,
        expected=expected,
        tolerances=tolerances,
        is_guarded=is_guarded,
        is_conditional=is_conditional,
        line=statement.lineno,
        text=show_source(statement),
    )


AssertionParts = tuple[str, Strength, str, tuple[tuple[str, float], ...]]
"""Subject, strength, expected value and tolerances."""


def _read_condition(test: ast.expr) -> AssertionParts:
    """Return the parts of the condition of an `assert`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            subject, strength, _, _ = _read_condition(operand)
            weaker = min(strength, Strength.RELATION) if strength else Strength.TRUTH
            return f"not {subject}", weaker, "", ()
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            if isinstance(operator, ast.Eq | ast.Is):
                return _read_equality(left, right)
            return ast.unparse(left), Strength.RELATION, f"{type(operator).__name__} {ast.unparse(right)}", ()
        case ast.Compare(left=left, ops=operators, comparators=comparators):
            is_equality = all(isinstance(operator, ast.Eq | ast.Is) for operator in operators)
            rest = ", ".join(map(ast.unparse, comparators))
            return ast.unparse(left), Strength.EQUALITY if is_equality else Strength.RELATION, rest, ()
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_read_condition(value) for value in values]
            strength = max(part[1] for part in parts)
            return "; ".join(part[0] for part in parts), strength, "; ".join(part[2] for part in parts), ()
        case ast.BoolOp(op=ast.Or(), values=[first, *others]):
            subject, _, _, _ = _read_condition(first)
            return subject, Strength.TRUTH, f"or {len(others)} more", ()
        case ast.Call() if _called_name(test) == "isclose":
            return _read_approximate(test)
        case ast.Call(args=[subject_node, *_]) if _called_name(test) in ("isinstance", "callable", "bool"):
            return ast.unparse(subject_node), Strength.RELATION, ast.unparse(test), ()
    return ast.unparse(test), Strength.TRUTH, "", ()


def _read_equality(left: ast.expr, right: ast.expr) -> AssertionParts:
    for subject, other in ((left, right), (right, left)):
        if isinstance(other, ast.Call) and _called_name(other) == "approx":
            return ast.unparse(subject), Strength.APPROXIMATE, _expected_of(other), _tolerances(other)
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
        left, right = right, left
    if ast.dump(left) == ast.dump(right):
        return ast.unparse(left), Strength.TRUTH, "itself", ()
    return ast.unparse(left), Strength.EQUALITY, ast.unparse(right), ()


def _read_call(call: ast.Call) -> AssertionParts | None:
    """Return the parts of a call that asserts; `None` for any other call."""
    name = _called_name(call)
    is_mock_method = name.startswith("assert_") and isinstance(call.func, ast.Attribute)
    first = ast.unparse(call.args[0]) if call.args else ""
    rest = ", ".join(map(ast.unparse, [*call.args[1:], *(keyword.value for keyword in call.keywords)]))
    if APPROXIMATE_METHODS.match(name):
        return _read_approximate(call)
    if EQUALITY_METHODS.match(name):
        if is_mock_method and not call.args and not call.keywords:
            return ast.unparse(call.func), Strength.EQUALITY, "", ()
        return (ast.unparse(call.func), Strength.EQUALITY, ast.unparse(call), ()) if is_mock_method else (
            first, Strength.EQUALITY, rest, ()
        )  # fmt: skip
    if TRUTH_METHODS.match(name) and call.args:
        subject, strength, expected, tolerances = _read_condition(call.args[0])
        return (f"not {subject}" if name == "assertFalse" else subject), strength, expected, tolerances
    if name.startswith("assert"):
        return first, Strength.RELATION, f"{name} {rest}", ()
    if CHECKING_NAME.match(name):
        return ast.unparse(call), Strength.EQUALITY, "", ()
    return None


def _read_approximate(call: ast.Call) -> AssertionParts:
    first, *others = call.args or [ast.Constant(value=None)]
    expected = ast.unparse(others[0]) if others else ""
    return ast.unparse(first), Strength.APPROXIMATE, expected, _tolerances(call)


def _expected_of(approx: ast.Call) -> str:
    return ast.unparse(approx.args[0]) if approx.args else ""


def _tolerances(call: ast.Call) -> tuple[tuple[str, float], ...]:
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in TOLERANCE_ARGUMENTS}
    if _called_name(call).startswith("assertAlmost") and len(call.args) > 2:
        named["places"] = call.args[2]
    values: dict[str, float] = {}
    for name, node in named.items():
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if name is not None and isinstance(value, int | float):
            values[name] = float(value)
    return tuple(sorted(values.items()))
