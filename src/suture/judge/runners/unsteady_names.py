"""Tests that are called otherwise in each run: the time, a random number or an address stands in their ids.

Such a test is known by its place among those of its function. Which functions have such tests is seen on the
unchanged code alone: what a candidate makes of the names of its tests proves nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from suture.judge.runners.pytest_report import PytestReport


def unsteady_functions(first: Sequence[str], again: Sequence[str]) -> frozenset[str]:
    """Functions with as many tests in both collections of the same files, and not with the same names.

    Args:
        first: Ids in the order of one collection.
        again: Of another.
    """
    one, other = _by_function(first), _by_function(again)
    return frozenset(
        name for name, ids in one.items() if ids != other.get(name) and len(ids) == len(other.get(name, ()))
    )


def lost_and_new(first: Sequence[str], items: Sequence[str]) -> frozenset[str]:
    """Functions of which some test is gone from a collection, and another came."""
    gone, new = set(first) - set(items), set(items) - set(first)
    return frozenset(map(_function, gone)) & frozenset(map(_function, new))


def names_in_place(first: Sequence[str], items: Sequence[str], functions: Collection[str]) -> dict[str, str]:
    """Id in a collection -> what the test at its place was called first, for tests of some functions."""
    one, other = _by_function(first), _by_function(items)
    pairs = [
        (other[name], one[name]) for name in functions if len(one.get(name, ())) == len(other.get(name, ()))
    ]
    return {new: old for here, before in pairs for new, old in zip(here, before, strict=True) if new != old}


def under_names(report: PytestReport, names: Mapping[str, str]) -> PytestReport:
    """A report with other names for some tests."""
    return replace(
        report,
        items=tuple(names.get(test, test) for test in report.items),
        examples={names.get(test, test): told for test, told in report.examples.items()},
        phases={names.get(test, test): told for test, told in report.phases.items()},
        started=[names.get(test, test) for test in report.started],
        others={name: under_names(other, names) for name, other in report.others.items()},
    )


def _function(test: str) -> str:
    return test.partition("[")[0]


def _by_function(tests: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for test in tests:
        found.setdefault(_function(test), []).append(test)
    return found
