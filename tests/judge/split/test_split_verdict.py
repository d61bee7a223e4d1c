"""The split verdict: the test runs in one process and the code under test in another."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from judge.conftest import Judge
from suture.core.records import Counterexample, Verdict, VerdictNote
from suture.core.settings import SandboxSettings
from suture.errors import SandboxUnavailable
from suture.judge import extract_asserts, grade_program
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.judge.split.judge_program import run_program
from suture.sandbox import BubblewrapSandbox, Sandbox


def single_fact(verdict: Verdict) -> Counterexample:
    (fact,) = verdict.counterexamples
    return fact


async def test_values_mutations_and_identities_cross_processes(judge: Judge) -> None:
    code = """
import math
LIMIT = {"k": (1, 2.5)}
class Wrong(ValueError): pass
def echo(x): return x
def push(items): items.append(items); return items
def drain(items):
    while items: items.pop()
    raise Wrong("empty", 3)
def count(n):
    for i in range(n): yield i
def keys(d): return d.keys()
"""
    verdict = await judge(
        code,
        "for x in (None, True, 1, 2**70, 1.5, -0.0, 1j, 'a', '\\ud800', b'b', (1,), {1}, ...):\n"
        "    y = echo(x)\n    assert type(y) is type(x) and repr(y) == repr(x)",
        "x = []\ny = push(x)\nassert y is x\nassert x[0] is x",
        "x = [1, 2]\ntry:\n    drain(x)\nexcept Wrong as fault:\n"
        "    assert fault.args == ('empty', 3)\nassert x == []",
        "x = [1, 2]\ntry:\n    drain(x)\nexcept ValueError:\n    pass\nelse:\n    assert False",
        "assert list(count(3)) == [0, 1, 2]\nassert sorted(keys({2: 1, 1: 2})) == [1, 2]",
        "assert LIMIT['k'] == (1, 2.5) and math.floor(2.5) == 2",
        "def check(candidate):\n    assert candidate(2) == 2\ncheck(echo)",
        "from solution import echo as same\nassert same(3) == 3",
        "import sys\nassert echo(1) == 1\nsys.exit(0)",
    )

    assert [o.status for o in verdict.outcomes] == ["passed"] * 9, verdict.counterexamples
    assert verdict.evidence == "split"
    assert verdict.all_passed


@pytest.mark.parametrize(
    ("program", "call", "expected", "got"),
    [
        ("assert f([1, 2], k=3) == 4", "f([1, 2], k=3)", "4", "[1, 2]"),
        ("assert 4 == f(5)", "f(5)", "4", "5"),
        ("x = [1]\nresult = f(x)\nx.append(2)\nassert result == [2], 'message'", "f([1])", "[2]", "[1, 2]"),
        ("def check(c):\n    for n in range(9):\n        assert c(n) == n % 7\ncheck(f)", "f(7)", "0", "7"),
        ("assert not f(1)", "f(1)", "a false value", "1"),
        ("assert f(0)", "f(0)", "a true value", "0"),
        ("assert f(1) in (2, 3)", "f(1)", "one of (2, 3)", "1"),
        ("assert f(1) is None", "f(1)", "None itself", "1"),
        ("assert abs(f(1) - 3) < 0.5", "abs(f(1) - 3)", "less than 0.5", "2 (where f(1) answered 1)"),
        ("assert isinstance(f(1), str)", "f(1)", "`isinstance(f(1), str)` to hold", "1"),
        ("assert f(f(1)) == 2", "f(1)", "2", "1"),
    ],
)
def test_a_failed_assert_has_facts(program: str, call: str, expected: str, got: str) -> None:
    fact = judge_without_sandbox("def f(x, k=0):\n    return x\n", program)["fact"]
    assert (fact["call"], fact["expected"], fact["actual"]) == (call, expected, got)


def judge_without_sandbox(code: str, program: str) -> dict[str, Any]:
    """Run the judge's own program without a sandbox, for a candidate that returns its first argument."""
    names = TaskNames(files=("solution.py",), module="solution.py", functions=frozenset({"f"}))
    plan = plan_program(program, names)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        args = next(n for n in request["nodes"] if n[0] == request["value"][1])[2]
        first = next(n for n in request["nodes"] if n[0] == args[1])[2]
        return {"value": first, "nodes": []}

    return run_program({"source": plan.source, "names": plan.names, "expects": plan.expects}, answer)


async def test_an_exception_names_call_expectation_and_line(judge: Judge) -> None:
    verdict = await judge("def f(x):\n    y = 1\n    return y / x\n", "want = 3\nassert f(0) == want")
    fact = single_fact(verdict)
    assert (fact.call, fact.expected, fact.file, fact.line) == ("f(0)", "3", "solution.py", 3)
    assert fact.exception == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("code", "exception", "line"),
    [
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax", 2),
        ("x = 1\n1 / 0\ndef f(): return 1", "ZeroDivisionError: division by zero", 2),
        ("import nowhere\n", "ModuleNotFoundError: No module named 'nowhere'", 1),
    ],
)
async def test_code_that_does_not_load_fails_all_checks_with_one_fact(
    judge: Judge, code: str, exception: str, line: int
) -> None:
    verdict = await judge(code, "assert f() == 1", "assert f() == 2")
    assert [o.status for o in verdict.outcomes] == ["error", "error"]
    assert (single_fact(verdict).exception, single_fact(verdict).line) == (exception, line)


