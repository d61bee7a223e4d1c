"""What Suture knows about Rust, whose `cargo test` prints each test, and nextest reports it as JUnit's XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import zip_longest

from suture.project.languages.compiled.junit_xml import (
    add_build_outcome,
    find_missing_package,
    find_project_file,
    read_junit_cases,
)
from suture.project.languages.language import LanguageFacts, PackageCache, ProjectOverview
from suture.project.languages.reports import Report, ReportedTest, Runner, RunnerOutput, TestState
from suture.project.tuning import MAX_FAILURE_DETAIL_CHARS, MAX_FAILURE_MESSAGE_CHARS

TARGET = re.compile(r"^ *(?:Running (?:unittests )?(\S+) \(.*?(\w+)-[0-9a-f]+\)|Doc-tests (\S+))$")
"""Matches the line by which cargo announces a test program: its main file and its name, or a crate's doctests."""
TESTS_START = re.compile(r"^running (\d{1,9}) tests?$")
TEST = re.compile(
    r"^test (?P<name>.+?)(?: \(line \d+\))?(?P<kind> - [\w ]+)? \.\.\. (?P<status>ok|FAILED|ignored)\b"
)
OUTPUT_START = re.compile(r"^---- (.+?)(?: \(line \d+\))?(?: - [\w ]+)? stdout ----$")
PANIC = re.compile(r"panicked at (?P<file>[^:\n]+):(?P<line>\d{1,9}):\d+:\n(?P<text>.*(?:\n +.*)*)")
"""Matches the message of a panic, as Rust prints it since 1.73."""
COMPILER_ERROR = re.compile(
    r"^error(?:\[E\d+\])?: (?P<message>.+)\n +--> (?P<file>[^:\n]+):(?P<line>\d{1,9})\b", re.MULTILINE
)
STATES: dict[str, TestState] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
MISSING_CRATE = re.compile(r"(?:no matching package named|failed to (?:get|download)) `(.+?)`")
ATTRIBUTE_START = re.compile(r"#!?\s*(?=\[)|\bcfg!\s*(?=[\[({])")
"""Matches what precedes the brackets of an attribute, or of the macro that asks how code is compiled."""
TEST_WORD = re.compile(r"\b(?:rs|\w+_)?test(?:_\w+)?\b")
"""Matches what an attribute of tests names, or of code for tests only: `test`, `rstest`, `test_case`."""
TEST_MODULE = re.compile(r"#\s*\[cfg\([^\]]*\btest\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'])'|[][(){};]""", re.DOTALL
)
"""Matches a comment, a literal, or a character that ends or nests items."""
NEXTEST_CONFIGURATION = '[profile.default.junit]\npath = "{}/reports/nextest.xml"\n'
DOC_LINE = re.compile(r"^\s*//[/!](.*)$")


def read_cargo_output(output: RunnerOutput) -> Report:
    """Read what `cargo test` prints: the test programs one after the other on stdout, their names on stderr."""
    stdout, stderr = (text.decode("utf-8", "replace").splitlines() for text in (output.stdout, output.stderr))
    programs = [match for line in stderr if (match := TARGET.match(line))]
    sections, expected, finished = list[list[str]](), 0, 0
    for line in stdout:
        if match := TESTS_START.match(line):
            sections.append([])
            expected += int(match[1])
        elif sections:
            sections[-1].append(line)
            finished += line.startswith("test result: ")
    # The root package of a workspace and another one may have equal paths.
    shared = {path for path, count in Counter(match[1] for match in programs).items() if count > 1}
    tests = [
        test
        for lines, program in zip_longest(sections, programs[: len(sections)])
        for test in _read_program(lines, program, output, shared)
    ]
    is_complete = bool(sections) and finished == len(sections) and len(tests) == expected
    return add_build_outcome(Report(tests=tuple(tests), has_finished=is_complete), output, COMPILER_ERROR)


def _read_program(
    lines: list[str], program: re.Match[str] | None, output: RunnerOutput, shared: Collection[str | None]
) -> Iterator[ReportedTest]:
    """Yield the tests of one test program. Doctests are named by their file and their item, which may have several.

    Args:
        shared: Main files that several programs have, each in its own package.
    """
    messages, name = dict[str, list[str]](), ""
    for line in lines:
        if match := OUTPUT_START.match(line):
            name = match[1]
        elif line == "failures:":
            name = ""
        elif name:
            messages.setdefault(name, []).append(line)
    target = _find_target(program, output, shared)
    for line in lines:
        if (match := TEST.match(line)) is None:
            continue
        test = f"{match['name']}{match['kind'] or ''}"
        file, _, item = test.partition(" - ") if program and program[3] else (target, "", test)
        text = "\n".join(messages.get(match["name"], ())).strip("\n")
        yield _make_test(f"{file}::{item or 'doctest'}", STATES[match["status"]], text, output)


def _find_target(program: re.Match[str] | None, output: RunnerOutput, shared: Collection[str | None]) -> str:
    """Return the main file of a test program; in a workspace, its crate too if other crates have such a file."""
    if program is None or program[1] is None:
        return "tests"
    file = "" if program[1] in shared else find_project_file(output.files, program[1], output.root)
    return file or f"{program[2]}/{program[1]}"


def _make_test(test_id: str, status: TestState, text: str, output: RunnerOutput) -> ReportedTest:
    if status != "failed":
        return ReportedTest(id=test_id, status=status)
    panic = PANIC.search(text)
    file = find_project_file(output.files, panic["file"], output.root) if panic else ""
    return ReportedTest(
        id=test_id,
        status="failed",
        message=" ".join((panic["text"] if panic else text).split())[:MAX_FAILURE_MESSAGE_CHARS],
        file=file,
        line=int(panic["line"]) if panic and file else None,
        details=text[:MAX_FAILURE_DETAIL_CHARS],
    )


