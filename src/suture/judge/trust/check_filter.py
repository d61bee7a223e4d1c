"""Filter generated checks without running them: repetitions, contradictions, and checks that test nothing.

Each check is parsed into a claim, a call and what it should give, in a form in which two claims can be
compared.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from suture.core.records import Check, Provenance
from suture.judge.extraction.doctest_examples import deduplicate_checks
from suture.project.python_source.parsing import parse_module

LITERAL_ERRORS = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
BUILTINS = frozenset(dir(builtins))

RejectionCode = Literal[
    "unparsable",
    "other_function",
    "trivial",
    "repeats_given",
    "contradicts_given",
    "repeats_generated",
    "contradicts_generated",
]
"""Why a generated check is not used."""


@dataclass(frozen=True, kw_only=True)
class ExpectedResult:
    """What a call should give.

    Attributes:
        kind: `equals` for a value, `truth` if only its truth counts.
        value: The value; for `truth` a bool.
    """

    kind: Literal["equals", "truth"]
    value: Any


@dataclass(frozen=True, kw_only=True)
class CheckClaim:
    """A parsed check.

    Attributes:
        program: The program in a normal form, without messages and comments.
        call: The statements before the assert, and the call in it, as source; empty unless the check is a
            single assert of one call.
        expected: What the call should give; `None` if `call` is empty.
        names: Names that the program reads.
        trivial: Whether it compares an expression with itself, or asserts a constant.
    """

    program: str
    call: str = ""
    expected: ExpectedResult | None = None
    names: frozenset[str] = frozenset()
    trivial: bool = False

    @property
    def last_line(self) -> str:
        """The last line of the program, which is usually the assert."""
        return self.program.splitlines()[-1]


@dataclass(frozen=True, kw_only=True)
class RejectedCheck:
    """A generated check that is not used.

    Attributes:
        subject: The function that it should use, or the check that it repeats or contradicts.
    """

    check: Check
    code: RejectionCode
    subject: str = ""


def render_rejection(rejected: RejectedCheck) -> str:
    """Return why a check is not used, as text."""
    subject = rejected.subject
    texts: dict[RejectionCode, str] = {
        "unparsable": "it is not valid Python",
        "other_function": f"it does not use {subject}",
        "trivial": "it holds for any code",
        "repeats_given": "a given check says the same",
        "contradicts_given": f"it contradicts a given check: {subject}",
        "repeats_generated": f"it repeats: {subject}",
        "contradicts_generated": f"it contradicts {subject!r}, which has as much trust or more",
    }
    return texts[rejected.code]


@dataclass(frozen=True, kw_only=True)
class FilteredChecks:
    """Generated checks that are worth a run.

    Attributes:
        checks: The checks without repetitions; their ids are unique, also among the given checks.
        record: Author -> (number of its checks that repeat a given check, number that contradict one).
    """

    checks: tuple[Check, ...]
    claims: Mapping[str, CheckClaim]
    removed: tuple[RejectedCheck, ...]
    record: Mapping[Provenance, tuple[int, int]]


def filter_checks(
    generated: Sequence[Check], given: Sequence[Check], entry_point: str | None = None
) -> FilteredChecks:
    """Remove generated checks that repeat or contradict given ones, repeat each other, or test nothing.

    Generated checks that contradict each other all stay: running them shows which one is wrong.

    Args:
        given: The user's checks and the statement's examples, which are right by definition.
        entry_point: The function that the checks must use, if it is known.
    """
    examples = tuple(claim for check in given if (claim := parse_claim(check)) is not None)
    usable: list[Check] = []
    claims: list[CheckClaim] = []
    removed: list[RejectedCheck] = []
    record = {check.provenance: (0, 0) for check in generated}
    for check in generated:
        claim = parse_claim(check)
        if claim is None:
            removed.append(RejectedCheck(check=check, code="unparsable"))
            continue
        rejected = (
            _reject_unfit(check, claim, entry_point)
            or _reject_against_given(check, claim, examples)
            or _reject_repetition(check, claim, claims)
        )
        if rejected is None:
            usable.append(check)
            claims.append(claim)
            continue
        removed.append(rejected)
        right, wrong = record[check.provenance]
        right += rejected.code == "repeats_given"
        wrong += rejected.code == "contradicts_given"
        record[check.provenance] = (right, wrong)
    # Different checks may have equal ids, so they are renamed together with the given ones.
    renamed = deduplicate_checks((*given, *usable))[len(deduplicate_checks(given)) :]
    return FilteredChecks(
        checks=renamed,
        claims={check.id: claim for check, claim in zip(renamed, claims, strict=True)},
        removed=tuple(removed),
        record=record,
    )


def _reject_unfit(check: Check, claim: CheckClaim, entry_point: str | None) -> RejectedCheck | None:
    if entry_point is not None and entry_point not in claim.names:
        return RejectedCheck(check=check, code="other_function", subject=entry_point)
    return RejectedCheck(check=check, code="trivial") if claim.trivial else None


def _reject_against_given(
    check: Check, claim: CheckClaim, examples: Sequence[CheckClaim]
) -> RejectedCheck | None:
    for example in examples:
        if claim.program == example.program:
            return RejectedCheck(check=check, code="repeats_given")
        if claim.expected is None or example.expected is None or claim.call != example.call:
            continue
        if contradict(claim.expected, example.expected):
            return RejectedCheck(check=check, code="contradicts_given", subject=example.last_line)
        # The given check shows the result, and that includes its truth.
        if claim.expected == example.expected or claim.expected.kind == "truth":
            return RejectedCheck(check=check, code="repeats_given")
    return None


def _reject_repetition(
    check: Check, claim: CheckClaim, earlier: Sequence[CheckClaim]
) -> RejectedCheck | None:
    for other in earlier:
        # `repr` distinguishes the results 1, 1.0 and True, which are equal.
        is_same = claim.call and claim.call == other.call and repr(claim.expected) == repr(other.expected)
        if is_same or claim.program == other.program:
            return RejectedCheck(check=check, code="repeats_generated", subject=other.last_line)
    return None


def parse_claim(check: Check) -> CheckClaim | None:
    """Return the claim of a check; `None` if it is not valid Python, or is nested too deeply."""
    tree = parse_module(check.source)
    try:
        return None if tree is None else _parse_tree(tree)
    except RecursionError:
        return None


def _parse_tree(tree: ast.Module) -> CheckClaim:
    tree = ast.fix_missing_locations(_Normalizer().visit(tree))
    names = frozenset(
        part.id for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    )
    asserts = [part for part in ast.walk(tree) if isinstance(part, ast.Assert)]
    trivial = bool(asserts) and all(_is_trivial(part.test) for part in asserts)
    program = ast.unparse(tree)
    last = tree.body[-1] if tree.body else None
    claim = CheckClaim(program=program, names=names, trivial=trivial)
    if len(asserts) == 1 and isinstance(last, ast.Assert):
        call_and_result = _find_expected_result(last.test)
        if call_and_result is not None:
            call, expected = call_and_result
            statements = [ast.unparse(node) for node in (*tree.body[:-1], call)]
            return replace(claim, call="\n".join(statements), expected=expected)
    return claim


def contradict(left: ExpectedResult, right: ExpectedResult) -> bool:
    """Return whether one call cannot fulfil both expectations."""
    if left.kind == right.kind == "equals":
        values = (left.value, right.value)
        # A value that differs from itself, such as nan, proves nothing.
        return bool(values[0] != values[1]) and not any(value != value for value in values)
    return bool(left.value) != bool(right.value)


class _Normalizer(ast.NodeTransformer):
    """Removes messages of asserts, and statements that are only a constant."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        return ast.Assert(test=self.visit(node.test), msg=None)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _read_literal(node: ast.expr) -> tuple[Any] | None:
    """Return `(value,)` for a literal, and `None` for other expressions. No code of the model runs."""
    try:
        return (ast.literal_eval(node),)
    except LITERAL_ERRORS:
        return None


def _find_expected_result(test: ast.expr) -> tuple[ast.expr, ExpectedResult] | None:
    """Return (call, expected result) of an asserted expression; `None` if it has another form."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _has_own_call(test.operand):
        return test.operand, ExpectedResult(kind="truth", value=False)
    if isinstance(test, ast.Call) and _has_own_call(test):
        return test, ExpectedResult(kind="truth", value=True)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        left, right = test.left, test.comparators[0]
        for call, result in ((left, right), (right, left)):
            value = _read_literal(result)
            if value is not None and _has_own_call(call):
                return call, ExpectedResult(kind="equals", value=value[0])
    return None


def _has_own_call(node: ast.expr) -> bool:
    """Return whether an expression calls something that is not a builtin, such as `sorted(f(x))`."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(not (isinstance(call.func, ast.Name) and call.func.id in BUILTINS) for call in calls)


def _is_trivial(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return ast.dump(test.left) == ast.dump(test.comparators[0])
    return _read_literal(test) is not None
