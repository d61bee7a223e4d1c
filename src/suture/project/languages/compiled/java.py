"""What Suture knows about Java, whose tests Maven and Gradle report as JUnit's XML."""

from __future__ import annotations

import re
from functools import partial
from posixpath import basename

from suture.project.languages.compiled.junit_xml import (
    JUnitCase,
    add_build_outcome,
    find_missing_package,
    find_project_file,
    read_junit_cases,
)
from suture.project.languages.language import LanguageFacts, PackageCache, ProjectOverview
from suture.project.languages.reports import Report, ReportedTest, Runner, RunnerOutput
from suture.project.tuning import MAX_STACK_FRAMES

COMPARED = re.compile(r"expected: ?<(?P<expected>.*?)> but was: ?<(?P<actual>.*)>", re.DOTALL)
"""Matches the message of JUnit's `assertEquals`."""
FRAME = re.compile(
    r"^\s+at (?:[^\s()]*/)?(?P<owner>[\w.$]+)\.(?P<method>[\w$<>]+)\((?P<file>[\w$]+\.java):(?P<line>\d{1,9})\)"
)
"""Matches a line of a stack trace."""
COMPILER_ERROR = re.compile(
    r"^(?:\[ERROR\] )?(?P<file>/\S+\.java):\[?(?P<line>\d{1,9})(?:,\d+\])?:? (?:error: )?(?P<message>.+)$",
    re.MULTILINE,
)
MISSING_ARTIFACT = re.compile(
    r"(?:the artifact|No cached version of) (\S+) (?:has not been downloaded|available)"
    r"|Plugin (\S+) or one of its dependencies could not be resolved|Could not (?:find|transfer) artifact (\S+)"
)
TEST_FILE = re.compile(r"(?:^|/)(?:Test\w*|\w+(?:Tests?|TestCase|IT))\.java$")
"""Matches the names by which Maven's Surefire and Failsafe find tests."""


def read_surefire_reports(output: RunnerOutput) -> Report:
    """Read the reports of Surefire, Failsafe or Gradle, one for each class of tests."""
    tests = [_make_test(case, _make_id(case, output), output) for case in read_junit_cases(output.reports)]
    return add_build_outcome(Report(tests=tuple(tests), has_finished=bool(tests)), output, COMPILER_ERROR)


def _make_id(case: JUnitCase, output: RunnerOutput) -> str:
    outer, *inner = case.class_name.split("$")
    file = _find_class_file(outer, basename(f"{outer.replace('.', '/')}.java"), output)
    return f"{file or outer}::{' > '.join((*inner, case.name))}"


def _find_class_file(name: str, file_name: str, output: RunnerOutput) -> str:
    """Return the project's file that defines a class; empty if there is none, or more than one."""
    package = name.partition("$")[0].rpartition(".")[0].replace(".", "/")
    path = f"{package}/{file_name}" if package else file_name
    return find_project_file(output.files, path, output.root)


def _make_test(case: JUnitCase, test_id: str, output: RunnerOutput) -> ReportedTest:
    if case.status != "failed":
        return ReportedTest(id=test_id, status=case.status)
    frames = [
        (file, int(match["line"]), match["method"])
        for line in case.details.splitlines()
        if (match := FRAME.match(line)) and (file := _find_class_file(match["owner"], match["file"], output))
    ]
    compared = COMPARED.search(case.message)
    file, line, _ = frames[0] if frames else ("", None, "")
    return ReportedTest(
        id=test_id,
        status="failed",
        message=case.message,
        expected=compared["expected"] if compared else "",
        actual=compared["actual"] if compared else "",
        file=file,
        line=line,
        details=case.details,
        frames=tuple(reversed(frames[:MAX_STACK_FRAMES])),
    )


def detect_java_tests(project: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return the command of Maven or Gradle if their files are in the project's root and there are tests."""
    if not any(TEST_FILE.search(path) for path in project.files):
        return None
    if "pom.xml" in project.files:
        return ("mvn", "test"), "pom.xml describes a project with tests"
    for name in ("build.gradle", "build.gradle.kts"):
        if name in project.files:
            return ("gradle", "test"), f"{name} describes a project with tests"
    return None


JAVA = LanguageFacts(
    label="Java",
    fence="java",
    extensions=(".java",),
    program="java",
    compiled=True,
    command_pattern=re.compile(r"mvn|mvnw|gradle|gradlew"),
    runners=(
        Runner(
            name="Maven",
            command=re.compile(r"(?:^|[\s/])mvnw?\s"),
            read=read_surefire_reports,
            arguments=lambda folder: ("--offline", "--batch-mode", "--fail-at-end", "-Dstyle.color=never"),
            report_globs=("*/surefire-reports/TEST-*.xml", "*/failsafe-reports/TEST-*.xml"),
            conflicting_options=re.compile(r"\s-D(?:skipTests|maven\.test\.skip|disableXmlReport)\b"),
        ),
        Runner(
            name="Gradle",
            command=re.compile(r"(?:^|[\s/])gradlew?\s"),
            read=read_surefire_reports,
            arguments=lambda folder: ("--offline", "--no-daemon", "--continue", "--console=plain"),
            report_globs=("*/build/test-results/*.xml",),
            conflicting_options=re.compile(r"\s(?:-m|--dry-run|-x\s+test)\b"),
        ),
    ),
    line_comment="//",
    test_files=(
        "src/*Test/", "Test*.java", "*Test.java", "*Tests.java", "*TestCase.java", "*IT.java",
        "**/src/it/java/", "**/src/*Test/java/", "**/src/*-test/java/", "**/src/testFixtures/java/",
        "**/src/it/resources/", "**/src/*Test/resources/", "**/src/*-test/resources/",
        "**/src/testFixtures/resources/",
    ),
    config_globs=(
        "pom.xml", "*.gradle", "*.gradle.kts", "gradle.properties", "gradle.lockfile", "gradle/", ".mvn/", "mvnw*",
        "gradlew*", "buildSrc/", "build-logic/", "junit-platform.properties",
    ),
    detect_test_command=detect_java_tests,
    installation=("bin", "conf", "lib"),
    other_programs={"mvn": ("bin", "boot", "lib"), "gradle": ("bin", "lib")},
    package_cache=PackageCache(
        folder=lambda environ: f"{environ.get('HOME', '')}/.m2/repository", mount_path="/maven-repository"
    ),
    variables={
        # The tests start in a new process each time, so that optimising the programs around them does not pay.
        "MAVEN_OPTS": "-Dmaven.repo.local=/maven-repository -XX:TieredStopAtLevel=1",
        "GRADLE_USER_HOME": "/tmp/gradle",
    },
    error_pattern=re.compile(
        # Maven ends with advice on how to see more, which is no error.
        r"^\[ERROR\] (?!To see|Re-run|For more|After correcting|\[Help)\S|^\S+\.java:\d+: error: |^FAILURE: "
    ),
    find_missing=partial(
        find_missing_package,
        MISSING_ARTIFACT,
        "run the test command once yourself, with network; for Suture as root, everybody must be able to read ~/.m2",
    ),
    test_count_pattern=re.compile(rb"^(?:\[\w+\] )?Tests run: (\d{1,9}), .*Time elapsed", re.MULTILINE),
)  # fmt: skip
