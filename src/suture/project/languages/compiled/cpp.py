"""What Suture knows about C++ and C, whose tests CTest and GoogleTest report as JUnit's XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from suture.project.languages.compiled.junit_xml import (
    JUnitCase,
    add_build_outcome,
    find_project_file,
    number_equal_ids,
    read_junit_cases,
)
from suture.project.languages.language import LanguageFacts, ProjectOverview
from suture.project.languages.reports import Report, ReportedTest, Runner, RunnerOutput
from suture.project.tuning import MAX_FAILURE_MESSAGE_CHARS

CTEST_REPORT = "ctest"
"""Name of the report that CTest writes in addition to those of GoogleTest's programs."""
GOOGLE_START = "[==========] Running "
"""What a program of GoogleTest prints at its start."""
COMPILER_ERROR = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d{1,9}):(?:\d+:)? (?:fatal )?error: (?P<message>.+)$", re.MULTILINE
)
POSITION = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d{1,9})(?:: Failure)?$", re.MULTILINE)
"""Matches the line by which GoogleTest names the assertion that failed."""
ENABLES_TESTS = re.compile(
    rb"\b(?:enable_testing|gtest_discover_tests|catch_discover_tests)\s*\(|\binclude\s*\(\s*CTest\s*\)"
)
CONFIGURE_AND_TEST = "cmake -S . -B build && cmake --build build --parallel 2 && ctest --test-dir build"


def read_ctest_reports(output: RunnerOutput) -> Report:
    """Read the report of CTest, and those of the GoogleTest programs that it started."""
    return add_build_outcome(read_google_reports(output), output, COMPILER_ERROR)


def read_google_reports(output: RunnerOutput) -> Report:
    """Read the reports of GoogleTest programs, and that of CTest if it started them.

    A GoogleTest program that crashes writes no report, so CTest decides whether a test passed if it knows the test.
    """
    cases = list(read_junit_cases(output.reports))
    google_tests = dict[str, list[JUnitCase]]()
    for case in cases:
        if case.report != CTEST_REPORT:
            google_tests.setdefault(_google_name(case), []).append(case)
    tests = []
    for case in cases:
        if case.report == CTEST_REPORT:
            found = google_tests.pop(case.name, [])
            details = min(found, key=lambda google: google.status != case.status, default=None)
            # A program that CTest repeats reports its tests again; another program has another file.
            google_tests[case.name] = [google for google in found if details and google.file != details.file]
            # GoogleTest skips a test, but its program ends with success.
            is_skipped = case.status == "passed" and details is not None and details.status == "skipped"
            test = _make_test(f"ctest::{case.name}", case, details or case, output)
            is_google_test = details is not None or GOOGLE_START in case.printed
            test = replace(test, has_exit_status_only=not is_google_test)
            tests.append(replace(test, status="skipped") if is_skipped else test)
    tests += _read_google_tests(google_tests, output)
    return Report(tests=number_equal_ids(tests), has_finished=bool(tests))


def _google_name(case: JUnitCase) -> str:
    return f"{case.class_name}.{case.name}"


def _read_google_tests(cases: dict[str, list[JUnitCase]], output: RunnerOutput) -> Iterator[ReportedTest]:
    for name, equal in cases.items():
        for case in equal:
            file = find_project_file(output.files, case.file, output.root) or case.report
            yield _make_test(f"{file}::{name}", case, case, output)


def _make_test(test_id: str, case: JUnitCase, details: JUnitCase, output: RunnerOutput) -> ReportedTest:
    if case.status != "failed":
        return ReportedTest(id=test_id, status=case.status)
    position = POSITION.search(details.details)
    path, line = (position["file"], int(position["line"])) if position else (details.file, details.line)
    file = find_project_file(output.files, path, output.root)
    # The last line of what a program printed, or what GoogleTest printed about the first assertion that failed.
    text = details.details.rstrip().rpartition("\n")[2]
    if position is not None:
        text = " ".join(details.details[position.end() :].partition("[  FAILED")[0].split())
    return ReportedTest(
        id=test_id,
        status="failed",
        message=text[:MAX_FAILURE_MESSAGE_CHARS],
        file=file,
        line=line if file else None,
        details=details.details,
    )


def detect_ctest(project: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return the commands of CMake and CTest if the project's CMakeLists.txt enables tests."""
    if ENABLES_TESTS.search(project.files.get("CMakeLists.txt", b"")):
        return ("sh", "-c", CONFIGURE_AND_TEST), "CMakeLists.txt enables tests"
    return None


CPP = LanguageFacts(
    label="C++",
    fence="cpp",
    extensions=(".cpp", ".cc", ".cxx", ".c", ".hpp", ".hh", ".hxx", ".h", ".ipp"),
    program="ctest",
    compiled=True,
    aliases=("c++", "c"),
    command_pattern=re.compile(r"ctest"),
    runners=(
        Runner(
            name="CTest",
            command=re.compile(r"(?:^|[\s/])ctest(?:\s|$)"),
            read=read_ctest_reports,
            environment=lambda folder: {"GTEST_OUTPUT": f"xml:{folder}/reports/"},
            arguments=lambda folder: ("--output-junit", f"{folder}/reports/{CTEST_REPORT}.xml"),
            report_globs=("./_suture/reports/*.xml",),
            conflicting_options=re.compile(r"\s(?:-N|--show-only|--output-junit|--build-and-test)\b"),
        ),
        # Any other command may start GoogleTest's programs, such as `make check`.
        Runner(
            name="GoogleTest",
            command=re.compile(""),
            read=read_google_reports,
            environment=lambda folder: {"GTEST_OUTPUT": f"xml:{folder}/reports/"},
            report_globs=("./_suture/reports/*.xml",),
            conflicting_options=re.compile(r"--gtest_(?:output|list_tests)|\bctest\b"),
        ),
    ),
    line_comment="//",
    test_files=(
        "test_*.cpp", "test_*.cc", "test_*.cxx", "test_*.c",
        "*_test.cpp", "*_test.cc", "*_test.cxx", "*_test.c",
        "*_tests.cpp", "*_tests.cc", "*_tests.cxx", "*_tests.c",
        "*Test.cpp", "*Tests.cpp", "*_unittest.cc", "*.test.cpp",
    ),
    config_globs=("CMakeLists.txt", "*.cmake", "CMakePresets.json", "meson.build"),
    detect_test_command=detect_ctest,
    error_pattern=re.compile(r"^\S+:\d+:(?:\d+:)? (?:fatal )?error: |^CMake Error"),
    test_count_pattern=re.compile(rb"tests passed, \d+ tests failed out of (\d{1,9})\b"),
)  # fmt: skip
