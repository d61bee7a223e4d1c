"""The tests of one file in any language, and the comparison of two versions of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from suture.judge.test_changes.assertion import (
    Assertion,
    TestChange,
    TestChangeCode,
    TestFileChanges,
    has_wider_tolerance,
    is_broader,
)

NAME_SEPARATOR = "::| > "
"""Matches what separates a test's name from those of the classes or groups around it."""
SupportKind = Literal["support", "hook", "any_hook", "skip"]
"""The kinds of test support: a `hook` whose purpose is to change how tests end, `any_hook` that could, a `skip` of all
tests, or anything else."""


@dataclass(frozen=True, kw_only=True)
class SourcePiece:
    """A piece of source.

    Attributes:
        source: Its source without layout and comments; equal for two pieces that mean the same.
        line: Its line, from 1.
        text: Its source in one line, for people.
        assertions: For a helper, its assertions in their order.
    """

    source: str
    line: int
    text: str
    kind: SupportKind = "support"
    assertions: tuple[Assertion, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TestCase:
    """One test.

    Attributes:
        name: Its name with the classes or groups around it.
        line: Its first line, from 1.
        source: Its whole source without layout and comments, without its name.
        assertions: Its assertions, in their order.
        skips: What skips it, or lets it fail without consequence.
        rows: The cases of a literal table.
        calls_something: Whether it calls a function: such a test fails when the function raises.
        names: What it uses: names that it does not define itself, and strings.
    """

    __test__ = False  # keeps pytest from collecting this class

    name: str
    line: int
    source: str
    assertions: tuple[Assertion, ...] = ()
    skips: tuple[SourcePiece, ...] = ()
    rows: tuple[SourcePiece, ...] = ()
    calls_something: bool = False
    names: frozenset[str] = frozenset()


@dataclass(kw_only=True)
class TestFile:
    """The parts of a test file that decide what it demands.

    Attributes:
        tests: Name -> test. Of two tests with one name, the later one counts.
        support: Name -> helper, fixture, hook or data of the file.
        new_support_counts: Names of new support that acts without being named, such as an automatic fixture.
    """

    __test__ = False

    tests: dict[str, TestCase] = field(default_factory=dict)
    support: dict[str, SourcePiece] = field(default_factory=dict)
    new_support_counts: set[str] = field(default_factory=set)


def compare_test_files(path: str, old: TestFile, new: TestFile) -> TestFileChanges:
    """Return what a change does to the tests of a file.

    Args:
        path: The test file, for the result.
    """
    renamed = _find_renamed(old, new)
    removed = [name for name in old.tests if name not in new.tests and name not in renamed]
    changes = [
        TestChange(
            code="test_removed",
            path=path,
            line=old.tests[name].line,
            test=name,
            before=_count_assertions(old.tests[name]),
            names=old.tests[name].names,
        )
        for name in removed
    ]
    changed_tests: list[str] = []
    for name, test in old.tests.items():
        new_test = new.tests.get(renamed.get(name, name))
        if new_test is not None and test.source != new_test.source:
            changed_tests.append(new_test.name)
            changes += _compare_tests(path, test, new_test)
    new_tests = [name for name in new.tests if name not in old.tests and name not in renamed.values()]
    for name in new_tests:
        test = new.tests[name]
        if not test.assertions and not test.calls_something:
            changes.append(TestChange(code="asserts_nothing", path=path, line=test.line, test=name))
    changes += _compare_support(path, old, new)
    return TestFileChanges(
        changes=tuple(sorted(changes, key=lambda change: change.line)),
        new_tests=tuple(new_tests),
        changed_tests=tuple(changed_tests),
        removed_tests=tuple(removed),
    )


def asks_as_much(old: TestCase, new: TestCase) -> bool:
    """Return whether a test in another place is an old test: it has its name, assertions and cases, or its source."""
    if old.source == new.source:
        return True
    demands = Counter(assertion.demand for assertion in new.assertions)
    return (
        re.split(NAME_SEPARATOR, old.name)[-1] == re.split(NAME_SEPARATOR, new.name)[-1]
        and bool(old.assertions)
        and Counter(assertion.demand for assertion in old.assertions) <= demands
        and not _find_missing(new.skips, old.skips)
        and not _find_missing(old.rows, new.rows)
    )


def _find_renamed(old: TestFile, new: TestFile) -> dict[str, str]:
    """Return old name -> new name of tests that only changed their name."""
    gone = [test for name, test in old.tests.items() if name not in new.tests]
    added = {test.source: name for name, test in new.tests.items() if name not in old.tests}
    return {test.name: added[test.source] for test in gone if test.source in added}


def _count_assertions(test: TestCase) -> str:
    count = len(test.assertions)
    return f"{count} assertion{'' if count == 1 else 's'}"


def _compare_tests(path: str, old: TestCase, new: TestCase) -> Iterator[TestChange]:
    for skip in _find_missing(new.skips, old.skips):
        yield TestChange(code="test_skipped", path=path, line=skip.line, test=new.name, after=skip.text)
    yield from _compare_rows(path, old, new)
    yield from _compare_assertions(path, old, new)


def _find_missing(pieces: Sequence[SourcePiece], others: Sequence[SourcePiece]) -> list[SourcePiece]:
    """Return the pieces that are not among the others, each of which counts once."""
    known = Counter(piece.source for piece in others)
    missing = []
    for piece in pieces:
        if known[piece.source]:
            known[piece.source] -= 1
        else:
            missing.append(piece)
    return missing


def _compare_rows(path: str, old: TestCase, new: TestCase) -> Iterator[TestChange]:
    """Yield the cases of literal tables that were removed or have other values."""
    replaced = len(_find_missing(new.rows, old.rows))
    for number, row in enumerate(_find_missing(old.rows, new.rows)):
        code: TestChangeCode = "expectation_changed" if number < replaced else "cases_removed"
        line = new.line if code == "expectation_changed" else row.line
        yield TestChange(code=code, path=path, line=line, test=new.name, before=row.text)


def _compare_assertions(path: str, old: TestCase, new: TestCase) -> Iterator[TestChange]:
    old_left, new_left = _drop_equal(old.assertions, new.assertions)
    unmatched: list[Assertion] = []
    for assertion in old_left:
        match = next((other for other in new_left if _is_same_subject(assertion, other)), None)
        if match is None:
            unmatched.append(assertion)
            continue
        new_left.remove(match)
        yield from _compare_pair(path, new.name, assertion, match)
    for assertion in unmatched:
        # An assertion about something else takes its place, as when a function gets another argument.
        substitute = next((other for other in new_left if other.strength >= assertion.strength), None)
        if substitute is not None:
            new_left.remove(substitute)
        code: TestChangeCode = "assertion_removed" if substitute is None else "expectation_changed"
        yield TestChange(
            code=code,
            path=path,
            line=assertion.line if substitute is None else substitute.line,
            test=new.name,
            before=assertion.text,
            after=substitute.text if substitute is not None else "",
        )


def _is_same_subject(old: Assertion, new: Assertion) -> bool:
    # A negation of the same condition is another assertion about the same subject.
    return old.subject.removeprefix("not ") == new.subject.removeprefix("not ")


def _drop_equal(
    old: Sequence[Assertion], new: Sequence[Assertion]
) -> tuple[list[Assertion], list[Assertion]]:
    """Return the assertions of each version that the other one does not have as they are."""
    new_left, old_left = list(new), []
    for assertion in old:
        equal = next((other for other in new_left if other.demand == assertion.demand), None)
        if equal is None:
            old_left.append(assertion)
        else:
            new_left.remove(equal)
    return old_left, new_left


def _compare_pair(path: str, test: str, old: Assertion, new: Assertion) -> Iterator[TestChange]:
    """Yield what changed between two assertions about the same subject: only the most serious change."""
    code: TestChangeCode | None = None
    if (new.is_guarded and not old.is_guarded) or (new.is_conditional and not old.is_conditional):
        code = "assertion_guarded"
    elif is_broader(old, new):
        code = "exception_broadened"
    elif new.strength < old.strength:
        code = "assertion_loosened"
    elif has_wider_tolerance(old, new):
        code = "tolerance_widened"
    elif (old.expected, old.exceptions, old.subject) != (new.expected, new.exceptions, new.subject):
        code = "expectation_changed"
    if code is not None:
        yield TestChange(code=code, path=path, line=new.line, test=test, before=old.text, after=new.text)


def _compare_helpers(path: str, old: SourcePiece, new: SourcePiece) -> Iterator[TestChange]:
    """Yield how a helper demands less than before, which affects all tests that use it."""
    versions = [
        TestCase(name="", line=each.line, source="", assertions=each.assertions) for each in (old, new)
    ]
    return (change for change in _compare_assertions(path, *versions) if change.weakens)


def _compare_support(path: str, old: TestFile, new: TestFile) -> Iterator[TestChange]:
    """Yield changes of helpers, fixtures, hooks and data that tests of the file use."""
    for name, piece in new.support.items():
        before = old.support.get(name)
        if before is not None and before.source == piece.source:
            continue
        if piece.kind == "hook":
            yield TestChange(code="test_hook_added", path=path, line=piece.line, after=name)
        elif piece.kind == "any_hook":
            yield TestChange(code="test_hook_changed", path=path, line=piece.line, after=name)
        elif piece.kind == "skip":
            yield TestChange(code="test_skipped", path=path, line=piece.line, after=piece.text)
        elif before is not None and (weakened := [*_compare_helpers(path, before, piece)]):
            yield from weakened
        elif before is not None or name in new.new_support_counts:
            yield TestChange(
                code="test_support_changed",
                path=path,
                line=piece.line,
                before=before.text if before is not None else "",
                after=piece.text,
            )
