"""What the tests of a pytest command are, learnt on the task's own files before any candidate is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from posixpath import basename

from suture.judge.runners.pytest_report import PytestReport
from suture.judge.runners.written_tests import examples_written_in, tests_in_reach, tests_written_in, within
from suture.project.workspace import text_of

CONFTESTS = ("conftest.py", "__init__.py")


@dataclass(frozen=True, kw_only=True)
class Collected:
    """The tests that must be reported.

    Attributes:
        ids: Those that pytest collected.
        written: Those found by reading, where pytest could not collect; parameters unknown.
        examples: Id of a docstring's test -> its examples.
        torn: File that cannot be imported yet -> the examples that its text holds.
        files: The project's files that hold tests other than docstrings.
    """

    ids: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    examples: Mapping[str, list[list[str]]] = field(default_factory=dict)
    torn: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def all_ids(self) -> tuple[str, ...]:
        """Every id, each once."""
        return tuple(dict.fromkeys((*self.ids, *self.written)))


def collected_from(report: PytestReport, files: Mapping[str, bytes]) -> Collected:
    """What a report of a collection says, completed by reading where pytest could not import.

    Args:
        report: The report; where it names neither a test nor a fault, everything is read.
        files: The project.
    """
    torn: dict[str, list[tuple[str, str]]] = {}
    written: list[str] = []
    blocked = list(report.uncollectable)
    if not report.items and not report.uncollectable and report.exit_code in (None, 3):
        blocked = [""]  # a conftest.py that cannot be imported, or code that ends pytest
    reach = tests_in_reach(files, report.named, report.patterns, report.left_out) if blocked else ()
    for place in blocked:
        if place not in files or basename(place) in CONFTESTS:
            folder = place.rpartition("/")[0] if basename(place) in CONFTESTS else place
            written += [test for test in reach if within(test.partition("::")[0], folder)]
        elif _holds_tests(place, report):
            of_file = [test for test in reach if test.partition("::")[0] == place]
            written += of_file or tests_written_in(place, files[place])
        elif examples := examples_written_in(text_of(files[place])):
            torn[place] = examples
    owners = {*report.files, *(test.partition("::")[0] for test in written)}
    return Collected(
        ids=report.items,
        written=tuple(written),
        examples=report.examples,
        torn=torn,
        files=tuple(sorted(owners & files.keys())),
    )


def _holds_tests(path: str, report: PytestReport) -> bool:
    named = [name.partition("::")[0] for name in report.named]
    return path in named or any(fnmatchcase(basename(path), pattern) for pattern in report.patterns)
