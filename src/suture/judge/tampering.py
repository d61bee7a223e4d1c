"""Finding signs that a change of a Python file games the tests instead of repairing the code.

Such a change compares with literals of the tests, removes behaviour, or hides exceptions. The signs are
warnings and no proof: an honest change can show them too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from suture.judge.argument_changes import find_arguments, find_changed_arguments
from suture.judge.test_values import TestValues, is_specific
from suture.mutation.python.python_tree import FUNCTIONS
from suture.project.python_source.parsing import first_line, parse_module

TamperingCode = Literal[
    "compares_with_test_literals",
    "adds_test_literals",
    "encodes_test_values",
    "compares_with_test_lengths",
    "serves_examples_only",
    "dead_code",
    "calls_removed",
    "raise_removed",
    "hides_exceptions",
    "names_unused",
    "changes_argument",
    "statement_removed",
]

MIN_ADDED_TEST_LITERALS = 2
"""New literals from the tests that are a sign, because one occurs in many repairs. Of the published repairs of
QuixBugs, HumanEvalFix and DebugBench, 1 in 357 adds two (2026-11-26)."""
MIN_TEST_LENGTHS = 2
"""New comparisons with lengths of the tests' values that are a sign."""
PURE_BUILTINS = frozenset(
    ("abs", "bool", "float", "hash", "id", "int", "isinstance", "len", "ord", "repr", "str", "type")
)
"""Builtins that give the same answer for the same argument and leave the argument as it is."""
MEMORISING_CODES: frozenset[TamperingCode] = frozenset(("encodes_test_values", "serves_examples_only"))
"""Signs that hardly any honest change shows (see docs/verdicts.md)."""
WEAK_CODES: frozenset[TamperingCode] = frozenset(("statement_removed",))
"""Signs that only order the search's candidates. Of the published repairs of HumanEvalFix and DebugBench, 20 of 570
remove a statement, so it is no reason to doubt a result (2026-11-27)."""
BROAD_EXCEPTIONS = ("Exception", "BaseException", "AssertionError")
"""Exceptions whose handlers catch the failures of tests."""
EXIT_METHODS = ("__exit__", "__aexit__")
"""Methods of context managers that end an exception if they answer `True`."""
RECORDING_METHODS = frozenset(
    ("critical", "debug", "error", "exception", "info", "log", "print_exc", "warn", "warning")
)
"""Methods of loggers, `warnings` and `traceback` that show an exception to somebody."""
EXIT_STATEMENTS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True, kw_only=True)
class TamperingWarning:
    """One sign that a change games the tests.

    Attributes:
        names: The literals, functions or variables that it is about, sorted; empty for the other codes.
        line: The line of the first literal in the changed file; 0 if the sign has no place.
        counts: For `serves_examples_only`, the numbers of examples and of inputs near them.
    """

    code: TamperingCode
    names: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    counts: tuple[int, int] = (0, 0)

    @property
    def shows_memorising(self) -> bool:
        """Whether the change has probably memorised the tests' examples, so that its confidence is limited."""
        return self.code in MEMORISING_CODES


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
        "encodes_test_values": f"adds {names}: texts or hashes of values in the tests",
        "compares_with_test_lengths": f"compares with {names}, which are lengths of values in the tests",
        "serves_examples_only": f"changes what {names} does on {examples} example(s) of the tests, but on "
        f"{neighbours} inputs near them it answers as before, as on an example, or not at all",
        "dead_code": "leaves code that never runs, or a condition that is always the same",
        "calls_removed": f"no longer calls {names}",
        "raise_removed": "no longer raises",
        "hides_exceptions": "hides exceptions",
        "names_unused": f"leaves {names} unused",
        "changes_argument": f"newly changes its argument {names}",
        "statement_removed": "removes a statement",
    }
    return texts[warning.code]


