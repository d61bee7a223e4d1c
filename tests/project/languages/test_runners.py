"""Which runner a command starts, how a report is requested, and what it contains."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from suture.project.languages import (
    LANGUAGES,
    RunnerOutput,
    add_report_arguments,
    detect_language,
    find_runner,
)
from suture.project.languages.go import read_stream
from suture.project.languages.javascript import read_events


@pytest.mark.parametrize(
    ("command", "script", "name"),
    [
        ("npm test", "node --test", "node:test"),
        ("npm test", "tsc && jest --ci", "Jest"),
        ("npm run unit", "vitest run", "Vitest"),
        ("npx jest", "", "Jest"),
        ("node_modules/.bin/vitest run", "", "Vitest"),
        ("node --test lib", "", "node:test"),
        ("npm test", "jest && eslint .", None),
        ("npm test", "mocha", None),
        ("npm test", "node --test --test-reporter=tap", None),
        ("make test", "jest", None),
    ],
)
def test_the_runner_follows_from_the_command_or_its_script(
    command: str, script: str, name: str | None
) -> None:
    files = {"package.json": json.dumps({"scripts": {"test": script, "unit": script}}).encode()}
    runner = find_runner(command.split(), files, "javascript")
    assert (runner.name if runner else None) == name


def test_arguments_for_a_script_follow_two_dashes() -> None:
    assert add_report_arguments(("npm", "test"), ("--x",)) == ("npm", "test", "--", "--x")
    assert add_report_arguments(("npx", "jest"), ("--x",)) == ("npx", "jest", "--x")
    assert add_report_arguments(("npm", "test"), ()) == ("npm", "test")


def test_typescript_is_detected_by_file_names() -> None:
    assert detect_language(("npm", "test"), ("a.ts", "b.ts", "c.js")) == "typescript"
    assert detect_language(("npm", "test"), ("a.js",)) == "javascript"


def make_test_event(name: str, status: str = "passed", kind: str = "test") -> Mapping[str, object]:
    return {"event": kind, "file": "/box/a.test.js", "names": [name], "status": status}


def test_a_test_passes_only_if_the_process_that_ran_it_says_so() -> None:
    watched: Mapping[str, object] = {"event": "watched", "file": "/box/a.test.js", "changed": []}
    outcomes = [make_test_event("a", kind="outcome"), make_test_event("b", "failed", "outcome")]
    tests = map(make_test_event, ("a", "a", "b", "c"))
    events: list[Mapping[str, object]] = [{"event": "begin"}, *tests, {"event": "end"}]

    def read_statuses(*process_events: Mapping[str, object]) -> list[str]:
        output = RunnerOutput(
            stdout=b"", stderr=b"", events=events, process_events=process_events, files={}, root="/box"
        )
        return [test.status for test in read_events(output).tests]

    assert read_statuses(watched, *outcomes) == ["passed", "failed", "failed", "failed"]
    assert (
        read_statuses() == ["passed"] * 4
    )  # such as a browser's tests, which no process of Suture's watches


@pytest.mark.parametrize("further_event", ["test", "watched", "end"])
def test_a_report_that_goes_on_after_its_end_is_not_finished(further_event: str) -> None:
    events: list[Mapping[str, object]] = [{"event": "begin"}, make_test_event("a"), {"event": "end"}]
    event: Mapping[str, object] = {**make_test_event("b", kind=further_event), "changed": []}

    def has_finished(events: list[Mapping[str, object]]) -> bool:
        output = RunnerOutput(stdout=b"", stderr=b"", events=events, files={}, root="/box")
        return read_events(output).has_finished

    assert has_finished(events)
    assert not has_finished([*events, event])


def test_a_go_report_names_failed_tests_and_their_lines() -> None:
    events = [
        {"Action": "run", "Test": "TestA"},
        {"Action": "run", "Test": "TestA/one"},
        {"Action": "output", "Test": "TestA/one", "Output": "    a_test.go:9: got 1, want 2\n"},
        {"Action": "fail", "Test": "TestA/one"},
        {"Action": "fail", "Test": "TestA"},
        {"Action": "run", "Test": "TestNeverEnds"},
        {"Action": "fail"},
    ]
    stream = "".join(json.dumps({"Package": "example.org/m/in", **event}) + "\n" for event in events)
    files = {"go.mod": b"module example.org/m\n", "in/a_test.go": b""}
    output = RunnerOutput(stdout=stream.encode(), stderr=b"", events=(), files=files, root="/box")
    report = read_stream(output)
    assert [test.status for test in report.tests] == ["failed", "failed", "failed"]
    assert report.has_finished

    inner = report.tests[1]
    assert (inner.id, inner.message) == ("in::TestA/one", "got 1, want 2")
    assert (inner.file, inner.line) == ("in/a_test.go", 9)


def test_a_go_benchmark_without_a_reported_end_is_no_failure() -> None:
    events = [
        {"Action": "run", "Test": "TestA"},
        {"Action": "pass", "Test": "TestA"},
        {"Action": "run", "Test": "BenchmarkA"},
        {"Action": "output", "Test": "BenchmarkA", "Output": "BenchmarkA-8  10  52.1 ns/op\n"},
        {"Action": "run", "Test": "BenchmarkB"},
        {"Action": "bench", "Test": "BenchmarkB"},
    ]

    def read_statuses(*further_events: dict[str, str]) -> list[str]:
        stream = "".join(
            json.dumps({"Package": "example.org/m", **event}) + "\n" for event in (*events, *further_events)
        )
        output = RunnerOutput(stdout=stream.encode(), stderr=b"", events=(), files={}, root="/box")
        return [test.status for test in read_stream(output).tests]

    assert read_statuses({"Action": "pass"}) == ["passed"]
    assert read_statuses({"Action": "fail", "Test": "BenchmarkB"}, {"Action": "fail"}) == ["passed", "failed"]
    assert read_statuses({"Action": "run", "Test": "TestB"}, {"Action": "fail"}) == ["passed", "failed"]


TOO_LONG = "1" * 5000
"""More digits than Python converts to a number. Code under test can print them."""


def test_a_line_number_that_is_too_long_breaks_no_report() -> None:
    stack = f"Error: bad\n    at f (/box/a.test.js:{TOO_LONG}:1)\n    at /box/a.test.js:{TOO_LONG}:1\n"
    failed = {**make_test_event("a", "failed"), "message": "bad", "stack": stack}
    events: list[Mapping[str, object]] = [{"event": "begin"}, failed, {"event": "end"}]
    node = RunnerOutput(stdout=b"", stderr=b"", events=events, files={"a.test.js": b""}, root="/box")
    assert [test.message for test in read_events(node).tests] == ["bad"]

    for line in (f"    a_test.go:{TOO_LONG}: bad\n", f"panic: bad\n\t/box/a_test.go:{TOO_LONG} +0x1\n"):
        outputs = [
            {"Action": "output", "Test": "TestA", "Output": part} for part in line.splitlines(keepends=True)
        ]
        go_events = [{"Action": "run", "Test": "TestA"}, *outputs, {"Action": "fail", "Test": "TestA"}]
        stream = "".join(json.dumps({"Package": "m", **event}) + "\n" for event in go_events)
        files = {"go.mod": b"module m\n", "a_test.go": b""}
        go = RunnerOutput(stdout=stream.encode(), stderr=b"", events=(), files=files, root="/box")
        assert [test.status for test in read_stream(go).tests] == ["failed"]


@pytest.mark.parametrize(
    "count", ["# tests {}", "Tests: {} total", "     Tests  1 passed ({})", "  {} passing"]
)
def test_a_printed_count_that_is_too_long_is_a_number_or_none(count: str) -> None:
    pattern = LANGUAGES["javascript"].test_count_pattern
    assert pattern.search(count.format(12).encode())
    for match in pattern.finditer(count.format(TOO_LONG).encode()):
        assert all(int(group) for group in match.groups() if group)
