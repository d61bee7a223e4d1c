"""Finding signs that a change of a Python file games the tests instead of repairing the code.

Such a change compares with literals of the tests, removes behaviour, or hides exceptions. The signs are warnings and
not proof: an honest change can show them too.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import TypeGuard

from suture.judge.signs.argument_changes import find_arguments, find_changed_arguments
from suture.judge.signs.changed_names import list_changed_names
from suture.judge.signs.checksum_choices import find_checksum_choices
from suture.judge.signs.constant_folding import fold_constants, list_disguised_texts
from suture.judge.signs.dead_code import count_dead_code
from suture.judge.signs.hidden_exceptions import count_hiding_handlers
from suture.judge.signs.lazy_functions import find_unread_lazy_functions
from suture.judge.signs.literal_comparisons import (
    find_special_cases,
    is_length,
    iter_python_comparisons,
)
from suture.judge.signs.tampering_warning import TamperingCode, TamperingWarning
from suture.judge.signs.test_values import SMALL_NUMBERS, TestValues, is_specific
from suture.project.python_source.parsing import first_line, parse_module
from suture.project.python_source.scopes import FUNCTIONS

MIN_ADDED_TEST_LITERALS = 2
"""Minimum number of new literals from the tests that is a sign, because one occurs in many repairs. Of the published
repairs of QuixBugs, HumanEvalFix and DebugBench, 1 in 357 adds two (2026-11-26)."""
MIN_TEST_LENGTHS = 2
"""New comparisons with lengths of the tests' values that are a sign."""


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
        test_values: The values of the tests, to recognise their strings, hashes and lengths too.
    """
    old_tree, new_tree = parse_module(before), parse_module(after)
    if old_tree is None or new_tree is None:
        return ()
    functions = {
        node.name for tree in (old_tree, new_tree) for node in ast.walk(tree) if isinstance(node, FUNCTIONS)
    }
    old, new = _drop_shared_parts(old_tree, before, new_tree, after)
    warnings = list(_find_test_values(old_tree, old, new_tree, new, test_literals, test_values))
    remaining = _drop_removed_functions(old, new_tree)
    lost_calls = {*(_count_calls(functions, remaining) - _count_calls(functions, new))}
    lost_calls |= _find_lost_callbacks(old, new)
    # A name may be read anywhere in the file, so the whole trees are compared here.
    unread = _find_unread_names(new_tree) - _find_unread_names(old_tree)
    # Other modules may read what is new in a module or class.
    unread -= _find_module_names(new_tree) - _find_module_names(old_tree)
    if test_values is not None:
        unread_work = find_unread_lazy_functions(old_tree, new_tree, test_values.sources)
        if unread_work:
            warnings.append(TamperingWarning(code="never_runs", names=tuple(sorted(unread_work))))
    if count_dead_code(new) > count_dead_code(old):
        warnings.append(TamperingWarning(code="dead_code"))
    if lost_calls:
        warnings.append(TamperingWarning(code="calls_removed", names=tuple(sorted(lost_calls))))
    if _count_raises(new) < _count_raises(remaining):
        warnings.append(TamperingWarning(code="raise_removed"))
    if count_hiding_handlers(new, new_tree) > count_hiding_handlers(old, old_tree):
        warnings.append(TamperingWarning(code="hides_exceptions"))
    # A new function or parameter does not count: the tests passed nothing to it before.
    changed = find_changed_arguments(new) - find_changed_arguments(old, returning_only=False)
    arguments = {argument.name for argument in changed & find_arguments(old)}
    if arguments:
        warnings.append(TamperingWarning(code="changes_argument", names=tuple(sorted(arguments))))
    if unread:
        warnings.append(TamperingWarning(code="names_unused", names=tuple(sorted(unread))))
    if _count_statements(new) < _count_statements(old):
        warnings.append(TamperingWarning(code="statement_removed"))
    return tuple(warnings)


def _find_test_values(
    old_tree: ast.Module,
    old: ast.Module,
    new_tree: ast.Module,
    new: ast.Module,
    test_literals: frozenset[str],
    test_values: TestValues | None,
) -> Iterator[TamperingWarning]:
    """Yield warnings about new literals that are, or encode, values of the tests.

    Args:
        old: The parts of the old file that the new one does not have.
        new: The parts of the new file that the old one does not have.
    """
    # Whole files are not folded, because that would copy them for each candidate of the search.
    folded_old, folded = fold_constants(old), fold_constants(new)
    known_literals = _find_literals(old_tree) | _find_literals(folded_old)
    known_compared = _find_compared_literals(old_tree) | _find_compared_literals(folded_old)
    used, lengths = test_literals, frozenset[str]()
    if test_values is not None:
        functions = list_changed_names(new, new_tree)
        used -= SMALL_NUMBERS - test_values.find_small_numbers(functions, nested=True)
        test_literals -= SMALL_NUMBERS - test_values.find_small_numbers(functions)
        lengths = frozenset(map(repr, test_values.lengths))
    special = find_special_cases(
        added=iter_python_comparisons(folded),
        removed=iter_python_comparisons(folded_old),
        known=iter_python_comparisons(old_tree),
        literals=used,
        lengths=lengths,
    )
    literals = (_find_compared_literals(folded) - known_compared) & test_literals
    if literals | special.keys():
        warning = _place_warning("compares_with_test_literals", literals, folded)
        literals |= special.keys()
        line = min(line for line in (warning.line, *special.values()) if line)
        yield replace(warning, names=tuple(sorted(literals)), line=line)
    added = (_find_literals(folded) - known_literals) & test_literals - literals
    if len(added) >= MIN_ADDED_TEST_LITERALS or added & list_disguised_texts(folded):
        yield _place_warning("adds_test_literals", added, folded)
    choices = find_checksum_choices(folded)
    if choices:
        known_choices = find_checksum_choices(old_tree) | find_checksum_choices(folded_old)
        choices = {name: line for name, line in choices.items() if name not in known_choices}
    if choices:
        names, line = tuple(sorted(choices)), min(choices.values())
        yield TamperingWarning(code="chooses_by_checksum", names=names, line=line)
    if test_values is not None:
        yield from _find_encoded_values(old_tree, folded, known_literals, test_values)


def _place_warning(code: TamperingCode, literals: Iterable[str], tree: ast.AST) -> TamperingWarning:
    """Return a warning about some literals, with the line of the first of them."""
    names = frozenset(literals)
    lines = (node.lineno for node in ast.walk(tree) if _is_specific(node) and repr(node.value) in names)
    return TamperingWarning(code=code, names=tuple(sorted(names)), line=min(lines, default=0))


def _find_encoded_values(
    old_tree: ast.AST, new: ast.AST, known: Container[str], test_values: TestValues
) -> Iterator[TamperingWarning]:
    """Yield warnings about new literals that are strings, hashes or lengths of the tests' values."""
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
            if any(is_length(side) for side in sides) and any(
                isinstance(operator, (ast.Eq, ast.In)) for operator in node.ops
            ):
                parts = [part for side in sides for part in (side, *getattr(side, "elts", ()))]
                lengths |= {part.value for part in parts if _is_specific(part) and type(part.value) is int}
    return lengths


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


