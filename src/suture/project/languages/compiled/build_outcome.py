"""What a build before the tests says, for languages whose test command compiles the code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from suture.project.languages.compiled.junit_xml import find_project_file
from suture.project.languages.reports import Report, ReportedTest, RunnerOutput
from suture.project.tuning import MAX_FAILURE_DETAIL_CHARS, MAX_FAILURE_MESSAGE_CHARS

BUILD = "build"
"""The id of the build as a test, which is reported like the others: each run must report what the first one did."""


def add_build_outcome(report: Report, output: RunnerOutput, error_pattern: re.Pattern[str]) -> Report:
    """Return a report with the build as its first test; unchanged if neither tests nor errors were reported.

    Args:
        error_pattern: Matches the first error of a compiler, with the groups `message`, `file` and `line`.
    """
    if report.tests:
        build = ReportedTest(id=BUILD, status="passed")
        return replace(report, tests=number_equal_ids((build, *report.tests)))
    text = (output.stderr + b"\n" + output.stdout).decode("utf-8", "replace")
    error = error_pattern.search(text)
    if error is None:
        return report
    file = find_project_file(output.files, error["file"], output.root)
    failure = ReportedTest(
        id=BUILD,
        status="failed",
        message=error["message"].strip()[:MAX_FAILURE_MESSAGE_CHARS],
        file=file,
        line=int(error["line"]) if file else None,
        details=text[error.start() :][:MAX_FAILURE_DETAIL_CHARS].rstrip(),
    )
    return replace(report, tests=(failure,))


def number_equal_ids(tests: Iterable[ReportedTest]) -> tuple[ReportedTest, ...]:
    """Return tests with a number added to each id that occurred before.

    Tests with parameters may have equal names, and so may tests of two programs or packages.
    """
    counts, numbered = Counter[str](), list[ReportedTest]()
    for test in tests:
        counts[test.id] += 1
        count = counts[test.id]
        numbered.append(test if count == 1 else replace(test, id=f"{test.id} #{count}"))
    return tuple(numbered)


def find_missing_package(
    pattern: re.Pattern[str], remedy: str, line: str, files: Mapping[str, bytes]
) -> tuple[str, str] | None:
    """Return (what is not installed, what to do) if a line of output says that a package is missing.

    Args:
        pattern: Matches such a line, with the package as its first group.
        remedy: What to do.
    """
    match = pattern.search(line)
    return (f"the package {match[1]!r} is not there", remedy) if match is not None else None
