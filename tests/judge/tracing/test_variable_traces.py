"""Traces of one call in the sandbox: values line by line, within limits, and never a verdict."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from suture.core.settings import SandboxSettings
from suture.judge.tracing.variable_trace import (
    RunTrace,
    TraceTarget,
    find_divergence,
    render_trace,
    run_traced_code,
)
from suture.sandbox import Sandbox, discover_interpreter

CODE = b"""\
def total(values):
    result = 0
    for value in values:
        result = value
    return result


def half(values):
    return total(values) / len(values)


def spin():
    n = 0
    while True:
        n += 1


class Odd:
    def __repr__(self):
        raise ValueError("no")


def odd():
    thing = Odd()
    plain = object()
    return [0] * 10_000
"""
FIXED = CODE.replace(b"result = value", b"result += value")


def make_target(sandbox: Sandbox, code: bytes = CODE, **options: Any) -> TraceTarget:
    files = {"pkg/stats.py": code, "pkg/__init__.py": b""}
    return TraceTarget(
        sandbox=sandbox, settings=SandboxSettings(), files=files, module="pkg/stats.py", **options
    )


async def test_a_trace_shows_what_each_line_changed(sandbox: Sandbox) -> None:
    target = make_target(sandbox)
    trace = await run_traced_code(target, "half([1, 2])", trace=True)

    assert (trace.ending, trace.value) == ("returned", "1.0")
    assert render_trace(trace, target.files) == (
        "half is called with values = [1, 2]\n"
        "line 9: return total(values) / len(values)   -> returns 1.0\n"
        "  total is called with values = [1, 2]\n"
        "  line 2: result = 0   -> result = 0\n"
        "  line 3: for value in values:   -> value = 1\n"
        "  line 4: result = value   -> result = 1\n"
        "  line 3: for value in values:   -> value = 2\n"
        "  line 4: result = value   -> result = 2\n"
        "  line 3: for value in values:\n"
        "  line 5: return result   -> returns 2\n"
        "The result is 1.0"
    )


async def test_an_exception_is_shown_at_the_line_that_raises_it(sandbox: Sandbox) -> None:
    trace = await run_traced_code(make_target(sandbox), "half([])", trace=True)
    assert trace.ending == "raised"
    assert trace.exception == "ZeroDivisionError: division by zero"
    assert "line 9: return total(values) / len(values)   -> raises ZeroDivisionError" in render_trace(
        trace, make_target(sandbox).files
    )


async def test_an_endless_loop_is_stopped_and_its_lines_are_shown(sandbox: Sandbox) -> None:
    target = make_target(sandbox)
    trace = await run_traced_code(target, "spin()", trace=True)
    assert (trace.ending, trace.omitted) == ("stopped", -1)

    text = render_trace(trace, target.files)
    assert "n += 1   -> n = 1\n" in text
    assert "or more lines ..." in text
    assert text.endswith("as in an endless loop.")
    assert len(text.splitlines()) <= 62


async def test_a_call_that_never_returns_is_reported_as_lost(sandbox: Sandbox) -> None:
    target = replace(make_target(sandbox), settings=SandboxSettings(check_timeout_s=1))
    trace = await run_traced_code(target, "__import__('time').sleep(30)", trace=True)
    assert trace.ending == "lost"
    assert "within 1 s" in render_trace(trace, target.files)
    trace = await run_traced_code(make_target(sandbox), "__import__('os')._exit(3)")
    assert (trace.ending, trace.exception) == ("lost", "the program ended without an answer (failed)")


async def test_values_are_short_and_without_addresses(sandbox: Sandbox) -> None:
    target = make_target(sandbox)
    text = render_trace(await run_traced_code(target, "odd()", trace=True), target.files)
    assert "thing = <Odd whose repr raised ValueError>" in text or "thing = <Odd instance" in text
    assert "plain = <object object>" in text
    assert "0x" not in text
    assert max(map(len, text.splitlines())) < 300


async def test_a_snippet_shows_what_it_prints_and_its_last_value(sandbox: Sandbox) -> None:
    trace = await run_traced_code(
        make_target(sandbox), "for n in (1, 2):\n    print(n)\ntotal([n])", setup="n = 0"
    )
    assert (trace.ending, trace.printed, trace.value, trace.entries) == ("returned", "1\n2\n", "2", [])

    trace = await run_traced_code(make_target(sandbox), "print('x' * 100_000)")
    assert len(trace.printed) < 2100

    trace = await run_traced_code(make_target(sandbox), "total(")
    assert trace.exception.startswith("SyntaxError")

    trace = await run_traced_code(make_target(sandbox, b"1 /"), "1")
    assert trace.exception.startswith("SyntaxError")


async def test_a_trace_can_run_in_the_users_interpreter(sandbox: Sandbox) -> None:
    python = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    trace = await run_traced_code(make_target(sandbox, interpreter=python), "half([3])", trace=True)
    assert (trace.ending, trace.value) == ("returned", "3.0")
    assert [entry.function for entry in trace.entries if entry.note == "called"] == ["half", "total"]


async def test_the_first_difference_from_a_passing_run_is_found(sandbox: Sandbox) -> None:
    bad = await run_traced_code(make_target(sandbox), "half([1, 2])", trace=True)
    good = await run_traced_code(make_target(sandbox, FIXED), "half([1, 2])", trace=True)
    divergence = find_divergence(bad, good)
    assert divergence == "`result` in total is 2 at line 4 of pkg/stats.py, and 3 in the run that passes"
    assert find_divergence(good, good) == ""
    assert find_divergence(RunTrace(ending="lost"), good) == ""


@pytest.mark.parametrize("answer", ["", "{}", "[[]]", '{"entries": [[1]]}', '{"entries": [], "ending": 1}'])
async def test_a_forged_answer_is_reported_as_lost(sandbox: Sandbox, answer: str) -> None:
    write_to_descriptors = f"for fd in range(3, 9):\n    try:\n        os.write(fd, {answer.encode()!r})"
    forged = f"import os\n{write_to_descriptors}\n    except OSError:\n        pass\nos._exit(0)"
    trace = await run_traced_code(make_target(sandbox), forged)
    assert (trace.ending, trace.exception) == ("lost", "the program ended without an answer (ok)")
