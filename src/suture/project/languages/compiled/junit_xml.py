"""Test reports in JUnit's XML format, which Maven, Gradle, CTest, GoogleTest and nextest write.

The code under test can write such a file, so its content is untrusted: document types, and with them all entities but
the predefined ones, are refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser, fromstring

from suture.project.languages.reports import Report, ReportedTest, RunnerOutput, TestState
from suture.project.tuning import MAX_FAILURE_DETAIL_CHARS, MAX_FAILURE_MESSAGE_CHARS

SKIPPED_STATES = ("disabled", "notrun", "suppressed")
"""What CTest's attribute `status`, or GoogleTest's `result`, says about a test that did not run."""

LINE = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class JUnitCase:
    """A `testcase` element.

    Attributes:
        class_name: The class of the test, or the suite that its tool names instead.
        report: Name of the report without its extension.
        message: First line of the failure; empty if the test did not fail.
        details: The message with all its lines, or what the test printed if there is none; cut if it is long.
        printed: What the test printed, cut if it is long.
        file: File of the test as the report names it; empty if it does not.
        line: Line of the test in that file, from 1.
    """

    name: str
    class_name: str
    report: str
    status: TestState
    message: str
    details: str
    printed: str
    file: str
    line: int | None


def read_junit_cases(reports: Mapping[str, bytes]) -> Iterator[JUnitCase]:
    """Yield the tests of some reports, path -> content. A report that is broken, or not XML, has none."""
    for path in sorted(reports):
        root = _parse(reports[path])
        for element in root.iter("testcase") if root is not None else ():
            yield _read_case(element, path.rpartition("/")[2].removesuffix(".xml"))


def find_project_file(files: Collection[str], path: str, root: str) -> str:
    """Return the project's file that a tool names; empty if there is none, or more than one.

    Args:
        path: An absolute path, or one relative to a folder of the project, such as that of a package.
        root: The project's folder during the run.
    """
    relative_path = path.removeprefix(f"{root}/").removeprefix("./")
    if relative_path in files:
        return relative_path
    matches = [name for name in files if name.endswith(f"/{relative_path}")] if relative_path else []
    return matches[0] if len(matches) == 1 else ""


class _ReportBuilder(TreeBuilder):
    def doctype(self, *_: object) -> None:
        """Refuse a document type; `XMLParser` calls this where one begins."""
        raise ValueError("a report has no document type")


def _parse(content: bytes) -> Element | None:
    try:
        return fromstring(content, XMLParser(target=_ReportBuilder()))
    except (ParseError, LookupError, ValueError, AssertionError):
        return None


def _read_case(element: Element, report: str) -> JUnitCase:
    faults = [child for child in element if child.tag in ("failure", "error")]
    states = (element.get("status"), element.get("result"))
    is_skipped = element.find("skipped") is not None or any(state in SKIPPED_STATES for state in states)
    fault = faults[0] if faults else None
    text = _join_text(fault) if fault is not None else ""
    printed = _join_text(element.find("system-out")).strip("\n")[:MAX_FAILURE_DETAIL_CHARS]
    message = (fault.get("message", "") if fault is not None else "") or text
    line = element.get("line", "")
    return JUnitCase(
        name=element.get("name", ""),
        class_name=element.get("classname", ""),
        report=report,
        status="failed" if fault is not None else "skipped" if is_skipped else "passed",
        message=" ".join(message.split())[:MAX_FAILURE_MESSAGE_CHARS],
        details=text.strip("\n")[:MAX_FAILURE_DETAIL_CHARS] or printed,
        printed=printed,
        file=element.get("file", ""),
        line=int(line) if LINE.fullmatch(line) else None,
    )


def _join_text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext())


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
        pattern: Matches such a line, with the package as its only group that matches.
    """
    match = pattern.search(line)
    return (f"the package {match[match.lastindex or 0]!r} is not there", remedy) if match else None