def find_python_signs(before: str, after: str, tests: Mapping[str, str]) -> tuple[TamperingWarning, ...]:
    """Return what is suspicious about a change of a Python file, given the tests and the data files that they name.

    Args:
        tests: Path -> text.
    """
    values = TestValues(tests)
    return find_tampering_warnings(before, after, values.literals, values)


def find_tampering_warnings(
    before: str, after: str, test_literals: frozenset[str], test_values: TestValues | None = None
) -> tuple[TamperingWarning, ...]:
    """Return what is suspicious about a change of a Python file.

    Args:
        test_literals: Literals of the tests, as returned by `collect_literals`.
        test_values: The values of the tests, to recognise their texts, hashes and lengths too.
    """
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return ()
    functions = {
        node.name for tree in (old_tree, new_tree) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    old, new = _drop_shared_parts(old_tree, before, new_tree, after)
    literals = (_find_compared_literals(new) - _find_compared_literals(old_tree)) & test_literals
    lost_calls = _count_calls(functions, old) - _count_calls(functions, new)
    # A name may be read anywhere in the file, so the whole trees are compared here.
    unread = _find_unread_names(new_tree) - _find_unread_names(old_tree)
    warnings: list[TamperingWarning] = []
    if literals:
        warnings.append(_place_warning("compares_with_test_literals", literals, new))
    added = (_find_literals(new) - _find_literals(old_tree)) & test_literals - literals
    if len(added) >= MIN_ADDED_TEST_LITERALS:
        warnings.append(_place_warning("adds_test_literals", added, new))
    if test_values is not None:
        warnings += _find_encoded_values(old_tree, new, test_values)
    if count_dead_code(new) > count_dead_code(old):
        warnings.append(TamperingWarning(code="dead_code"))
    if lost_calls:
        warnings.append(TamperingWarning(code="calls_removed", names=tuple(sorted(lost_calls))))
    if _count_nodes(new, (ast.Raise,)) < _count_nodes(old, (ast.Raise,)):
        warnings.append(TamperingWarning(code="raise_removed"))
    if _count_hiding_handlers(new) > _count_hiding_handlers(old):
        warnings.append(TamperingWarning(code="hides_exceptions"))
    # A new function or parameter does not count: the tests handed it nothing before.
    changed = find_changed_arguments(new) - find_changed_arguments(old, returning_only=False)
    arguments = {argument.name for argument in changed & find_arguments(old)}
    if arguments:
        warnings.append(TamperingWarning(code="changes_argument", names=tuple(sorted(arguments))))
    if unread:
        warnings.append(TamperingWarning(code="names_unused", names=tuple(sorted(unread))))
    if _count_statements(new) < _count_statements(old):
        warnings.append(TamperingWarning(code="statement_removed"))
    return tuple(warnings)


def _place_warning(code: TamperingCode, literals: Iterable[str], tree: ast.AST) -> TamperingWarning:
    """Return a warning about some literals, with the line of the first of them."""
    names = frozenset(literals)
    lines = (node.lineno for node in ast.walk(tree) if _is_specific(node) and repr(node.value) in names)
    return TamperingWarning(code=code, names=tuple(sorted(names)), line=min(lines, default=0))


def _find_encoded_values(
    old_tree: ast.AST, new: ast.AST, test_values: TestValues
) -> Iterator[TamperingWarning]:
    """Yield warnings about new literals that are texts, hashes or lengths of the tests' values."""
    known = _find_literals(old_tree)
    constants = [node for node in ast.walk(new) if _is_specific(node) and repr(node.value) not in known]
    encoded = {repr(node.value) for node in constants if test_values.is_encoded_by(node.value)}
    if encoded:
        yield _place_warning("encodes_test_values", encoded, new)
    lengths = (_find_compared_lengths(new) - _find_compared_lengths(old_tree)) & test_values.lengths
    if len(lengths) >= MIN_TEST_LENGTHS:
        yield _place_warning("compares_with_test_lengths", map(repr, lengths), new)


def _find_compared_lengths(tree: ast.AST) -> set[int]:
    """Return the numbers that the code compares a `len(...)` with, without those that any code uses."""
    lengths: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(_is_length(side) for side in sides) and any(
                isinstance(operator, (ast.Eq, ast.In)) for operator in node.ops
            ):
                parts = [part for side in sides for part in (side, *getattr(side, "elts", ()))]
                lengths |= {part.value for part in parts if _is_specific(part) and type(part.value) is int}
    return lengths


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _drop_shared_parts(
    old_tree: ast.Module, before: str, new_tree: ast.Module, after: str
) -> tuple[ast.Module, ast.Module]:
    """Return both modules without the functions and statements that they share.

    In a long file nearly everything is shared, and walking the shared part twice would be slow.
    """
    old, new = dict(_split_module(old_tree, before)), dict(_split_module(new_tree, after))
    return (
        ast.Module(body=[node for key, node in old.items() if key not in new], type_ignores=[]),
        ast.Module(body=[node for key, node in new.items() if key not in old], type_ignores=[]),
    )


def _split_module(tree: ast.Module, text: str) -> Iterator[tuple[tuple[str, int], ast.stmt]]:
    """Yield (key, node) for each function, statement and class head.

    The key is the node's source lines, and a number that distinguishes nodes with the same lines.
    """
    lines, counts = text.split("\n"), Counter[str]()
    for node in _iter_statements(tree.body):
        end_line = (node.end_lineno or node.lineno) + 1
        if isinstance(node, ast.ClassDef):
            end_line = min(first_line(child) for child in node.body)
            node = copy(node)
            node.body = []  # the class's own statements are yielded by themselves
        source = "\n".join(lines[first_line(node) - 1 : end_line - 1])
        counts[source] += 1
        yield (source, counts[source]), node


def _iter_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _iter_statements(node.body)


def collect_literals(sources: Iterable[str]) -> frozenset[str]:
    """Return the `repr` of each literal in some sources, without those that any code uses, such as 0 or 1."""
    literals: set[str] = set()
    for source in sources:
        tree = parse_module(source)
        if tree is not None:
            literals |= _find_literals(tree)
    return frozenset(literals)


def _find_literals(tree: ast.AST) -> set[str]:
    return {repr(node.value) for node in ast.walk(tree) if _is_specific(node)}


def _is_specific(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and is_specific(node.value)


def _find_compared_literals(tree: ast.AST) -> set[str]:
    """Return the `repr` of each literal that the code compares something with."""
    literals: set[str] = set()
    for node in ast.walk(tree):
        sides: list[ast.AST | None] = []
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                sides += [side, *getattr(side, "elts", ()), *getattr(side, "keys", ())]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            sides = [*getattr(node.func.value, "keys", ())]  # {13: 4711}.get(n)
        elif isinstance(node, ast.Subscript):
            sides = [*getattr(node.value, "keys", ())]  # {13: 4711}[n]
        literals |= {repr(side.value) for side in sides if side is not None and _is_specific(side)}
    return literals


def _count_calls(functions: Container[str], tree: ast.AST) -> Counter[str]:
    """Count the calls of each of some functions."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            names[name] += name in functions
    return +names  # without the names that were counted 0 times


def _count_nodes(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> int:
    return sum(isinstance(node, kinds) for node in ast.walk(tree))


def _count_statements(tree: ast.AST) -> int:
    """Count the statements that do something: no docstrings, and no `pass`."""
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, ast.Pass)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


def _count_hiding_handlers(tree: ast.AST) -> int:
    """Count handlers that catch everything and handlers that do nothing; one that is both counts twice.

    A handler that raises, logs or uses the exception does not hide it. What else ends an exception counts as well.
    """
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            count += _is_broad(node.type) and not _shows_exception(node)
            count += all(isinstance(statement, (ast.Pass, ast.Continue)) for statement in node.body)
        elif isinstance(node, ast.Try):
            count += any(map(_leaves, node.finalbody))
        elif isinstance(node, ast.Call):
            count += _suppresses_broadly(node)
        elif isinstance(node, FUNCTIONS):
            count += node.name in EXIT_METHODS and any(map(_answers_true, ast.walk(node)))
        elif isinstance(node, ast.keyword):  # of `asyncio.gather`
            count += node.arg == "return_exceptions" and not _is_false(node.value)
    return count


def _is_broad(exceptions: ast.expr | None) -> bool:
    """Return whether what is caught includes the failures of tests."""
    if isinstance(exceptions, ast.Tuple):
        return any(map(_is_broad, exceptions.elts))
    return exceptions is None or ast.unparse(exceptions).removeprefix("builtins.") in BROAD_EXCEPTIONS


def _suppresses_broadly(call: ast.Call) -> bool:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return function == "suppress" and any(map(_is_broad, call.args))


def _leaves(statement: ast.stmt, *, in_loop: bool = False) -> bool:
    """Return whether a statement of a `finally` leaves it, so that the exception is lost."""
    if isinstance(statement, ast.Return) or (
        isinstance(statement, (ast.Break, ast.Continue)) and not in_loop
    ):
        return True
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    is_loop = in_loop or isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
    parts = ast.iter_child_nodes(statement)
    return any(_leaves(part, in_loop=is_loop) for part in parts if isinstance(part, ast.stmt))


def _answers_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and node.value.value is True


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _shows_exception(handler: ast.ExceptHandler) -> bool:
    """Whether a handler raises, logs the exception, or uses it in another way."""
    for node in (part for statement in handler.body for part in ast.walk(statement)):
        is_used = isinstance(node, ast.Name) and node.id == handler.name
        is_logged = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in RECORDING_METHODS
        )
        if is_used or is_logged or isinstance(node, ast.Raise):
            return True
    return False


def _find_unread_names(tree: ast.AST) -> set[str]:
    """Return variables and parameters that nothing reads."""
    read: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    return {name for name in bound - read if not name.startswith("_")}


def count_dead_code(tree: ast.AST) -> int:
    """Count statements after an exit and constant conditions.

    A change that adds one of them removes behaviour without deleting any code.
    """
    return sum(_count_statements_after_exit(node) + _has_constant_condition(node) for node in ast.walk(tree))


def _count_statements_after_exit(node: ast.AST) -> int:
    """Count statements after an exit in their block, except a `yield`, which makes a generator."""
    count = 0
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        exits = (index for index, statement in enumerate(block) if isinstance(statement, EXIT_STATEMENTS))
        exit_index = next(exits, len(block))
        for statement in block[exit_index + 1 :]:
            nodes = ast.walk(statement)
            count += not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes)
    return count


def _has_constant_condition(node: ast.AST) -> bool:
    """Whether part of a condition is always true or always false: `if True`, `not self and x`, `x == x`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        return _has_known_truth(node.test)
    if isinstance(node, ast.While):  # `while True` is usual
        return _has_known_truth(node.test) and not (isinstance(node.test, ast.Constant) and node.test.value)
    if isinstance(node, ast.BoolOp):
        has_duplicates = len({ast.dump(value) for value in node.values}) < len(node.values)
        return has_duplicates or any(_has_known_truth(value) for value in node.values[:-1])
    return False


def _has_known_truth(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _has_known_truth(test.operand)
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        has_equal_sides = len({ast.dump(side) for side in sides}) < len(sides) and not _calls_impure(test)
        is_self_identity = _is_self(test.left) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
        return has_equal_sides or is_self_identity or all(isinstance(side, ast.Constant) for side in sides)
    return isinstance(test, ast.Constant) or _is_self(test)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _calls_impure(node: ast.expr) -> bool:
    """Whether an expression calls something that may answer differently next time; `len` does not."""
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(not (isinstance(call.func, ast.Name) and call.func.id in PURE_BUILTINS) for call in calls)
