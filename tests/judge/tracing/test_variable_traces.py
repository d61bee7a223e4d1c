"""Traces of one call behind the wall: values line by line, bounded, and never a verdict."""

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
MENDED = CODE.replace(b"result = value", b"result += value")


def probe_of(sandbox: Sandbox, code: bytes = CODE, **more: Any) -> TraceTarget:
    files = {"pkg/stats.py": code, "pkg/__init__.py": b""}
    return TraceTarget(
        sandbox=sandbox, settings=SandboxSettings(), files=files, module="pkg/stats.py", **more
    )


async def test_a_trace_shows_what_each_line_changed(sandbox: Sandbox) -> None:
    probe = probe_of(sandbox)
    seen = await run_traced_code(probe, "half([1, 2])", trace=True)
    assert (seen.ending, seen.value) == ("returned", "1.0")
    assert render_trace(seen, probe.files) == (
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


async def test_an_exception_is_seen_where_it_is_raised(sandbox: Sandbox) -> None:
    seen = await run_traced_code(probe_of(sandbox), "half([])", trace=True)
    assert seen.ending == "raised"
    assert seen.exception == "ZeroDivisionError: division by zero"
    assert "line 9: return total(values) / len(values)   -> raises ZeroDivisionError" in render_trace(
        seen, probe_of(sandbox).files
    )


async def test_an_endless_loop_is_stopped_and_its_lines_are_seen(sandbox: Sandbox) -> None:
    probe = probe_of(sandbox)
    seen = await run_traced_code(probe, "spin()", trace=True)
    assert (seen.ending, seen.omitted) == ("stopped", -1)
    text = render_trace(seen, probe.files)
    assert "n += 1   -> n = 1\n" in text
    assert "or more lines ..." in text
    assert text.endswith("as in an endless loop.")
    assert len(text.splitlines()) <= 62


async def test_one_that_never_comes_back_is_told_as_lost(sandbox: Sandbox) -> None:
    probe = replace(probe_of(sandbox), settings=SandboxSettings(check_timeout_s=1))
    seen = await run_traced_code(probe, "__import__('time').sleep(30)", trace=True)
    assert seen.ending == "lost"
    assert "within 1 s" in render_trace(seen, probe.files)
    seen = await run_traced_code(probe_of(sandbox), "__import__('os')._exit(3)")
    assert (seen.ending, seen.exception) == ("lost", "the program ended without an answer (failed)")


async def test_values_are_short_and_without_addresses(sandbox: Sandbox) -> None:
    probe = probe_of(sandbox)
    text = render_trace(await run_traced_code(probe, "odd()", trace=True), probe.files)
    assert "thing = <Odd whose repr raised ValueError>" in text or "thing = <Odd instance" in text
    assert "plain = <object object>" in text
    assert "0x" not in text
    assert max(map(len, text.splitlines())) < 300


async def test_a_snippet_shows_what_it_prints_and_its_last_value(sandbox: Sandbox) -> None:
    seen = await run_traced_code(
        probe_of(sandbox), "for n in (1, 2):\n    print(n)\ntotal([n])", setup="n = 0"
    )
    assert (seen.ending, seen.printed, seen.value, seen.entries) == ("returned", "1\n2\n", "2", [])
    seen = await run_traced_code(probe_of(sandbox), "print('x' * 100_000)")
    assert len(seen.printed) < 2100
    seen = await run_traced_code(probe_of(sandbox), "total(")
    assert seen.exception.startswith("SyntaxError")
    seen = await run_traced_code(probe_of(sandbox, b"1 /"), "1")
    assert seen.exception.startswith("SyntaxError")


async def test_it_runs_in_the_users_own_interpreter(sandbox: Sandbox) -> None:
    python = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
    seen = await run_traced_code(probe_of(sandbox, interpreter=python), "half([3])", trace=True)
    assert (seen.ending, seen.value) == ("returned", "3.0")
    assert [entry.function for entry in seen.entries if entry.note == "called"] == ["half", "total"]


async def test_the_first_variable_that_differs_from_a_good_run(sandbox: Sandbox) -> None:
    bad = await run_traced_code(probe_of(sandbox), "half([1, 2])", trace=True)
    good = await run_traced_code(probe_of(sandbox, MENDED), "half([1, 2])", trace=True)
    told = find_divergence(bad, good)
    assert told == "`result` in total is 2 at line 4 of pkg/stats.py, and 3 in the run that passes"
    assert find_divergence(good, good) == ""
    assert find_divergence(RunTrace(ending="lost"), good) == ""


@pytest.mark.parametrize("answer", ["", "{}", "[[]]", '{"entries": [[1]]}', '{"entries": [], "ending": 1}'])
async def test_what_is_no_answer_is_told_as_lost(sandbox: Sandbox, answer: str) -> None:
    everywhere = f"for fd in range(3, 9):\n    try:\n        os.write(fd, {answer.encode()!r})"
    forged = f"import os\n{everywhere}\n    except OSError:\n        pass\nos._exit(0)"
    seen = await run_traced_code(probe_of(sandbox), forged)
    assert (seen.ending, seen.exception) == ("lost", "the program ended without an answer (ok)")