def _drop_removed_functions(old: ast.Module, new_tree: ast.Module) -> ast.Module:
    """Return the old parts without the functions that no longer exist: what they did is gone with them."""
    names = {node.name for node in ast.walk(new_tree) if isinstance(node, FUNCTIONS)}
    body = [node for node in old.body if not isinstance(node, FUNCTIONS) or node.name in names]
    return ast.Module(body=body, type_ignores=[])


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
            node.body = []  # the class's own statements are yielded separately
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
    return set(_iter_compared_literals(tree))


def _iter_compared_literals(tree: ast.AST) -> Iterator[str]:
    """Yield the `repr` of each literal that the code compares something with, once for each comparison."""
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
        yield from (repr(side.value) for side in sides if side is not None and _is_specific(side))


def _count_calls(functions: Container[str], tree: ast.AST) -> Counter[str]:
    """Count the calls of each of some functions."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            names[name] += name in functions
    return +names  # without the names that were counted 0 times


def _find_lost_callbacks(old: ast.Module, new: ast.Module) -> set[str]:
    """Return the parameters that a function called, and that it now neither calls nor passes to a call."""
    used = {(name, parameter) for name, parameter, _ in _iter_callbacks(new)}
    parameters = {
        (function.name, part.arg)
        for function in ast.walk(new)
        if isinstance(function, FUNCTIONS)
        for part in ast.walk(function.args)
        if isinstance(part, ast.arg)
    }
    called = {(name, parameter) for name, parameter, is_called in _iter_callbacks(old) if is_called}
    return {parameter for name, parameter in (called & parameters) - used}


def _iter_callbacks(tree: ast.Module) -> Iterator[tuple[str, str, bool]]:
    """Yield (function, parameter, whether it is called) for each parameter that is called or passed to a call."""
    for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
        parameters = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
        for call in (part for part in ast.walk(function) if isinstance(part, ast.Call)):
            values = [call.func, *call.args, *(word.value for word in call.keywords)]
            for value in values:
                if isinstance(value, ast.Starred):
                    value = value.value
                if isinstance(value, ast.Name) and value.id in parameters:
                    yield function.name, value.id, value is call.func


def _count_raises(tree: ast.AST) -> int:
    """Count the statements that raise an exception, except those of functions that are not written yet."""
    raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise))
    return sum(exc is None or "NotImplementedError" not in ast.unparse(exc) for exc in raised)


def _count_statements(tree: ast.AST) -> int:
    """Count the statements that do something: no docstrings, and no `pass`."""
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, ast.Pass)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
    )


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


def _find_module_names(tree: ast.Module) -> set[str]:
    """Return the variables that the statements of a module and of its classes bind."""
    statements = (
        node for node in _iter_statements(tree.body) if not isinstance(node, (*FUNCTIONS, ast.ClassDef))
    )
    parts = (part for statement in statements for part in ast.walk(statement))
    return {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
