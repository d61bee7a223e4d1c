"""Wrong code that tries to pass, against three kinds of verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.conftest import Judge
from judge.split.forgeries import CORPUS, HANGING, SPLIT_TESTS, WEAK_TESTS, wrap_in_class
from suture.core.records import Check, Task
from suture.core.settings import SandboxSettings
from suture.judge import grade_program, prepare_suite
from suture.judge.extraction.program_plans import TaskNames, plan_program
from suture.sandbox import ProgramLimits, RunRequest, Sandbox

KNOWN_LIMITS = {
    "always equal",
    "a subclass of int",
    "a subclass of float",
    "claims to be an int",
    "a class whose instances are everything",
    "the function is a class",
    "the function is a callable object",
    "patched json",
    "patched modules of ours",
    "looks for the expected value in memory",
    "hunts through frames and memory while loading",
    "hunts through frames and memory when called",
}
"""Programs that pass in nonce mode. SECURITY.md counts them; change both together."""


@pytest.mark.parametrize("forgery", CORPUS)
async def test_no_forgery_passes_a_split_verdict(judge: Judge, forgery: str) -> None:
    verdict = await judge(CORPUS[forgery], *SPLIT_TESTS, check_timeout_s=1 if forgery in HANGING else 5)
    assert not verdict.passed
    assert not {o.status for o in verdict.outcomes} & {"passed", "skipped"}
    assert {o.evidence for o in verdict.outcomes} == {"split"}


@pytest.mark.parametrize("forgery", WEAK_TESTS)
async def test_no_weak_test_is_satisfied_by_odd_behaviour(judge: Judge, forgery: str) -> None:
    code, test = WEAK_TESTS[forgery]
    verdict = await judge(code, test)
    assert not verdict.passed
    assert {o.evidence for o in verdict.outcomes} == {"split"}


def test_the_documented_size_of_the_corpus_is_right() -> None:
    security_text = (Path(__file__).parents[3] / "SECURITY.md").read_text("utf-8")
    assert f"0 of {len(CORPUS)}" in security_text
    assert f"{len(WEAK_TESTS)} weak tests" in security_text


@pytest.mark.heavy
async def test_nonce_mode_passes_only_the_known_limits(judge: Judge) -> None:
    passed = set()
    for forgery, code in CORPUS.items():
        limit_s = 2 if forgery in HANGING else None
        verdict = await judge(wrap_in_class(code), "assert Box().get(3) == 8", check_timeout_s=limit_s)
        if verdict.passed:
            assert verdict.evidence == "nonce"
            passed.add(forgery)
    assert passed == KNOWN_LIMITS

    security_text = (Path(__file__).parents[3] / "SECURITY.md").read_text("utf-8")
    assert f"{len(KNOWN_LIMITS)} of {len(CORPUS)}" in security_text


async def test_the_corpus_fools_a_judge_that_reads_exit_codes(sandbox: Sandbox) -> None:
    fooled = set()
    for forgery, code in CORPUS.items():
        if forgery not in HANGING:
            program = RunRequest(python=f"{code}\nassert f(3) == 8", limits=ProgramLimits(wall_s=5))
            if (await sandbox.run(program)).status == "ok":
                fooled.add(forgery)

    assert len(fooled) >= len(KNOWN_LIMITS)
    assert {"os._exit(0)", "raises SystemExit at import", "exits at exit", "always equal"} <= fooled


async def test_a_right_program_passes(judge: Judge) -> None:
    assert (await judge("def f(x): return 8", *SPLIT_TESTS)).all_passed


@pytest.mark.parametrize(
    "code",
    [
        "import os\nclass Box:\n    def get(self): os._exit(0)",
        "import sys\nclass Box:\n    def get(self): sys.exit(0)",
        "class Box:\n    def get(self): print('PASSED'); return 0",
        "raise SystemExit",
    ],
)
async def test_an_early_exit_in_nonce_mode_is_no_pass(judge: Judge, code: str) -> None:
    verdict = await judge(code, "assert Box().get() == 1")
    assert not verdict.passed


@pytest.mark.parametrize(
    "code",
    ["import sys\nclass Cart: total = sys.exit", "class Cart:\n    total = staticmethod(SystemExit)"],
)
@pytest.mark.parametrize(
    "test",
    [
        "assert Cart().total() == 5",
        "Cart().total()\nassert Cart().total() == 5",
        "assert Cart().total() == 5\nexit()",
    ],
)
async def test_an_exit_of_the_code_is_no_pass(judge: Judge, code: str, test: str) -> None:
    assert not (await judge(code, test)).passed


@pytest.mark.parametrize(
    "end", ["import sys\nsys.exit(0)", "raise SystemExit", "import unittest\nunittest.main()"]
)
async def test_a_test_may_exit_by_itself(judge: Judge, end: str) -> None:
    code = "class Cart:\n    def total(self): return 5"
    assert (await judge(code, f"assert Cart().total() == 5\n{end}")).all_passed
    assert not (await judge(code, f"assert Cart().total() == 6\n{end}")).passed


async def test_the_judge_never_holds_the_candidates_code(judge: Judge) -> None:
    spy = (
        "os, look = __import__('o' + 's'), getattr(__import__('io'), 'op' + 'en')\n"
        "names = [os.path.join(d, n) for d, _, ns in os.walk('/box') for n in ns]\n"
        "text = ''.join(look(n, errors='replace').read() for n in names)\n"
    )
    verdict = await judge(
        "SECRET = 'xyzzy' + '42'\ndef f(): return 1", f"{spy}assert 'xyz' + 'zy' not in text and f() == 1"
    )

    assert verdict.all_passed, verdict.counterexamples
    assert verdict.evidence == "split"


async def test_the_candidate_never_sees_a_test(judge: Judge) -> None:
    code = (
        "import os, gc\n"
        "def f(x):\n"
        "    files = [os.path.join(d, n) for d, _, ns in os.walk('/box') for n in ns]\n"
        "    text = ''.join(open(n, errors='replace').read() for n in files)\n"
        "    held = [o for o in gc.get_objects() if isinstance(o, dict) and 'canary' in o]\n"
        "    return 'can' + 'ary_' in text or bool(held)\n"
    )
    verdict = await judge(code, "canary_ = 8\nassert f(1) == False")

    assert verdict.all_passed, verdict.counterexamples


async def test_a_suite_refuses_hidden_checks(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    hidden = Check(id="hidden", provenance="oracle", source="assert f(1) == 2")
    with pytest.raises(ValueError, match="oracle"):
        await prepare_suite(Task(statement="", checks=(hidden,)), sandbox, sandbox_settings)


async def test_files_that_could_change_the_verdict_are_refused(
    sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    forged = {"_suture/suture/checks/wire.py": b"import os; os._exit(0)", "_suture/json.py": b"1/0"}
    outcome = await grade_program(
        "def f(): return 1", "assert f() == 1", sandbox, sandbox_settings, files=forged
    )
    assert outcome.passed


def test_a_test_keeps_its_own_builtins() -> None:
    plan = plan_program("assert abs(f(1)) == 1", TaskNames(files=("s.py",), module="s.py"))
    assert set(plan.names) == {"f"}


NONCE_TEST = "a = Account()\na.deposit(5)\nassert {}"
WRONG_ACCOUNT = (
    "class Account:\n    def __init__(self):\n        self.balance = 0\n"
    "    def deposit(self, n):\n        self.history = n\n"
)


@pytest.mark.parametrize(
    ("replacement", "condition"),
    [
        ("def abs(value):\n    return 0\n", "abs(a.balance - 5) < 1e-9"),
        ("from builtins import bool as all\n", "all(x == 5 for x in [a.balance])"),
        (
            "class frozenset(tuple):\n    __new__ = lambda cls, *_: ()\n",
            "frozenset([a.balance]) == frozenset([5])",
        ),
        ("class math:\n    dist = staticmethod(lambda *_: 0)\n", "math.dist([a.balance], [5]) == 0"),
    ],
)
async def test_a_candidate_does_not_replace_what_a_test_decides_with(
    judge: Judge, replacement: str, condition: str
) -> None:
    """Also if the test imports everything from the candidate's module."""
    test = NONCE_TEST.format(condition)
    wrong = await judge(WRONG_ACCOUNT + replacement, test, f"from solution import *\n{test}")
    right = await judge(WRONG_ACCOUNT.replace("self.history = n", "self.balance += n"), test)

    assert [outcome.status for outcome in wrong.outcomes] == ["failed", "failed"]
    assert wrong.evidence == "nonce"
    assert right.all_passed, right.counterexamples


async def test_a_test_uses_the_function_of_the_task_that_is_called_like_a_builtin(judge: Judge) -> None:
    code = "class Box:\n    def get(self):\n        return 3\ndef sorted(box):\n    return box.get()\n"
    verdict = await judge(code, "from solution import sorted\nassert sorted(Box()) == 3")

    assert verdict.all_passed, verdict.counterexamples