def read_nextest_report(output: RunnerOutput) -> Report:
    """Read the report of `cargo nextest run`, which names a test program in place of a file."""
    cases = read_junit_cases(output.reports)
    tests = tuple(
        _make_test(f"{case.class_name}::{case.name}", case.status, case.details, output) for case in cases
    )
    return add_build_outcome(Report(tests=tests, has_finished=bool(tests)), output, COMPILER_ERROR)


def find_rust_tests(text: str) -> tuple[str, ...]:
    """Return the tests in a file: items for tests only, and the examples in its documentation, sorted."""
    tests = [text[start : _find_item_end(text, end)] for start, end in _find_test_attributes(text)]
    example: list[str] | None = None
    for line in text.splitlines():
        comment = DOC_LINE.match(line)
        if comment is None:
            example = None
        elif comment[1].strip().startswith("```"):
            tests += ["\n".join(example)] if example is not None else []
            example = [comment[1].strip()] if example is None else None
        elif example is not None:
            example.append(comment[1])
    return tuple(sorted(tests))


def _find_test_attributes(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each attribute of tests, or macro that asks for them, starts and ends."""
    for match in ATTRIBUTE_START.finditer(text):
        names, end, depth = "", match.end(), 0
        for token in TOKEN.finditer(text, end):
            # What literals and comments say does not count, as in `#[serde(rename = "latest")]`.
            names += f"{text[end : token.start()]} "
            end = token.end()
            depth += (token[0] in "([{") - (token[0] in ")]}")
            if depth <= 0:
                break
        if TEST_WORD.search(names):
            yield match.start(), end


def find_test_modules(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield globs of the files of modules that are compiled for tests only, such as `#[cfg(test)] mod fixtures;`."""
    for path, content in files.items():
        if not path.endswith(".rs"):
            continue
        folder, _, name = path.removesuffix(".rs").rpartition("/")
        inner = folder if name in ("lib", "main", "mod") else f"{folder}/{name}".lstrip("/")
        for module in TEST_MODULE.findall(content.decode("utf-8", "replace")):
            module_path = f"/{inner}/{module}".replace("//", "/")
            yield from (f"{module_path}.rs", f"{module_path}/**")


def _find_item_end(text: str, start: int) -> int:
    """Return where the item after an attribute ends: at its closing brace, or its semicolon."""
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if depth < 0 or (depth == 0 and token[0] in ";}"):
            return token.end()
    return len(text)


def detect_cargo_tests(project: ProjectOverview) -> tuple[tuple[str, ...], str] | None:
    """Return `cargo test` if there is a package with tests."""
    sources = (content for path, content in project.files.items() if path.endswith(".rs"))
    if "Cargo.toml" in project.files and any(b"#[test]" in text or b"::test]" in text for text in sources):
        return ("cargo", "test", "--workspace"), "Cargo.toml names a package with tests"
    return None


RUST = LanguageFacts(
    label="Rust",
    fence="rust",
    extensions=(".rs",),
    program="cargo",
    compiled=True,
    command_pattern=re.compile(r"cargo(?:-nextest)?"),
    runners=(
        Runner(
            name="nextest",
            command=re.compile(r"(?:^|[\s/])cargo[\s-]nextest\s+run(?:\s|$)"),
            read=read_nextest_report,
            files=lambda folder: {"nextest.toml": NEXTEST_CONFIGURATION.format(folder).encode()},
            arguments=lambda folder: ("--no-fail-fast", f"--tool-config-file=suture:{folder}/nextest.toml"),
            takes_arguments_first=True,
            report_globs=("./_suture/reports/*.xml", "*/nextest/*/junit.xml"),
            conflicting_options=re.compile(r"\s--(?:no-run|fail-fast)\b"),
        ),
        Runner(
            name="cargo test",
            command=re.compile(r"(?:^|[\s/])cargo\s+(?:\+\S+\s+)?(?:test|t)(?:\s|$)"),
            read=read_cargo_output,
            arguments=lambda folder: ("--no-fail-fast",),
            takes_arguments_first=True,
            conflicting_options=re.compile(r"\s(?:-q|--quiet|--no-run|--list|--format|--nocapture)\b"),
        ),
    ),
    line_comment="//",
    test_files=("tests/", "benches/", "tests.rs", "*_test.rs", "*_tests.rs", "test_*.rs"),
    config_globs=("Cargo.toml", "build.rs", ".cargo/", "rust-toolchain*", "nextest.toml"),
    detect_test_command=detect_cargo_tests,
    find_configured_files=find_test_modules,
    find_inline_tests=find_rust_tests,
    installation=("bin", "lib"),
    other_programs={"cargo-nextest": ()},
    package_cache=PackageCache(
        folder=lambda environ: f"{environ.get('CARGO_HOME') or environ.get('HOME', '') + '/.cargo'}/registry",
        mount_path="/tmp/cargo/registry",
    ),
    variables={
        "CARGO_HOME": "/tmp/cargo",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TERM_COLOR": "never",
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",  # panics name their lines without it, and the build is faster
    },
    error_pattern=re.compile(r"^error(?:\[E\d+\])?: |^thread '.*' .*panicked at "),
    find_missing=partial(find_missing_package, MISSING_CRATE, "run `cargo fetch` in the project"),
    test_count_pattern=re.compile(rb"^running (\d{1,9}) tests?$", re.MULTILINE),
)