@pytest.mark.heavy
async def test_a_bad_call_does_not_affect_the_next_check(judge: Judge) -> None:
    code = """
import os, sys
def f(x):
    if x == 1:
        while True: pass
    if x == 2: os._exit(0)
    if x == 3: sys.exit(0)
    if x == 4: return f(4)
    if x == 5: return [0] * 10**10
    return x
"""
    programs = [f"assert f({n}) == {n}" for n in range(7)]
    verdict = await judge(code, *programs, check_timeout_s=5)
    statuses = [o.status for o in verdict.outcomes]
    assert statuses == ["passed", "timeout", "error", "error", "failed", "failed", "passed"]

    exceptions = [fact.exception for fact in verdict.counterexamples]
    assert exceptions[0] == "no answer within 5 s"
    assert exceptions[1] == "the program ended (exit code 0)"
    assert exceptions[2] == "SystemExit: 0"
    assert exceptions[3].startswith("RecursionError")
    assert exceptions[4] == "MemoryError"


async def test_checks_with_live_objects_are_judged_and_listed(judge: Judge) -> None:
    code = """
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
def apply(f, x): return f(x)
def twice(x): return 2 * x
"""
    verdict = await judge(
        code,
        "s = Stack()\ns.push(1)\nassert s.items == [1]",
        "assert apply(lambda x: x + 1, 1) == 2",
        "assert twice(1) == 2",
        "import inspect\nassert str(inspect.signature(twice)) == '(y)'",
    )

    assert [(o.status, o.evidence) for o in verdict.outcomes] == [
        ("passed", "nonce"),
        ("passed", "nonce"),
        ("passed", "split"),
        ("failed", "nonce"),
    ]
    assert verdict.evidence == "nonce"
    assert verdict.notes == (VerdictNote(code="live_objects", subjects=("0", "1", "3")),)
    assert single_fact(verdict).actual == "'(x)'"


async def test_printed_output_is_kept_and_does_not_disturb_the_protocol(judge: Judge) -> None:
    verdict = await judge(
        "print('loading')\ndef f(x):\n    print('PASSED', x)\n    return x\n", "assert f(1) == 1"
    )
    assert verdict.all_passed
    assert "loading" in verdict.output
    assert "PASSED 1" in verdict.output


async def test_unittest_programs_are_judged_with_the_evidence_they_need(judge: Judge) -> None:
    suite = """
import unittest
class Tests(unittest.TestCase):
    def test_it(self):
        {}
result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromTestCase(Tests))
assert result.testsRun == 1 and result.wasSuccessful()
"""
    code = "def f(x): return x\ndef apply(g, x): return g(x)\n"

    verdict = await judge(
        code,
        suite.format("self.assertEqual(f(1), 1)"),
        suite.format("self.assertEqual(f(1), 2)"),
        suite.format("self.assertEqual(apply(lambda x: x, 1), 1)"),
    )

    assert [(o.status, o.evidence) for o in verdict.outcomes] == [
        ("passed", "split"),
        ("failed", "split"),
        ("passed", "nonce"),
    ]


@pytest.mark.parametrize(
    "line", ["import os", "from unittest.mock import patch", "open('x')", "random.seed(1)"]
)
def test_a_test_that_shares_files_or_patches_needs_one_process(line: str) -> None:
    names = TaskNames(files=("s.py",), module="s.py")
    assert plan_program(f"{line}\nassert f(1) == 1", names).live_reason


async def test_asserts_in_a_loop_decide(judge: Judge) -> None:
    programs = [
        check.source
        for check in extract_asserts("assert f(1) == 2\nfor i in (1, 2):\n    assert f(i) == 2 * i")
    ]
    assert not (await judge("def f(x): return 2", *programs)).all_passed
    assert (await judge("def f(x): return 2 * x", *programs)).all_passed


async def test_a_cancelled_verdict_does_not_wait_for_a_hanging_program(
    sandbox: Sandbox, sandbox_settings: SandboxSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Waiting for the program would take this long.
    monkeypatch.setattr("suture.sandbox.execution.base_sandbox.FINISH_TIMEOUT_S", 60)
    judging = asyncio.create_task(
        grade_program("def f():\n    while True: pass", "assert f() == 1", sandbox, sandbox_settings)
    )

    await asyncio.sleep(2)
    started_s = time.monotonic()
    judging.cancel()

    with pytest.raises(asyncio.CancelledError):
        await judging
    assert time.monotonic() - started_s < 30


async def test_a_missing_sandbox_is_an_error(sandbox_settings: SandboxSettings) -> None:
    with pytest.raises(SandboxUnavailable):
        await grade_program(
            "def f(): return 1", "assert f() == 1", BubblewrapSandbox(find=list), sandbox_settings
        )
